"""Counts with their noun, and times, in English."""

from typing import LiteralString


def count_words(count: int, noun: LiteralString, plural: LiteralString = "") -> LiteralString:
    """The count and the noun in the number it asks for: 1 block, 1,200 blocks. `plural` is one that no s makes."""
    return f"{count:,} {noun if count == 1 else plural or noun + 's'}"


def write_duration(seconds: float) -> LiteralString:
    """A time as one says it: 12 s, 3 min, 1.5 h."""
    if seconds < 1:
        return "less than a second"
    if seconds < 99.5:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5_970 else f"{seconds / 3600:.1f} h"
