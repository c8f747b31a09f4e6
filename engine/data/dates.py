"""Dates as people write them, in English, to dates as ISO 8601 writes them: "3 May 1979" becomes "1979-05-03"."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date
from typing import ClassVar

from engine.data.bounds import at_least
from engine.data.drawing import Chance, Part, choice, drawn, number
from engine.data.task import Pair, PairTask

MONTHS = (
    "January", "February", "March", "April", "May", "June",
    "July", "August", "September", "October", "November", "December",
)  # fmt: skip


def ordinal(day: int) -> str:
    last = "th" if day in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(day % 10, "th")
    return f"{day}{last}"


# None can be read in two ways, as 3/5/1979 could.
FORMATS: dict[str, Callable[[date], str]] = {
    "day month year": lambda on: f"{on.day} {MONTHS[on.month - 1]} {on.year}",
    "month day, year": lambda on: f"{MONTHS[on.month - 1]} {on.day}, {on.year}",
    "ordinal": lambda on: f"the {ordinal(on.day)} of {MONTHS[on.month - 1]} {on.year}",
    "short": lambda on: f"{on.day}-{MONTHS[on.month - 1][:3]}-{on.year}",
    "dots": lambda on: f"{on.day}.{on.month}.{on.year}",
}


@dataclass(frozen=True)
class Dates(PairTask):
    """Days from the years `first` to `last` itself, each as likely as any other, and so is each way to write it."""

    first: int = 1900
    last: int = 2099
    documents: int = 20_000
    held_out: int = 1_000

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
        written = {character for style in FORMATS.values() for on in year for character in style(on)}
        return "".join(sorted(written | set("0123456789-")))

    def pairs(self, part: Part, seed: int) -> Iterator[Pair]:
        count = self.documents if part == "train" else self.held_out
        return (pair(self, part, seed, index) for index in range(count))


def pair(options: Dates, part: Part, seed: int, index: int) -> Pair:
    """Example `index` of a part; the same for the same seed. A day that is held out is so however it is written."""
    first, last = date(options.first, 1, 1).toordinal(), date(options.last, 12, 31).toordinal()

    def day(chance: Chance) -> Pair:
        on = date.fromordinal(number(chance, first, last))
        return Pair(choice(chance, list(FORMATS.values()))(on), on.isoformat())

    return drawn(day, lambda one: one.target, part, seed, index)
