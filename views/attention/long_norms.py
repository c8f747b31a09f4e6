"""What the weights of a head of a long text move, |pattern v W_O|, in place of the weights.

A length is a weight times one number of its key, so that what a whole head takes is a number a key.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from engine.analysis.averages import moved
from engine.analysis.summarised_run import revisited
from engine.analysis.tiles import overview
from engine.analysis.weights.circuit import attention_of
from engine.runtime import library
from views.core.payload import pack
from views.core.questions import UNKNOWN

if TYPE_CHECKING:
    from views.attention.long import Head, Long

TINY = torch.finfo(torch.float32).tiny


def values_of(long: Long, head: Head, shows: Any = None) -> Tensor:
    """Of one head pos key: the pattern, or what a query names in its place. Raises ValueError for anything else."""
    match shows:
        case None:
            return long.pattern(head)
        case "length" | "share":
            norms = long.pattern(head).float().abs() * keys_of(long, head)
            return norms / total(norms)[:, None] if shows == "share" else norms
    raise ValueError(UNKNOWN)


def total(norms: Tensor) -> Tensor:
    """Of each row, pos; what a row without any is divided by is not 0."""
    return norms.sum(-1).clamp(min=TINY)


@torch.no_grad()
def keys_of(long: Long, head: Head) -> Tensor:
    """|v W_O| of each key; those of all heads of a layer are kept."""
    made, v = long.made, head.hook.replace("pattern", "v")
    attention = attention_of(made.model, head.layer, head.side, head.focus == "cross_attn")

    def make() -> tuple[Tensor]:
        seen = revisited(made.model, made.read, {v: of_first}, long.trace, made.edits, target=made.target)
        return (seen[v],)

    def of_first(value: Tensor) -> Tensor:
        return moved(attention, value[0])

    return library.glances.kept(made, (v, "moved"), make)[0][head.head]


def moved_of(long: Long, head: Head) -> bytes:
    """`moved` (key) and `total` (pos): a length is the weight times the one, a share that divided by the other.

    `max` is the largest length; an overview of each kind has the largest of every block, 255 = that length, or all.
    """
    norms = values_of(long, head, "length")
    totals, most = total(norms), float(norms.max())
    arrays = {"moved": keys_of(long, head), "total": totals}
    arrays["overview.length"] = overview(norms / max(most, TINY), long.cells)
    arrays["overview.share"] = overview(norms / totals[:, None], long.cells)
    return pack({"max": most}, arrays)
