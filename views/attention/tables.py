"""What a tab of the page about attention shows of an answer, as a file takes it: its axes or columns named."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from torch import Tensor

from engine.analysis.averages import by_norm
from engine.analysis.circuits import lacks
from engine.analysis.edges import edges
from engine.analysis.points import vectors
from engine.analysis.weights.circuit import Which, attention_of
from views.attention.answers import HEAD, UNKNOWN, Looked, Query, answered, check, where
from views.core.matrix_files import Matrix, as_file
from views.core.payload import Named, unpack
from views.core.table_files import Format, Table, table_file
from views.walkthrough.walkthrough import Lane

MOST_HEADS = 12  # whose lines are drawn at once
CIRCUITS: tuple[Which, ...] = ("ov", "qk")
STAGES = ("scores", "capped", "bias", "masked_scores", "pattern")


def attention_file(looked: Looked, model: str, query: Any, format: Format) -> bytes:
    """Of what a view asks, as it asks; `model` is the checkpoint's name. Raises ValueError as `answered` does."""
    found = attention_table(looked, model, query)
    return as_file(found, format) if isinstance(found, Matrix) else table_file(found, format)


def attention_table(looked: Looked, model: str, query: Any) -> Matrix | Table:
    ask = query.get("ask") if isinstance(query, dict) else None
    if not isinstance(ask, str) or ask not in TABLES:
        raise ValueError(UNKNOWN)
    made, needs = TABLES[ask]
    check(looked, query, needs)
    return made(looked, model, query)


def stem(query: Query) -> str:
    """The name of the hooks of an attention but for their last word."""
    crosses, side = where(query)
    return f"{f'{side}.' if side else ''}blocks.{query['layer']}.{'cross_attn' if crosses else 'attn'}"


def lanes_of(looked: Looked, query: Query) -> tuple[Lane, Lane]:
    """That of the queries and that of the keys."""
    crosses, side = where(query)
    own = next(lane for lane in looked.lanes if lane.side == side)
    return own, looked.lanes[0] if crosses else own


def asked(looked: Looked, query: Query) -> tuple[dict[str, Any], dict[str, Named]]:
    return unpack(answered(looked, {**query, "trace": looked.digest}))


def measured(looked: Looked, model: str, query: Query) -> Matrix:
    """A mean, the rollout or the flow, query key; of a flow that is asked for a token at a time, key."""
    header, arrays = asked(looked, query)
    if "whole" in header and not header["whole"]:
        raise ValueError("The flow of all tokens takes too long at the moment; choose a token and ask again.")
    values = arrays["pattern" if query["ask"] == "average" else query["ask"]].data
    own, source = lanes_of(looked, query)
    tokens = {"query": own.pieces, "key": source.pieces}
    dims = ("query", "key")[2 - values.ndim :]
    many = query.get("over") == "sentences"  # of which each place held another token
    kept = {} if many else {axis: tokens[axis] for axis in dims}
    return Matrix(named(query), model, values, dims, kept)


def named(query: Query) -> str:
    match query:
        case {"ask": "average", "over": "heads"}:
            return "mean of heads"
        case {"ask": "average", "over": "sentences"}:
            return "mean of texts"
        case {"ask": "average"}:
            return "mean of layers"
    return str(query["ask"])


def points(looked: Looked, model: str, query: Query) -> Table:
    """Queries, then keys."""
    _, arrays = asked(looked, query)
    lanes = lanes_of(looked, query)
    parts = [("query", arrays["q"].data, lanes[0]), ("key", arrays["k"].data, lanes[1])]
    columns: dict[str, Any] = {
        "role": [role for role, places, _ in parts for _ in places],
        "pos": np.concatenate([np.arange(len(places)) for _, places, _ in parts]),
        "token": [token for _, places, lane in parts for token in lane.pieces[: len(places)]],
        "x": np.concatenate([places[:, 0] for _, places, _ in parts]),
        "y": np.concatenate([places[:, 1] for _, places, _ in parts]),
    }
    how = "tsne" if query.get("how") == "tsne" else "pca"
    return Table(columns, about(model, query) | {"how": how})


def about(model: str, query: Query) -> dict[str, str]:
    return {"model": model, "attention": stem(query), "head": str(query["head"])}


def known_circuits(looked: Looked, query: Query) -> list[Which]:
    """Those that this attention has. Raises ValueError where it has none."""
    _, side = where(query)
    sentences = {which: lacks(looked.checkpoint.model, which, side) for which in CIRCUITS}
    found = [which for which, sentence in sentences.items() if not sentence]
    if not found:
        raise ValueError(sentences["ov"])
    return found


def circuits(looked: Looked, model: str, query: Query) -> Table:
    """OV: a token and what it promotes, by rank. QK: a query, a key and their score."""
    columns: dict[str, list[Any]] = {name: [] for name in ("circuit", "id", "token", "to_id", "to_token", "value")}
    for which in known_circuits(looked, query):
        header, arrays = asked(looked, {**query, "ask": which})
        ids, names = arrays["ids"].data, header["names"]
        values = arrays["logits" if which == "ov" else "scores"].data
        to = arrays["top"].data if which == "ov" else np.broadcast_to(arrays["keys"].data, values.shape)
        for row, col in np.ndindex(values.shape):
            met = int(ids[row]), int(to[row, col])
            line = (which, met[0], names[str(met[0])], met[1], names[str(met[1])], values[row, col])
            for column, value in zip(columns.values(), line, strict=True):
                column.append(value)
    made = {name: np.asarray(column) if name == "value" else column for name, column in columns.items()}
    return Table(made, about(model, query))


def product(looked: Looked, model: str, query: Query) -> Table:
    """Of the chosen query with every key, component by component."""
    q, k = vectors(looked.trace, stem(query), "q")[0], vectors(looked.trace, stem(query), "k")[0]
    one, keys = q[query["pos"], query["head"]], k[:, shared(q, k, query["head"])]
    pieces = lanes_of(looked, query)[1].pieces
    key, component = np.indices(tuple(keys.shape)).reshape(2, -1)
    columns: dict[str, Any] = {
        "key": key,
        "key_token": [pieces[i] for i in key],
        "component": component,
        "q": flat(one.expand_as(keys)),
        "k": flat(keys),
        "product": flat(one * keys),
    }
    return Table(columns, about(model, query) | {"query": str(query["pos"])})


def shared(q: Tensor, k: Tensor, head: int) -> int:
    """The head of the keys that a head reads, of pos head d_head."""
    return head * k.shape[1] // q.shape[1]


def flat(values: Tensor) -> np.ndarray:
    return values.detach().float().cpu().reshape(-1).numpy()


def steps(looked: Looked, model: str, query: Query) -> Table:
    """The stages from products to weights, and what each weight moves."""
    own, source = lanes_of(looked, query)
    crosses, side = where(query)
    block, head, network = stem(query), query["head"], looked.checkpoint.model
    parts = {part: looked.trace[f"{block}.{part}"][place] for part, place in stages(looked, query).items()}
    row, col = np.indices(tuple(parts["pattern"].shape)).reshape(2, -1)
    raw = parts["scores"] / attention_of(network, query["layer"], side, crosses).scale
    columns: dict[str, Any] = {
        "query": row,
        "query_token": [own.pieces[i] for i in row],
        "key": col,
        "key_token": [source.pieces[i] for i in col],
        "raw": flat(raw),
        **{part: flat(values) for part, values in parts.items()},
        "moved": flat(by_norm(network, looked.trace, query["layer"], side, crosses)[head]),
    }
    return Table(columns, about(model, query))


def stages(looked: Looked, query: Query) -> dict[str, tuple[int, ...]]:
    """Those that this run has, with where the head stands in each: a bias has no axis for the text."""
    names = {part: f"{stem(query)}.{part}" for part in STAGES}
    here = {part: looked.trace.dims(name) for part, name in names.items() if name in looked.trace}
    return {part: (0, query["head"]) if "batch" in dims else (query["head"],) for part, dims in here.items()}


class Drawn(NamedTuple):
    """Which lines a view draws: of heads (layer, head), from a weight on, all or those of one query or key."""

    heads: list[tuple[int, int]]
    least: float
    pos: int | None
    key: int | None


def drawn(looked: Looked, query: Query) -> Drawn:
    """Raises ValueError for what no view draws."""
    heads, least = query.get("heads"), query.get("least")
    if not isinstance(heads, list) or not 0 < len(heads) <= MOST_HEADS or not all(map(paired, heads)):
        raise ValueError(UNKNOWN)
    if isinstance(least, bool) or not isinstance(least, int | float) or not 0 <= least <= 1:
        raise ValueError(UNKNOWN)
    for layer, head in heads:
        check(looked, {**query, "layer": layer, "head": head}, HEAD)
    check(looked, query, tuple(name for name in ("pos", "key") if name in query))
    return Drawn([(layer, head) for layer, head in heads], float(least), query.get("pos"), query.get("key"))


def paired(value: Any) -> bool:
    return isinstance(value, list) and len(value) == 2


def lines(looked: Looked, model: str, query: Query) -> Table:
    """Every line that is drawn."""
    crosses, side = where(query)
    shown, (own, source) = drawn(looked, query), lanes_of(looked, query)
    found = edges(looked.trace, shown.heads, shown.least, side, crosses, shown.pos, shown.key)
    columns: dict[str, Any] = {
        "layer": found.layer.numpy(),
        "head": found.head.numpy(),
        "query": found.query.numpy(),
        "query_token": [own.pieces[i] for i in found.query],
        "key": found.key.numpy(),
        "key_token": [source.pieces[i] for i in found.key],
        "weight": found.weight.numpy(),
    }
    kind = "cross_attn" if crosses else "attn"
    return Table(columns, {"model": model, "attention": f"{side} {kind}".strip(), "least": str(shown.least)})


def shift(query: Query) -> int:
    """How many rows before a target word stands the row that it is joined by."""
    return 0 if query.get("by") == "own" else 1


def alignment(looked: Looked, model: str, query: Query) -> Table:
    """Every target word that a row joins with every source word; `most` is 1 where a word has the most of its row."""
    own, source = lanes_of(looked, query)
    pattern = looked.trace[f"{stem(query)}.pattern"][0, query["head"]].detach().float().cpu()
    weights = pattern[: len(pattern) - shift(query)]
    row, key = np.indices(tuple(weights.shape)).reshape(2, -1)
    target = row + shift(query)
    columns: dict[str, Any] = {
        "target": target,
        "target_token": [own.pieces[i] for i in target],
        "row": row,
        "source": key,
        "source_token": [source.pieces[i] for i in key],
        "weight": flat(weights),
        "most": (key == weights.argmax(-1).numpy()[row]).astype(np.int8),
    }
    return Table(columns, about(model, query))


Made = Callable[[Looked, str, Query], Matrix | Table]
TABLES: dict[str, tuple[Made, tuple[str, ...]]] = {
    "average": (measured, HEAD),
    "rollout": (measured, ("side", "first", "last")),
    "flow": (measured, ("side",)),
    "points": (points, HEAD),
    "circuits": (circuits, HEAD),
    "product": (product, (*HEAD, "pos", "key")),
    "steps": (steps, HEAD),
    "lines": (lines, ("side",)),
    "alignment": (alignment, HEAD),
}
