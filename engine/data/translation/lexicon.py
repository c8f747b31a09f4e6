"""The vocabulary of `corpora/translation`: English, French, and the kinds of thing that say what goes with what.

Every adjective suits every noun of the kinds in its row, and every verb every subject and object of its kinds.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any

from engine.data.corpora import read_corpus

HUMAN = frozenset(("person", "child", "kin"))
LIVING = HUMAN | {"animal"}
GOODS = frozenset(("clothes", "thing", "vehicle", "furniture"))
SEEN = GOODS | {"tree", "part", "place"}
GROUPS = {"*human": HUMAN, "*living": LIVING, "*goods": GOODS, "*seen": SEEN}  # as the tables write them


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
    """The kinds that a table's entry names, such as "*living tree"."""
    return frozenset(chain.from_iterable(GROUPS.get(name, (name,)) for name in names.split()))


class Lexicon:
    """The tables as entries; each is read when it is first asked for."""

    @cached_property
    def nouns(self) -> tuple[Noun, ...]:
        rows = read_corpus("translation/nouns")["nouns"]
        return tuple(Noun(english, french, gender, kinds(names)) for english, french, gender, names in rows)

    # adjectives

    @cached_property
    def adjective_tables(self) -> dict[str, Any]:
        return read_corpus("translation/adjectives")

    @cached_property
    def adjectives(self) -> tuple[Adjective, ...]:
        return tuple(
            Adjective(english, french, kinds(names), before, graded and " " not in french)
            for table, before, graded in (
                ("before", True, True),
                ("before_ungraded", True, False),
                ("colors", False, False),
                ("after", False, True),
                ("ungraded", False, False),
            )
            for english, french, names in self.adjective_tables[table]
        )

    @cached_property
    def colors(self) -> frozenset[str]:
        """The French colours."""
        return frozenset(french for _, french, _ in self.adjective_tables["colors"])

    @cached_property
    def rivals(self) -> tuple[frozenset[str], ...]:
        """Groups of French adjectives of which at most one is said at a time."""
        return (*map(kinds, self.adjective_tables["rivals"]), self.colors)

    @cached_property
    def passing_adjectives(self) -> frozenset[str]:
        """French adjectives of what may be so now, often or because; the rest is so for good."""
        return kinds(self.adjective_tables["passing"])

    @cached_property
    def never_predicate(self) -> frozenset[str]:
        """French adjectives that only stand before a noun."""
        return kinds(self.adjective_tables["never_predicate"])

    @cached_property
    def unsaid(self) -> frozenset[tuple[str, str]]:
        """English adjectives and nouns that do not go together."""
        return frozenset((adjective, noun) for adjective, noun in self.adjective_tables["unsaid"])

    # verbs and adverbs

    @cached_property
    def verb_tables(self) -> dict[str, Any]:
        return read_corpus("translation/verbs")

    @cached_property
    def be(self) -> Verb:
        (verb,) = self.with_objects([self.verb_tables["be"]])
        return verb

    @cached_property
    def transitive(self) -> tuple[Verb, ...]:
        return self.with_objects(self.verb_tables["transitive"])

    @cached_property
    def giving_verbs(self) -> tuple[Verb, ...]:
        return self.with_objects(self.verb_tables["giving"])

    @cached_property
    def motion_verbs(self) -> tuple[Verb, ...]:
        return self.with_objects(self.verb_tables["moving"])

    @cached_property
    def intransitive(self) -> tuple[Verb, ...]:
        inner, outer = self.verb_tables["inner_manner"], self.verb_tables["manner"]
        manner = {english: Adverb(english, french, inner=True) for english, french in inner}
        manner |= {english: Adverb(english, french) for english, french in outer}
        return tuple(
            Verb(english, particle, past, french, "", kinds(subjects), adverbs=tuple(manner[name] for name in adverbs))
            for english, particle, past, french, subjects, adverbs in self.verb_tables["intransitive"]
        )

    @staticmethod
    def with_objects(rows: Iterable[list[str]]) -> tuple[Verb, ...]:
        return tuple(
            Verb(english, particle, past, french, preposition, kinds(subjects), kinds(objects))
            for english, particle, past, french, preposition, subjects, objects in rows
        )

    @cached_property
    def adverbs(self) -> dict[str, tuple[Adverb, ...]]:
        """Adverbs of time: "often", "now", "now_to_all" and "then"."""
        tables = ("often", "now", "now_to_all", "then")
        return {table: tuple(Adverb(*row) for row in self.verb_tables[table]) for table in tables}

    # function words

    @cached_property
    def function_words(self) -> dict[str, Any]:
        return read_corpus("translation/function_words")

    @cached_property
    def prepositions(self) -> dict[str, Preposition]:
        rows = self.function_words["prepositions"].items()
        return {english: Preposition(english, french) for english, french in rows}

    @cached_property
    def numbers(self) -> tuple[str, ...]:
        """The English number words."""
        return tuple(self.function_words["numbers"])

    @cached_property
    def possessives(self) -> tuple[str, ...]:
        """The English possessives."""
        return tuple(self.function_words["possessives"])


LEXICON = Lexicon()
