"""What a mask or a pattern is painted on, for assets/views/what_if/painter_grid.js: one head, whole or in rows."""

from __future__ import annotations

from dataclasses import asdict

import numpy as np
import torch

from views.core.payload import pack
from views.core.run_context import HeadOfRun, Run

NO_HEAD = "This run has no such head; choose another block or head."
MOST_ROWS = 128  # of a long text at once


def painted_on(run: Run, head: HeadOfRun, rows: tuple[int, int] | None = None) -> bytes:
    """Reads of one head, query key, who may see whom, and the weights. Raises ValueError for a head the run does not
    have.

    Of a run in pieces the mask comes as bits, row by row, the lowest first; or for `rows` (first, end) their weights.
    """
    place = asdict(head)
    if any(at not in run.choices(axis, place) for axis, at in place.items()):
        raise ValueError(NO_HEAD)
    if rows is not None and not run.whole:
        pattern, (first, end) = run.pattern(head), rows
        if not 0 <= first < end <= min(len(pattern), first + MOST_ROWS):
            raise ValueError(f"Expected rows from 0 to {len(pattern)}, at most {MOST_ROWS}; ask for fewer.")
        return pack({}, {"pattern": pattern[first:end].float()})
    hook = head.hook.replace("pattern", "mask")
    mask = run.reduce({hook: lambda mask: mask[0, head.head].clone()})[hook]
    if run.whole:
        return pack({}, {"mask": mask.to(torch.bool), "pattern": run.pattern(head).float()})
    return pack({"shape": list(mask.shape)}, {"bits": np.packbits(mask.numpy(), bitorder="little")})
