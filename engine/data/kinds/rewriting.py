"""Random sequences of symbols, copied, reversed, repeated or sorted: each symbol of the answer is one of the question,
and which one is what attention has to find.
"""

from __future__ import annotations

import string
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import ClassVar, Literal

from engine.data.bounds import at_least, symbols
from engine.data.drawing import Chance, Part, choice, draw_indexed, number
from engine.data.options import DOCUMENTS, HELD_OUT, LEAST_LENGTH, MOST_LENGTH, SYMBOLS
from engine.data.task import Pair, PairTask, Subject
from engine.model.option import Option

Rule = Literal["copy", "reverse", "repeat", "sort"]
TWICE = 2

# For each symbol of the answer its place in the question. Equal symbols are sorted in the order they came.
PLACES: dict[str, Callable[[str], list[int]]] = {
    "copy": lambda source: list(range(len(source))),
    "reverse": lambda source: list(range(len(source)))[::-1],
    "repeat": lambda source: list(range(len(source))) * TWICE,
    "sort": lambda source: sorted(range(len(source)), key=lambda place: source[place]),
}


@dataclass(frozen=True)
class Rewriting(PairTask):
    """ "abc" becomes "abc" (copy), "cba" (reverse), "abcabc" (repeat), or its symbols in the order of their code points
    (sort). Lengths are uniform from `shortest` to `longest` itself.
    """

    rule: Rule = field(
        default="reverse", metadata=Option(help="Copied, reversed, written twice, or sorted by code point.")
    )
    symbols: str = field(default=string.ascii_lowercase, metadata=SYMBOLS)
    shortest: int = field(default=3, metadata=LEAST_LENGTH)
    longest: int = field(default=10, metadata=MOST_LENGTH)
    documents: int = field(default=20_000, metadata=DOCUMENTS)
    held_out: int = field(default=1_000, metadata=HELD_OUT)

    kind: ClassVar[str] = "rewriting"
    place: ClassVar[int] = 4
    subject: ClassVar[Subject] = "Letters"
    tokenizers: ClassVar[tuple[str, ...]] = ("char",)
    grouped: ClassVar[str] = "length"

    def __post_init__(self) -> None:
        symbols("data.rewriting.symbols", self.symbols)
        if self.separator in self.symbols:
            raise ValueError(f"data.rewriting.symbols must not have {self.separator!r}, which stands before an answer.")
        at_least("data.rewriting.shortest", self.shortest, 1)
        at_least("data.rewriting.longest", self.longest, self.shortest)
        at_least("data.rewriting.documents", self.documents, 1)
        at_least("data.rewriting.held_out", self.held_out, 1)

    @property
    def alphabet(self) -> str:
        return self.symbols

    def pairs(self, part: Part, seed: int) -> Iterator[Pair]:
        count = self.documents if part == "train" else self.held_out
        return (pair(self, part, seed, index) for index in range(count))

    def origins(self, pair: Pair) -> tuple[int, ...]:
        return tuple(PLACES[self.rule](pair.source))


def pair(options: Rewriting, part: Part, seed: int, index: int) -> Pair:
    """Example `index` of a part; the same for the same seed."""

    def sequence(chance: Chance) -> str:
        length = number(chance, options.shortest, options.longest)
        return "".join(choice(chance, options.symbols) for _ in range(length))

    source = draw_indexed(sequence, str, part, seed, index)
    return Pair(source, "".join(source[place] for place in PLACES[options.rule](source)))


KIND = Rewriting
