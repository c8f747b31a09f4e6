"""What the page about comparisons draws: two runs or more, and what belongs together in them.

Of texts too long to be sent whole no weight travels: assets/views/compare/tiled_source.js asks for what is looked at.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from torch import Tensor

from engine.edits import SilenceHeads
from engine.runtime.trace import Trace
from views.attention.attention import attention_arrays, edited_cells, edited_heads, in_bytes
from views.attention.long import TILE
from views.compare.differences import CELLS
from views.compare.pair import ComparedRun, RunPair, digest_of, shown_in, together
from views.compare.tiles import cells_across, tile_sides
from views.core.lanes import lane_header, model_header
from views.core.payload import pack

WHOLE = 6 * 2**20  # bytes of all patterns together; of larger runs they come in one byte a weight
PARTS = (".pattern", ".mask")


def compare(pairs: Sequence[RunPair], notes: Mapping[str, Any]) -> bytes:
    """Every pair has the same first run. Arrays of a run stand under its letter (`A/blocks.0.attn.pattern`), those of a
    pair under the letter of its second run (`B:attn.change`, layer head)."""
    shown, long = shown_in(pairs), pairs[0].is_long
    arrays = {f"{one.letter}/picture": one.reading.picture for one in shown if one.reading.picture is not None}
    described = {}
    for pair in pairs:
        described[pair.second.letter], more = together(pair)
        arrays |= more
    header = {"trace": digest_of(shown), "sides": [side_header(one) for one in shown], "pairs": described, **notes}
    if long:
        across = cells_across(shown)
        for pair in pairs:
            for number, one in enumerate(described[pair.second.letter]["attentions"]):
                one["tiles"] = tile_sides(pair, number, across)
        header |= {"tile": TILE, "across": across, "cells": CELLS}
        return pack(header, arrays)
    whole = is_whole(pairs)
    for one in shown:
        found = all_layers(one) if whole else in_bytes(one.run.trace, one.run.lanes)
        arrays |= {f"{one.letter}/{name}": value for name, value in found.items()}
    return pack(header, arrays)


def recorded_patterns(trace: Trace) -> list[Tensor]:
    return [trace[hook] for hook in trace if hook.endswith("attn.pattern")]


def all_layers(one: ComparedRun) -> dict[str, Tensor]:
    found: dict[str, Tensor] = {}
    for lane in one.run.lanes:
        for layer in range(lane.config.layers):
            found.update(layer_arrays(one, layer, lane.side))
    return found


def layer_arrays(one: ComparedRun, layer: int, side: str) -> dict[str, Tensor]:
    """Patterns and masks of a layer, and which cells edits put there."""
    trace = one.run.trace
    found = {hook: value for hook, value in attention_arrays(trace, layer, side).items() if hook.endswith(PARTS)}
    return found | (edited_cells(trace, one.run.before, layer, side) if found else {})


def side_header(one: ComparedRun) -> dict[str, Any]:
    return {
        "letter": one.letter,
        "title": one.title,
        "notice": one.notice,
        "edits": len(one.run.trace.edits),
        "silenced": [vars(edit) for edit in one.run.trace.edits if isinstance(edit, SilenceHeads)],
        "trace": one.run.digest,
        "model": model_header(one.title, one.run.lanes[-1].config),
        "lanes": {lane.side: lane_header(one.run.trace, lane) for lane in one.run.lanes},
        "dtype": str(one.run.trace["logits"].dtype).removeprefix("torch.") if "logits" in one.run.trace else "",
        "edited": sorted({hook for edit in one.run.trace.edits for hook in edit.touches()}),
        "editedHeads": edited_heads(one.run.trace, one.run.lanes),
        "reads": None,
    }


def is_whole(pairs: Sequence[RunPair]) -> bool:
    """Tells whether every weight is in the payload."""
    return sum(value.numel() * 4 for one in shown_in(pairs) for value in recorded_patterns(one.run.trace)) <= WHOLE
