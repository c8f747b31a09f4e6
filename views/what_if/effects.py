"""What edits did to a run, laid out for assets/views/what_if/effects.js: the run before them beside the one after."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from engine.analysis.effects import Shift, pattern_change, shift, shift_at, stream_distance
from engine.checkpoints import Checkpoint
from engine.inputs.readers import Reading, kind
from engine.runtime.trace import Trace
from engine.tokenizers.encoding import Encoding
from views.core.decision import Decision, decision_of
from views.core.lanes import Lane, candidate_names, digest
from views.core.payload import pack
from views.what_if.continuation import writes

LISTED = 8  # candidates, by the greater of their two probabilities
AT_ONCE = 1_000_000  # logits whose change is sent with the picture; beyond, that of one position


def effects(
    before: Trace,
    after: Trace,
    lanes: Sequence[Lane],
    checkpoint: Checkpoint,
    reading: Reading,
    *,
    name: str,
    hidden: bool = False,
) -> bytes:
    """The payload. `hidden`: a guess is to come before anything is shown."""
    decision = decision_of(checkpoint, reading)
    arrays = {**in_attention(before, after, lanes), **in_stream(before, after, lanes)}
    header: dict[str, Any] = {
        "trace": digest(name, after),
        "hidden": hidden,
        "took": {"start": after.start, "layers": sum(lane.config.layers for lane in lanes), "seconds": after.seconds},
        "lanes": [lane_header(lane) for lane in lanes],
        "head": None,
        "guess": None,
        "writes": writes(checkpoint),
    }
    if decision is not None:
        changed, row = shown_shifts(before, after, decision, checkpoint, reading)
        arrays |= changed
        listed = candidate_names(changed["shift.id"], decision.names, extra=())
        header["head"] = {"reads": decision.reads, "link": decision.link, "names": listed, "row": row}
    asked = question(arrays, before, after)
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


def focuses(lane: Lane) -> list[str]:
    return ["attn", *(["cross_attn"] if lane.config.encoder is not None else [])]


def in_attention(before: Trace, after: Trace, lanes: Sequence[Lane]) -> dict[str, Tensor]:
    """pattern.{stack}{attention}: layer head, how much of a row's weight went elsewhere."""
    names = [f"{lane.prefix}{focus}" for lane in lanes for focus in focuses(lane)]
    return {f"pattern.{name}": pattern_change(before, after, f"{name}.pattern").float() for name in names}


def in_stream(before: Trace, after: Trace, lanes: Sequence[Lane]) -> dict[str, Tensor]:
    """stream.{stack}relative and cosine: the first block's input and each block's output, by position."""
    arrays = {}
    for lane in lanes:
        distance = stream_distance(before, after, side="encoder" if lane.side == "encoder" else "decoder")
        arrays[f"stream.{lane.prefix}relative"] = distance.relative.float()
        arrays[f"stream.{lane.prefix}cosine"] = distance.cosine.float()
    return arrays


def shown_shifts(
    before: Trace, after: Trace, decision: Decision, checkpoint: Checkpoint, reading: Reading
) -> tuple[dict[str, Tensor], int]:
    """The changes of the distributions, of as many positions as are cheap to send, and the one to look at first."""
    logits = before["logits"][0]
    if decision.reads in ("class", "answer"):
        return shifts(before, after, [0, 1] if decision.reads == "answer" else [0], decision), 0
    first = position_of_question(checkpoint, reading)
    rows = range(len(logits)) if logits.numel() <= AT_ONCE else [len(logits) - 1 if first is None else first]
    arrays = shifts(before, after, list(rows), decision)
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


def question(
    arrays: dict[str, Tensor], before: Trace, after: Trace
) -> tuple[dict[str, Any], dict[str, Tensor]] | None:
    """The row of attention that changed most, to be guessed at; None where no pattern changed.

    What may be guessed is what the row may see in the changed run, and what it looks at beside that.
    """
    best = max((name for name in arrays if name.startswith("pattern.")), key=lambda name: float(arrays[name].max()))
    if not float(arrays[best].max()) > 0:
        return None
    layer, which = divmod(int(arrays[best].argmax()), arrays[best].shape[1])
    name = best.removeprefix("pattern.")
    side, _, focus = name.rpartition(".")
    block = f"{side + '.' if side else ''}blocks.{layer}.{focus}"
    old, new = before[f"{block}.pattern"][0, which], after[f"{block}.pattern"][0, which]
    row, rows = most_changed(old, new)
    offered = (after[f"{block}.mask"][0, which, row].bool() | (new[row] != 0)).nonzero().flatten().tolist()
    place = {"side": side, "focus": focus, "layer": layer, "head": which, "row": row}
    return {**place, "offered": offered}, rows


def most_changed(old: Tensor, new: Tensor) -> tuple[int, dict[str, Tensor]]:
    """Finds in two patterns, pos key, the row of which most went elsewhere, and what it looks at in both."""
    row = int((new - old).abs().sum(-1).argmax())
    return row, {"guess.before": old[row].float(), "guess.after": new[row].float()}


def shift_payload(before: Trace, after: Trace, decision: Decision | None, row: int) -> bytes:
    """The change at one more position. Raises ValueError where the model has no head, or no such position."""
    if decision is None:
        raise ValueError("this model has no head, so nothing is predicted.")
    positions = 2 if decision.reads == "answer" else 1 if decision.reads == "class" else len(before["logits"][0])
    if not 0 <= row < positions:
        raise ValueError(f"a position must be in 0..{positions - 1}, got {row}.")
    changed = shifts(before, after, [row], decision)
    return pack({"names": candidate_names(changed["shift.id"], decision.names, extra=())}, changed)
