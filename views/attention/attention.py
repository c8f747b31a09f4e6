"""What the page about attention draws: every pattern of one run, laid out for assets/views/attention/attention.js."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import torch
from torch import Tensor

from engine.analysis.edit_extent import touched_cells, touched_heads
from engine.analysis.heads import CROSS_SCORES, SCORES
from engine.runtime.trace import Trace
from views.core.lanes import Lane, digest, drawable, drawable_axes, lane_header, model_header
from views.core.payload import pack

TABLE = [asdict(score) | {"focus": "attn"} for score in SCORES]
TABLE += [asdict(score) | {"focus": "cross_attn"} for score in CROSS_SCORES]
WHOLE = 6 * 2**20  # bytes; of a larger run only one layer comes in full, and every pattern in one byte a weight


def attention(
    trace: Trace,
    lanes: Sequence[Lane],
    *,
    name: str,
    scores: Mapping[str, Mapping[str, Tensor]],
    table: Sequence[Mapping[str, str]],
    notes: Mapping[str, Any],
    layer: int = 0,
    picture: Tensor | None = None,
    before: Trace | None = None,
) -> bytes:
    """The payload of the page for the first text of `trace`, `before` being the same run without what was edited.

    `scores` (layer head) are by attention ("attn", or "encoder.attn", "decoder.attn", "decoder.cross_attn") and by the
    keys of `table`, which says what they mean. `picture` is height width channel, in 0..1.
    """
    layers = {lane.side: lane.config.layers for lane in lanes}
    every = [hook for hook in trace if is_attention(hook)]
    whole = sum(drawable(trace, hook).nbytes for hook in every) <= WHOLE
    arrays: dict[str, Tensor] = {}
    for side, count in layers.items():
        for one in range(count) if whole else [min(layer, count - 1)]:
            arrays.update(attention_arrays(trace, one, side) | edited_cells(trace, before, one, side))
    if not whole:
        arrays.update(in_bytes(trace, lanes))
    for kind, measured in scores.items():
        arrays.update({f"scores.{kind}.{key}": value for key, value in measured.items()})
    if picture is not None:
        arrays["picture"] = picture
    header = {
        **run_header(trace, lanes, name),
        "dtype": str(trace[every[0]].dtype).removeprefix("torch."),
        "scoreTable": list(table),
        **notes,
    }
    return pack(header, arrays, {hook: drawable_axes(trace.dims(hook)) for hook in every if hook in arrays})


def run_header(trace: Trace, lanes: Sequence[Lane], name: str) -> dict[str, Any]:
    return {
        "trace": digest(name, trace),
        "model": model_header(name, lanes[-1].config),
        "lanes": {lane.side: lane_header(trace, lane) for lane in lanes},
        "edited": sorted({hook for edit in trace.edits for hook in edit.touches()}),
        "editedHeads": edited_heads(trace, lanes),
        "reads": None,
    }


def attention_payload(trace: Trace, layer: int, side: str = "", before: Trace | None = None) -> bytes:
    """All that one layer's attention computed, and its cells that edits put there, `before` being the run without them.

    Raises ValueError for a layer the trace does not have.
    """
    arrays = attention_arrays(trace, layer, side)
    if not arrays:
        raise ValueError(f"this run has no layer {layer}; ask for one that it has.")
    return pack({"layer": layer}, arrays | edited_cells(trace, before, layer, side))


def attention_arrays(trace: Trace, layer: int, side: str) -> dict[str, Tensor]:
    prefix = f"{side}.blocks.{layer}." if side else f"blocks.{layer}."
    return {hook: drawable(trace, hook) for hook in trace if hook.startswith(prefix) and is_attention(hook)}


def edited_heads(trace: Trace, lanes: Sequence[Lane]) -> dict[str, list[list[int]]]:
    """Lists the [layer, head] that an edit reaches into, by attention ("attn", or "encoder.attn",
    "decoder.cross_attn")."""
    if not trace.edits:
        return {}
    return {
        f"{lane.prefix}{kind}": touched_heads(trace, lane.config, lane.side, kind == "cross_attn").nonzero().tolist()
        for lane in lanes
        for kind in kinds_of(lane)
    }


def edited_cells(trace: Trace, before: Trace | None, layer: int, side: str) -> dict[str, Tensor]:
    """`{attention}.edited`, head pos key (`touched_cells`), of those attentions of a layer in which an edit put any."""
    if before is None or not trace.edits:
        return {}
    prefix = f"{side}." if side else ""
    kinds = [kind for kind in ("attn", "cross_attn") if f"{prefix}blocks.{layer}.{kind}.pattern" in trace]
    cells = {kind: touched_cells(trace, before, layer, side, kind == "cross_attn") for kind in kinds}
    return {f"{prefix}blocks.{layer}.{kind}.edited": found for kind, found in cells.items() if bool(found.any())}


def is_attention(hook: str) -> bool:
    """Tells whether a hook stands within a layer's attention, between what it reads and what it gives back."""
    _, _, part = hook.rpartition("blocks.")
    _, kind, *inner = [*part.split("."), "", ""]
    return kind in ("attn", "cross_attn") and inner[0] not in ("out", "head_out") and inner[1] != "scale"


def in_bytes(trace: Trace, lanes: Sequence[Lane]) -> dict[str, Tensor]:
    """Every pattern as u8 layer head pos key, 255 = 1: for pictures; what is read as a number comes in full."""
    kinds = [f"{lane.prefix}{kind}" for lane in lanes for kind in kinds_of(lane)]
    patterns = {kind: trace.stack(f"{kind}.pattern")[:, 0] for kind in kinds}
    return {f"patterns.{kind}": (p.float() * 255).round().to(torch.uint8) for kind, p in patterns.items()}


def kinds_of(lane: Lane) -> list[str]:
    return ["attn", "cross_attn"] if lane.config.encoder else ["attn"]
