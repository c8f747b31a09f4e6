"""Counts that know how they came about: sums and products of named numbers, exact, and readable as text or TeX."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from math import gcd

MEANINGS = {
    "d": "width of the residual stream, d_model",
    "L": "layers",
    "L_e": "layers of the encoder",
    "L_w": "layers that see a window",
    "L_d": "different blocks, which the layers share",
    "E": "width of the vectors of tokens",
    "H": "heads",
    "H_kv": "heads of keys and values",
    "d_h": "width of a head",
    "d_v": "width of a head's values",
    "c": "width of what keys and values are made of",
    "c_q": "width of what queries are made of",
    "d_ff": "width of the MLP",
    "X": "experts of a layer",
    "k": "experts that each token sees",
    "L_x": "layers with experts",
    "L_n": "layers with a norm before attention",
    "L_1": "layers with one MLP",
    "d_1": "width of the MLP of layers without experts",
    "d_p": "width of the probe's MLP",
    "d_w": "width of the vector that the head reads",
    "d_s": "width of the shared expert",
    "V": "tokens of the vocabulary",
    "V_out": "tokens that can be predicted",
    "N": "positions, the context",
    "N_s": "positions of the sound",
    "M": "mel bins of a frame",
    "S": "segments",
    "R": "buckets of relative distances",
    "D": "distances in each direction",
    "D_p": "distances of two patches",
    "K": "classes",
    "P": "side of a patch in pixels",
    "C": "colour channels",
    "r": "registers",
    "p": "patches of the picture",
    "n": "tokens read",
    "m": "tokens of the target",
    "N_p": "parameters",
    "d_r": "components of a head that positions turn",
    "w": "keys that a window reaches back",
    "B": "texts in a batch",
    "b": "bytes a number",
}
SUPERSCRIPTS = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


class Formula:
    """An exact whole number, written as the arithmetic that gives it."""

    @property
    def value(self) -> int:
        raise NotImplementedError

    def symbols(self) -> Iterator[Symbol]:
        """Each symbol as often as it stands in the formula, left to right."""
        raise NotImplementedError

    def write(self, style: Style) -> str:
        raise NotImplementedError

    @property
    def text(self) -> str:
        """L·d²"""
        return self.write(Style())

    @property
    def text_numbers(self) -> str:
        """12·768²"""
        return self.write(Style(numbers=True))

    @property
    def tex(self) -> str:
        return self.write(Style(tex=True))

    @property
    def tex_numbers(self) -> str:
        return self.write(Style(tex=True, numbers=True))

    def __add__(self, other: Formula | int) -> Formula:
        return total([self, formula(other)])

    def __mul__(self, other: Formula | int) -> Formula:
        return product([self, formula(other)])

    def __rmul__(self, other: int) -> Formula:
        return product([formula(other), self])

    def __sub__(self, other: Formula | int) -> Formula:
        return total([self, -1 * formula(other)])


@dataclass(frozen=True)
class Style:
    tex: bool = False
    numbers: bool = False

    @property
    def times(self) -> str:
        return r" \cdot " if self.tex else "·"

    @property
    def least(self) -> str:
        return r"\min" if self.tex else "min"

    def power(self, exponent: int) -> str:
        if exponent == 1:
            return ""
        return f"^{{{exponent}}}" if self.tex else str(exponent).translate(SUPERSCRIPTS)

    def integer(self, number: int) -> str:
        return f"{number:,}".replace(",", "{,}") if self.tex else f"{number:,}"

    def name(self, symbol: str) -> str:
        base, _, index = symbol.partition("_")
        if not self.tex or not index:
            return symbol
        index = rf"\text{{{index}}}" if len(index) > 1 else index
        return f"{base}_{{{index}}}"

    def parenthesize(self, inside: str) -> str:
        return rf"\left({inside}\right)" if self.tex else f"({inside})"


@dataclass(frozen=True)
class Integer(Formula):
    """A number that is itself, such as the 2 of a multiply and an add."""

    number: int

    @property
    def value(self) -> int:
        return self.number

    def symbols(self) -> Iterator[Symbol]:
        yield from ()

    def write(self, style: Style) -> str:
        return style.integer(self.number)


@dataclass(frozen=True)
class Symbol(Formula):
    name: str
    number: int

    @property
    def value(self) -> int:
        return self.number

    @property
    def definition(self) -> str:
        return MEANINGS[self.name]

    def symbols(self) -> Iterator[Symbol]:
        yield self

    def write(self, style: Style) -> str:
        return style.integer(self.number) if style.numbers else style.name(self.name)


@dataclass(frozen=True)
class Product(Formula):
    factors: tuple[Formula, ...]

    @property
    def value(self) -> int:
        result = 1
        for factor in self.factors:
            result *= factor.value
        return result

    def symbols(self) -> Iterator[Symbol]:
        for factor in self.factors:
            yield from factor.symbols()

    def write(self, style: Style) -> str:
        """The same factor twice in a row is its square."""
        written = []
        for factor, run in groupby(self.factors):
            one = factor.write(style)
            one = style.parenthesize(one) if isinstance(factor, Sum) else one
            written.append(one + style.power(len(list(run))))
        return style.times.join(written)


@dataclass(frozen=True)
class Sum(Formula):
    terms: tuple[Formula, ...]

    @property
    def value(self) -> int:
        return sum(term.value for term in self.terms)

    def symbols(self) -> Iterator[Symbol]:
        for term in self.terms:
            yield from term.symbols()

    def write(self, style: Style) -> str:
        first, *rest = self.terms
        written = first.write(style)
        for term in rest:
            positive = negate(term)
            written += f" + {term.write(style)}" if positive is None else f" − {positive.write(style)}"
        return written.replace("−", "-") if style.tex else written


@dataclass(frozen=True)
class Minimum(Formula):
    """The smaller of two."""

    one: Formula
    other: Formula

    @property
    def value(self) -> int:
        return min(self.one.value, self.other.value)

    def symbols(self) -> Iterator[Symbol]:
        yield from self.one.symbols()
        yield from self.other.symbols()

    def write(self, style: Style) -> str:
        return style.least + f"({self.one.write(style)}, {self.other.write(style)})"


def formula(number: Formula | int) -> Formula:
    return Integer(number) if isinstance(number, int) else number


def product(factors: list[Formula]) -> Formula:
    """Flat, its whole numbers multiplied out and in front."""
    flat = [inner for factor in factors for inner in (factor.factors if isinstance(factor, Product) else (factor,))]
    number = 1
    for factor in flat:
        number *= factor.number if isinstance(factor, Integer) else 1
    named = [factor for factor in flat if not isinstance(factor, Integer)]
    if number == 0 or not named:
        return Integer(number)
    parts = [*([Integer(number)] if number != 1 else []), *named]
    return parts[0] if len(parts) == 1 else Product(tuple(parts))


def total(terms: list[Formula]) -> Formula:
    """Flat, like terms added up, what is taken away last."""
    flat = [inner for term in terms for inner in (term.terms if isinstance(term, Sum) else (term,))]
    alike: dict[tuple[str, ...], tuple[int, Formula]] = {}
    for term in flat:
        times, rest = split(term)
        key = tuple(sorted(map(repr, rest.factors if isinstance(rest, Product) else (rest,))))
        before, first = alike.get(key, (0, rest))
        alike[key] = (before + times, first)
    added = sorted((pair for pair in alike.values() if pair[0]), key=lambda pair: pair[0] < 0)
    kept = tuple(times * rest for times, rest in added)
    if not kept:
        return Integer(0)
    return kept[0] if len(kept) == 1 else Sum(kept)


def factor_out(formula: Formula) -> Formula:
    """A sum with what all its terms share in front: 3·L·d·f − 8·L·d² is L·d·(3·f − 8·d)."""
    if not isinstance(formula, Sum):
        return formula
    numbers, rests = zip(*(split(term) for term in formula.terms), strict=True)
    left = [list(rest.factors) if isinstance(rest, Product) else [rest] for rest in rests]
    shared = []
    for factor in list(left[0]):
        if all(factor in factors for factors in left):
            shared.append(factor)
            for factors in left:
                factors.remove(factor)
    common = gcd(*numbers)
    inner = [product([Integer(number // common), *factors]) for number, factors in zip(numbers, left, strict=True)]
    return product([Integer(common), *shared, total(inner)])


def split(term: Formula) -> tuple[int, Formula]:
    """The whole number in front, and what it multiplies."""
    if isinstance(term, Integer):
        return term.number, Integer(1)
    if isinstance(term, Product) and isinstance(first := term.factors[0], Integer):
        return first.number, product(list(term.factors[1:]))
    return 1, term


def negate(term: Formula) -> Formula | None:
    """The term without its minus; None where it has none."""
    first = term.factors[0] if isinstance(term, Product) else term
    if not (isinstance(first, Integer) and first.number < 0):
        return None
    return -1 * term
