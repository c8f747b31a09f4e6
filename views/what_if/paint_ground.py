"""What a mask or a pattern is painted on, for assets/views/what_if/painter_grid.js: one head, whole or in rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from engine.analysis.summarised_run import rerun_reduced
from engine.runtime.trace import Trace
from views.attention.long import LongContext
from views.core.payload import pack
from views.core.run_context import HeadOfRun

NO_HEAD = "This run has no such head; choose another block or head."
MOST_ROWS = 128  # of a long text at once


def painted_on(trace: Trace, side: str, focus: str, layer: int, head: int) -> bytes:
    """Reads of one head, query key, who may see whom, and the weights. Raises ValueError for a head the run does not
    have."""
    place = f"{side + '.' if side else ''}blocks.{layer}.{focus}"
    if f"{place}.mask" not in trace or not 0 <= head < trace[f"{place}.mask"].shape[1]:
        raise ValueError(NO_HEAD)
    mask, pattern = (trace[f"{place}.{part}"][0, head] for part in ("mask", "pattern"))
    return pack({}, {"mask": mask.to(torch.bool), "pattern": pattern.float()})


def painted_on_long(long: LongContext, query: Mapping[str, Any]) -> bytes:
    """The mask as bits, row by row, the lowest first; or where the query names `rows` (first, end) their weights."""
    head = head_asked(long, query)
    match query:
        case {"rows": [int(first), int(end)]}:
            pattern = long.pattern(head)
            if not 0 <= first < end <= min(len(pattern), first + MOST_ROWS):
                raise ValueError(f"Expected rows from 0 to {len(pattern)}, at most {MOST_ROWS}; ask for fewer.")
            return pack({}, {"pattern": pattern[first:end].float()})
    mask = mask_of(long, head)
    bits = np.packbits(mask.numpy(), bitorder="little")
    return pack({"shape": list(mask.shape)}, {"bits": bits})


def head_asked(long: LongContext, query: Mapping[str, Any]) -> HeadOfRun:
    match query:
        case {"painted": "attn" | "cross_attn" as focus, "side": str(side), "layer": int(layer), "head": int(head)}:
            found = HeadOfRun(side, focus, layer, head)
            if found.hook in long.overviews and 0 <= head < len(long.overviews[found.hook]):
                return found
    raise ValueError(NO_HEAD)


def mask_of(long: LongContext, head: HeadOfRun) -> Tensor:
    """Tells who may see whom, pos key."""
    made, hook = long.made, f"{head.hook.removesuffix('pattern')}mask"
    wanted = {hook: lambda mask: mask[0, head.head].clone()}
    return rerun_reduced(made.model, made.read, wanted, long.trace, made.edits, target=made.target)[hook]
