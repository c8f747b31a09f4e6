"""Three tasks for one decoder, told apart by a token: "le chat dort [toEnglish] the cat sleeps",
"the cat sleeps [toFrench] le chat dort" and "add 3 to total [toCode] total += 3" (Raffel et al. 2020, section 2.4,
write such instructions as words).

A meaning has three forms: English, French and one line of Python. It is a command of `corpora/commands`, or a
sentence of `engine.data.translation` of at most `longest` words, whose Python prints the English one. Each form of each
meaning is met with each of the tokens, so that a text alone does not say what is wanted: behind that of its own form it
is written again. Sentences in which two English words would be one in French are left out ("her" and "his", "that" and
"this", "delighted" beside "very happy"), so that a French sentence has one translation, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import count, islice, product
from typing import ClassVar, NamedTuple

from engine.data.bounds import at_least
from engine.data.corpora import read_corpus
from engine.data.drawing import Chance, Part, choice, draw_indexed, number
from engine.data.seeds import seed_for
from engine.data.task import Pair, PairTask
from engine.data.translation import words
from engine.data.translation.drawing import draw
from engine.data.translation.lexicon import LEXICON
from engine.data.translation.pair import write

INSTRUCTIONS = TO_ENGLISH, TO_FRENCH, TO_CODE = "[toEnglish]", "[toFrench]", "[toCode]"
FORMS = ENGLISH, FRENCH, CODE = "English", "French", "Python"
SHORTEST = 4  # words that a limit must allow
COMMANDS = 0.4  # share of the meanings
LARGEST = 50  # number in a command
CELLS = tuple(product(range(3), repeat=2))  # forms that are given and asked for


class Meaning(NamedTuple):
    english: str
    french: str
    code: str


@dataclass(frozen=True)
class AskedPair(Pair):
    """`form` is one of FORMS, that of the source."""

    form: str


@dataclass(frozen=True)
class Instructions(PairTask):
    """Each form of every meaning is asked for in each form, one after the other. A share `plain` of the sentences has
    neither capital nor full stop.

    No meaning that is held out is trained on, in any form.
    """

    documents: int = 270_000
    held_out: int = 1_800
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
        meanings = (draw_meaning(self, part, seed, index) for index in count())
        asked = (ask(meaning, *cell) for meaning in meanings for cell in CELLS)
        return islice(asked, self.documents if part == "train" else self.held_out)

    def group(self, pair: Pair) -> str:
        assert isinstance(pair, AskedPair)
        return f"{pair.form} {pair.source.rpartition(' ')[2]}"


@dataclass(frozen=True)
class Bilingual:
    """English, French and Python in turn, none of which says what another does: what a model learns all three from
    before it is taught to translate. `longest` and `plain` as in `Instructions`, and what is held out there by the same
    seed is here, too."""

    documents: int = 60_000
    held_out: int = 1_000
    longest: int = 10
    plain: float = 0.5

    def __post_init__(self) -> None:
        at_least("data.bilingual.documents", self.documents, 1)
        at_least("data.bilingual.held_out", self.held_out, 1)
        check_options("data.bilingual", self.longest, self.plain)

    def texts(self, part: Part, seed: int) -> Iterator[str]:
        for index in range(self.documents if part == "train" else self.held_out):
            yield draw_meaning(self, part, seed, index)[index % 3]


def check_options(table: str, longest: int, plain: float) -> None:
    at_least(f"{table}.longest", longest, SHORTEST)
    if not 0 <= plain <= 1:
        raise ValueError(f"{table}.plain must be a share in [0, 1], got {plain}.")


def ask(meaning: Meaning, given: int, wanted: int) -> AskedPair:
    """The form `given`, what is `wanted`, and the answer."""
    return AskedPair(f"{meaning[given]} {INSTRUCTIONS[wanted]}", f" {meaning[wanted]}", FORMS[given])


def draw_meaning(options: Instructions | Bilingual, part: Part, seed: int, index: int) -> Meaning:
    """Meaning `index` of a part; the same for the same seed."""

    def drawn(chance: Chance) -> Meaning:
        if chance() < COMMANDS:
            return draw_command(chance)
        return draw_sentence(chance, options.longest, chance() < options.plain)

    return draw_indexed(drawn, lambda meaning: lower_first(meaning.english), part, seed_for(seed, "meanings"), index)


def draw_command(chance: Chance) -> Meaning:
    corpus = read_corpus("commands/commands")
    names = list(corpus["numbers"])
    one = names.pop(number(chance, 0, len(names) - 1))
    several, entry = choice(chance, corpus["lists"])
    fields = {"v": one, "w": choice(chance, names), "l": several, "i": entry}
    fields |= {name: str(number(chance, 1, LARGEST)) for name in "nm"}
    english, french, code = choice(chance, corpus["forms"])
    return Meaning(*(form.format(**fields) for form in (english, french, code)))


def draw_sentence(chance: Chance, longest: int, is_plain: bool) -> Meaning:
    """The first sentence drawn that is short enough and has no word that is left out."""
    while True:
        one = write(draw(chance))
        if fits(words(one.english), words(one.french), longest):
            break
    english, french = (lower_first(text) if is_plain else text for text in (one.english, one.french))
    return Meaning(english, french, f'print("{english}")')


@cache
def ambiguous_words() -> frozenset[str]:
    """English words beside others that would be one in French."""
    return frozenset(("her", "that", "those", *(one.english for one in LEXICON.adjectives if " " in one.french)))


def fits(english: Sequence[str], french: Sequence[str], longest: int) -> bool:
    return max(len(english), len(french)) <= longest and ambiguous_words().isdisjoint(word.lower() for word in english)


def lower_first(text: str) -> str:
    return f"{text[0].lower()}{text[1:]}".removesuffix(".")
