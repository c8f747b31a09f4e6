"""Pairs of passages, half of which follow each other."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from engine.data.bounds import at_least
from engine.data.options import DOCUMENTS, HELD_OUT, MIXED
from engine.data.published import check_named
from engine.data.task import DataKind


@dataclass(frozen=True)
class SentencePairs(DataKind):
    """Pairs of passages from the stories (`engine.data.sentences.pair`), half of which follow each other.

    `tales` and `sentences` are files of `engine.data.published`, and their pairs are mixed with these: `times` pairs of
    each document of the tales (`engine.data.sentences.following`), and sentences, each `times` times in other company,
    of which only hidden words are asked. `documents` may be 0 beside them.
    """

    documents: int = field(default=60_000, metadata=DOCUMENTS)
    held_out: int = field(default=1_000, metadata=HELD_OUT)
    tales: str = field(default="", metadata=MIXED)
    sentences: str = field(default="", metadata=MIXED)
    times: int = field(default=2, metadata=MIXED)

    kind: ClassVar[str] = "sentence_pairs"
    place: ClassVar[int] = 20
    tokenizers: ClassVar[tuple[str, ...]] = ("wordpiece",)

    def __post_init__(self) -> None:
        for name in ("documents", "held_out"):
            at_least(f"data.sentence_pairs.{name}", getattr(self, name), 0 if self.tales else 1)
        at_least("data.sentence_pairs.times", self.times, 1)
        check_named("data.sentence_pairs", tales=self.tales, sentences=self.sentences)


KIND = SentencePairs
