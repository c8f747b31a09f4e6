"""What the page about comparisons draws: two runs or more, and what belongs together in them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, zip_longest
from types import MappingProxyType
from typing import Any

from torch import Tensor

from engine.analysis.similarity import head_similarity
from engine.edits import SilenceHeads
from engine.runtime.trace import Trace
from views.attention.attention import attention_arrays, attention_payload, edited_cells, edited_heads, in_bytes
from views.attention.questions import ATTENTION
from views.compare.pair import Compared, Shown, together
from views.compare.texts import over_texts
from views.core.export_prefetch import ahead as ahead_of_attention
from views.core.payload import pack
from views.core.questions import STALE, UNKNOWN, Page
from views.core.run_context import RunContext
from views.walkthrough.walkthrough import digest, lane_header, model_header

WHOLE = 6 * 2**20  # bytes of all patterns together; of larger runs they come in one byte a weight
PARTS = (".pattern", ".mask")
TABS = ("weighted", "points", "ov", "qk")  # what the views of one head ask, of what can be answered ahead

Query = Mapping[str, Any]


def compare(pairs: Sequence[Compared], notes: Mapping[str, Any]) -> bytes:
    """Every pair has the same first run. Arrays of a run stand under its letter (`A/blocks.0.attn.pattern`), those of a
    pair under the letter of its second run (`B:attn.change`, layer head)."""
    shown = [pairs[0].first, *(pair.second for pair in pairs)]
    whole = is_whole(pairs)
    arrays: dict[str, Tensor] = {}
    for one in shown:
        found = all_layers(one) if whole else in_bytes(one.trace, one.lanes)
        if one.reading.picture is not None:
            found["picture"] = one.reading.picture
        arrays.update({f"{one.letter}/{name}": value for name, value in found.items()})
    described = {}
    for pair in pairs:
        described[pair.second.letter], more = together(pair)
        arrays.update(more)
    header = {"trace": named(pairs), "sides": [side_header(one) for one in shown], "pairs": described, **notes}
    return pack(header, arrays)


def drawn(trace: Trace) -> list[Tensor]:
    return [trace[hook] for hook in trace if hook.endswith("attn.pattern")]


def all_layers(one: Shown) -> dict[str, Tensor]:
    found: dict[str, Tensor] = {}
    for lane in one.lanes:
        for layer in range(lane.config.layers):
            found.update(layer_arrays(one, layer, lane.side))
    return found


def layer_arrays(one: Shown, layer: int, side: str) -> dict[str, Tensor]:
    """Patterns and masks of a layer, and which cells edits put there."""
    found = {hook: value for hook, value in attention_arrays(one.trace, layer, side).items() if hook.endswith(PARTS)}
    return found | (edited_cells(one.trace, one.before, layer, side) if found else {})


def side_header(one: Shown) -> dict[str, Any]:
    return {
        "letter": one.letter,
        "title": one.title,
        "notice": one.notice,
        "edits": len(one.trace.edits),
        "silenced": [vars(edit) for edit in one.trace.edits if isinstance(edit, SilenceHeads)],
        "trace": digest(one.name, one.trace),
        "model": model_header(one.title, one.lanes[-1].config),
        "lanes": {lane.side: lane_header(one.trace, lane) for lane in one.lanes},
        "dtype": str(one.trace["logits"].dtype).removeprefix("torch.") if "logits" in one.trace else "",
        "edited": sorted({hook for edit in one.trace.edits for hook in edit.touches()}),
        "editedHeads": edited_heads(one.trace, one.lanes),
        "reads": None,
    }


def named(pairs: Sequence[Compared]) -> str:
    """A name for the runs together, the same for the same ones in this order."""
    every = [digest(one.name, one.trace) for one in (pairs[0].first, *(pair.second for pair in pairs))]
    return hashlib.sha256(" ".join(every).encode()).hexdigest()[:16]


def ahead(pairs: Sequence[Compared]) -> Iterator[Query]:
    """What the view asks when somebody turns to another layer of runs whose patterns were not sent whole, or opens
    another tab: the same of every run before the next of any."""
    shown = [pairs[0].first, *(pair.second for pair in pairs)]
    if not is_whole(pairs):
        yield from chain.from_iterable(layers_of(one) for one in shown)
    yield from chain.from_iterable(layers_of(one, {"ask": "layer"}) for one in shown)
    later = [ahead_of_attention("attention", digest(one.name, one.trace), one.lanes) for one in shown]
    yield from (query for row in zip_longest(*later) for query in row if query and query["ask"] in TABS)


def layers_of(one: Shown, more: Query = MappingProxyType({})) -> Iterator[Query]:
    for lane in one.lanes:
        for layer in range(lane.config.layers):
            yield {"trace": digest(one.name, one.trace), "layer": layer, "side": lane.side, **more}


def is_whole(pairs: Sequence[Compared]) -> bool:
    """Whether every weight is in the payload."""
    shown = [pairs[0].first, *(pair.second for pair in pairs)]
    return sum(value.numel() * 4 for one in shown for value in drawn(one.trace)) <= WHOLE


def answered(pairs: Sequence[Compared], query: Query) -> bytes:
    """A layer that was not sent, the heads of both runs, each with each, or what a view of one head asks about its run
    (views/attention_answers.py). Raises ValueError with a sentence."""
    shown = [pairs[0].first, *(pair.second for pair in pairs)]
    found = next((one for one in shown if digest(one.name, one.trace) == query.get("trace")), None)
    if found is None:
        raise ValueError(STALE)
    match query:
        case {"ask": "similarity", "pair": str(letter), "key": str(key), "over": "here" | "texts" as over}:
            return similarity(pairs, letter, key, over)
        case {"ask": "layer", "layer": int(layer), "side": str(side)}:
            return attention_payload(found.trace, layer, side, found.before)
        case {"ask": str()}:
            return Page((ATTENTION, run_of(found))).answer(query)
        case {"layer": int(layer), "side": str(side)}:
            arrays = layer_arrays(found, layer, side)
            if arrays:
                return pack({"layer": layer}, arrays)
    raise ValueError(UNKNOWN)


def run_of(one: Shown) -> RunContext:
    """A run as the questions about one head see it."""
    return RunContext(one.name, one.checkpoint, one.trace, one.lanes, one.before)


def similarity(pairs: Sequence[Compared], letter: str, key: str, over: str) -> bytes:
    """Of the heads of one attention: on what both runs read, or over several texts."""
    for pair in pairs:
        for number, (one, _) in enumerate(pair.attentions):
            if pair.second.letter == letter and one.key == key:
                found = over_texts(pair, number) if over == "texts" else head_similarity([pair.patterns(number)])
                return pack({"rows": found.rows}, {"similarity": found.heads})
    raise ValueError(UNKNOWN)
