"""Adding numbers as it is done on paper, digit by digit and with carries.

Written from the units on, each digit of a sum needs only what was written before it; written as people write it, the
first digit needs every carry (Lee et al. 2023, "Teaching arithmetic to small transformers", section 3).
"""

from __future__ import annotations

import string
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar

from engine.data.bounds import at_least
from engine.data.drawing import Chance, Part, draw_indexed, number
from engine.data.options import DOCUMENTS, HELD_OUT
from engine.data.task import Pair, PairTask, Subject
from engine.model.option import Option

MOST = 20  # digits


@dataclass(frozen=True)
class Addition(PairTask):
    """ "058+967" becomes "5201", the sum from the units on, or "1025" where it is not `reversed`.

    Numbers have `digits` digits and sums one more, with zeros before them. How many digits a number has without these
    is uniform.
    """

    digits: int = field(default=3, metadata=Option(help="Digits of each number, zeros before it included."))
    reversed: bool = field(default=True, metadata=Option(help="The sum is written from the units on."))
    documents: int = field(default=20_000, metadata=DOCUMENTS)
    held_out: int = field(default=1_000, metadata=HELD_OUT)

    kind: ClassVar[str] = "addition"
    place: ClassVar[int] = 6
    subject: ClassVar[Subject] = "Arithmetic"
    tokenizers: ClassVar[tuple[str, ...]] = ("char",)
    grouped: ClassVar[str] = "carries"
    ended: ClassVar[bool] = False

    def __post_init__(self) -> None:
        at_least("data.addition.digits", self.digits, 1)
        if self.digits > MOST:
            raise ValueError(f"data.addition.digits must be at most {MOST}, got {self.digits}.")
        at_least("data.addition.documents", self.documents, 1)
        at_least("data.addition.held_out", self.held_out, 1)

    @property
    def alphabet(self) -> str:
        return string.digits + "+"

    def pairs(self, part: Part, seed: int) -> Iterator[Pair]:
        count = self.documents if part == "train" else self.held_out
        return (pair(self, part, seed, index) for index in range(count))

    def group(self, pair: Pair) -> int:
        first, second = map(int, pair.source.split("+"))
        return carries(first, second)


def pair(options: Addition, part: Part, seed: int, index: int) -> Pair:
    """Example `index` of a part; the same for the same seed. With a sum, the one with its numbers exchanged is held
    out too."""

    def operands(chance: Chance) -> tuple[int, int]:
        first, second = (number(chance, 0, 10 ** number(chance, 1, options.digits) - 1) for _ in range(2))
        return first, second

    first, second = draw_indexed(operands, lambda two: f"{min(two)}+{max(two)}", part, seed, index)
    width = options.digits
    total = f"{first + second:0{width + 1}}"
    return Pair(f"{first:0{width}}+{second:0{width}}", total[::-1] if options.reversed else total)


def carries(first: int, second: int) -> int:
    """Counts the columns that add up to ten or more."""
    found = carry = 0
    while first or second or carry:
        carry = int(first % 10 + second % 10 + carry >= 10)
        found, first, second = found + carry, first // 10, second // 10
    return found


KIND = Addition
