"""English to French, as a task."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import count, islice
from typing import ClassVar

from engine.data.bounds import at_least
from engine.data.drawing import Part
from engine.data.options import DOCUMENTS, HELD_OUT
from engine.data.seeds import seed_for
from engine.data.task import Pair, PairTask, Subject
from engine.data.translation import pair as draw_pair
from engine.data.translation.pair import Pair as Sentences


@dataclass(frozen=True)
class Translation(PairTask):
    """The generated pairs of `engine.data.translation`; the `held_out` ones are none of those trained on."""

    documents: int = field(default=60_000, metadata=DOCUMENTS)
    held_out: int = field(default=2_000, metadata=HELD_OUT)

    kind: ClassVar[str] = "translation"
    place: ClassVar[int] = 8
    subject: ClassVar[Subject] = "Languages"
    tokenizers: ClassVar[tuple[str, ...]] = ("word",)
    grouped: ClassVar[str] = "words"

    def __post_init__(self) -> None:
        at_least("data.translation.documents", self.documents, 1)
        at_least("data.translation.held_out", self.held_out, 1)

    def pairs(self, part: Part, seed: int) -> Iterator[Pair]:
        return (Pair(one.english, one.french) for one in self.sentences(part, seed))

    def sentences(self, part: Part, seed: int) -> Iterator[Sentences]:
        """The same with what is known about their words."""
        if part == "train":
            ours = seed_for(seed, "translation")
            return (draw_pair(ours, index) for index in range(self.documents))
        theirs, seen = seed_for(seed, "held-out translation"), training_sentences(self, seed)
        drawn = (draw_pair(theirs, index) for index in count())
        return islice((one for one in drawn if one.english not in seen), self.held_out)

    def group(self, pair: Pair) -> int:
        return len(pair.source.split())


@lru_cache(maxsize=1)
def training_sentences(task: Translation, seed: int) -> frozenset[str]:
    return frozenset(one.english for one in task.sentences("train", seed))


KIND = Translation
