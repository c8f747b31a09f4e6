"""What an entry of the vocabulary is: English, French, and the kinds of thing that say what goes with what.

Every adjective suits every noun of the kinds in its row, and every verb every subject and object of its kinds.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property


@dataclass(frozen=True)
class Noun:
    english: str
    french: str
    gender: str  # "m" or "f"
    kinds: frozenset[str]


@dataclass(frozen=True)
class Adjective:
    """`french` is the masculine singular, with "très " where the English word says it alone."""

    english: str
    french: str
    kinds: frozenset[str]
    before: bool  # whether the French one stands before its noun
    graded: bool  # whether "very" and "too" go with it

    @cached_property
    def base(self) -> str:
        """ "heureux", for "delighted" too."""
        return self.french.split()[-1]


@dataclass(frozen=True)
class Adverb:
    english: str
    french: str
    inner: bool = False  # whether it stands before a French past participle


@dataclass(frozen=True)
class Verb:
    """Without a `past` the verb is used in the present only."""

    english: str
    particle: str
    past: str
    french: str
    preposition: str  # the French words between the verb and its object
    subjects: frozenset[str]
    objects: frozenset[str] = frozenset()
    adverbs: tuple[Adverb, ...] = ()


@dataclass(frozen=True)
class Preposition:
    english: str
    french: str


def kinds(names: str) -> frozenset[str]:
    return frozenset(names.split())


HUMAN = "person child kin"
LIVING = f"{HUMAN} animal"
GOODS = "clothes thing vehicle furniture"
SEEN = f"{GOODS} tree part place"
