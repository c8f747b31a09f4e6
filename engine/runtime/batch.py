"""What a run reads: one text or several, as encodings or plain ids, made into one padded tensor."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import Any

import torch
from torch import Tensor

from engine.tokenizers.encoding import Encoding

Input = Encoding | Sequence[Encoding] | Sequence[int] | Sequence[Sequence[int]] | Tensor
MEASURED = (3, 4)  # axes of sounds, batch mel frame, and of pictures, batch channel height width
WHOLE = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)


def batch(encoding: Input, device: torch.device) -> tuple[Tensor, Tensor | None, tuple[Encoding, ...]]:
    """ids (batch pos), what of them is real (batch pos; None for all), and the encodings if given.

    Pictures come as pixels, batch channel height width, sounds as frames, batch mel frame, and stay what they are.
    """
    if isinstance(encoding, Tensor) and encoding.dim() in MEASURED and encoding.is_floating_point():
        return encoding.to(device), None, ()
    if isinstance(encoding, Tensor):
        if encoding.dim() not in (1, 2) or encoding.dtype not in WHOLE:
            raise ValueError(
                f"ids must be whole numbers, pos or batch pos; got {encoding.dtype} {tuple(encoding.shape)}."
            )
        return torch.atleast_2d(encoding).long().to(device), None, ()
    texts: list[Any] = [encoding] if isinstance(encoding, Encoding) or are_ids(encoding) else list(encoding)
    rows: list[Any] = [text.ids if isinstance(text, Encoding) else text for text in texts]
    if not all(are_ids(row) for row in rows):
        raise ValueError("ids must be whole numbers, a list of them or a list of such lists; got something else.")
    if not all(rows):
        raise ValueError("a run needs at least one token, got none; give it a longer text.")
    length = max(len(row) for row in rows)
    ids = torch.zeros(len(rows), length, dtype=torch.long)
    real = torch.zeros(len(rows), length, dtype=torch.bool)
    for i, row in enumerate(rows):
        ids[i, : len(row)] = torch.tensor(row, dtype=torch.long)
        real[i, : len(row)] = True
    encodings = tuple(text for text in texts if isinstance(text, Encoding))
    return ids.to(device), None if bool(real.all()) else real.to(device), encodings


def are_ids(row: object) -> bool:
    return isinstance(row, Sequence) and all(isinstance(i, Integral) for i in row)


def segments(encodings: Sequence[Encoding], ids: Tensor) -> Tensor | None:
    """Index of the text of a pair that each token belongs to, batch pos; None where the input was plain ids."""
    if len(encodings) != len(ids):
        return None
    out = torch.zeros_like(ids)
    for i, encoding in enumerate(encodings):
        out[i, : len(encoding)] = torch.tensor(encoding.segments)
    return out
