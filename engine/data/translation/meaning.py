"""What is said, before it is said in a language: noun phrases and clauses as trees of entries of the lexicon.

`english` and `french` write the same tree. Both name its parts alike ("subject.noun", "verb", "not"): a `Word` knows
which `parts` it expresses, and words of the two languages that share one translate each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from .lexicon import Adjective, Adverb, Noun, Preposition, Verb


class Word(NamedTuple):
    text: str
    parts: frozenset[str]


def say(text: str, *parts: str) -> list[Word]:
    """Each word of `text`, expressing all of `parts`."""
    return [Word(each, frozenset(parts)) for each in text.split()]


@dataclass(frozen=True)
class Quality:
    adjective: Adjective
    degree: str = ""  # "very", "too"


@dataclass(frozen=True)
class Nominal:
    """A noun phrase. Determiners are named as in English; with an `owner` ("my brother's hat") there is none."""

    noun: Noun
    plural: bool = False
    determiner: str = ""
    number: str = ""
    qualities: tuple[Quality, ...] = ()
    owner: Nominal | None = None

    @property
    def person(self) -> int:
        return 5 if self.plural else 2

    @property
    def gender(self) -> str:
        return self.noun.gender

    @property
    def kinds(self) -> frozenset[str]:
        return self.noun.kinds


@dataclass(frozen=True)
class Pronoun:
    """`person` is 0 to 5: I, you, he or she, we, you all, they."""

    english: str
    person: int
    gender: str
    kinds: frozenset[str]


@dataclass(frozen=True)
class Both:
    first: Nominal
    second: Nominal
    person = 5

    @property
    def gender(self) -> str:
        return "f" if self.first.gender == self.second.gender == "f" else "m"

    @property
    def kinds(self) -> frozenset[str]:
        return self.first.kinds | self.second.kinds


Subject = Nominal | Pronoun | Both


@dataclass(frozen=True)
class Where:
    """A prepositional phrase: "in the garden", "with my brother"."""

    preposition: Preposition
    nominal: Nominal


@dataclass(frozen=True)
class Clause:
    """`negation` is "", "not" or "never"; `qualities` belong to "is" and are joined by `joint` where they are two."""

    subject: Subject
    verb: Verb
    past: bool = False
    negation: str = ""
    often: Adverb | None = None
    qualities: tuple[Quality, ...] = ()
    joint: str = ""
    object: Nominal | Both | None = None
    manner: Adverb | None = None
    places: tuple[Where, ...] = ()
    time: Adverb | None = None

    @property
    def to_all(self) -> bool:
        return isinstance(self.subject, Pronoun) and self.subject.person == 4


@dataclass(frozen=True)
class Existence:
    """ "There is a dog in the garden", "There are no keys on the table"."""

    nominal: Nominal
    place: Where
    past: bool = False


@dataclass(frozen=True)
class Compound:
    first: Clause
    joint: str
    second: Clause


Meaning = Nominal | Clause | Existence | Compound


def plural_of(subject: Subject) -> bool:
    return subject.person > 2


def align_words(english: Sequence[Word], french: Sequence[Word]) -> tuple[tuple[int, int], ...]:
    """The pairs of indexes (English, French) of words that express a common part."""
    return tuple((i, j) for i, left in enumerate(english) for j, right in enumerate(french) if left.parts & right.parts)
