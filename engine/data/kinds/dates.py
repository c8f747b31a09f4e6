"""Dates as people write them, in English, to dates as ISO 8601 writes them: "3 May 1979" becomes "1979-05-03"."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import ClassVar

from engine.data.bounds import at_least
from engine.data.corpora import read_corpus
from engine.data.drawing import Chance, Part, choice, draw_indexed, number
from engine.data.options import DOCUMENTS, HELD_OUT
from engine.data.task import Pair, PairTask, Subject
from engine.model.option import Option


def ordinal(day: int) -> str:
    last = "th" if day in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(day % 10, "th")
    return f"{day}{last}"


def formats() -> Mapping[str, str]:
    """The ways to write a date, as templates."""
    return read_corpus("dates/dates")["formats"]


def write_date(day: date, template: str) -> str:
    month = read_corpus("dates/dates")["months"][day.month - 1]
    return template.format(day=day.day, ordinal=ordinal(day.day), month=month, number=day.month, year=day.year)


@dataclass(frozen=True)
class Dates(PairTask):
    """Days from the years `first` to `last` itself, each as likely as any other, and so is each way to write it."""

    first: int = field(default=1900, metadata=Option(help="The first year that days are from."))
    last: int = field(default=2099, metadata=Option(help="The last year that days are from."))
    documents: int = field(default=20_000, metadata=DOCUMENTS)
    held_out: int = field(default=1_000, metadata=HELD_OUT)

    kind: ClassVar[str] = "dates"
    place: ClassVar[int] = 7
    subject: ClassVar[Subject] = "Languages"
    tokenizers: ClassVar[tuple[str, ...]] = ("char",)

    def __post_init__(self) -> None:
        at_least("data.dates.first", self.first, 1000)
        at_least("data.dates.last", self.last, self.first)
        if self.last > 9999:
            raise ValueError(f"data.dates.last must be at most 9999, got {self.last}.")
        at_least("data.dates.documents", self.documents, 1)
        at_least("data.dates.held_out", self.held_out, 1)

    @property
    def alphabet(self) -> str:
        year = [date(2000, month, day) for month in range(1, 13) for day in range(1, 29)]
        letters = {letter for template in formats().values() for day in year for letter in write_date(day, template)}
        return "".join(sorted(letters | set("0123456789-")))

    def pairs(self, part: Part, seed: int) -> Iterator[Pair]:
        count = self.documents if part == "train" else self.held_out
        return (pair(self, part, seed, index) for index in range(count))


def pair(options: Dates, part: Part, seed: int, index: int) -> Pair:
    """Example `index` of a part; the same for the same seed. A day that is held out is so however it is written."""
    first, last = date(options.first, 1, 1).toordinal(), date(options.last, 12, 31).toordinal()

    def draw(chance: Chance) -> Pair:
        day = date.fromordinal(number(chance, first, last))
        return Pair(write_date(day, choice(chance, list(formats().values()))), day.isoformat())

    return draw_indexed(draw, lambda one: one.target, part, seed, index)


KIND = Dates
