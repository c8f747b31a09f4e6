"""Counts with their noun, in English."""

from typing import LiteralString


def count_words(count: int, noun: LiteralString, plural: LiteralString = "") -> LiteralString:
    """The count and the noun in the number it asks for: 1 block, 1,200 blocks. `plural` is one that no s makes."""
    return f"{count:,} {noun if count == 1 else plural or noun + 's'}"
