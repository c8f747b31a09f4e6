"""A segment of random symbols, over and over."""

from __future__ import annotations

import string
from dataclasses import dataclass, field
from typing import ClassVar

from engine.data.bounds import at_least, symbols
from engine.data.options import LEAST_LENGTH, MOST_LENGTH, SYMBOLS
from engine.data.task import DataKind, Subject
from engine.data.tokenizer_recipe import TokenizerRecipe


@dataclass(frozen=True)
class Repeats(DataKind):
    """A random segment of `shortest` to `longest` symbols, over and over: what an induction head is for."""

    shortest: int = field(default=4, metadata=LEAST_LENGTH)
    longest: int = field(default=32, metadata=MOST_LENGTH)
    symbols: str = field(default=string.ascii_letters + string.digits, metadata=SYMBOLS)

    kind: ClassVar[str] = "repeats"
    place: ClassVar[int] = 3
    subject: ClassVar[Subject] = "Letters"

    def __post_init__(self) -> None:
        at_least("data.repeats.shortest", self.shortest, 1)
        at_least("data.repeats.longest", self.longest, self.shortest)
        symbols("data.repeats.symbols", self.symbols)

    def check_tokenizer(self, tokenizer: TokenizerRecipe) -> None:
        if tokenizer != TokenizerRecipe("char"):
            raise ValueError('data.tokenizer must be { kind = "char" } for repeats, whose symbols are its vocabulary.')

    def check_context(self, context: int) -> None:
        if context - 1 < self.longest:
            raise ValueError(
                f"data.repeats.longest must be below batch.context ({context}) for anything to repeat, got "
                f"{self.longest}."
            )


KIND = Repeats
