"""What the page Attention asks of a run once it is drawn: an analysis of the head, row or column that is in view."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from itertools import islice, product
from typing import Any, Literal
from weakref import WeakKeyDictionary

import numpy as np
from torch import Tensor, cat, full, nan, stack, tensor

from engine.analysis.averages import by_norm, over_heads, over_texts
from engine.analysis.circuits import lacks, qk, top_outputs
from engine.analysis.copying import copying_scores
from engine.analysis.edges import Edges, edges
from engine.analysis.entropy import attention_entropy, mean_entropy
from engine.analysis.flow import crossed_network, flow, flows, network
from engine.analysis.heads import CROSS_SCORES, SCORES, cross_scores, head_scores
from engine.analysis.points import HeadPoints, head_points, shared_key_head, vectors
from engine.analysis.positional import positional
from engine.analysis.rollout import rollout, rollout_across
from engine.analysis.sinks import Column, column, describe_sink
from engine.analysis.stages import head_stages
from engine.analysis.weights.circuit import Which
from engine.inputs.readers import row_and_column as cell_place
from engine.inputs.samples import sample_runs
from engine.model.transformer import Transformer
from views.attention.attention import attention_payload
from views.core.lanes import Lane, candidate_names
from views.core.matrix_files import Matrix
from views.core.questions import Answer, Axes, Focus, Head, Key, Layer, Pos, Registry, Side
from views.core.run_context import Run, RunContext
from views.core.table_files import Table

TEXTS = 24  # that a pattern is averaged over
LONGEST = 48  # tokens of each of them
FEWEST = 3  # texts at a row, or it is left out
PROMOTED = 8  # tokens listed in a row of OV
DISTINCT = 64  # tokens in a table of QK or OV
SECONDS = 1.0  # for the flows of all rows
HOUR = 3600.0  # for the same in a script, which may take its time
FEW = 600  # columns of all heads together, each of which a file answers by itself
LARGE = 10**9  # weights of a model
CROSSES = "cross_attn"
MEASURES = dict.fromkeys(score.key for score in (*SCORES, *CROSS_SCORES))
STAGES = ("raw", "scores", "capped", "bias", "c2p", "p2c", "masked_scores", "pattern", "moved")
# Of each open model, by stack: no text changes it, and a large vocabulary takes most of a second.
COPYING: WeakKeyDictionary[Transformer, dict[str, Tensor]] = WeakKeyDictionary()

ATTENTION = Registry()
PAIRS: Axes = ("query", "key")
By = Literal["own", "written"]
How = Literal["pca", "tsne"]


@ATTENTION.question("layer")
def ask_layer(run: RunContext, side: Side, layer: Layer) -> bytes:
    """Everything that one layer's attention computed."""
    return attention_payload(run.trace, layer, side, run.before)


# --- one column, one head ---


def describe_column(run: Run, found: Column, side: str, key: int, focus: str, **_: Any) -> Mapping[str, str]:
    """Describes in a sentence what was measured; of a picture the column is named by where it stands."""
    lane = run.lane("encoder" if focus == CROSSES else side)
    if lane.grid is None:
        return {"sentence": describe_sink(found)}
    found = replace(found, special=lane.special[key], punctuation=False)
    return {"sentence": describe_sink(found, name_cell(lane, key), "colour")}


def name_cell(lane: Lane, key: int) -> str:
    """Name of a key of a picture: "patch (row, column)", from 1, or the special token before the picture."""
    assert lane.grid is not None
    i = key - lane.grid["offset"]
    if i < 0:
        return f"“{lane.pieces[key]}” (key {key})"
    return f"{'pixel' if lane.ids else 'patch'} ({cell_place(i, lane.grid['side'])})"


def each_attention(run: RunContext) -> Iterator[tuple[Lane, str, int]]:
    """Stack, focus and number of keys of every attention of the model."""
    for lane in run.lanes:
        yield lane, "attn", len(lane.pieces)
        if lane.config.encoder is not None:
            yield lane, CROSSES, len(run.lanes[0].pieces)


def each_layer(run: RunContext) -> Iterator[dict[str, Any]]:
    for lane, focus, _ in each_attention(run):
        for layer in range(lane.config.layers):
            yield {"side": lane.side, "focus": focus, "layer": layer}


def each_head(run: RunContext, words: bool = False) -> Iterator[dict[str, Any]]:
    """Arguments that name each head; with `words` only those that read words."""
    for lane, focus, _ in each_attention(run):
        for layer, head in product(range(lane.config.layers), range(lane.config.attention.heads)):
            if lane.ids or not words:
                yield {"side": lane.side, "focus": focus, "layer": layer, "head": head}


def each_plane(run: RunContext) -> Iterator[dict[str, Any]]:
    return ({**one, "how": "pca"} for one in each_head(run))  # as the view names it, by which a file finds the answer


def each_column(run: RunContext) -> Iterator[dict[str, Any]]:
    """Every column of every head, of a run that has FEW."""
    keys = {(lane.side, focus): count for lane, focus, count in each_attention(run)}
    heads = list(each_head(run))
    if sum(keys[one["side"], one["focus"]] for one in heads) <= FEW:
        for one in heads:
            yield from (one | {"key": key} for key in range(keys[one["side"], one["focus"]]))


@ATTENTION.question("scores", carry=lambda _: [{}])
def ask_scores(run: RunContext) -> Answer:
    """Scores that take more than the run itself: copying (from the weights) and positional (from further runs).

    NaN of a model of LARGE weights or more, for which they take minutes that nobody has asked for.
    """
    arrays = {}
    if sum(parameter.numel() for parameter in run.model.parameters()) >= LARGE:
        shapes = {lane.prefix: (lane.config.layers, lane.config.attention.heads) for lane in run.lanes}
        names = product(shapes, ("copying", "positional"))
        return Answer({f"scores.{prefix}attn.{name}": full(shapes[prefix], nan) for prefix, name in names})
    for lane in run.lanes:
        arrays[f"scores.{lane.prefix}attn.copying"] = cached_copying(run.model, lane.side)
        arrays[f"scores.{lane.prefix}attn.positional"] = positional(run.model, run.trace, lane.side)
    return Answer(arrays)


def cached_copying(model: Transformer, side: str) -> Tensor:
    """Copying scores, layer head."""
    kept = COPYING.setdefault(model, {})
    if side not in kept:
        kept[side] = copying_scores(model, side)
    return kept[side]


@ATTENTION.question("weighted", returns={"weighted": ("head", *PAIRS), "relative": ("head", *PAIRS)}, carry=each_layer)
def ask_weighted(run: RunContext, side: Side, layer: Layer, focus: Focus = "attn") -> dict[str, Tensor]:
    """Length of what each weight moves, |pattern v W_O|, and its share of the row."""
    lengths = by_norm(run.model, run.trace, layer, side, focus == CROSSES)
    return {"weighted": lengths, "relative": by_norm(run.model, run.trace, layer, side, focus == CROSSES, True)}


# --- many heads at once ---


def title_patterns(**_: Any) -> str:
    return "patterns of all heads"


def title_head_scores(**_: Any) -> str:
    return "scores of all heads"


@ATTENTION.question("patterns", returns={"pattern": ("layer", "head", *PAIRS)}, title=title_patterns)
def ask_patterns(run: RunContext, side: Side, focus: Focus = "attn") -> Tensor:
    """Weights of every head."""
    return run.trace.stack(f"{side}.{focus}.pattern" if side else f"{focus}.pattern")[:, 0]


@ATTENTION.question("head_scores", returns=dict.fromkeys(MEASURES, ("layer", "head")), title=title_head_scores)
def ask_head_scores(run: RunContext, side: Side, focus: Focus = "attn") -> dict[str, Tensor]:
    """Every score of every head, as SCORES of engine.analysis.heads defines them."""
    if focus == CROSSES:
        return vars(cross_scores(run.trace))
    found = vars(head_scores(run.trace, side))
    return found | {"copying": copying_scores(run.model, side), "positional": positional(run.model, run.trace, side)}


@ATTENTION.question("rollout", returns={"rollout": PAIRS})
def ask_rollout(
    run: RunContext, side: Side, first: Layer, last: Layer, focus: Focus = "attn", head: Head | None = None
) -> Tensor:
    """Share of each input position in each output position (Abnar & Zuidema 2020, section 3)."""
    heads = None if head is None else {layer: [head] for layer in range(first, last + 1)}
    if focus == CROSSES:
        return rollout_across(run.trace, first, last + 1, heads, heads).source[-1]
    return rollout(run.trace, side, first, last + 1, heads)[-1]


def entropy_steps(run: Run, side: str, focus: str) -> list[Callable[[], Tensor]]:
    """The entropy of one layer after the other, of a run in pieces."""
    if run.whole:
        return []

    def measure(hook: str) -> Tensor:
        return run.cached((hook, "entropy"), lambda: run.reduce({hook: first_entropy})[hook])

    return [partial(measure, f"{stem(layer, side, focus)}.pattern") for layer in range(run.lane(side).config.layers)]


def first_entropy(pattern: Tensor) -> Tensor:
    """batch of 1 head pos key -> pos."""
    return mean_entropy(pattern[0])


@ATTENTION.question("entropy", returns={"entropy": ("layer", "pos")}, steps=entropy_steps)
def ask_entropy(run: Run, side: Side, focus: Focus = "attn") -> Tensor:
    """Entropy of each row of attention in bits, mean over the heads (Clark et al. 2019, section 3.3)."""
    if not run.whole:
        return stack([step() for step in entropy_steps(run, side, focus)])
    return attention_entropy(run.trace, side, focus == CROSSES)


@ATTENTION.question("flow", returns={"flow": ("key",)})
def ask_flow(run: RunContext, side: Side, pos: Pos, focus: Focus = "attn") -> Tensor:
    """Maximum flow from each input position to one output position (Abnar & Zuidema 2020, section 3)."""
    return flow(crossed_network(run.trace) if focus == CROSSES else network(run.trace, side), pos)


@ATTENTION.question("flows", returns={"flow": PAIRS}, in_script={"seconds": HOUR})
def ask_flows(run: Run, side: Side, focus: Focus = "attn", seconds: float = SECONDS) -> Tensor | None:
    """Maximum flow to every output position; nothing where that takes longer than `seconds`, as of a long text."""
    if not run.whole:
        return None
    return flows(crossed_network(run.trace) if focus == CROSSES else network(run.trace, side), seconds)


def title_average(over: str, **_: Any) -> str:
    return f"mean of {over}"


@ATTENTION.question("average", returns={"pattern": PAIRS}, title=title_average)
def ask_average(
    run: RunContext,
    side: Side,
    over: Literal["heads", "layers"],
    layer: Layer,
    head: Head,
    focus: Focus = "attn",
    alone: bool = False,
) -> Tensor:
    """Mean pattern of the heads of a layer, or of the layers: of all their heads, or of this head `alone`."""
    layers = [layer] if over == "heads" else None
    heads = [head] if over == "layers" and alone else None
    return over_heads(run.trace, layers, heads, side, focus == CROSSES)


def table_texts(run: Run, side: str, layer: int, head: int, focus: str) -> Matrix:
    """Without tokens: each position held another one in every text."""
    pattern = ask_text_average(run, side=side, layer=layer, head=head, focus=focus)["pattern"]
    return Matrix("mean of texts", run.model_name, pattern.detach().cpu().float().numpy(), PAIRS, {})


@ATTENTION.question("text_average", returns={"pattern": PAIRS, "count": ("query",)}, make_table=table_texts)
def ask_text_average(run: Run, side: Side, layer: Layer, head: Head, focus: Focus = "attn") -> dict[str, Tensor]:
    """Mean pattern of a head over sample texts of the model, position by position, and how many texts reach each."""
    traces = sample_runs(run.checkpoint, TEXTS, LONGEST, run.trace.edits, [f"*{focus}.pattern"])
    mean = run.cached(("texts", side, focus), lambda: over_texts(traces, FEWEST, side, focus == CROSSES))
    return {"pattern": mean.pattern[layer, head], "count": mean.texts.int()}


# --- what a head's weights say ---


def describe_points(run: Run, found: HeadPoints, **_: Any) -> Mapping[str, Any]:
    nearer = found.joint.correlation
    c = found.joint.scale
    note = f"Keys stand moved and scaled against queries as AttentionViz does, which changes no pattern (c = {c:.3g})"
    note += "" if nearer != nearer else f"; distance and q·k correlate by {nearer:.2f}".replace("-", "\N{MINUS SIGN}")
    return {"shares": None if found.explained is None else list(found.explained), "note": f"{note}."}


def table_points(run: Run, layer: int, head: int, side: str, focus: str, how: How) -> Table:
    """Queries, then keys."""
    query = {"side": side, "focus": focus}
    found = ask_points(run, layer=layer, head=head, side=side, focus=focus, how=how)
    parts = [("query", found.queries, "query"), ("key", found.keys, "key")]
    labels = {axis: run.labels(axis, query) or () for axis in PAIRS}
    columns: dict[str, Any] = {
        "role": [role for role, places, _ in parts for _ in places],
        "pos": np.concatenate([np.arange(len(places)) for _, places, _ in parts]),
        "token": [token for _, places, axis in parts for token in labels[axis][: len(places)]],
        "x": np.concatenate([places[:, 0] for _, places, _ in parts]),
        "y": np.concatenate([places[:, 1] for _, places, _ in parts]),
    }
    return Table(columns, about(run, layer, head, side, focus) | {"how": how})


def about(run: Run, layer: int, head: int, side: str, focus: str) -> dict[str, str]:
    return {"model": run.model_name, "attention": stem(layer, side, focus), "head": str(head)}


def stem(layer: int, side: str, focus: str) -> str:
    """Name of the hooks of an attention without their last word."""
    return f"{f'{side}.' if side else ''}blocks.{layer}.{focus}"


@ATTENTION.question(
    "points",
    returns={"queries": ("query", "xy"), "keys": ("key", "xy")},
    describe=describe_points,
    make_table=table_points,
    carry=each_plane,
)
def ask_points(run: Run, layer: Layer, head: Head, side: Side, focus: Focus = "attn", how: How = "pca") -> HeadPoints:
    """Queries and keys of a head in the plane."""
    return run.cached(
        ("points", layer, head, side, focus, how),
        lambda: head_points(run.vectors(layer, side, focus), layer, head, side, focus == CROSSES, how),
    )


def distinct_ids(run: Run, side: str, focus: str, keys: bool = False) -> list[int]:
    """Tokens of the text of the queries (or `keys`), each once, in their order there."""
    own, source = run.lanes_of({"side": side, "focus": focus})
    return list(islice(dict.fromkeys((source if keys else own).ids), DISTINCT))


def name_ids(run: Run, *ids: Tensor) -> dict[str, str]:
    tokenizer = run.checkpoint.tokenizer
    return candidate_names(cat([one.flatten().cpu() for one in ids]), tokenizer.pieces if tokenizer else None, ())


def describe_promoted(run: Run, found: Answer, **_: Any) -> Mapping[str, Any]:
    note = (
        "Each token stands for its embedding alone, as this layer's norm gives it to the head; positions, biases and "
        "the last norm's division are left out, so values compare with one another and are no differences of logits."
    )
    return {"names": name_ids(run, found.arrays["ids"], found.arrays["top"]), "note": note}


def describe_scored(run: Run, found: Answer, **_: Any) -> Mapping[str, Any]:
    note = (
        "q·k, scaled as scores are, between the tokens' embeddings alone, as at one position: what positions add, and "
        "what earlier layers would have written, is left out."
    )
    return {"names": name_ids(run, found.arrays["ids"], found.arrays["keys"]), "note": note}


def each_word_head(run: RunContext) -> Iterator[dict[str, Any]]:
    return each_head(run, words=True)


@ATTENTION.question(
    "ov",
    returns={"ids": ("source",), "top": ("source", "rank"), "logits": ("source", "rank")},
    describe=describe_promoted,
    carry=each_word_head,
)
def ask_promoted(run: Run, layer: Layer, head: Head, side: Side, focus: Focus = "attn") -> Answer:
    """Tokens whose logits the head raises most where it attends to each token of the text (Elhage et al. 2021)."""
    ids = distinct_ids(run, side, focus, keys=True)
    count = min(PROMOTED, run.model.config.outputs)
    found = top_outputs(run.model, layer, head, ids, count, side, focus == CROSSES)
    return Answer({"ids": tensor(ids), "top": found.tokens, "logits": found.values})


@ATTENTION.question(
    "qk",
    returns={"ids": ("query",), "keys": ("key",), "scores": PAIRS},
    describe=describe_scored,
    carry=each_word_head,
)
def ask_scored(run: Run, layer: Layer, head: Head, side: Side, focus: Focus = "attn") -> Answer:
    """Scores between the tokens of the text, each for its embedding alone (Elhage et al. 2021)."""
    ids, keys = distinct_ids(run, side, focus), distinct_ids(run, side, focus, keys=True)
    found = qk(run.model, layer, head, ids, keys, side, focus == CROSSES)
    return Answer({"ids": tensor(ids), "keys": tensor(keys), "scores": found})


@ATTENTION.question("sink", describe=describe_column, carry=each_column)
def ask_column(run: RunContext, side: Side, layer: Layer, head: Head, key: Key, focus: Focus = "attn") -> Column:
    """Why a column of a head is bright, or not."""
    read = run.encoding("encoder" if focus == CROSSES else side)
    return column(run.trace, layer, key, head, side, focus == CROSSES, read)


# --- to download, and as Python: the browser has these numbers ---


def known_circuits(run: RunContext, side: str) -> list[Which]:
    """Circuits that this attention has. Raises ValueError where it has none."""
    circuits: tuple[Which, ...] = ("ov", "qk")
    sentences = {which: lacks(run.model, which, side) for which in circuits}
    found = [which for which in circuits if not sentences[which]]
    if not found:
        raise ValueError(sentences["ov"])
    return found


def table_circuits(run: RunContext, layer: int, head: int, side: str, focus: str) -> Table:
    """OV: a token and what it promotes, by rank. QK: a query, a key and their score."""
    columns: dict[str, list[Any]] = {name: [] for name in ("circuit", "id", "token", "to_id", "to_token", "value")}
    for which in known_circuits(run, side):
        ask, values, describe = {
            "ov": (ask_promoted, "logits", describe_promoted),
            "qk": (ask_scored, "scores", describe_scored),
        }[which]
        found = ask(run, layer=layer, head=head, side=side, focus=focus)
        names, numbers = describe(run, found)["names"], found.arrays[values]
        to = found.arrays["top"] if which == "ov" else found.arrays["keys"].expand_as(numbers)
        for row, col in np.ndindex(*numbers.shape):
            pair = int(found.arrays["ids"][row]), int(to[row, col])
            line = (which, pair[0], names[str(pair[0])], pair[1], names[str(pair[1])], float(numbers[row, col]))
            for column_, value in zip(columns.values(), line, strict=True):
                column_.append(value)
    numbers_column = {"value": np.asarray(columns["value"], dtype=np.float32)}
    return Table({**columns, **numbers_column}, about(run, layer, head, side, focus))


def script_circuits(run: RunContext, layer: int, head: int, side: str, focus: str, row: int, col: int) -> str:
    found = known_circuits(run, side)
    where = f", {side!r}, {focus == CROSSES}" if side or focus == CROSSES else ""
    imports = {"torch": {"cat"}}
    lines = [f"queries = {distinct_ids(run, side, focus)}", f"keys = {distinct_ids(run, side, focus, keys=True)}"]
    if "ov" in found:
        imports["engine.analysis.circuits"] = {"top_outputs"}
        count = min(PROMOTED, run.model.config.outputs)
        call = f"top_outputs(checkpoint.model, {layer}, {head}, keys, {count}{where})"
        lines.append(f"ov = {call}  # .tokens, .values: key rank")
        lines.append("print(ov.tokens.tolist())")
    if "qk" in found:
        imports["engine.analysis.circuits"] = imports.get("engine.analysis.circuits", set()) | {"qk"}
        lines.append(f"scores = qk(checkpoint.model, {layer}, {head}, queries, keys{where})  # query key")
        lines.append("print(scores.tolist())")
    parts = {"ov": "ov.values.flatten()", "qk": "scores.flatten()"}
    lines.append(f"values = cat([{', '.join(parts[which] for which in found)}])  # as the rows of the file")
    return run.script(imports, lines)


@ATTENTION.question("circuits", make_table=table_circuits, make_script=script_circuits)
def ask_circuits(run: RunContext, layer: Layer, head: Head, side: Side, focus: Focus = "attn") -> None:
    """Both circuits of a head between the tokens of the text."""


@ATTENTION.question(
    "product", returns={"q": ("key", "component"), "k": ("key", "component"), "product": ("key", "component")}
)
def ask_product(
    run: RunContext, layer: Layer, head: Head, side: Side, pos: Pos, key: Key, focus: Focus = "attn"
) -> dict[str, Tensor]:
    """Products of one query with every key, component by component."""
    attention = f"{side}.blocks.{layer}.{focus}" if side else f"blocks.{layer}.{focus}"
    q, k = vectors(run.trace, attention, "q")[0], vectors(run.trace, attention, "k")[0]
    one, keys = q[pos, head].float(), k[:, shared_key_head(q, k, head)].float()
    return {"product": one * keys, "q": one.expand_as(keys), "k": keys}


@ATTENTION.question(
    "steps",
    returns=dict.fromkeys(STAGES, PAIRS),
)
def ask_steps(run: RunContext, layer: Layer, head: Head, side: Side, focus: Focus = "attn") -> dict[str, Tensor]:
    """The stages of a head from products to weights, as far as it has them, and what each weight moves."""
    return head_stages(run.model, run.trace, layer, head, side, focus == CROSSES)


@ATTENTION.question(
    "lines",
    returns=dict.fromkeys(("layer", "head", "query", "key", "weight"), ("line",)),
)
def ask_lines(
    run: RunContext,
    side: Side,
    heads: list[tuple[Layer, Head]],
    least: float,
    focus: Focus = "attn",
    pos: Pos | None = None,
    key: Key | None = None,
) -> Edges:
    """Every weight that is drawn as a line: of `heads`, from `least` on, all or those of one query or key."""
    return edges(run.trace, heads, least, side, focus == CROSSES, pos, key)


def table_alignment(run: RunContext, layer: int, head: int, side: str, focus: str, by: By) -> Table:
    """Every target word that a row joins with every source word; `most` is 1 where a word has the most of its row."""
    weights = ask_alignment(run, layer=layer, head=head, side=side, focus=focus, by=by).detach().float().cpu()
    own, source = run.lanes_of({"side": side, "focus": focus})
    row, key = np.indices(tuple(weights.shape)).reshape(2, -1)
    target = row + (by == "written")
    columns: dict[str, Any] = {
        "target": target,
        "target_token": [own.pieces[i] for i in target],
        "row": row,
        "source": key,
        "source_token": [source.pieces[i] for i in key],
        "weight": weights.reshape(-1).numpy(),
        "most": (key == weights.argmax(-1).numpy()[row]).astype(np.int8),
    }
    return Table(columns, about(run, layer, head, side, focus))


@ATTENTION.question("alignment", returns={"weight": ("row", "source")}, make_table=table_alignment)
def ask_alignment(
    run: RunContext, layer: Layer, head: Head, side: Side, focus: Focus = "attn", by: By = "written"
) -> Tensor:
    """Weights that join a target word with each source word: by its own row, or by the row before, which wrote it."""
    name = f"{side}.blocks.{layer}.{focus}.pattern" if side else f"blocks.{layer}.{focus}.pattern"
    return run.trace[name][0, head] if by == "own" else run.trace[name][0, head][:-1]
