"""English, French and Python in turn, as running text."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import ClassVar

from engine.data import mixture
from engine.data.bounds import at_least
from engine.data.documents import Documents, split_documents
from engine.data.drawing import Part
from engine.data.instructions import MADE_UP_SHARE, PLAIN, check_options, draw_meaning, real_meanings
from engine.data.options import DOCUMENTS, HELD_OUT, MIXED, MOST_WORDS
from engine.data.task import RunningText


@dataclass(frozen=True)
class Bilingual(RunningText):
    """English, French and Python in turn, none of which says what another does: what a model learns all three from
    before it is taught to translate. The other options as in `Instructions`, and what is held out there by the same
    seed is here, too; of the sentences every second one is French, and none is Python."""

    documents: int = field(default=60_000, metadata=DOCUMENTS)
    held_out: int = field(default=1_000, metadata=HELD_OUT)
    longest: int = field(default=10, metadata=MOST_WORDS)
    plain: float = field(default=0.5, metadata=PLAIN)
    made_up: float = field(default=0.0, metadata=MADE_UP_SHARE)
    sentences: str = field(default="", metadata=MIXED)

    kind: ClassVar[str] = "bilingual"
    place: ClassVar[int] = 9

    def __post_init__(self) -> None:
        at_least("data.bilingual.documents", self.documents, 1)
        at_least("data.bilingual.held_out", self.held_out, 1)
        check_options("data.bilingual", self)

    def texts(self, part: Part, seed: int) -> Iterator[str]:
        count = self.documents if part == "train" else self.held_out
        told = (draw_meaning(self, part, seed, index)[index % 3] for index in range(count))
        if not self.sentences:
            return told
        real = (meaning[index % 2] for index, meaning in enumerate(real_meanings(self, part, seed)))
        return iter(mixture.shuffle(chain(told, real), seed))

    def make_documents(self, seed: int) -> Documents:
        """A space stands around a special token, and is none between two words."""
        return replace(split_documents(self.texts, seed), alphabet=" ")


KIND = Bilingual
