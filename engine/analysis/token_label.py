"""What one kind of label of tokens declares of itself; engine/analysis/token_labels/ has a file for each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

from engine.collect import collect
from engine.tokenizers.encoding import Encoding


@dataclass(frozen=True)
class LabelKind:
    """`find_classes` gives the class of each token of a text, by its place among `classes`; those of special tokens do
    not count. The last class is what the label is about."""

    name: str
    place: int
    title: str
    classes: tuple[str, ...]
    find_classes: Callable[[Encoding], Sequence[int]]


@cache
def label_kinds() -> dict[str, LabelKind]:
    return {one.name: one for one in collect("engine.analysis.token_labels", "KIND", LabelKind)}


def letters_of(encoding: Encoding, at: int) -> tuple[int, int]:
    """Start and end in the text of what a token holds, without spaces around it."""
    start, end = encoding.spans[at]
    piece = encoding.text[start:end]
    return start + len(piece) - len(piece.lstrip()), end - len(piece) + len(piece.rstrip())


def word_start(encoding: Encoding, at: int) -> int | None:
    """Where in the text the word begins that a token is part of; None for a token that begins with no letter."""
    start, end = letters_of(encoding, at)
    if start >= end or not encoding.text[start].isalnum():
        return None
    while start and encoding.text[start - 1].isalnum():
        start -= 1
    return start
