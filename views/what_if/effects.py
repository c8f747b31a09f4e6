"""What edits did to a run, laid out for assets/views/what_if/effects.js: the run before them beside the one after."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

import torch
from torch import Tensor

from engine.analysis.effects import Shift, layer_pattern_change, pattern_change, shift, shift_at, stream_distance
from engine.checkpoints import Checkpoint
from engine.inputs.readers import Reading, kind
from engine.runtime.trace import Trace
from engine.tokenizers.encoding import Encoding
from views.attention.attention import kinds_of
from views.attention.long import LongContext
from views.core.decision import Decision, decision_of
from views.core.lanes import Lane, candidate_names
from views.core.payload import pack
from views.core.questions import UNKNOWN
from views.core.run_context import HeadOfRun, Run
from views.what_if.continuation import writes

LISTED = 8  # candidates, by the greater of their two probabilities
OFFERED = 12  # keys of a row of a run in pieces, before and after
AT_ONCE = 1_000_000  # logits whose change is sent with the picture; beyond, that of one position


def effects(before: Run, after: Run, reading: Reading, *, hidden: bool = False) -> bytes:
    """The payload, of runs in pieces without their patterns, which are asked for. `hidden`: a guess is to come before
    anything is shown."""
    checkpoint, lanes, whole = after.checkpoint, after.lanes, after.whole
    decision, writing = decision_of(checkpoint, reading), writes(checkpoint)
    arrays = in_attention(before.trace, after.trace, lanes) if whole else {}
    arrays |= in_stream(before.trace, after.trace, lanes)
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
        "writes": writing if whole or writing == "never" else "asked",
        **({} if whole else {"later": list(attentions(lanes))}),
    }
    if decision is not None:
        changed, row = shown_shifts(before, after, decision, reading)
        arrays |= changed
        listed = candidate_names(changed["shift.id"], decision.names, extra=())
        header["head"] = {"reads": decision.reads, "link": decision.link, "names": listed, "row": row}
    asked = question(before, after, arrays) if hidden or whole else None
    if asked is not None:
        header["guess"], rows = asked
        arrays |= rows
    if hidden and reading.picture is not None:
        arrays["guess.picture"] = reading.picture  # to point at where a row will look
    return pack(header, arrays)


def lane_header(lane: Lane) -> dict[str, Any]:
    cross = lane.config.cross_attention.heads if lane.config.encoder is not None else 0
    sizes = {"layers": lane.config.layers, "heads": lane.config.attention.heads, "crossHeads": cross}
    return {"side": lane.side, "pieces": list(lane.pieces), "grid": lane.grid, **sizes}


def attentions(lanes: Sequence[Lane]) -> dict[str, tuple[str, str]]:
    """Stack and kind of every attention, by name."""
    return {f"{lane.prefix}{kind}": (lane.side, kind) for lane in lanes for kind in kinds_of(lane)}


def in_attention(before: Trace, after: Trace, lanes: Sequence[Lane]) -> dict[str, Tensor]:
    """pattern.{stack}{attention}: layer head, how much of a row's weight went elsewhere."""
    changes = {name: pattern_change(before, after, f"{name}.pattern") for name in attentions(lanes)}
    return {f"pattern.{name}": change.float() for name, change in changes.items()}


def moved_heads(before: Run, after: Run, name: str, layer: int) -> Tensor:
    """Share of a row's weight that went elsewhere, as `in_attention` gives it, of one layer of an attention: head."""
    places = attentions(after.lanes)
    if name not in places or layer not in after.choices("layer", {"side": places[name][0]}):
        raise ValueError(UNKNOWN)
    if not isinstance(after, LongContext):
        return pattern_change(before.trace, after.trace, f"{name}.pattern")[layer].float()
    made, hook = after.made, HeadOfRun(*places[name], layer, 0).hook
    return layer_pattern_change(made.model, made.read, hook, before.trace, after.trace, target=made.target).float()


def in_stream(before: Trace, after: Trace, lanes: Sequence[Lane]) -> dict[str, Tensor]:
    """stream.{stack}relative and cosine: the first block's input and each block's output, by position."""
    arrays = {}
    for lane in lanes:
        distance = stream_distance(before, after, side="encoder" if lane.side == "encoder" else "decoder")
        arrays[f"stream.{lane.prefix}relative"] = distance.relative.float()
        arrays[f"stream.{lane.prefix}cosine"] = distance.cosine.float()
    return arrays


def shown_shifts(before: Run, after: Run, decision: Decision, reading: Reading) -> tuple[dict[str, Tensor], int]:
    """The changes of the distributions, of as many positions as are cheap to send, and the one to look at first."""
    if decision.reads in ("class", "answer"):
        return shift_rows(before, after, decision, [0, 1] if decision.reads == "answer" else [0]), 0
    first, count = position_of_question(after.checkpoint, reading), len(after.lanes[-1].pieces)
    every = after.whole and count * after.model.config.outputs <= AT_ONCE
    rows = range(count) if every else [count - 1 if first is None else first]
    arrays = shift_rows(before, after, decision, rows)
    if first is None:
        first = rows[int(arrays["shift.kl"].nan_to_num(-1.0).argmax())]
    return arrays, first


def position_of_question(checkpoint: Checkpoint, reading: Reading) -> int | None:
    """The position whose distribution is the question that the text puts; None: none is more so than others."""
    config, read = checkpoint.model.config, reading.target or reading.read
    if not isinstance(read, Encoding):
        return None
    if config.generates and not reading.written:
        return len(read) - 1
    mark = config.infill.start if config.infill is not None else None
    if config.head.kind == "masked" and checkpoint.tokenizer is not None:
        mark = checkpoint.tokenizer.mask_id
    if kind(checkpoint) == "pixels":
        return min(reading.given, len(read) - 1)
    return read.ids.index(mark) if mark is not None and mark in read.ids else None


def shift_rows(before: Run, after: Run, decision: Decision, rows: Sequence[int]) -> dict[str, Tensor]:
    """`shifts` at these positions, which are not all computed."""
    at = slice(None) if decision.reads in ("class", "answer") else slice(rows[0], rows[-1] + 1)
    return shifts(before.logits_at(at), after.logits_at(at), rows, decision)


def shifts(before: Trace, after: Trace, rows: Sequence[int], decision: Decision) -> dict[str, Tensor]:
    """shift.row; shift.id (row candidate), .logit and .p (row candidate run); .kl, in bits, and .variation (row)."""
    found = [shift_of(before, after, row, decision) for row in rows]
    pairs = [[(c.logit_before, c.logit_after, c.p_before, c.p_after) for c in one.candidates] for one in found]
    values = torch.tensor(pairs)
    return {
        "shift.row": torch.tensor(list(rows), dtype=torch.int32),
        "shift.id": torch.tensor([[c.id for c in one.candidates] for one in found], dtype=torch.int32),
        "shift.logit": values[..., :2],
        "shift.p": values[..., 2:],
        "shift.kl": torch.tensor([one.kl / math.log(2) for one in found]),
        "shift.variation": torch.tensor([one.total_variation for one in found]),
    }


def shift_of(before: Trace, after: Trace, row: int, decision: Decision) -> Shift:
    if decision.reads == "answer":
        return shift(before["logits"][0, :, row], after["logits"][0, :, row], LISTED, "either")
    pos = None if decision.reads == "class" else row
    return shift_at(before, after, pos, count=LISTED, order="either", link=decision.link)


def question(before: Run, after: Run, arrays: Mapping[str, Tensor]) -> tuple[dict[str, Any], dict[str, Tensor]] | None:
    """The row of attention that changed most, to be guessed at; None where no pattern changed.

    Of runs in pieces it is one of the head that is on screen, or of that number in the last block. What may be guessed
    is what the row may see in the changed run, and what it looks at beside that; of a run in pieces what it looks at
    most, before or after.
    """
    for head in guessable(after, arrays):
        old, new = before.pattern(head), after.pattern(head)
        if torch.equal(old, new):
            continue
        row, rows = most_changed(old, new)
        if after.whole:
            mask = after.trace[head.hook.replace("pattern", "mask")][0, head.head, row].bool()
            offered = (mask | (new[row] != 0)).nonzero().flatten().tolist()
        else:
            few = min(OFFERED, old.shape[-1])
            offered = sorted({int(key) for weights in rows.values() for key in weights.topk(few).indices})
        return {**asdict(head), "row": row, "offered": offered}, rows
    return None


def guessable(after: Run, arrays: Mapping[str, Tensor]) -> list[HeadOfRun]:
    """Heads of which a row is guessed at, the first of which changed."""
    if isinstance(after, LongContext):
        return [after.shown, replace(after.shown, layer=after.lanes[-1].config.layers - 1)]
    places = attentions(after.lanes)
    name = max(places, key=lambda name: float(arrays[f"pattern.{name}"].max()))
    changed = arrays[f"pattern.{name}"]
    return [HeadOfRun(*places[name], *divmod(int(changed.argmax()), changed.shape[1]))]


def most_changed(old: Tensor, new: Tensor) -> tuple[int, dict[str, Tensor]]:
    """Finds in two patterns, pos key, the row of which most went elsewhere, and what it looks at in both."""
    row = int((new - old).abs().sum(-1).argmax())
    return row, {"guess.before": old[row].float(), "guess.after": new[row].float()}


def shift_payload(before: Run, after: Run, decision: Decision | None, row: int) -> bytes:
    """The change at one more position. Raises ValueError where the model has no head, or no such position."""
    if decision is None:
        raise ValueError("this model has no head, so nothing is predicted.")
    once = {"answer": 2, "class": 1}
    positions = once.get(decision.reads, len(after.lanes[-1].pieces))
    if not 0 <= row < positions:
        raise ValueError(f"a position must be in 0..{positions - 1}, got {row}.")
    changed = shift_rows(before, after, decision, [row])
    return pack({"names": candidate_names(changed["shift.id"], decision.names, extra=())}, changed)
