"""What edits did to a run on a long text, for effects.js: all but its patterns, which are asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from typing import Any

import torch
from torch import Tensor

from engine.analysis.effects_long import pattern_change_long
from engine.inputs.readers import Reading
from views.attention.long import LongContext
from views.core.decision import Decision, decision_of
from views.core.lanes import candidate_names
from views.core.payload import pack
from views.core.run_context import HeadOfRun
from views.what_if.continuation import writes
from views.what_if.effects import focuses, in_stream, lane_header, most_changed, position_of_question, shifts

OFFERED = 12  # keys of a row, in each run

def effects_long(before: LongContext, after: LongContext, reading: Reading, *, hidden: bool = False) -> bytes:
    """The payload. `hidden`: a guess is to come before anything is shown."""
    checkpoint, lanes = after.checkpoint, after.lanes
    decision = decision_of(checkpoint, reading)
    arrays = dict(in_stream(before.trace, after.trace, lanes))
    header: dict[str, Any] = {
        "trace": after.digest,
        "hidden": hidden,
        "took": {
            "start": after.trace.start,
            "layers": sum(lane.config.layers for lane in lanes),
            "seconds": after.trace.seconds,
        },
        "lanes": [lane_header(lane) for lane in lanes],
        "head": None,
        "guess": None,
        "writes": "never" if writes(checkpoint) == "never" else "asked",
        "later": list(attentions(after)),
    }
    if decision is not None:
        first = 0 if decision.reads in ("class", "answer") else position_of_question(checkpoint, reading)
        row = len(lanes[-1].pieces) - 1 if first is None else first
        arrays |= shift_rows(before, after, decision, [0, 1] if decision.reads == "answer" else [row])
        listed = candidate_names(arrays["shift.id"], decision.names, extra=())
        header["head"] = {"reads": decision.reads, "link": decision.link, "names": listed, "row": row}
    asked = question(before, after) if hidden else None
    if asked is not None:
        header["guess"], rows = asked
        arrays |= rows
    return pack(header, arrays)


def question(before: LongContext, after: LongContext) -> tuple[dict[str, Any], dict[str, Tensor]] | None:
    """A row of the head that is on screen, or of that number in the last block, to be guessed at; None where neither
    changed. What it looks at most, before or after, is offered."""
    shown = after.shown
    for head in (shown, replace(shown, layer=after.lanes[-1].config.layers - 1)):
        old, new = before.pattern(head), after.pattern(head)
        if not torch.equal(old, new):
            row, rows = most_changed(old, new)
            few = min(OFFERED, old.shape[-1])
            offered = {int(key) for weights in rows.values() for key in weights.topk(few).indices}
            return {**asdict(head), "row": row, "offered": sorted(offered)}, rows
    return None


def shift_rows(before: LongContext, after: LongContext, decision: Decision, rows: list[int]) -> dict[str, Tensor]:
    """The change of what is said at these positions, which are not all computed: as `views.what_if.effects.shifts`."""
    whole = decision.reads in ("class", "answer")
    at = slice(None) if whole else slice(rows[0], rows[-1] + 1)
    return shifts(before.logits_at(at), after.logits_at(at), rows, decision)


def moved_heads(before: LongContext, after: LongContext, name: str, layer: int) -> bytes:
    """moved: by head of one layer, how much of a row's weight went elsewhere; `name` is the attention's."""
    head = HeadOfRun(*attentions(after)[name], layer, 0)
    made = after.made
    found = pattern_change_long(made.model, made.read, [head.hook], before.trace, after.trace, target=made.target)
    return pack({}, {"moved": found[0].float()})


def attentions(long: LongContext) -> dict[str, tuple[str, str]]:
    """Stack and kind of every attention, by name."""
    return {
        f"{lane.prefix}{focus}": (lane.side, focus)
        for lane in long.lanes
        for focus in focuses(lane)
    }


def asked_later_long(
    query: Mapping[str, Any], before: LongContext, after: LongContext, reading: Reading, write: Callable[[], bytes]
) -> bytes:
    """Answers what the picture asks once it is drawn. Raises ValueError, with a sentence."""
    decision = decision_of(after.checkpoint, reading)
    match query:
        case {"effects": "row", "row": int(row)} if decision is not None and 0 <= row < len(after.lanes[-1].pieces):
            changed = shift_rows(before, after, decision, [row])
            return pack({"names": candidate_names(changed["shift.id"], decision.names, extra=())}, changed)
        case {"effects": "heads", "attention": str(name), "layer": int(layer)} if name in attentions(after):
            if HeadOfRun(*attentions(after)[name], layer, 0).hook in after.overviews:
                return moved_heads(before, after, name, layer)
        case {"effects": "continuation"}:
            return write()
    raise ValueError("The picture asked for something this page does not know; reload the page.")
