"""One pair from a seed and an index, and the endless stream of them."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from typing import NamedTuple

from . import english, french
from .drawing import draw
from .meaning import Meaning, Nominal, Word, align_words

LONGEST = 16  # words of a sentence, in either language
WORD = re.compile(r"\w+(?:'\w+)*|[^\w\s]")
QUALITY = re.compile(r"(.*)\.quality\d")


class Crossing(NamedTuple):
    """Indexes of an adjective and its noun that change places: "delighted dog", "chien très heureux".

    `french_adverb` is the French word that English has no word of its own for, "très" in the example, or None.
    """

    english_adjective: int
    english_noun: int
    french_adjective: int
    french_noun: int
    french_adverb: int | None


@dataclass(frozen=True)
class Pair:
    english: str
    french: str
    alignment: tuple[tuple[int, int], ...]  # (English word, French word), as `words` counts them
    adjective_noun: tuple[Crossing, ...]


def words(text: str) -> list[str]:
    """Words and punctuation marks, as the "word" tokenizer cuts them: "l'oiseau" is one."""
    return WORD.findall(text)


def typeset(text: Sequence[Word]) -> str:
    line = " ".join(word.text for word in text).removesuffix(" .")
    end = "." if text[-1].text == "." else ""
    return f"{line[0].upper()}{line[1:]}{end}"


def index_of(part: str, text: Sequence[Word]) -> int:
    return next(i for i, word in enumerate(text) if part in word.parts)


def crossings(source: Sequence[Word], target: Sequence[Word]) -> Iterator[Crossing]:
    found = [(i, match) for i, word in enumerate(source) for part in word.parts if (match := QUALITY.fullmatch(part))]
    for adjective, match in found:
        noun = f"{match[1]}.noun"
        if not any(noun in word.parts for word in source):
            continue  # a predicate: "the dog is happy"
        degree = f"{match[0]}.degree"
        adverb = index_of(degree, target) if degree in source[adjective].parts else None
        crossing = Crossing(
            adjective, index_of(noun, source), index_of(match[0], target), index_of(noun, target), adverb
        )
        if crossing.french_adjective > crossing.french_noun:
            yield crossing


def write(meaning: Meaning) -> Pair:
    """`meaning` in both languages; all but a noun phrase alone end in a full stop."""
    stop = [] if isinstance(meaning, Nominal) else [Word(".", frozenset({"stop"}))]
    source, target = [*english.write(meaning), *stop], [*french.write(meaning), *stop]
    return Pair(typeset(source), typeset(target), align_words(source, target), tuple(crossings(source, target)))


def pair(seed: int, index: int) -> Pair:
    """Pair `index` of the stream `seed`: the first meaning drawn that is short enough."""
    source = random.Random(f"{seed}:{index}").random
    while True:
        drawn = write(draw(source))
        if max(len(words(drawn.english)), len(words(drawn.french))) <= LONGEST:
            return drawn


def pairs(seed: int) -> Iterator[Pair]:
    """Pair 0, 1, 2, ... of the stream `seed`, without end."""
    return (pair(seed, index) for index in count())
