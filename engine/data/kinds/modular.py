"""Arithmetic modulo p, on every pair of numbers there is: a share of the table is learned, the rest is held out.

A network first learns its share by heart, and much later, in places suddenly, the rule (grokking; Power et al. 2022,
"Grokking: generalization beyond overfitting on small algorithmic datasets", section 2 and appendix A.1).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import ClassVar, Literal

from engine.data.bounds import a_share, at_least
from engine.data.drawing import Part, lot
from engine.data.task import Pair, PairTask, Subject
from engine.model.option import Option

Operation = Literal["+", "-", "*", "/"]
LARGEST = 512

OPERATIONS: dict[str, Callable[[int, int, int], int]] = {
    "+": lambda a, b, p: (a + b) % p,
    "-": lambda a, b, p: (a - b) % p,
    "*": lambda a, b, p: a * b % p,
    "/": lambda a, b, p: a * pow(b, -1, p) % p,
}


@dataclass(frozen=True)
class Modular(PairTask):
    """ "17+45" becomes their sum modulo `modulus`; each number is one token. `trained` is the share learned from."""

    operation: Operation = field(
        default="+", metadata=Option(help="What is done with the two numbers, modulo the modulus.")
    )
    modulus: int = field(default=97, metadata=Option(help="Numbers go from 0 to one below it."))
    trained: float = field(default=0.5, metadata=Option(help="The share of all questions that is learned from."))

    kind: ClassVar[str] = "modular"
    place: ClassVar[int] = 5
    subject: ClassVar[Subject] = "Arithmetic"
    tokenizers: ClassVar[tuple[str, ...]] = ("word",)
    ended: ClassVar[bool] = False

    def __post_init__(self) -> None:
        at_least("data.modular.modulus", self.modulus, 3)
        if self.modulus > LARGEST:
            raise ValueError(f"data.modular.modulus must be at most {LARGEST}, got {self.modulus}.")
        if self.operation == "/" and not is_prime(self.modulus):
            raise ValueError(f"data.modular.modulus must be a prime to divide by each number, got {self.modulus}.")
        a_share("data.modular.trained", self.trained)

    @property
    def alphabet(self) -> str:
        return " ".join(map(str, range(self.modulus))) + self.operation

    def pairs(self, part: Part, seed: int) -> Iterator[Pair]:
        every = operation_table(self)
        every.sort(key=lambda pair: lot(pair.source, seed))
        cut = min(max(round(len(every) * self.trained), 1), len(every) - 1)
        return iter(every[:cut] if part == "train" else every[cut:])


def operation_table(options: Modular) -> list[Pair]:
    """The whole of it, row by row; nothing is divided by 0."""
    p, operation = options.modulus, options.operation
    divisors = range(1 if operation == "/" else 0, p)
    return [Pair(f"{a}{operation}{b}", str(OPERATIONS[operation](a, b, p))) for a in range(p) for b in divisors]


def is_prime(number: int) -> bool:
    return number > 1 and all(number % divisor for divisor in range(2, int(number**0.5) + 1))


KIND = Modular
