"""How an element of any hook came about, by the module that the hook belongs to."""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import replace
from fnmatch import fnmatchcase

import torch
from torch import Tensor, nn

from engine.analysis.arithmetic.attention import (
    explain_attention,
    mixed_values,
    position_id_of,
    rotation,
    share_of_head,
    softcap,
)
from engine.analysis.arithmetic.experts import expert_map, explain_router, mixture
from engine.analysis.arithmetic.explanation import (
    WHOLE,
    Explanation,
    Line,
    Operand,
    Products,
    Role,
    Span,
    Steps,
    number,
    operand,
    result,
    setting,
    sum_line,
)
from engine.analysis.arithmetic.sources import SUM, Source
from engine.analysis.arithmetic.stored import describe_largest, describe_stored
from engine.analysis.arithmetic.vectors import attention_of_probe, component, pooled_component, read_by_vector
from engine.model.config import MLP as MLPConfig
from engine.model.config import Patches
from engine.model.hooks import ADDED, canonical
from engine.model.layers.attention import Attention
from engine.model.layers.block import Block
from engine.model.layers.embed import FRAMES, TRAINED_SHARE, Convolution, Embed, PatchEmbed
from engine.model.layers.experts import ExpertMLPs, Experts, Router
from engine.model.layers.head import AveragedHead, BareHead, ClassHead, LanguageHead, Pooler
from engine.model.layers.latent import Latent
from engine.model.layers.mlp import ACTIVATIONS, MLP
from engine.model.layers.norm import BatchNorm, LayerNorm, RMSNorm
from engine.model.layers.vector import MapOfVector, ProbeAttention, TextVector
from engine.model.stack import Stack
from engine.model.transformer import Transformer
from engine.plurals import count_words
from engine.runtime.trace import Trace

FORMULAS = {
    "relu": "max(0, x)",
    "relu2": "max(0, x)²",
    "gelu": "x Φ(x)",
    "gelu_tanh": "x/2 (1 + tanh(√(2/π) (x + 0.044715 x³)))",
    "quick_gelu": "x / (1 + e^−1.702x)",
    "silu": "x / (1 + e^−x)",
    "tanh": "(e^x − e^−x) / (e^x + e^−x)",
}
MATRICES = {"q": "W_Q", "k": "W_K", "v": "W_V", "pre": "W_in", "up": "W_up"}
PARTS = {
    "tokens": "embedding",
    "mapped": "embedding, mapped",
    "patches": "patch",
    "post": "sound",
    "segments": "segment",
    "positions": "position",
    "within": "place in the span",
}
TABLES = {"tokens": "W_E", "segments": "W_S", "positions": "W_P", "within": "W_B"}
ADDED_BY = {first: sublayer for sublayer, (first, *_) in ADDED.items()}  # what is added, scaled, by its hook
# Hooks that an edit reaches a value by.
RELATED = ("scale", "normalized", "strength", "position_ids", "skip1", "skip2", "skip_cross", "used", "gain")


def explain(
    model: Transformer, trace: Trace, hook: str, pos: int, unit: int, head: int | None = None, column: str | None = None
) -> Explanation:
    """Explains `hook` at position `pos`, component or key `unit`, in the first text of a run.

    Where a hook has heads, `head` is one of the queries' (grouped keys and values are shared), or None, with `unit`
    counted over all heads joined; where it has slots of experts, `head` is one of those. Of a norm's scale, which a
    position has one of, `unit` is 0. `column` is what `unit` is called, such as the name of a class. Raises ValueError
    for an element that is not there or was not recorded.
    """
    source = Source(model, trace, hook)
    value, dims = source.value_of(hook), source.axes(hook)
    if "head" in dims and head is None:
        joined, unit = divmod(unit, value.shape[-1])
        head = joined * source.heads // value.shape[dims.index("head")]
    if dims[-2:-1] == ("slot",) and head is None:
        head, unit = divmod(unit, value.shape[-1])
    stored = source.element(hook, pos, unit, head)
    steps = steps_of(source, pos, unit, head, str(unit) if column is None else column)
    index = source.index(hook, pos, head, unit)
    return Explanation(
        hook, index, steps.operation, steps.operands, steps.products, steps.lines, steps.value, stored,
        any(touches(edit.touches(), hook, trace.hooks) for edit in trace.edits),
    )  # fmt: skip


def touches(patterns: tuple[str, ...], hook: str, hooks: Collection[str]) -> bool:
    """Tells whether an edit of the hooks `patterns` changes `hook` itself, and not only what it is made of."""
    owner = hook.rpartition(".")[0]
    names = [hook, *(f"{owner}.{related}" for related in RELATED)]
    return any(
        fnmatchcase(name, wanted) or fnmatchcase(f".{name}", wanted)
        for wanted in (canonical(pattern, hooks) for pattern in patterns)
        for name in names
    )


def steps_of(source: Source, pos: int, unit: int, head: int | None, column: str) -> Steps:
    """Steps of an element, chosen by the module of the hook; the hook's own name says which of its values."""
    path, _, name = source.hook.rpartition(".")
    owner = source.model.get_submodule(path)
    match owner:
        case LayerNorm() | RMSNorm() | BatchNorm():
            return norm(source, owner, name, pos, unit, head)
        case Attention():
            return attention(source, owner, name, pos, unit, head or 0)
        case Latent():
            part: nn.Linear = getattr(owner, name)
            read, down = source.query_input(False), "W_K" if name == "shared" else "W_down"
            return linear_map(source, read, pos, part, unit=unit, parameter=f"{path}.{name}.weight", right=down,
                              result_name=name)  # fmt: skip
        case MLP():
            return mlp(source, owner, name, pos, unit)
        case Router() if name != "logits":
            return explain_router(source, owner, name, pos, unit)
        case Router():
            read = source.read_by_mlp()
            return linear_map(source, read, pos, owner, unit=unit, parameter=f"{path}.weight", right="W_R",
                              result_name="logit")  # fmt: skip
        case ExpertMLPs():
            return expert(source, owner, name, pos, head or 0, unit)
        case Experts() if name == "shared_weight":
            return shared_weight(source, owner, pos)
        case Experts():
            return mixture(source, owner, pos, unit)
        case Block():
            return stream(source, name, pos, unit)
        case Embed():
            return embedding(source, owner, name, pos, unit)
        case PatchEmbed():
            return pixel(source, owner, pos, unit)
        case Convolution():
            return convolution(source, owner, name, pos, unit)
        case Pooler() | LanguageHead() | ClassHead() | BareHead():
            return head_part(source, owner, name, pos, unit, column)
        case TextVector() if name == "pooled" and owner.probe is not None:
            return probe_result(source, owner.probe, unit)
        case ProbeAttention():
            return probe_part(source, owner, name, pos, unit, head or 0)
        case TextVector():
            return pooled_component(source, owner, unit) if name == "pooled" else component(source, owner, pos, unit)
        case MapOfVector():
            return map_of_vector(source, owner, name, pos, unit)
        case Stack() if name == "tokens":
            return token_id(source, pos)
        case Transformer():
            return outcome(source, name, pos, unit, column)
    raise ValueError(f"the arithmetic of {source.hook!r} is not known; explain another hook.")


# --- linear maps -----------------------------------------------------------------------------------------------------


def linear(
    source: Source, hook: str, pos: int, weight: Tensor, bias: Tensor | None, *, unit: int, parameter: str,
    left: str = "x", right: str = "W", result_name: str, column: str | None = None, group: int | None = None,
    scale: float = 1.0,
) -> Steps:  # fmt: skip
    """x · W (+ b): the row of `hook` times row `unit` of `weight`."""
    row = source.origin(hook, pos)
    x = Operand(left, source.row(hook, row), hook, () if hook.endswith(SUM) else source.index(hook, row))
    w = Operand(
        f"{right}[·, {unit if column is None else column}]", weight[unit].detach().double(), parameter, (unit, WHOLE)
    )
    added = None if bias is None else float(bias[unit])
    products = Products(x, w, added, scale, group)
    by: tuple = () if scale == 1 else (setting(scale), " · ")
    total = products.total
    line = (f"{result_name} = ", *by, f"{left} · {right}", "" if bias is None else " + b", " = ", result(total))
    stored = describe_largest(weight[unit], products, f"{right}[{{}}, {unit if column is None else column}]")
    return Steps("linear map", total, (*stored, line), (replace(x, drawn=False), replace(w, drawn=False)), products)


def linear_map(source: Source, hook: str, pos: int, module: nn.Linear, *, unit: int, **names: object) -> Steps:
    return linear(source, hook, pos, module.weight, module.bias, unit=unit, **names)  # type: ignore[arg-type]


def attention(source: Source, module: Attention, name: str, pos: int, unit: int, head: int) -> Steps:
    hook = source.hook
    match name:
        case "q" | "k" | "v" if module.latent is not None:
            return of_latent(source, module, module.latent, name, pos, unit, head)
        case "q" | "k" | "v":
            projection: nn.Linear = getattr(module, name)
            kv = head if name == "q" else source.shared_head(head, module.kv_heads)
            read = source.query_input(module.crosses) if name == "q" or not module.crosses else source.memory()
            return linear_map(source, read, pos, projection, unit=kv * module.d_head + unit, parameter=f"{hook}.weight",
                          right=MATRICES[name], result_name=name, column=str(unit))  # fmt: skip
        case "out":
            return linear_map(source, hook.removesuffix("out") + "z", pos, module.out, unit=unit, left="z", right="W_O",
                          parameter=f"{hook}.weight", result_name="out", group=module.d_value)  # fmt: skip
        case "z":
            return mixed_values(source, pos, unit, head)
        case "head_out":
            return share_of_head(source, pos, unit, head)
        case "q_rotated" | "k_rotated":
            return rotation(source, name, pos, unit, head)
        case "temperature":
            return Steps("temperature", 1.0, (("what the scores are divided by before the softmax: ", result(1.0)),))
        case "sink":
            assert module.sinks is not None
            value = float(module.sinks[head])
            return Steps("vector", value, (("the learned score of this head’s sink: ", result(value)),))
        case "position_ids":
            return position_id(source, pos)
    return explain_attention(source, name, pos, unit, head)


def of_latent(source: Source, module: Attention, latent: Latent, name: str, pos: int, unit: int, head: int) -> Steps:
    """A query, key or value of what the stream is compressed to; the turned part of a key is made apart."""
    path = f"{source.hook.rpartition('.')[0]}.latent."
    if name == "k" and unit < latent.shared.out_features:
        return copy_of(source, f"{path}shared", pos, unit, "the turned part of a key, the same for all heads")
    apart = latent.shared.out_features if name == "k" else 0
    width = (module.d_value if name == "v" else module.d_head) - apart
    part = "queries" if name == "q" else "keys"
    read = source.query_input(False) if name == "q" and latent.queries is None else f"{path}{part}_norm.out"
    row = head * width + unit - apart
    return linear_map(source, read, pos, getattr(module, name), unit=row, parameter=f"{source.hook}.weight",
                      right=MATRICES[name], result_name=name, column=str(unit))  # fmt: skip


def token_id(source: Source, pos: int) -> Steps:
    value = int(source.ids()[0, pos])
    return Steps("token id", float(value), ((f"the token at position {source.trace.past + pos} has the id {value}",),))


def position_id(source: Source, pos: int) -> Steps:
    return Steps("position", float(pos), ((f"the token stands at position {source.trace.past + pos}",),))


def mlp(source: Source, module: MLP, name: str, pos: int, unit: int) -> Steps:
    path = source.hook.rpartition(".")[0]
    if name == "post":
        return neuron(source, module.config, pos, unit)
    names = {"parameter": f"{source.hook}.weight", "result_name": name}
    if name == "out":
        return linear_map(source, f"{path}.post", pos, module.out, unit=unit, left="h", right="W_out", **names)
    part: nn.Linear = getattr(module, name)
    return linear_map(source, source.read_by_mlp(), pos, part, unit=unit, right=MATRICES[name], **names)


def neuron(source: Source, config: MLPConfig, pos: int, unit: int, slot: int | None = None) -> Steps:
    """act(pre), or act(pre) × up, in the words of `activate`."""
    path = source.hook.rpartition(".")[0]
    x = source.element(f"{path}.pre", pos, unit, slot)
    activated = bend(x, config.activation, config.slope, config.limit)
    activated = replace(activated, operands=(single("x", x, source, f"{path}.pre", pos, unit, slot=slot),))
    if not config.gated:
        return activated
    up = source.element(f"{path}.up", pos, unit, slot)
    lines: list[Line] = []
    if config.limit is not None and abs(up) > config.limit:
        lines.append(("up, within ±", setting(config.limit), ": ", result(math.copysign(config.limit, up))))
        up = math.copysign(config.limit, up)
    value = activated.value * (up + config.shift)
    shifted: Line = ("(", operand(up), " + ", setting(config.shift), ")") if config.shift else (operand(up),)
    return activated.then("activation", value, *lines, ("× up ", *shifted, " = ", result(value)))


def activation(source: Source, before: str, pos: int, unit: int, kind: str) -> Steps:
    x = source.element(before, pos, unit)
    return replace(bend(x, kind), operands=(single("x", x, source, before, pos, unit),))


def bend(x: float, kind: str, slope: float = 1.0, limit: float | None = None) -> Steps:
    """act(x); of x that is at most `limit`, and as steep as `slope`."""
    lines: list[Line] = []
    if limit is not None and x > limit:
        lines.append(("x, at most ", setting(limit), ": ", result(limit)))
        x = limit
    value = float(ACTIVATIONS[kind](torch.tensor(slope * x, dtype=torch.float64))) / slope
    told = FORMULAS[kind] if slope == 1 else f"x / (1 + e^−{slope:g}x)"
    lines += [(f"{kind}(x) = {told}",), (f"{kind}(", number(x), ") = ", result(value))]
    return Steps("activation", value, tuple(lines))


def expert(source: Source, module: ExpertMLPs, name: str, pos: int, slot: int, unit: int) -> Steps:
    if name == "post":
        return neuron(source, module.config, pos, unit, slot)
    read = f"{source.hook.rpartition('.')[0]}.post" if name == "out" else source.read_by_mlp()
    return expert_map(source, getattr(module, name), name, read, pos, slot, unit)


def shared_weight(source: Source, module: Experts, pos: int) -> Steps:
    """Share of the shared expert that is added: sigmoid(x · w)."""
    assert module.shared_gate is not None
    path = source.hook.rpartition(".")[0]
    steps = linear_map(source, source.read_by_mlp(), pos, module.shared_gate, unit=0, left="x", right="W_g",
                       parameter=f"{path}.shared_gate.weight", result_name="g")  # fmt: skip
    value = 1 / (1 + math.exp(-steps.value))
    return steps.then("probability", value, ("1 / (1 + e^−g) = ", result(value)))


def single(
    label: str,
    value: float,
    source: Source,
    hook: str,
    pos: int,
    unit: int,
    role: Role | None = None,
    slot: int | None = None,
) -> Operand:
    """Makes one number an operand, which lines show and no strip."""
    index = source.index(hook, pos, slot, unit)
    return Operand(label, torch.tensor([value], dtype=torch.float64), hook, index, role=role, drawn=False)


# --- the stream ------------------------------------------------------------------------------------------------------


def stream_sum(source: Source, parts: list[tuple[str, Role]], pos: int, unit: int) -> Steps:
    """The sum of hooks of a block; the first is the stream, which a model without residual connections leaves out."""
    if not source.config.residual:
        parts = parts[1:]
    values = [source.element(source.block + part, pos, unit) for part, _ in parts]
    operands = tuple(
        single(part, value, source, source.block + part, pos, unit, role)
        for (part, role), value in zip(parts, values, strict=True)
    )
    if len(parts) == 1:
        line: Line = (f"the residual connection is off: only {parts[0][0]} = ", result(values[0]))
        return Steps("copy", values[0], (line,), operands)
    return Steps("sum", sum(values), (sum_line([Span(*part) for part in parts], values),), operands)


def stream(source: Source, name: str, pos: int, unit: int) -> Steps:
    """A residual stream of a block."""
    if name.startswith("skip"):
        before = {"skip1": "resid_pre", "skip_cross": source.query_input(True), "skip2": source.stream_of_mlp()}[name]
        hook = source.block + before if name == "skip1" else before
        return copy_of(source, hook, pos, unit, "what the residual connection carries")
    if name == "resid_pre":
        return block_input(source, pos, unit)
    if name in ADDED_BY:
        return scaled_output(source, name, pos, unit)
    attended: tuple[str, Role] = (source.added_hook("attn"), "attention")
    if name == "resid_mid":
        return stream_sum(source, [("resid_pre", "residual"), attended], pos, unit)
    if name == "resid_cross":
        before = "norm1.out" if source.norms_after() else "resid_mid"
        return stream_sum(source, [(before, "residual"), (source.added_hook("cross_attn"), "attention")], pos, unit)
    read = source.stream_of_mlp()
    transformed: list[tuple[str, Role]] = [(source.added_hook("mlp"), "mlp")] if source.config.mlp else []
    if source.parallel:
        return stream_sum(source, [("resid_pre", "residual"), attended, *transformed], pos, unit)
    if source.config.mlp is None:
        return copy_of(source, read, pos, unit, "this block has no MLP")
    return stream_sum(source, [(read.removeprefix(source.block), "residual"), *transformed], pos, unit)


def scaled_output(source: Source, name: str, pos: int, unit: int) -> Steps:
    """Explains what is added to the stream of a sublayer's output: the output times a number."""
    sublayer, block = ADDED_BY[name], source.model.get_submodule(source.block.rstrip("."))
    learned = getattr(block, "scale2" if sublayer == "mlp" else "scale1")
    scale = source.config.residual_scale if learned is None else float(learned[unit])
    _, hook, *_ = (one for one in ADDED[sublayer] if source.has(source.block + one))
    value = source.element(source.block + hook, pos, unit)
    role: Role = "mlp" if sublayer == "mlp" else "attention"
    operands = (single(hook, value, source, source.block + hook, pos, unit, role),)
    line: Line = (setting(scale), " · ", Span(hook, role), " = ", setting(scale), " · ", operand(value), " = ")
    return Steps("product", scale * value, ((*line, result(scale * value)),), operands)


def copy_of(source: Source, hook: str, pos: int, unit: int, reason: str) -> Steps:
    value = source.element(hook, pos, unit)
    operands = (single(hook, value, source, hook, pos, unit, "residual"),)
    return Steps("copy", value, ((f"{reason}: ", result(value)),), operands)


def block_input(source: Source, pos: int, unit: int) -> Steps:
    """Explains the input of a block: what the one before passed on, or the embedding."""
    prefix, layer, embedding = source.prefix, source.layer or 0, source.config.embedding
    if layer:
        return copy_of(source, source.after(layer - 1), pos, unit, f"what block {layer} passed on")
    if embedding.width is not None and embedding.mapped == "all":
        return copy_of(source, f"{prefix}embed.mapped", pos, unit, "the embedding, as wide as the stream")
    if source.has(f"{prefix}embed.norm.out"):
        return copy_of(source, f"{prefix}embed.norm.out", pos, unit, "the embedding after its norm")
    parts = source.embedding_parts()
    if len(parts) == 1:
        whose = {"patches": "the patch’s", "post": "the sound’s"}.get(parts[0].rpartition(".")[2], "the token’s")
        return copy_of(source, parts[0], pos, unit, f"{whose} embedding")
    values = [source.element(part, pos, unit) for part in parts]
    names = [Span(PARTS[part.rpartition(".")[2]], "residual") for part in parts]
    operands = tuple(single(part, v, source, part, pos, unit) for part, v in zip(parts, values, strict=True))
    return Steps("sum", sum(values), (sum_line(names, values),), operands)


# --- norms -----------------------------------------------------------------------------------------------------------


def norm(
    source: Source, module: LayerNorm | RMSNorm | BatchNorm, name: str, pos: int, unit: int, head: int | None
) -> Steps:
    if name == "strength":
        return Steps("scale of a norm", 1.0, (("how much of the norm is used: ", result(1.0)),))
    hook = source.norm_input()
    row = source.origin(hook, pos)
    inner = head if "head" in source.axes(source.hook) else None
    x = source.row(hook, row, inner)
    centres = not isinstance(module, RMSNorm)
    lines: list[Line] = []
    if isinstance(module, BatchNorm):
        mean, variance = float(module.mean[unit]), float(module.variance[unit])
        lines.append(("averages of training: mean μ = ", number(mean), ", variance = ", number(variance)))
    else:
        mean = float(x.mean()) if centres else 0.0
        variance = float((x - mean).square().mean())
        lines += [("mean μ = Σx / ", str(len(x)), " = ", number(mean))] if centres else []
    scale = math.sqrt(variance + module.eps)
    what = "variance" if centres else "mean of x²"
    index = () if hook.endswith(SUM) else source.index(hook, row, inner)
    chosen = None if name == "scale" else unit
    strip = Operand("x", x, hook, index, "", "residual", chosen)
    lines.append((f"scale = √({what} + ε) = √(", number(variance), f" + {module.eps}) = ", number(scale)))
    if name == "scale":
        return Steps("scale of a norm", scale, tuple(lines), (strip,))
    centred: Line = ("(", number(float(x[unit])), " − ", operand(mean), ")") if centres else (number(float(x[unit])),)
    if name == "normalized":
        value = (float(x[unit]) - mean) / scale
        lines.append(("(x − μ) / scale = " if centres else "x / scale = ",))
        lines.append((*centred, " / ", number(scale), " = ", result(value)))
        return Steps("norm", value, tuple(lines), (strip,))
    learned = {"γ": ("weight", module.weight), "β": ("bias", None if isinstance(module, RMSNorm) else module.bias)}
    at: tuple[int, ...] = (unit,)
    if inner is not None and module.weight is not None and module.weight.dim() > 1:
        at = source.shared_head(inner, len(module.weight)), unit
    held = {label: (part, float(tensor[at])) for label, (part, tensor) in learned.items() if tensor is not None}
    weight, bias = (held[label][1] if label in held else None for label in "γβ")
    value = (float(x[unit]) - mean) / scale * (1.0 if weight is None else weight) + (bias or 0.0)
    if weight is not None:
        shift: Line = () if bias is None else (", bias β = ", number(bias))
        lines.append(("weight γ = ", number(weight), *shift))
    told = " / scale" + "".join({"γ": " × γ", "β": " + β"}[label] for label in held)
    lines.append(("(x − μ)" if centres else "x", told, " = "))
    by: Line = () if weight is None else (" × ", operand(weight))
    tail: Line = () if bias is None else (" + ", operand(bias))
    lines.append((*centred, " / ", number(scale), *by, *tail, " = ", result(value)))
    path = source.hook.rpartition(".")[0]
    operands = tuple(
        Operand(label, torch.tensor([one], dtype=torch.float64), f"{path}.{part}", at, drawn=False)
        for label, (part, one) in held.items()
    )
    return Steps("norm", value, tuple(lines), (strip, *operands))


# --- embeddings ------------------------------------------------------------------------------------------------------


def embedding(source: Source, module: Embed, name: str, pos: int, unit: int) -> Steps:
    match name:
        case "patches":
            return patch(source, module, pos, unit)
        case "mel":
            value = source.element(source.hook, pos, unit)
            return Steps("mel energy", value, ((f"the processor’s log-mel frame {pos}, bin {unit}: ", result(value)),))
        case "mapped":
            read = f"{source.prefix}embed.tokens" if module.maps_tokens else source.embedding()
            assert module.mapped is not None
            return linear_map(
                source, read, pos, module.mapped, unit=unit, parameter=f"{source.hook}.weight", result_name="mapped"
            )
        case "position_ids":
            return position_id(source, pos)
        case "factor":
            return token_factor(source, module, pos)
        case "positions" if module.sinusoids:
            return sinusoid(source, pos, unit)
        case "positions" if module.patches is not None and is_placed(module.patches.config):
            return placed_position(source, module.patches, module.positions.weight, pos, unit)  # type: ignore[union-attr]
        case "tokens":
            row, table = int(source.ids()[0, pos]), module.tokens
            weight = source.model.table if table is None else table.weight
        case "segments":
            row, weight = segment(source, pos), module.segments.weight  # type: ignore[union-attr]
        case "within":
            row, weight = position_id_of(source, pos, 1), module.within.weight  # type: ignore[union-attr]
        case _:
            row, weight = position_id_of(source, pos), module.positions.weight  # type: ignore[union-attr]
    assert weight is not None
    own = float(weight[row, unit])
    scale = module.scale if name == "tokens" else 1.0
    value = own * scale
    scaled: Line = () if scale == 1 else (" × ", setting(scale), " = ", result(value))
    if name == "tokens" and module.token_dropout is not None:
        factor = source.element(f"{source.prefix}embed.factor", pos, 0)
        value = value * factor
        scaled = (*scaled, " × ", operand(factor), " = ", result(value))
    line: Line = (f"row {row} of {TABLES[name]}, column {unit}: ", result(own), *scaled)
    entry = Operand(
        TABLES[name], weight[row, unit : unit + 1].detach().double(), f"{source.hook}.weight", (row, unit), drawn=False
    )
    stored = describe_stored(weight[row], unit, f"{TABLES[name]}[{row}, {unit}]")
    return Steps("embedding row", value, (*stored, line), (entry,))


def is_placed(patches: Patches) -> bool:
    """Tells whether the positions of a picture are not the rows of their table."""
    return bool(patches.registers) or (patches.trained is not None and patches.trained != patches.image)


def placed_position(source: Source, module: PatchEmbed, table: Tensor, pos: int, unit: int) -> Steps:
    """Explains the position of a patch of a picture of another size than its table is made for, or of a register."""
    patches = module.config
    value = float(module.placed(table)[position_id_of(source, pos), unit])
    own = patches.cls + patches.distilled
    if own <= pos < patches.before:
        told = "a register stands nowhere in the picture and has no position: "
    elif pos < own or patches.trained in (None, patches.image):
        told = f"row {pos if pos < own else pos - (patches.registers or 0)} of W_P, column {unit}: "
    else:
        side = (patches.trained or patches.image) // patches.size
        told = f"bicubic between the {side} × {side} of W_P, for {patches.side} × {patches.side}: "
    return Steps("vector", value, ((told, result(value)),))


def token_factor(source: Source, module: Embed, pos: int) -> Steps:
    """What a token's vector is multiplied by, where those of masks are left out."""
    ids, padding = source.ids()[0], source.trace.padding
    length = len(ids) if padding is None else int(padding[0].sum())
    if int(ids[pos]) == module.token_dropout:
        return Steps("token dropout", 0.0, (("the vector of a mask is left out: ", result(0.0)),))
    masks = int(torch.eq(ids, module.token_dropout or 0).sum())
    value = (1 - TRAINED_SHARE) / (1 - masks / length)
    told = f"masks are {masks} of {count_words(length, 'token')}, and were {TRAINED_SHARE:g} of all in training: "
    line: Line = (told, f"(1 − {TRAINED_SHARE:g}) / (1 − {masks} / {length}) = ", result(value))
    return Steps("token dropout", value, (line,))


def segment(source: Source, pos: int) -> int:
    """Index of the text, of two, that a token belongs to."""
    encodings = source.trace.target_encodings if source.prefix == "decoder." else source.trace.encodings
    return encodings[0].segments[pos] if encodings and encodings[0].segments else 0


def sinusoid(source: Source, pos: int, unit: int) -> Steps:
    """sin or cos of pos / 10000^(2i/d), which no table holds (Vaswani et al. 2017, section 3.5)."""
    config = source.config
    width = config.d_embed if source.stack.embed.maps_all else config.d_model
    half = (width + 1) // 2
    if config.positions.pairs == "halves":
        pair, name = unit % half, "sin" if unit < half else "cos"
    else:
        pair, name = unit // 2, "cos" if unit % 2 else "sin"
    position = position_id_of(source, pos)
    divisor = 10_000.0 ** (2 * pair / width)
    angle = position / divisor
    value = math.sin(angle) if name == "sin" else math.cos(angle)
    lines: tuple[Line, ...] = (
        (f"{name}(pos / 10000^(2i/d)), pos = {position}, i = {pair}, d = {width}",),
        (f"{name}({position} / ", number(divisor), f") = {name}(", number(angle), ") = ", result(value)),
    )
    return Steps("sinusoid", value, lines)


def patch(source: Source, module: Embed, pos: int, unit: int) -> Steps:
    """A patch's pixels through their weights; what stands before the patches are vectors of their own."""
    patches = module.patches
    assert patches is not None
    before = patches.before()
    if pos < len(before):
        (name, *row), tensor = before[pos]
        value = float(tensor[unit])
        index = (*map(int, row), unit)
        entry = Operand(name, tensor[unit : unit + 1].detach().double(), f"embed.patches.{name}", index, drawn=False)
        line: Line = (f"a learned vector of its own; its column {unit}: ", result(value))
        return Steps("vector", value, (line,), (entry,))
    return linear_map(source, "embed.patches.pixels", pos - len(before), patches.project, unit=unit, left="pixels",
                  parameter="embed.patches.project.weight", result_name="embedding")  # fmt: skip


def convolution(source: Source, module: Convolution, name: str, pos: int, unit: int) -> Steps:
    """Three frames, joined, times their weights; at an end of the sound two, as there is no third."""
    path = source.hook.rpartition(".")[0]
    if name == "post":
        return activation(source, f"{path}.pre", pos, unit, "gelu")
    read = f"{source.prefix}embed.mel" if path.endswith("conv1") else f"{source.prefix}embed.conv1.post"
    frames, first = source.value_of(read)[0], pos * module.stride - FRAMES // 2
    begin, end = max(first, 0), min(first + FRAMES, len(frames))
    of_kernel = slice(begin - first, end - first)
    x = Operand("frames", frames[begin:end].double().flatten(), read, (slice(begin, end), WHOLE))
    weights = module.weight[unit, of_kernel].detach().double().flatten()
    w = Operand(f"W[·, {unit}]", weights, f"{path}.weight", (unit, of_kernel, WHOLE))
    products = Products(x, w, float(module.bias[unit]))
    line: Line = (f"frames {begin} to {end - 1} · W + b = ", result(products.total))
    return Steps("linear map", products.total, (line,), (replace(x, drawn=False), replace(w, drawn=False)), products)


def pixel(source: Source, module: PatchEmbed, pos: int, unit: int) -> Steps:
    """Explains one number of the picture, after the processor scaled it."""
    pixels = source.trace.ids[0]
    side = pixels.shape[-1] // module.size
    channel, inside = divmod(unit, module.size**2)
    row = pos // side * module.size + inside // module.size
    column = pos % side * module.size + inside % module.size
    value = float(pixels[channel, row, column])
    line: Line = (f"the picture’s channel {channel}, row {row}, column {column}: ", result(value))
    return Steps("pixel", value, (line,))


# --- heads -----------------------------------------------------------------------------------------------------------


def head_part(source: Source, module: nn.Module, name: str, pos: int, unit: int, column: str) -> Steps:
    """Explains what stands between the last residual stream and the logits."""
    path = source.hook.rpartition(".")[0]
    head = source.config.head
    if name == "post" or (name == "out" and isinstance(module, Pooler)):
        kind = head.pooler_activation if isinstance(module, Pooler) else head.activation
        return activation(source, f"{path}.pre", pos, unit, kind)
    if name == "mean":
        return position_mean(source, unit)
    if name == "cls" and isinstance(module, ClassHead):
        read = source.read_by_head()
        return linear(source, read, pos, module.weight, module.bias, unit=unit, parameter="head.weight",
                      result_name="cls", column=column)  # fmt: skip
    part = module.get_submodule({"pre": "dense"}.get(name, name))
    assert isinstance(part, nn.Linear)
    read = source.last() if isinstance(module, Pooler) else source.read_by_head()
    parameter = f"{path}.{'dense' if name == 'pre' else name}.weight"
    shown = column if name == "distilled" else None
    return linear_map(source, read, pos, part, unit=unit, parameter=parameter, result_name=name, column=shown)


def probe_part(source: Source, module: ProbeAttention, name: str, pos: int, unit: int, head: int) -> Steps:
    """Explains a step of the attention that pools, or of the MLP behind it."""
    path = source.hook.rpartition(".")[0]
    if name in ("pattern", "z"):
        return attention_of_probe(source, module, name, pos, unit, head)
    if name == "attended":
        return linear_map(source, f"{path}.z", pos, module.out, unit=unit, right="W_O", left="z",
                          parameter=f"{path}.out.weight", result_name="attended")  # fmt: skip
    if name == "mlp_pre":
        return linear_map(source, f"{path}.norm.out", pos, module.pre, unit=unit, parameter=f"{path}.pre.weight",
                          result_name="pre")  # fmt: skip
    vector = source.model.config.vector
    assert vector is not None and vector.probe is not None
    return activation(source, f"{path}.mlp_pre", pos, unit, vector.probe.activation)


def probe_result(source: Source, module: ProbeAttention, unit: int) -> Steps:
    """Explains what attention and the MLP behind it give together."""
    steps = linear_map(source, "vector.probe.mlp_post", 0, module.post, unit=unit, result_name="MLP",
                       parameter="vector.probe.post.weight")  # fmt: skip
    attended = source.element("vector.probe.attended", 0, unit)
    value = attended + steps.value
    line: Line = ("attended + MLP = ", number(attended), " + ", operand(steps.value), " = ", result(value))
    entry = single("attended", attended, source, "vector.probe.attended", 0, unit, "attention")
    return steps.then("sum", value, line, operands=(entry,))


def map_of_vector(source: Source, module: MapOfVector, name: str, pos: int, unit: int) -> Steps:
    """Explains a map behind what was pooled, before or after its activation."""
    path = source.hook.rpartition(".")[0]
    vector, config = source.model.vector, source.model.config.vector
    assert vector is not None and config is not None
    at = int(path.rpartition(".")[2])
    if name == "out" and module.activation is not None:
        return activation(source, f"{path}.pre", pos, unit, config.maps[at].activation)
    return linear_map(source, read_by_vector(source, vector, at), pos, module.dense, unit=unit,
                      parameter=f"{path}.dense.weight", result_name=name)  # fmt: skip


def position_mean(source: Source, unit: int) -> Steps:
    """Explains one component of the last residual stream, the mean over all positions."""
    hook = source.last()
    values = source.value_of(hook)[0, :, unit].double()
    if source.trace.padding is not None:
        values = values[source.trace.padding[0]]
    total, count = float(values.sum()), len(values)
    value = total / count
    begun = f"mean of {count_words(count, 'position')}: Σ x / {count} = "
    line: Line = (begun, number(total), f" / {count} = ", result(value))
    strip = Operand(f"x[·, {unit}]", values, hook, (WHOLE, unit), "pos", "residual")
    return Steps("mean", value, (line,), (strip,))


def outcome(source: Source, name: str, pos: int, unit: int, column: str) -> Steps:
    """A logit: a row of weights, or the mean of what two heads give; and its probability."""
    model = source.model
    if name == "probs":
        return head_probability(source, pos, unit)
    if name == "next_sentence":
        assert model.next_sentence is not None
        return linear_map(source, "pooler.out", pos, model.next_sentence, unit=unit, parameter="next_sentence.weight",
                      result_name=name)  # fmt: skip
    head = model.head
    if isinstance(head, AveragedHead):
        cls, distilled = (source.element(f"head.{part}", pos, unit) for part in ("cls", "distilled"))
        value = (cls + distilled) / 2
        line: Line = ("mean of the two heads: (", number(cls), " + ", operand(distilled), ") / 2 = ", result(value))
        operands = tuple(
            single(part, v, source, f"head.{part}", pos, unit) for part, v in (("cls", cls), ("distilled", distilled))
        )
        return Steps("mean", value, (line,), operands)
    assert isinstance(head, LanguageHead | ClassHead)
    weight = model.table if head.weight is None else head.weight
    assert weight is not None
    scale = head.scale if isinstance(head, LanguageHead) else 1.0
    parameter = model.config.table if head.weight is None else "head.weight"
    steps = linear(source, source.read_by_head(), pos, weight, head.bias, unit=unit, scale=scale, right="W_U",
                   parameter=parameter, result_name="logit", column=column)  # fmt: skip
    cap = head.softcap if isinstance(head, LanguageHead) else None
    return steps if cap is None else softcap(steps, cap)


def head_probability(source: Source, pos: int, unit: int) -> Steps:
    """Explains the probability of one token, class or place of an answer, at temperature 1."""
    head, logits = source.model.config.head, source.value_of("logits")[0].double()
    logit = source.element("logits", pos, unit)
    entry = single("logit", logit, source, "logits", pos, unit, "probability")
    if source.model.config.link == "logistic":
        value = 1 / (1 + math.exp(-logit))
        return Steps("probability", value, (("1 / (1 + e^−(", number(logit), ")) = ", result(value)),), (entry,))
    others = logits[:, unit] if head.kind == "span" else logits if logits.dim() == 1 else logits[pos]
    noun = {"span": "positions", "language": "tokens", "masked": "tokens"}.get(head.kind, "classes")
    peak = float(others.max())
    exponential, total = math.exp(logit - peak), float((others - peak).exp().sum())
    value = exponential / total
    line: Line = (
        "e^(", number(logit), " − ", operand(peak), f") / Σ over {len(others):,} {noun} = ",
        number(exponential), " / ", number(total), " = ", result(value),
    )  # fmt: skip
    return Steps("softmax", value, (line,), (entry,))
