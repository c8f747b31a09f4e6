"""What one kind of tokenizer declares of itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from engine.tokenizers.fast import FastTokenizer


@dataclass(frozen=True)
class TokenizerKind:
    """A kind that `train` learns from texts; `title` is what people call it. `vocabulary` is how many tokens it has
    where nobody says: its default, or a guess where the texts decide."""

    name: str
    place: int
    train: Callable[..., FastTokenizer]
    title: str
    vocabulary: int
