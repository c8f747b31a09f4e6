"""How a score, what masks and positions do to it, its share of the row and the mix of values came about."""

from __future__ import annotations

import math

import torch

from engine.analysis.arithmetic.explanation import (
    WHOLE,
    Line,
    Operand,
    Products,
    Role,
    Span,
    Steps,
    number,
    operand,
    products_line,
    result,
    setting,
)
from engine.analysis.arithmetic.sources import Source
from engine.model.layers.attention import Attention
from engine.model.layers.mask import (
    Blocks,
    Causal,
    Full,
    IntersectionMask,
    Mask,
    Padding,
    PaintedMask,
    Prefix,
    RowPrefix,
    SlidingWindow,
)
from engine.model.layers.position import alibi_slopes, distance_rows, infill_positions, relative_buckets
from engine.model.layers.rotary import grid_angles, rotary_frequencies
from engine.plurals import count_words

ADDED = {"bias": "position bias", "c2p": "query · distance", "p2c": "key · distance"}  # to a score, by hook
READABLE = 20  # e^x is written without a shift up to this |x|


def explain_attention(source: Source, name: str, pos: int, unit: int, head: int) -> Steps:
    """`name` is that of a hook of `Attention` whose axes are head pos key, or head."""
    match name:
        case "scores":
            return score(source, pos, unit, head)
        case "capped":
            return capped_score(source, pos, unit, head)
        case "bias":
            return position_bias(source, pos, unit, head)
        case "c2p" | "p2c":
            return distance_term(source, name, pos, unit, head)
        case "mask":
            return mask(source, pos, unit, head)
        case "masked_scores":
            return masked(source, pos, unit, head)
    return pattern(source, pos, unit, head)


def attention_of(source: Source) -> tuple[Attention, str]:
    """The module that a hook belongs to, and its path with a dot."""
    name = "cross_attn" if "cross_attn" in source.part else "attn"
    module = getattr(source.stack.blocks[source.layer or 0], name)
    assert isinstance(module, Attention)
    return module, f"{source.block}{name}."


def vector(source: Source, hook: str, pos: int, head: int | None, label: str, role: Role, axis: str = "") -> Operand:
    return Operand(label, source.row(hook, pos, head), hook, source.index(hook, pos, head), axis, role)


def score(source: Source, pos: int, key: int, head: int) -> Steps:
    module, path = attention_of(source)
    names = [source.first_of(*(f"{path}{x}{end}" for end in ("_rotated", "_norm.out", ""))) for x in "qk"]
    q = vector(source, names[0], pos, head, "q", "query", "d_head")
    k = vector(source, names[1], key, head, "k", "key", "d_head")
    products = q.values * k.values
    dot = float(products.sum())
    value = dot * module.scale
    line = (Span("q", "query"), "·", Span("k", "key"), " = ", *products_line(q.values, k.values), " = ", result(dot))
    product = Operand("q × k", products, path + "scores", (), "d_head", "attention")
    return Steps("dot product", value, (line, scaled("score", dot, module)), (q, k, product))


def scaled(name: str, dot: float, module: Attention) -> Line:
    """Says what a product of a query and a key is multiplied by."""
    parts, value = 1 + len(module.terms), dot * module.scale
    if module.scale == 1:
        return (f"{name} = q·k, not divided",)
    if math.isclose(module.scale, (module.d_head * parts) ** -0.5):
        root = f"√({parts}·{module.d_head})" if module.terms else f"√{module.d_head}"
        return (f"{name} = ", number(dot), f" / {root} = ", result(value))
    return (f"{name} = ", number(dot), " × ", setting(module.scale), " = ", result(value))


def distance_term(source: Source, name: str, pos: int, key: int, head: int) -> Steps:
    """What disentangled positions add: the query with the distance's key (c2p), or the key with its query (p2c)."""
    module, path = attention_of(source)
    row, vectors = distance_row(source, pos, key), source.stack.distance_vectors()
    assert vectors is not None
    of_query = name == "c2p"
    letter, other = ("q", "k") if of_query else ("k", "q")
    roles: tuple[Role, Role] = ("query", "key") if of_query else ("key", "query")
    own = vector(source, path + letter, pos if of_query else key, head, letter, roles[0], "d_head")
    made = module.of_distances(vectors, other)[head, row].detach().double()
    of_distance = Operand(f"{other} of the distance", made, f"{source.prefix}distances.weight", (), "d_head", roles[1])
    products = own.values * made
    dot = float(products.sum())
    lines: tuple[Line, ...] = (
        (f"distance {source.trace.past + pos - key}: vector {row} of the distances, through W_{other.upper()}",),
        (Span(letter, roles[0]), "·", Span(of_distance.label, roles[1]), " = ",
         *products_line(own.values, made), " = ", result(dot)),
        scaled(name, dot, module),
    )  # fmt: skip
    product = Operand(f"{letter} × {other}", products, path + name, (), "d_head", "attention")
    return Steps("dot product", dot * module.scale, lines, (own, of_distance, product))


def distance_row(source: Source, pos: int, key: int) -> int:
    """Which vector of disentangled positions is that of the distance of two tokens."""
    places = torch.tensor([source.trace.past + pos]), torch.tensor([key])
    return int(distance_rows(*places, source.config.positions)[0, 0])


def capped_score(source: Source, pos: int, key: int, head: int) -> Steps:
    """The score, bent towards ±c where the model caps it."""
    inner, cap = score(source, pos, key, head), attention_of(source)[0].softcap
    return inner if cap is None else softcap(inner, cap)


def softcap(inner: Steps, cap: float) -> Steps:
    value = cap * math.tanh(inner.value / cap)
    line = ("capped: ", setting(cap), " × tanh(", number(inner.value), " / ", setting(cap), ") = ", result(value))
    return inner.then("softcap", value, line)


def position_bias(source: Source, pos: int, key: int, head: int) -> Steps:
    """Explains what a position adds to a score: it depends on the distance alone."""
    query = source.trace.past + pos
    distance = query - key
    where = "the token itself" if distance == 0 else f"{abs(distance)} {'back' if distance > 0 else 'ahead'}"
    stack, positions = source.stack, source.config.positions
    if positions.picture_bias is not None:
        return grid_bias(source, pos, key, head)
    if stack.relative is None:
        slope = float(alibi_slopes(source.heads)[head])
        value = -slope * abs(distance)
        line: Line = (
            f"distance {distance}, {where}: −slope × distance = −",
            number(slope),
            f" × {abs(distance)} = ",
            result(value),
        )
        return Steps("position bias", value, (line,))
    both_sides = source.config.attention.mask == "full"
    bucket = int(relative_buckets(torch.tensor([query]), torch.tensor([key]), positions, both_sides)[0, 0])
    value = float(stack.relative.weight[bucket, head])
    line = (f"distance {distance}, {where}, bucket {bucket}: what this head learned for it = ", result(value))
    table = stack.relative.weight[:, head].detach().double()
    learned = Operand(
        "by bucket", table, f"{source.prefix}relative.weight", (WHOLE, head), "bucket", "attention", bucket
    )
    return Steps("position bias", value, (line,), (learned,))


def grid_bias(source: Source, pos: int, key: int, head: int) -> Steps:
    """Explains what the distance of two patches in rows and columns adds to a score."""
    attention, path = attention_of(source)
    own = attention.grid_bias
    bias, name = (source.stack.grid_bias, "grid_bias.weight") if own is None else (own, f"{path}grid_bias.weight")
    patches = source.config.embedding.patches
    assert bias is not None and patches is not None
    row = int(bias.rows[pos, key])
    (row_of_query, column), (row_of_key, column_of_key) = (divmod(one - 1, patches.side) for one in (pos, key))
    down, right = row_of_key - row_of_query, column_of_key - column
    parts = [f"{count_words(abs(down), 'row')} {'down' if down > 0 else 'up'}"] if down else []
    parts += [f"{count_words(abs(right), 'column')} to the {'right' if right > 0 else 'left'}"] if right else []
    told = " and ".join(parts) or "the patch itself" if pos and key else "with [CLS]"
    value = float(bias.weight[row, head])
    table = bias.weight[:, head].detach().double()
    learned = Operand("by distance", table, name, (WHOLE, head), "bucket", "attention", row)
    line = (f"{told}: what this head learned for it = ", result(value))
    return Steps("position bias", value, (line,), (learned,))


def biased_score(source: Source, pos: int, key: int, head: int) -> Steps:
    inner, path = capped_score(source, pos, key, head), attention_of(source)[1]
    for hook, name in ADDED.items():
        if source.has(path + hook):
            added = source.element(path + hook, pos, key, head)
            value = inner.value + added
            inner = inner.then("position bias", value, (f"+ {name} ", operand(added), " = ", result(value)))
    return inner


def mask(source: Source, pos: int, key: int, head: int) -> Steps:
    """1 where the query may look at the key, 0 where it may not."""
    allowed, reason = may_look(source, pos, key, head)
    return Steps("mask", float(allowed), ((f"{reason}: ", "allowed" if allowed else "blocked"),))


def masked(source: Source, pos: int, key: int, head: int) -> Steps:
    inner, hook = biased_score(source, pos, key, head), attention_of(source)[1] + "mask"
    if source.element(hook, pos, key, head):
        return inner.then("masking", inner.value, ("mask: allowed, the score stays",))
    return inner.then("masking", -math.inf, ("mask: blocked, the score becomes ", result(-math.inf)))


def may_look(source: Source, pos: int, key: int, head: int) -> tuple[bool, str]:
    """Tells whether the masks of this run allow it, and why."""
    module, path = attention_of(source)
    query, trace, stack = torch.tensor([source.trace.past + pos]), source.trace, source.stack
    if module.crosses:
        kind: Mask = Full() if trace.padding is None else Full() & Padding(trace.padding)
    else:
        encodes = source.prefix == "encoder."
        padding = trace.target_padding if source.prefix == "decoder." else trace.padding
        windowed = source.config.attention.windowed
        window = windowed is None or source.layer in windowed
        ids = None if trace.pictures else source.ids()
        kind = stack.mask(None if encodes else trace.mask, padding, ids, window)
    allowed = bool(at_head(kind, query, torch.tensor([key]), head))
    reason = why(kind, int(query), key)
    if module.nearest is None:
        return allowed, reason
    scores = source.row(source.first_of(path + "capped", path + "scores"), pos, head)
    for hook in ADDED:
        scores = scores + source.row(path + hook, pos, head) if source.has(path + hook) else scores
    open_keys = at_head(kind, query, torch.arange(len(scores)), head)
    best = scores.masked_fill(~open_keys, -math.inf).topk(min(module.nearest, len(scores))).indices
    near = bool((best == key).any())
    return allowed and near, f"{reason}, and {'' if near else 'not '}among the {module.nearest} highest scores"


def at_head(kind: Mask, pos: torch.Tensor, key: torch.Tensor, head: int) -> torch.Tensor:
    """Bool key, for one query of the first text."""
    allowed = kind.allows(pos, key)
    while allowed.dim() < 4:
        allowed = allowed[None]
    return allowed[0, head if allowed.shape[1] > 1 else 0, 0]


def why(kind: Mask, pos: int, key: int) -> str:
    """Says what a mask compares."""
    match kind:
        case Causal():
            return f"causal, key {key} ≤ query {pos}" if key <= pos else f"causal, key {key} > query {pos}"
        case SlidingWindow(size):
            return f"window of {size}, distance {abs(pos - key)}"
        case Prefix(length):
            return f"prefix of {length}, query {pos}, key {key}"
        case RowPrefix(lengths):
            return f"prefix of {int(lengths[0])}, query {pos}, key {key}"
        case Blocks(_, block):
            return f"squares of {block} by {block} patches"
        case Padding(real):
            return "a token" if bool(real[0, key]) else "padding"
        case PaintedMask():
            return "drawn by hand"
        case IntersectionMask(left, right):
            return f"{why(left, pos, key)}, and {why(right, pos, key)}"
    return "every token may look at every token"


def pattern(source: Source, pos: int, key: int, head: int) -> Steps:
    """Softmax of the row of masked scores, at its temperature."""
    inner, path = masked(source, pos, key, head), attention_of(source)[1]
    scores = source.row(path + "masked_scores", pos, head)
    temperature = source.element(path + "temperature", pos, 0, head)
    scaled = scores / temperature
    top = float(scaled.max())
    shift = top if READABLE < abs(top) < math.inf else 0.0
    exponentials = (scaled - shift).exp()
    sink = source.element(path + "sink", pos, 0, head) if source.has(path + "sink") else None
    total = float(exponentials.sum())
    total += 0.0 if sink is None else math.exp(sink / temperature - shift)
    value = float(exponentials[key]) / total if total else 0.0
    warm: Line = () if temperature == 1 else (" / ", setting(temperature))
    exponent: Line = (number(float(scores[key])), *warm, *((" − ", operand(shift)) if shift else ()))
    lines: list[Line] = [] if temperature == 1 else [("attention temperature ", result(temperature, form="setting"))]
    if sink is not None:
        lines.append(("the sink of this head takes part as one more score: ", operand(sink)))
    if total:
        shown = ("pattern = e^(", *exponent, ") / Σ e^… = ", number(float(exponentials[key])), " / ", number(total))
        lines.append((*shown, " = ", result(value, "attention")))
    else:
        lines.append(("no key is allowed in this row, so the whole row is ", result(0.0)))
    over = f"{'/T' if temperature != 1 else ''}{'−m' if shift else ''}"
    strip = Operand(
        f"e^(s{over})" if over else "e^s", exponentials, path + "masked_scores",
        source.index(path + "masked_scores", pos, head), "key", "attention", key,
    )  # fmt: skip
    return inner.then("softmax", value, *lines, operands=(strip,))


def mixed_values(source: Source, pos: int, unit: int, head: int) -> Steps:
    """z: the values of all keys, weighted by the pattern."""
    path = attention_of(source)[1]
    weights = vector(source, path + "pattern", pos, head, "pattern", "attention", "key")
    v = source.value_of(path + "v")
    kv_head = source.shared_head(head, v.shape[2])
    values = v[0, :, kv_head, unit].double()
    column = Operand(f"v[{unit}]", values, path + "v", (WHOLE, kv_head, unit), "key", "value")
    products = Products(weights, column)
    line = (Span("z", "value"), " = Σ ", Span("pattern", "attention"), " × ", Span("v", "value"), " = ")
    return Steps("weighted sum", products.total, ((*line, result(products.total)),), (weights, column), products)


def share_of_head(source: Source, pos: int, unit: int, head: int) -> Steps:
    """Explains what one head adds to the output: its z through its columns of W_O."""
    module, path = attention_of(source)
    z = vector(source, path + "z", pos, head, "z", "value", "d_head")
    start = head * module.d_value
    weight = module.out.weight[unit, start : start + module.d_value].detach().double()
    right = Operand(f"W_O[·, {unit}]", weight, path + "out.weight", (unit, WHOLE), "d_head", "attention")
    products = Products(z, right)
    line = (Span("z", "value"), " · ", Span("W_O", "attention"), " = ", result(products.total))
    return Steps("linear map", products.total, (line,), (z, right), products)


def rotation(source: Source, name: str, pos: int, unit: int, head: int) -> Steps:
    """A query's or key's component, turned with its partner by the angle of its position."""
    _, path = attention_of(source)
    plain = path + name[0]
    x = vector(source, source.first_of(f"{plain}_norm.out", plain), pos, head, name[0],
               "query" if name[0] == "q" else "key", "d_head")  # fmt: skip
    positions, turned = source.config.positions, source.config.d_turned
    width = len(x.values)
    start = width // 2 if positions.axes == 2 and unit >= width // 2 else 0
    at = unit - start
    if at >= turned:
        value = float(x.values[unit])
        return Steps("copy", value, (("this component is not rotated: ", result(value)),), (mark_component(x, unit),))
    position = position_id_of(source, pos, 1 if start else 0)
    cos, sin = cos_and_sin(source, position, at)
    pairs = positions.pairs == "neighbours"
    first = at % 2 == 0 if pairs else at < turned // 2
    step = 1 if pairs else turned // 2
    other = unit + (step if first else -step)
    partner = float(-x.values[other] if first else x.values[other])
    own = float(x.values[unit])
    value = own * cos + partner * sin
    span = " in the span" if start else ""
    lines: tuple[Line, ...] = (
        (f"rotated with its partner at {other}, by the angle of position {position}{span}",),
        (number(own), " × cos ", operand(cos), " + ", operand(partner), " × sin ", operand(sin), " = ", result(value)),
    )
    return Steps("rotation", value, lines, (mark_component(x, unit),))


def mark_component(x: Operand, chosen: int) -> Operand:
    return Operand(x.label, x.values, x.source, x.index, x.axis, x.role, chosen)


def position_id_of(source: Source, pos: int, axis: int = 0) -> int:
    """The position id of a token: where it stands, or, for axis 1 of two, where in its span."""
    infill = source.config.infill
    if source.config.positions.axes == 1 or infill is None:
        return source.trace.past + pos
    return int(infill_positions(source.ids(), infill)[axis, 0, pos])


def cos_and_sin(source: Source, position: int, component: int) -> tuple[float, float]:
    """Cosine and sine of the angle by which a component is turned, in double precision."""
    assert source.layer is not None
    turned, positions = source.config.d_turned, source.config.positions.of_layer(source.layer)
    frequencies, stretch = rotary_frequencies(turned, positions, source.trace.past + source.length())
    half, patches = turned // 2, source.config.embedding.patches
    if positions.grid and patches is not None:
        angle = float(grid_angles(turned, positions.theta, patches)[position, component % half])
        return math.cos(angle), math.sin(angle)
    pair = component // 2 if positions.pairs == "neighbours" else component % half
    angle = position * float(frequencies[pair])
    return math.cos(angle) * stretch, math.sin(angle) * stretch
