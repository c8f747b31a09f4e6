"""Texts that a vocabulary is learned from, and its choice by frequency.

Any Unicode is text; lone surrogates (halves of a UTF-16 pair) are not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence


def check_unicode(text: str) -> str:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise ValueError(
            f"Expected Unicode text, got the lone surrogate U+{ord(text[error.start]):04X} at index "
            f"{error.start}; remove it, or decode the text again with the right encoding."
        ) from error
    return text


def check_corpus(texts: Iterable[str]) -> list[str]:
    """The texts to learn a vocabulary from; a single string is one text, not one text a character."""
    checked = [check_unicode(text) for text in ([texts] if isinstance(texts, str) else texts)]
    if not any(checked):
        raise ValueError("Expected text to learn a vocabulary from, got none; give at least one character.")
    return checked


def rank_by_frequency(counts: Counter[str], first: Sequence[str], vocab_size: int | None) -> dict[str, int]:
    """Number the tokens `first`, then the most frequent units.

    Equal counts go by code point, so that the same texts always give the same ids.
    """
    room = None if vocab_size is None else check_room(vocab_size, len(first))
    units = sorted(counts.keys() - set(first), key=lambda unit: (-counts[unit], unit))
    return {token: id for id, token in enumerate([*first, *units[:room]])}


def check_room(vocab_size: int, reserved: int) -> int:
    """Number of entries left to learn beside the reserved ones. Raises ValueError for none."""
    if vocab_size <= reserved:
        raise ValueError(
            f"Expected a vocabulary of more than {reserved} entries, which bytes and special tokens take, "
            f"got {vocab_size}; raise vocab_size."
        )
    return vocab_size - reserved
