"""Drawing a noun phrase: a noun of the right kind, its determiner, adjectives and owner."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import TypeVar

from . import lexicon
from .adjectives import ADJECTIVES, COLORS, RIVALS, UNSAID
from .function_words import NUMBERS, POSSESSIVES
from .lexicon import Adjective, Noun, kinds
from .meaning import Both, Nominal, Pronoun, Quality, Subject
from .nouns import NOUNS

T = TypeVar("T")

HUMAN, LIVING = kinds(lexicon.HUMAN), kinds(lexicon.LIVING)
COLOR_NAMES = frozenset(french for _, french, _ in COLORS)

# which determiners may stand: after a French "de" no "des", in a negation no "some", in "there is" no "the"
ANY, DEFINITE, INDEFINITE, NEGATED = "any", "definite", "indefinite", "negated"


@cache
def nouns_of(among: frozenset[str]) -> tuple[Noun, ...]:
    return tuple(noun for noun in NOUNS if noun.kinds & among)


@cache
def adjectives_of(noun: Noun) -> tuple[Adjective, ...]:
    suited = (each for each in ADJECTIVES if each.kinds & noun.kinds)
    return tuple(each for each in suited if (each.english, noun.english) not in UNSAID)


@cache
def colors_of(noun: Noun) -> tuple[Adjective, ...]:
    return tuple(each for each in adjectives_of(noun) if each.base in COLOR_NAMES)


def adjectives_for(subject: Subject) -> tuple[Adjective, ...]:
    """What may be said of the subject; a speaker is known to be human and no more."""
    match subject:
        case Nominal():
            return adjectives_of(subject.noun)
        case Both():
            second = adjectives_of(subject.second.noun)
            return tuple(each for each in adjectives_of(subject.first.noun) if each in second)
        case Pronoun():
            return tuple(each for each in ADJECTIVES if HUMAN <= each.kinds)


def qualities_of(subject: Subject) -> tuple[Adjective, ...]:
    """The adjectives that already stand in `subject`."""
    match subject:
        case Nominal():
            return tuple(each.adjective for each in subject.qualities)
        case Both():
            return qualities_of(subject.first) + qualities_of(subject.second)
        case Pronoun():
            return ()


def clash(one: Adjective, other: Adjective) -> bool:
    return one.base == other.base or any({one.base, other.base} <= rivals for rivals in RIVALS)


class NounPhrases:
    def __init__(self, random: Callable[[], float]) -> None:
        self.random = random
        self.possessives = tuple(POSSESSIVES)

    # chance

    def pick(self, options: Sequence[T]) -> T:
        return options[int(self.random() * len(options))]

    def chance(self, probability: float) -> bool:
        return self.random() < probability

    # noun phrases

    def determiner(self, noun: Noun, plural: bool, use: str) -> tuple[str, str]:
        """A determiner, and a number word or ""."""
        kin, free = "kin" in noun.kinds, "free" in noun.kinds
        if kin or use == DEFINITE or (use != INDEFINITE and self.chance(0.65)):
            number = self.pick(tuple(NUMBERS)) if plural and self.chance(0.15) else ""
            if kin or (not free and self.chance(0.35)):
                return self.pick(self.possessives), number
            return self.pick(("the", "the", "the", "the", "this", "that")), number
        if not plural and "mass" not in noun.kinds:
            return "a", ""
        if plural and use != NEGATED and self.chance(0.5):
            return "", self.pick(tuple(NUMBERS))
        return ("any" if use == NEGATED else "some"), ""

    def quality(self, options: Sequence[Adjective]) -> Quality:
        adjective = self.pick(options)
        return Quality(adjective, "very" if adjective.graded and self.chance(0.12) else "")

    def qualities(self, noun: Noun) -> tuple[Quality, ...]:
        """One, or one that stands before the French noun and a colour."""
        first = self.quality(adjectives_of(noun))
        if first.adjective.before and colors_of(noun) and self.chance(0.3):
            return first, self.quality(colors_of(noun))
        return (first,)

    def nominal(
        self, among: frozenset[str], use: str = ANY, described: float = 0.45, other_than: Subject | None = None
    ) -> Nominal:
        taken = other_than.noun if isinstance(other_than, Nominal) else None
        noun = self.pick([each for each in nouns_of(among) if each != taken])
        plural = not noun.kinds & {"mass", "single", "place"} and self.chance(0.3)
        qualities = self.qualities(noun) if self.chance(described) else ()
        if not noun.kinds & {"kin", "free"} and use in (ANY, DEFINITE) and self.chance(0.1):
            return Nominal(noun, plural, qualities=qualities, owner=self.owner(noun))
        determiner, number = self.determiner(noun, plural, use)
        return Nominal(noun, plural, determiner, number, qualities)

    def owner(self, owned: Noun) -> Nominal:
        noun = self.pick([each for each in nouns_of(HUMAN) if each != owned])
        return Nominal(noun, determiner=self.pick(self.possessives) if "kin" in noun.kinds else "the")

    def both(self, among: frozenset[str], use: str = ANY, described: float = 0.2) -> Both:
        """Two of a sort: people keep to people, so that what fits one fits both."""
        first = self.nominal(among, use, described)
        among = among & HUMAN if first.kinds & HUMAN else among - HUMAN
        return Both(first, self.nominal(among, use, described, other_than=first))
