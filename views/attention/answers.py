"""What the page about attention asks for once it is drawn: an analysis of the head, row or column that is looked at."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, Literal
from weakref import WeakKeyDictionary

import torch
from torch import Tensor

from engine.analysis.averages import Averaged, by_norm, over_heads, over_texts
from engine.analysis.circuits import promoted, qk
from engine.analysis.copying import copying
from engine.analysis.flow import crossed_network, flow, flow_from, flows, network
from engine.analysis.points import HeadPoints, head_points
from engine.analysis.positional import positional
from engine.analysis.rollout import crossed, layer_means, rollout
from engine.analysis.sinks import Column, column, sentence
from engine.checkpoints import Checkpoint
from engine.inputs.readers import place as cell_place
from engine.inputs.samples import samples
from engine.model.transformer import Transformer
from engine.runtime.run import run
from engine.runtime.trace import Trace
from engine.tokenizers.encoding import Encoding
from views.attention.attention import attention_payload
from views.core.payload import pack
from views.walkthrough.walkthrough import Lane, candidate_names

TEXTS = 24  # that a pattern is averaged over
LONGEST = 48  # tokens of each of them
FEWEST = 3  # texts behind a row, or it is left out
PROMOTED = 8  # tokens listed in a row of OV
DISTINCT = 64  # tokens in a table of QK or OV
PATIENCE = 1.0  # seconds for the flows of all rows
STALE = "The text or the model has changed since; click again."
UNKNOWN = "The picture asked for something this page does not know; reload the page."
# Of each open model, by stack: no text changes it, and a large vocabulary takes most of a second.
COPYING: WeakKeyDictionary[Transformer, dict[str, Tensor]] = WeakKeyDictionary()

Query = Mapping[str, Any]


@dataclass(frozen=True)
class Looked:
    """The run that is drawn, what it was made of, and the run before the edits where there is one."""

    digest: str
    checkpoint: Checkpoint
    trace: Trace
    lanes: list[Lane]
    before: Trace | None = None

    def encoding(self, side: str) -> Encoding | None:
        """What stands at the positions of a stack, as far as it is text."""
        lane = next(lane for lane in self.lanes if lane.side == side)
        return Encoding.from_ids(lane.ids, list(lane.pieces)) if lane.ids else None


def answered(looked: Looked, query: Query) -> bytes:
    """Raises ValueError, with a sentence, for what this run does not have and what no view asks."""
    if query.get("trace") != looked.digest:
        raise ValueError(STALE)
    match query:
        case {"ask": str(ask)} if ask in ASKED:
            check(looked, query, ASKED[ask].needs)
            return ASKED[ask].answer(looked, query)
        case {"layer": int(layer), "side": str(side)} if "ask" not in query:
            return attention_payload(looked.trace, layer, side, looked.before)
    raise ValueError(UNKNOWN)


def check(looked: Looked, query: Query, needs: tuple[str, ...]) -> None:
    """What comes from a browser may be anything: every number that is needed must be there, and stand for something."""
    found = [lane for lane in looked.lanes if lane.side == query.get("side")]
    crosses = query.get("focus") == "cross_attn"
    if "side" in needs and not found or crosses and not (found and found[0].config.encoder):
        raise ValueError(UNKNOWN)
    sizes = {} if not found else sizes_of(looked, found[0], crosses)
    for name in (name for name in needs if name != "side"):
        value = query.get(name)
        if type(value) is not int or not 0 <= value < sizes[name]:
            raise ValueError(f"{name} must be in 0..{sizes[name] - 1}, got {value!r}.")


def sizes_of(looked: Looked, lane: Lane, crosses: bool) -> dict[str, int]:
    layers, keys = lane.config.layers, len(looked.lanes[0].pieces if crosses else lane.pieces)
    heads = lane.config.attention.heads
    return {"layer": layers, "first": layers, "last": layers, "head": heads, "pos": len(lane.pieces), "key": keys}


def sink(looked: Looked, query: Query) -> bytes:
    crosses, side = where(query)
    read = looked.encoding("encoder" if crosses else side)
    found = column(looked.trace, query["layer"], query["key"], query["head"], side, crosses, read)
    return pack({"sentence": told(looked, found, side, crosses)}, {})


def told(looked: Looked, found: Column, side: str, crosses: bool) -> str:
    """What was measured of a column, which of a picture is named by where it stands."""
    lane = next(lane for lane in looked.lanes if lane.side == ("encoder" if crosses else side))
    if lane.grid is None:
        return sentence(found)
    found = replace(found, special=lane.special[found.key], punctuation=False)
    return sentence(found, cell(lane, found.key), "colour")


def cell(lane: Lane, key: int) -> str:
    """What stands at a key of a picture: "patch (row, column)", from 1, or what was put before the picture."""
    assert lane.grid is not None
    i = key - lane.grid["offset"]
    if i < 0:
        return f"“{lane.pieces[key]}” (key {key})"
    return f"{'pixel' if lane.ids else 'patch'} ({cell_place(i, lane.grid['side'])})"


def weighted(looked: Looked, query: Query) -> bytes:
    crosses, side = where(query)
    norms = by_norm(looked.checkpoint.model, looked.trace, query["layer"], side, crosses)
    total = norms.sum(-1, keepdim=True)
    return pack({}, {"weighted": norms, "relative": norms / total.clamp(min=torch.finfo(norms.dtype).tiny)})


def rolled(looked: Looked, query: Query) -> bytes:
    """Through layers `first` to `last`, both included."""
    crosses, side = where(query)
    first, end, head = query["first"], query["last"] + 1, query.get("head")
    if head is not None:
        check(looked, query, HEAD[:1] + HEAD[2:])
    heads = None if head is None else {layer: [head] for layer in range(first, end)}
    if crosses:
        return pack({}, {"rollout": crossed(looked.trace, first, end, heads, heads).source[-1]})
    return pack({}, {"rollout": rollout(looked.trace, side, first, end, heads)[-1]})


def flowed(looked: Looked, query: Query) -> bytes:
    """Of the row that is named; of all of them where none is, or of none where they take longer than PATIENCE."""
    crosses, side = where(query)
    if "pos" in query:
        check(looked, query, ("side", "pos"))
        pos, trace = query["pos"], looked.trace
        row = flow(crossed_network(trace), pos) if crosses else flow_from(layer_means(trace, side), pos)
        return pack({}, {"flow": row})
    found = flows(crossed_network(looked.trace) if crosses else network(looked.trace, side), PATIENCE)
    return pack({"whole": found is not None}, {} if found is None else {"flow": found})


def averaged(looked: Looked, query: Query) -> bytes:
    crosses, side = where(query)
    if query.get("over") == "sentences":
        return over_sentences(looked, query["layer"], query["head"], side, crosses)
    layers = [query["layer"]] if query.get("over") == "heads" else None
    heads = [query["head"]] if query.get("over") == "layers" and query.get("alone") else None
    pattern = over_heads(looked.trace, layers, heads, side, crosses)
    return pack({}, {"pattern": pattern, "count": torch.ones(len(pattern), dtype=torch.int32)})


def over_sentences(looked: Looked, layer: int, head: int, side: str, crosses: bool) -> bytes:
    found = many_texts(looked, side, crosses)
    return pack({}, {"pattern": found.pattern[layer, head], "count": found.texts.int()})


def many_texts(looked: Looked, side: str, crosses: bool) -> Averaged:
    """Of sample texts of the model, or pictures, read under the edits of this run."""
    model = looked.checkpoint.model
    keep = [f"*{'cross_attn' if crosses else 'attn'}.pattern"]
    reads = samples(looked.checkpoint, TEXTS, LONGEST)
    traces = (run(model, one.read, keep, looked.trace.edits, target=one.target) for one in reads)
    return over_texts(traces, FEWEST, side, crosses)


def points(looked: Looked, query: Query) -> bytes:
    crosses, side = where(query)
    how: Literal["pca", "tsne"] = "tsne" if query.get("how") == "tsne" else "pca"
    return packed_points(head_points(looked.trace, query["layer"], query["head"], side, crosses, how))


def packed_points(found: HeadPoints) -> bytes:
    shares = None if found.explained is None else list(found.explained)
    nearer = found.joint.correlation
    c = found.joint.scale
    note = f"Keys stand moved and scaled against queries as AttentionViz does, which changes no pattern (c = {c:.3g})"
    note += "" if nearer != nearer else f"; distance and q·k correlate by {nearer:.2f}".replace("-", "\N{MINUS SIGN}")
    return pack({"shares": shares, "note": f"{note}."}, {"q": found.queries, "k": found.keys})


def ov(looked: Looked, query: Query) -> bytes:
    ids = distinct(looked, query, keys=True)
    model = looked.checkpoint.model
    found = promoted(model, query["layer"], query["head"], ids, min(PROMOTED, model.config.outputs), *place(query))
    arrays = {"ids": torch.tensor(ids), "top": found.tokens, "logits": found.values}
    names = named(looked, torch.cat([torch.tensor(ids), found.tokens.flatten().cpu()]))
    note = (
        "Each token stands for its embedding alone, as this layer's norm gives it to the head; positions, biases and "
        "the last norm's division are left out, so values compare with one another and are no differences of logits."
    )
    return pack({"names": names, "note": note}, arrays)


def seeks(looked: Looked, query: Query) -> bytes:
    ids, keys = distinct(looked, query), distinct(looked, query, keys=True)
    found = qk(looked.checkpoint.model, query["layer"], query["head"], ids, keys, *place(query))
    note = (
        "q·k/√d_head between the tokens' embeddings alone, as at one position: what positions add, and what earlier "
        "layers would have written, is left out."
    )
    arrays = {"ids": torch.tensor(ids), "keys": torch.tensor(keys), "scores": found}
    return pack({"names": named(looked, torch.tensor([*ids, *keys])), "note": note}, arrays)


def unmeasured(looked: Looked, query: Query) -> bytes:
    """The scores that take more than the run itself: copying (from the weights) and positional (from further runs)."""
    model, arrays = looked.checkpoint.model, {}
    for lane in looked.lanes:
        arrays[f"scores.{lane.prefix}attn.copying"] = copied(model, lane.side)
        arrays[f"scores.{lane.prefix}attn.positional"] = positional(model, looked.trace, lane.side)
    return pack({}, arrays)


def copied(model: Transformer, side: str) -> Tensor:
    """layer head."""
    kept = COPYING.setdefault(model, {})
    if side not in kept:
        kept[side] = copying(model, side)
    return kept[side]


@dataclass(frozen=True)
class Answer:
    """How a question is answered, and which numbers it must bring."""

    answer: Callable[[Looked, Query], bytes]
    needs: tuple[str, ...] = ("side",)


HEAD = ("side", "layer", "head")
ASKED = {
    "sink": Answer(sink, (*HEAD, "key")),
    "weighted": Answer(weighted, ("side", "layer")),
    "rollout": Answer(rolled, ("side", "first", "last")),
    "flow": Answer(flowed),
    "average": Answer(averaged, HEAD),
    "points": Answer(points, HEAD),
    "ov": Answer(ov, HEAD),
    "qk": Answer(seeks, HEAD),
    "scores": Answer(unmeasured, ()),
}


def where(query: Query) -> tuple[bool, str]:
    """Whether the attention crosses from one text to another, and the stack it stands in."""
    return query.get("focus") == "cross_attn", str(query["side"])


def place(query: Query) -> tuple[str, bool]:
    crosses, side = where(query)
    return side, crosses


def distinct(looked: Looked, query: Query, keys: bool = False) -> list[int]:
    """The tokens of the text whose queries (or `keys`) these are, each once, in the order they stand there."""
    side, crosses = place(query)
    lane = next(lane for lane in looked.lanes if lane.side == ("encoder" if crosses and keys else side))
    return list(islice(dict.fromkeys(lane.ids), DISTINCT))


def named(looked: Looked, ids: Tensor) -> dict[str, str]:
    tokenizer = looked.checkpoint.tokenizer
    return candidate_names(ids, None if tokenizer is None else tokenizer.pieces, ())
