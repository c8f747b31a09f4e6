"""Real text for a language model, of the files of `engine.data.published`: tales, and sentences in others' company."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from operator import itemgetter
from typing import TypeVar

from engine.data.drawing import Part, lot
from engine.data.own_tasks import held_out
from engine.data.published import locate
from engine.data.text import PARAGRAPH, chunks, read_text

T = TypeVar("T")

TALE, TOGETHER = 900, 14  # characters of a document of a tale, sentences of one of sentences
SHARE = 0.05  # that is held out


@lru_cache(maxsize=2)
def tales(path: str) -> tuple[str, ...]:
    """Documents of whole paragraphs of one book, of TALE characters at most."""
    books = read_text(locate(path)).split(PARAGRAPH)
    found = (one for book in books for one in chunks(book.replace("\n", PARAGRAPH), TALE))
    return tuple(one.replace(PARAGRAPH, "\n") for one in found)


@lru_cache(maxsize=2)
def pairs(path: str) -> dict[str, tuple[str, ...]]:
    """The different English sentences of pairs, each with its translations."""
    found: dict[str, tuple[str, ...]] = {}
    for line in read_text(locate(path)).split("\n"):
        if line.strip():
            first, _, second = line.partition("\t")
            found[first] = (*found.get(first, ()), second.partition("\t")[0])
    return found


def english(path: str) -> tuple[str, ...]:
    return tuple(pairs(path))


def part_of(texts: Sequence[str], part: Part, seed: int) -> list[str]:
    """Texts of a part, shuffled. No text is in both, and they are those of [data.rows] of the same share and seed."""
    theirs = held_out(texts, SHARE, seed)
    return shuffle((one for one in dict.fromkeys(texts) if (one in theirs) == (part == "held_out")), seed)


def translations(path: str, part: Part, seed: int) -> list[tuple[str, tuple[str, ...]]]:
    """The English sentences of a part, mixed, each with its translations."""
    return [(text, pairs(path)[text]) for text in part_of(english(path), part, seed)] if path else []


def shuffle(texts: Iterable[T], seed: int, purpose: str = "") -> list[T]:
    """Shuffles texts, in the same order on every machine."""
    lots = ((lot(f"{purpose}{n}", seed), one) for n, one in enumerate(texts))
    return [one for _, one in sorted(lots, key=itemgetter(0))]


def documents(tales_path: str, sentences_path: str, times: int, part: Part, seed: int) -> list[str]:
    """Documents of the files that are named. Each sentence stands in that many of them, in other company, and in turns
    on a line of its own and in a row."""
    found = part_of(tales(tales_path), part, seed) if tales_path else []
    sentences = part_of(english(sentences_path), part, seed) if sentences_path else []
    for turn in range(times):
        some, between = shuffle(sentences, seed, f"{turn}:"), "\n "[turn % 2]
        found += (between.join(some[at : at + TOGETHER]) for at in range(0, len(some), TOGETHER))
    return found
