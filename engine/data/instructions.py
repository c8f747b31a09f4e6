"""Three tasks for one decoder, told apart by a token: "le chat dort [toEnglish] the cat sleeps",
"the cat sleeps [toFrench] le chat dort" and "add 3 to total [toCode] total += 3" (Raffel et al. 2020, section 2.4,
write such instructions as words).

A meaning has three forms: English, French and one line of Python. It is a command of `corpora/commands`, or a
sentence of `engine.data.translation` of at most `longest` words, whose Python prints the English one. Each form of each
meaning is met with each of the tokens, so that a text alone does not say what is wanted: behind that of its own form it
is written again. Names and nouns may be words that nobody knows, which are copied ("set zorb to 3" is "zorb = 3"), so
that a word of a person's own is, people may have names ("Quentin dort"), and sentences that others have written with
their translations may stand among these.
Sentences in which two English words would be one in French are left out ("her" and "his", "that" and
"this", "delighted" beside "very happy"), so that a French sentence has one translation, too.
"""

from __future__ import annotations

import builtins
import keyword
import re
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import cache
from itertools import product
from random import Random
from typing import Any, NamedTuple, Protocol

from engine.data import mixture
from engine.data.bounds import at_least
from engine.data.corpora import read_corpus
from engine.data.drawing import Chance, Part, choice, draw_indexed, number
from engine.data.kinds.in_context import make_up
from engine.data.published import check_named
from engine.data.seeds import seed_for
from engine.data.task import Pair
from engine.data.translation import words
from engine.data.translation.drawing import draw
from engine.data.translation.french import begins_with_vowel
from engine.data.translation.lexicon import HUMAN, LEXICON
from engine.data.translation.meaning import Nominal
from engine.data.translation.pair import write
from engine.model.option import Option

INSTRUCTIONS = TO_ENGLISH, TO_FRENCH, TO_CODE = "[toEnglish]", "[toFrench]", "[toCode]"
FORMS = ENGLISH, FRENCH, CODE = "English", "French", "Python"
SHORTEST = 4  # words that a limit must allow
COMMANDS = 0.4  # share of the meanings
LARGEST = 50  # number in a command
MADE_UP = 0.5  # of the names of people
SMALL = 0.5  # how often a number in a command of unknown words is no more than LARGEST
CELLS = tuple(product(range(3), repeat=2))  # forms that are given and asked for
TRANSLATED = (0, 1), (1, 0)  # of which each real sentence is asked, and of one of the
OTHERS = tuple(cell for cell in CELLS if cell not in TRANSLATED)
PARTS = frozenset(("subject", "object", "places", "nominal", "place", "first", "second"))  # that have nouns
SAID = frozenset(("kin", "free", "mass", "place"))  # nouns before which not every determiner stands
NAME = re.compile(r"(?<![\w'’-])[A-Z][a-z]+(?![\w'’-])")


class Meaning(NamedTuple):
    english: str
    french: str
    code: str


@dataclass(frozen=True)
class AskedPair(Pair):
    """`form` is one of FORMS, that of the source."""

    form: str


PLAIN = Option(help="The share of sentences with neither capital nor full stop.")
MADE_UP_SHARE = Option(help="The share of names and nouns that are words nobody knows, which the model learns to copy.")


class Mixing(Protocol):
    """Meanings that are drawn, with a share `made_up` of names and nouns that nobody knows."""

    @property
    def longest(self) -> int: ...
    @property
    def plain(self) -> float: ...
    @property
    def made_up(self) -> float: ...
    @property
    def sentences(self) -> str: ...


def check_options(table: str, options: Mixing) -> None:
    at_least(f"{table}.longest", options.longest, SHORTEST)
    for name in ("plain", "made_up"):
        if not 0 <= (share := getattr(options, name)) <= 1:
            raise ValueError(f"{table}.{name} must be a share in [0, 1], got {share}.")
    check_named(table, sentences=options.sentences)


def ask(meaning: Meaning, given: int, wanted: int) -> AskedPair:
    """The form `given`, what is `wanted`, and the answer."""
    return AskedPair(f"{meaning[given]} {INSTRUCTIONS[wanted]}", f" {meaning[wanted]}", FORMS[given])


def draw_meaning(options: Mixing, part: Part, seed: int, index: int) -> Meaning:
    """Meaning `index` of a part; the same for the same seed."""

    def drawn(chance: Chance) -> Meaning:
        if chance() < COMMANDS:
            return draw_command(chance, options.made_up)
        return draw_sentence(chance, options.longest, chance() < options.plain, options.made_up)

    return draw_indexed(drawn, lambda meaning: lower_first(meaning.english), part, seed_for(seed, "meanings"), index)


def real_meanings(options: Mixing, part: Part, seed: int) -> Iterator[Meaning]:
    """Sentences that others have written, those of the part; without those that a line of Python cannot quote."""
    chance = Random(f"{seed}:{part}:real meanings").random
    for english, (french, *_) in mixture.translations(options.sentences, part, seed):
        if not {'"', "\\"} & {*english}:
            if options.made_up:
                english, french = rename(english, french, options.made_up, chance)
            yield Meaning(english, french, f'print("{english}")')


def rename(english: str, french: str, share: float, chance: Chance) -> tuple[str, str]:
    """The share of the names that stand in both is made up."""
    found = dict.fromkeys(NAME.findall(english))
    others = {
        name: draw_name(chance, "f" if name in names("f") else "m", begins_with_vowel(name))
        for name in found
        if len(name) > 2 and name in NAME.findall(french) and chance() < share
    }
    renamed = (NAME.sub(lambda name: others.get(name[0], name[0]), text) for text in (english, french))
    return next(renamed), next(renamed)


@cache
def names(gender: str) -> tuple[str, ...]:
    return tuple(read_corpus("translation/people")[gender].split())


def draw_name(chance: Chance, gender: str, vowel: bool | None = None) -> str:
    """A first name, as often one that nobody knows; of these the feminine ones end in "a", by which French can tell.
    `vowel` says whether it begins so."""
    while True:
        name = choice(chance, names(gender))
        if chance() < MADE_UP:
            name = "".join(make_up(chance) for _ in range(number(chance, 1, 2))).rstrip("ae").capitalize()
            name += "a" if gender == "f" else ""
        if 2 < len(name) < 13 and vowel in (None, begins_with_vowel(name)):
            return name


def make_up_name(chance: Chance) -> str:
    """A word that nobody knows, before which no French word is shortened."""
    while True:
        word = make_up(chance)
        if len(word) > 2 and word[0] != "h" and not begins_with_vowel(word):
            return word


def make_up_variable(chance: Chance, but: Container[str] = ()) -> str:
    """A name that Python takes, such as "x", "zorb", "zorb2" or "max_zorb"."""
    while True:
        kind, word = chance(), make_up(chance)
        if kind < 0.25:
            word = chr(ord("a") + number(chance, 0, 25))
        elif kind < 0.4:
            word = f"{word}_{make_up(chance)}"
        elif kind < 0.5:
            word = f"{word}{number(chance, 0, 9)}"
        if word not in but and not keyword.iskeyword(word) and not hasattr(builtins, word):
            return word


def draw_command(chance: Chance, made_up: float = 0.0) -> Meaning:
    corpus = read_corpus("commands/commands")
    names = list(corpus["numbers"])
    one = names.pop(number(chance, 0, len(names) - 1))
    several, entry = choice(chance, corpus["lists"])
    fields = {"v": one, "w": choice(chance, names), "l": several, "i": entry}
    fields |= {name: str(number(chance, 1, LARGEST)) for name in "nm"}
    if made_up:
        for name in "vwli":
            if chance() < made_up:
                fields[name] = make_up_variable(chance, {*fields.values()})
        for name in "nm":
            if chance() < made_up and chance() >= SMALL:
                fields[name] = str(number(chance, 0, 10 ** number(chance, 2, 5)))
    english, french, code = choice(chance, corpus["forms"])
    return Meaning(*(form.format(**fields) for form in (english, french, code)))


def draw_sentence(chance: Chance, longest: int, is_plain: bool, made_up: float = 0.0) -> Meaning:
    """The first sentence drawn that is short enough and has no word that is left out."""
    while True:
        meaning = draw(chance)
        one = write(with_unknown(meaning, made_up, chance) if made_up else meaning)
        if fits(words(one.english), words(one.french), longest):
            break
    english, french = (lower_first(text) if is_plain else text for text in (one.english, one.french))
    name = one.english.partition(" ")[0]
    if name == one.french.partition(" ")[0] and name.lower() not in LEXICON.function_words["numbers"]:
        english, french = (f"{name}{text[len(name) :]}" for text in (english, french))
    return Meaning(english, french, f'print("{english}")')


def with_unknown(part: Any, share: float, chance: Chance) -> Any:
    """A meaning, or a part of one, with the share of its people named and of its masculine nouns made up. Those of a
    plural are left, of which French does not say how an unknown word makes it."""
    if isinstance(part, tuple):
        return tuple(with_unknown(one, share, chance) for one in part)
    if not is_dataclass(part) or isinstance(part, type):
        return part
    if isinstance(part, Nominal):
        owner = with_unknown(part.owner, share, chance)
        noun = part.noun
        if noun.kinds & HUMAN and not part.plural and not owner and chance() < share:
            name = draw_name(chance, noun.gender)
            return Nominal(replace(noun, english=name, french=name))
        if noun.gender == "m" and not part.plural and not noun.kinds & SAID and chance() < share:
            word = make_up_name(chance)
            noun = replace(noun, english=word, french=word)
        return replace(part, noun=noun, owner=owner)
    inner = {one.name: getattr(part, one.name) for one in fields(part)}
    kept = {name: with_unknown(one, share, chance) for name, one in inner.items() if name in PARTS}
    return replace(part, **kept)


@cache
def ambiguous_words() -> frozenset[str]:
    """English words beside others that would be one in French."""
    return frozenset(("her", "that", "those", *(one.english for one in LEXICON.adjectives if " " in one.french)))


def fits(english: Sequence[str], french: Sequence[str], longest: int) -> bool:
    return max(len(english), len(french)) <= longest and ambiguous_words().isdisjoint(word.lower() for word in english)


def lower_first(text: str) -> str:
    return f"{text[0].lower()}{text[1:]}".removesuffix(".")
