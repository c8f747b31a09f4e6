"""Three tasks for one decoder: English, French and Python, each asked for in each form."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import chain, count, islice
from typing import ClassVar

from engine.data import mixture
from engine.data.bounds import at_least
from engine.data.drawing import Part
from engine.data.instructions import (
    CELLS,
    MADE_UP_SHARE,
    OTHERS,
    PLAIN,
    TRANSLATED,
    AskedPair,
    ask,
    check_options,
    draw_meaning,
    real_meanings,
)
from engine.data.options import DOCUMENTS, HELD_OUT, MIXED, MOST_WORDS
from engine.data.task import PUBLISHED, Pair, PairTask


@dataclass(frozen=True)
class Instructions(PairTask):
    """Each form of every meaning is asked for in each form, one after the other. A share `plain` of the sentences has
    neither capital nor full stop.

    No meaning that is held out is trained on, in any form.

    The share `made_up` of the names and numbers of commands, and of the masculine nouns and the names of people in
    sentences, is one that nobody knows; of the people of sentences that share have names. `sentences` is a file of
    pairs of `engine.data.published`; each sentence, with its first translation, is asked for in both languages, and
    once in another way. These are mixed with the others.
    """

    documents: int = field(default=270_000, metadata=DOCUMENTS)
    held_out: int = field(default=1_800, metadata=HELD_OUT)
    longest: int = field(default=10, metadata=MOST_WORDS)
    plain: float = field(default=0.5, metadata=PLAIN)
    made_up: float = field(default=0.0, metadata=MADE_UP_SHARE)
    sentences: str = field(default="", metadata=MIXED)

    kind: ClassVar[str] = "instructions"
    place: ClassVar[int] = 10
    tokenizers: ClassVar[tuple[str, ...]] = ("word", "bpe", "byte")
    separator: ClassVar[str] = ""
    grouped: ClassVar[str] = "instruction"

    def __post_init__(self) -> None:
        at_least("data.instructions.documents", self.documents, 1)
        at_least("data.instructions.held_out", self.held_out, 1)
        check_options("data.instructions", self)

    def pairs(self, part: Part, seed: int) -> Iterator[Pair]:
        meanings = (draw_meaning(self, part, seed, index) for index in count())
        asked = (ask(meaning, *cell) for meaning in meanings for cell in CELLS)
        told = islice(asked, self.documents if part == "train" else self.held_out)
        if not self.sentences:
            return told
        real = (
            replace(ask(meaning, *cell), published=True)
            for index, meaning in enumerate(real_meanings(self, part, seed))
            for cell in (*TRANSLATED, OTHERS[index % len(OTHERS)])
        )
        return iter(mixture.shuffle(chain(told, real), seed))

    def group(self, pair: Pair) -> str:
        assert isinstance(pair, AskedPair)
        return f"{pair.form} {pair.source.rpartition(' ')[2]}{PUBLISHED * pair.published}"


KIND = Instructions
