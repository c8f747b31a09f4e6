"""Programs in the manner of RASP (Weiss et al. 2021, "Thinking Like Transformers"): each line makes a variable, which
has a value at every position of a text.

A variable is one of a few values, or a number. `tokens` and `positions` (counted from 0) are there from the beginning.
Functions have names, so that a line reads as it would be written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Any, Literal, TypeAlias

import torch
from torch import Tensor

TOKENS, POSITIONS, START = "tokens", "positions", "start"
START_TOKEN = "<start>"


@dataclass(frozen=True)
class Domain:
    """All that a variable can be. A number has in `codes` how each of its values is written, in ascending order; the
    others are one-hot, and None stands for "nothing was selected"."""

    values: tuple[Any, ...]
    codes: tuple[Fraction, ...] = ()

    @property
    def size(self) -> int:
        """Components of the stream that it takes."""
        return 1 if self.codes else len(self.values)


@dataclass(frozen=True)
class Select:
    """Positions whose `keys` go with the value of `queries` of the position that looks. None goes with nothing."""

    keys: str
    queries: str
    where: Callable[[Any, Any], bool]

    def tabulate(self, known: Mapping[str, Domain]) -> Tensor:
        """Tells whether each key is selected by each query: key query, 0 or 1."""
        keys, queries = known[self.keys].values, known[self.queries].values
        table = [[None not in (key, query) and self.where(key, query) for query in queries] for key in keys]
        return torch.tensor(table).float()

    def __str__(self) -> str:
        return f"select({self.keys}, {self.queries}, {self.where.__name__})"


@dataclass(frozen=True)
class Aggregate:
    """The value of `of` at the selected positions: where they differ, the share of each; None where nothing is
    selected. With `number`, which makes a whole number of a value, their mean, and 0 of nothing."""

    name: str
    select: Select
    of: str
    number: Callable[[Any], int] | None = None

    def __str__(self) -> str:
        values = self.of if self.number is None else f"{self.number.__name__}({self.of})"
        return f"{self.name} = aggregate({self.select}, {values})"

    @property
    def inputs(self) -> tuple[str, ...]:
        return self.select.keys, self.select.queries, self.of

    def find_domain(self, known: Mapping[str, Domain], longest: int) -> Domain:
        values = [value for value in known[self.of].values if value is not None]
        if self.number is None:
            return Domain((*values, None))
        numbers, sums, means = {self.number(value) for value in values}, {0}, {Fraction(0)}
        for count in range(1, longest + 1):
            sums = {before + number for before in sums for number in numbers}
            means |= {Fraction(one, count) for one in sums}
        return Domain(tuple(sorted(means)), tuple(sorted(means)))


@dataclass(frozen=True)
class Width:
    """Number of selected positions. It is written as 1 / (1 + count): what goes to the start token, which is
    selected besides."""

    name: str
    select: Select

    def __str__(self) -> str:
        return f"{self.name} = width({self.select})"

    @property
    def inputs(self) -> tuple[str, ...]:
        return self.select.keys, self.select.queries

    def find_domain(self, known: Mapping[str, Domain], longest: int) -> Domain:
        return Domain(counts := tuple(range(longest, -1, -1)), tuple(Fraction(1, 1 + count) for count in counts))


@dataclass(frozen=True)
class Map:
    """`to` of a number, or of variables that are no numbers: a neuron for each combination of their values."""

    name: str
    inputs: tuple[str, ...]
    to: Callable[..., Any]

    def __str__(self) -> str:
        return f"{self.name} = {self.to.__name__}({', '.join(self.inputs)})"

    def list_results(self, known: Mapping[str, Domain]) -> list[tuple[tuple[Any, ...], Any]]:
        """Every tuple of values that it may get, with what it makes of them; of a number in the order of its codes."""
        return [(values, self.to(*values)) for values in product(*(known[name].values for name in self.inputs))]

    def find_domain(self, known: Mapping[str, Domain], longest: int) -> Domain:
        return Domain(tuple(dict.fromkeys(result for _, result in self.list_results(known))))


Step: TypeAlias = Aggregate | Width | Map


def begin_domains(vocabulary: tuple[str, ...], longest: int) -> dict[str, Domain]:
    """The domains of the variables that are there before the first line."""
    return {TOKENS: Domain(vocabulary), POSITIONS: Domain(tuple(range(longest)))}


def check_step(step: Step, known: Mapping[str, Domain]) -> None:
    """Raises ValueError for a line that reads what no line before it makes, or a number, which a map of that alone
    reads, or that makes what is there."""
    lacking = [name for name in step.inputs if name not in known]
    if lacking:
        raise ValueError(f"{step} reads {lacking[0]}, which no line before it makes; name another variable.")
    if step.name in known or step.name == START:
        raise ValueError(f"{step} makes {step.name} a second time; give it another name.")
    numbers = [name for name in step.inputs if known[name].codes]
    if numbers and not (isinstance(step, Map) and len(step.inputs) == 1):
        raise ValueError(f"{step} reads {numbers[0]}, which is a number; map it to values first.")


@dataclass(frozen=True)
class Program:
    """Texts are of 1 to `longest` tokens of `vocabulary`; the variable that it `predicts` is the next token, and
    `<start>` where it is None. Of equal shares the first in the vocabulary wins.

    `answer` is what it computes, in plain Python: the prediction of each position; it is to be read from the position
    `read_from` of the text on, -1 for the last alone. `margin` is by how much, in logits, the right token is at least
    ahead of all others. With `sees` "causal" it is a decoder, with "full" an encoder.
    """

    name: str
    title: str
    vocabulary: tuple[str, ...]
    longest: int
    sees: Literal["causal", "full"]
    steps: tuple[Step, ...]
    predicts: str
    answer: Callable[[Sequence[str]], Sequence[str]]
    margin: float
    read_from: int = 0

    def find_domains(self) -> dict[str, Domain]:
        """The domains of all variables in their order. Raises ValueError for a line that reads or makes what it must
        not."""
        known = begin_domains(self.vocabulary, self.longest)
        for step in self.steps:
            check_step(step, known)
            known[step.name] = step.find_domain(known, self.longest)
        if self.predicts not in known or known[self.predicts].codes:
            raise ValueError(f"{self.name} predicts {self.predicts}, which a line must make, and not as a number.")
        return known

    def list_texts(self) -> Iterator[tuple[str, ...]]:
        """Every text that it reads, short ones first."""
        for length in range(1, self.longest + 1):
            yield from product(self.vocabulary, repeat=length)


def is_same(key: Any, query: Any) -> bool:
    return bool(key == query)


def is_any(key: Any, query: Any) -> bool:
    return True
