"""One column of a head of a long text: what every query gives the key, and why it is bright."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch import Tensor

from engine.analysis.sinks import Column, column
from engine.analysis.summarised_run import revisited
from engine.runtime.trace import Trace
from views.attention.questions import describe_column
from views.core.payload import pack

if TYPE_CHECKING:
    from views.attention.long import Head, Long


def column_of(long: Long, head: Head, key: int) -> bytes:
    """`weights` (pos), and the `sentence` that a short text has of the same column."""
    weights = long.pattern(head)[:, key].float()
    header = describe_column(long.run, measured(long, head, key), head.side, key, head.focus)
    return pack(header, {"weights": weights})


def measured(long: Long, head: Head, key: int) -> Column:
    """From a trace that holds what of this head is needed and nothing else; its layer is computed again for that."""
    crosses, name, pattern = head.focus == "cross_attn", head.hook.removesuffix("pattern"), long.pattern(head)
    heads = len(long.overviews[head.hook])

    def masked(mask: Tensor) -> Tensor:
        return mask[:1, head.head, None].clone()

    def valued(v: Tensor) -> Tensor:
        group = head.head * v.shape[2] // heads
        return v[:1, :, group : group + 1].clone()

    made, base = long.made, long.trace
    wanted = {f"{name}mask": masked, f"{name}v": valued}
    seen = revisited(made.model, made.read, wanted, base, made.edits, target=made.target)
    values = {**seen, head.hook: pattern[None, None]}
    alone = Trace(
        values, base.hooks, base.ids, base.padding, base.encodings, target=base.target,
        target_encodings=base.target_encodings, target_padding=base.target_padding,
    )  # fmt: skip
    read = long.run.encoding("encoder" if crosses else head.side)
    return column(alone, 0, key, 0, head.side, crosses, read)  # of the one layer and the one head that are there
