"""Choosing a vocabulary by frequency, for the tokenizers whose tokens are units of the text as it stands."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence


def by_frequency(counts: Counter[str], first: Sequence[str], vocab_size: int | None) -> dict[str, int]:
    """Ids for the tokens `first`, then for the most frequent units.

    Equal counts go by code point, so that the same texts always give the same ids.
    """
    room = None if vocab_size is None else room_for(vocab_size, len(first))
    units = sorted(counts.keys() - set(first), key=lambda unit: (-counts[unit], unit))
    return {token: id for id, token in enumerate([*first, *units[:room]])}


def room_for(vocab_size: int, reserved: int) -> int:
    """How many entries are left to learn beside the reserved ones."""
    if vocab_size <= reserved:
        raise ValueError(
            f"Expected a vocabulary of more than {reserved} entries, which bytes and special tokens take, "
            f"got {vocab_size}; raise vocab_size."
        )
    return vocab_size - reserved
