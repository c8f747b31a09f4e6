"""What a trace recorded of its attention, layer by layer, for one text of the batch and without its padding."""

from __future__ import annotations

import re

from torch import Tensor

from engine.runtime.trace import Trace


def patterns(trace: Trace, side: str = "", crosses: bool = False, text: int = 0) -> list[Tensor]:
    """Patterns of one text per layer, head pos key, in float32; nothing is copied that is float32 already.

    `side` is "encoder" or "decoder" of two stacks (the decoder where it is left out), `crosses` takes the decoder's
    attention to the encoder. Raises KeyError where no pattern was recorded, ValueError for a run that continued a
    cache.
    """
    return [one.float() for one in each_layer(trace, "pattern", side, crosses, text)]


def masks(trace: Trace, side: str = "", crosses: bool = False, text: int = 0) -> list[Tensor]:
    """Masks, as `patterns`: bool head pos key, True = may attend."""
    return each_layer(trace, "mask", side, crosses, text)


def each_layer(trace: Trace, what: str, side: str, crosses: bool, text: int) -> list[Tensor]:
    if trace.past:
        raise ValueError("attention is measured on a whole text, and this run continued a cache; run it without one.")
    side = side_of(trace, side)
    part = f"{'cross_attn' if crosses else 'attn'}.{what}"
    queries = length(trace, side, text)
    keys = length(trace, "encoder", text) if crosses else queries
    return [trace[name][text, :, :queries, :keys] for name in recorded_hooks(trace, part, side)]


def holds(trace: Trace, part: str, side: str = "") -> bool:
    """True if any layer's `part` ("attn.mask") was recorded."""
    return bool(matches(trace, part, side_of(trace, side)))


def recorded_hooks(trace: Trace, part: str, side: str) -> list[str]:
    """The hooks of `part` in the order of the layers. Raises KeyError where none was recorded."""
    found = matches(trace, part, side)
    if not found:
        raise KeyError(f"no layer's {part!r} was recorded; pass 'blocks.*.{part}' in run(..., keep=[...]).")
    return found


def matches(trace: Trace, part: str, side: str) -> list[str]:
    prefix = rf"{side}\." if side else ""
    wanted = re.compile(rf"{prefix}blocks\.\d+\.{re.escape(part)}")
    return [name for name in trace if wanted.fullmatch(name)]


def side_of(trace: Trace, side: str) -> str:
    """ "encoder", "decoder" or "", which of two stacks stands for the decoder. Raises ValueError for any other."""
    known = ("",) if trace.target is None else ("", "encoder", "decoder")
    if side not in known:
        raise ValueError(f"side must be {' or '.join(map(repr, known))} for this run, got {side!r}.")
    return side or ("decoder" if trace.target is not None else "")


def tokens(trace: Trace, side: str = "", text: int = 0) -> Tensor | None:
    """The ids that a stack read of one text, pos; None for a picture."""
    side = side_of(trace, side)
    ids = trace.target if side == "decoder" and trace.target is not None else trace.ids
    return ids[text, : length(trace, side, text)] if ids.dim() == 2 else None


def length(trace: Trace, side: str, text: int) -> int | None:
    """Number of real tokens of a text; None for all. Of targets given as plain ids, all are."""
    if side == "decoder" and trace.target is not None:
        return len(trace.target_encodings[text]) if trace.target_encodings else None
    return None if trace.padding is None else int(trace.padding[text].sum())
