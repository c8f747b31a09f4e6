"""Two tasks for one decoder, told apart by a token: "le chat dort [toEnglish] the cat sleeps" and
"the cat sleeps [toFrench] le chat dort" (Raffel et al. 2020, section 2.4, write such instructions as words).

The sentences are those of `engine.data.translation`, of at most `longest` words. Those in which two English words would
be one in French are left out ("her" and "his", "that" and "this", "delighted" beside "very happy"), so that a French
sentence has one translation, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import count, islice
from random import Random
from typing import ClassVar

from engine.data.bounds import at_least
from engine.data.drawing import Part
from engine.data.seeds import seed_for
from engine.data.task import Pair, PairTask
from engine.data.translation import pair, words
from engine.data.translation.lexicon import LEXICON

INSTRUCTIONS = TO_ENGLISH, TO_FRENCH = "[toEnglish]", "[toFrench]"
SHORTEST = 4  # words that a limit must allow


@dataclass(frozen=True)
class Instructions(PairTask):
    """Every second pair is asked for in English. A share `plain` of the sentences has neither capital nor full stop.

    No sentence that is held out is trained on, in either language.
    """

    documents: int = 40_000
    held_out: int = 2_000
    longest: int = 10
    plain: float = 0.5

    tokenizers: ClassVar[tuple[str, ...]] = ("word",)
    separator: ClassVar[str] = ""
    grouped: ClassVar[str] = "instruction"

    def __post_init__(self) -> None:
        at_least("data.instructions.documents", self.documents, 1)
        at_least("data.instructions.held_out", self.held_out, 1)
        check_options("data.instructions", self.longest, self.plain)

    def pairs(self, part: Part, seed: int) -> Iterator[Pair]:
        ours, theirs = seed_for(seed, "instructions"), seed_for(seed, "held-out instructions")
        if part == "train":
            return (pair_with_instruction(self, ours, index) for index in range(self.documents))
        seen = training_sentences(self, ours)
        unseen = (index for index in count() if key(self, theirs, index) not in seen)
        return (pair_with_instruction(self, theirs, index) for index in islice(unseen, self.held_out))

    def group(self, pair: Pair) -> str:
        return instruction_of(pair)


@dataclass(frozen=True)
class Bilingual:
    """English sentences and French ones, in turn, none of which is the translation of the other: what a model learns
    both languages from before it is taught to translate. `longest` and `plain` as in `Instructions`."""

    documents: int = 60_000
    held_out: int = 1_000
    longest: int = 10
    plain: float = 0.5

    def __post_init__(self) -> None:
        at_least("data.bilingual.documents", self.documents, 1)
        at_least("data.bilingual.held_out", self.held_out, 1)
        check_options("data.bilingual", self.longest, self.plain)

    def texts(self, part: Part, seed: int) -> Iterator[str]:
        stream = seed_for(seed, "bilingual" if part == "train" else "held-out bilingual")
        for index in range(self.documents if part == "train" else self.held_out):
            yield write_sentence(self, stream, index)[index % 2]


def check_options(table: str, longest: int, plain: float) -> None:
    at_least(f"{table}.longest", longest, SHORTEST)
    if not 0 <= plain <= 1:
        raise ValueError(f"{table}.plain must be a share in [0, 1], got {plain}.")


def pair_with_instruction(options: Instructions, stream: int, index: int) -> Pair:
    english, french = write_sentence(options, stream, index)
    if index % 2:
        return Pair(f"{english} {TO_FRENCH}", f" {french}")
    return Pair(f"{french} {TO_ENGLISH}", f" {english}")


def instruction_of(pair: Pair) -> str:
    return pair.source.rpartition(" ")[2]


def write_sentence(options: Instructions | Bilingual, stream: int, index: int) -> tuple[str, str]:
    """Sentence `index` of a stream in both languages, as it is typed."""
    english, french = draw_sentence(stream, index, options.longest)
    if Random(f"{stream}:{index}:plain").random() >= options.plain:
        return english, french
    return lower_first(english), lower_first(french)


def draw_sentence(stream: int, index: int, longest: int) -> tuple[str, str]:
    """The first one of a stream of its own that is short enough and has no word that is left out."""
    drawn = (pair(seed_for(stream, index), number) for number in count())
    return next((one.english, one.french) for one in drawn if fits(words(one.english), words(one.french), longest))


@cache
def ambiguous_words() -> frozenset[str]:
    """English words beside others that would be one in French."""
    return frozenset(("her", "that", "those", *(one.english for one in LEXICON.adjectives if " " in one.french)))


def fits(english: Sequence[str], french: Sequence[str], longest: int) -> bool:
    return max(len(english), len(french)) <= longest and ambiguous_words().isdisjoint(word.lower() for word in english)


def lower_first(text: str) -> str:
    return f"{text[0].lower()}{text[1:]}".removesuffix(".")


def key(options: Instructions, stream: int, index: int) -> str:
    """Key that two writings of one sentence have in common."""
    return lower_first(draw_sentence(stream, index, options.longest)[0])


@lru_cache(maxsize=1)
def training_sentences(options: Instructions, stream: int) -> frozenset[str]:
    return frozenset(key(options, stream, index) for index in range(options.documents))
