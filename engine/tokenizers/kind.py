"""What one kind of tokenizer declares of itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from engine.tokenizers.fast import FastTokenizer


@dataclass(frozen=True)
class TokenizerKind:
    """A kind that `train` learns from texts; `title` is what people call it. `vocabulary` is how many tokens it has
    where nobody says: its default, or a guess where the texts decide.

    One that `spells` has no token longer than a character; one that `learns_all` has a token for each character that it
    meets, so that a sample of the texts would not do. With `own_marks` a text has special tokens whatever the task.
    """

    name: str
    place: int
    train: Callable[..., FastTokenizer]
    title: str
    vocabulary: int
    spells: bool = False
    learns_all: bool = False
    own_marks: bool = False
