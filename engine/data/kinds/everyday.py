"""Generated everyday English, mixed with published texts where they are named."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import ClassVar, Literal

from engine.data import mixture
from engine.data.bounds import at_least
from engine.data.documents import Document, Documents, stream
from engine.data.drawing import Part
from engine.data.everyday import document, styled_document
from engine.data.options import DOCUMENTS, HELD_OUT, MIXED
from engine.data.published import check_named
from engine.data.task import RunningText
from engine.model.option import Option


@dataclass(frozen=True)
class Everyday(RunningText):
    """Everyday English of `engine.data.everyday`; `held_out` documents come from another stream of the same seed.

    `style` is another way of writing them, to be learned by a model that writes the plain one. `tales` and `sentences`
    are files of `engine.data.published`: what `engine.data.mixture` makes of them is mixed with it, each
    sentence `times` times in other company.
    """

    documents: int = field(default=60_000, metadata=DOCUMENTS)
    held_out: int = field(default=1_000, metadata=HELD_OUT)
    style: Literal["plain", "pirate", "old", "cheerful"] = field(
        default="plain",
        metadata=Option(help="The way of writing; another one is learned by a model that writes the plain one."),
    )
    tales: str = field(default="", metadata=MIXED)
    sentences: str = field(default="", metadata=MIXED)
    times: int = field(default=2, metadata=MIXED)

    kind: ClassVar[str] = "everyday"
    place: ClassVar[int] = 22

    def __post_init__(self) -> None:
        at_least("data.everyday.documents", self.documents, 1)
        at_least("data.everyday.held_out", self.held_out, 1)
        at_least("data.everyday.times", self.times, 1)
        check_named("data.everyday", tales=self.tales, sentences=self.sentences)

    def make_documents(self, seed: int) -> Documents:
        write = document if self.style == "plain" else partial(styled_document, style=self.style)
        ours = stream(write, self.kind, self.documents, self.held_out, seed)
        if not self.tales and not self.sentences:
            return ours
        return Documents(
            lambda: self.mix("train", ours.train(), seed), lambda: self.mix("held_out", ours.held_out(), seed)
        )

    def mix(self, part: Part, ours: Iterator[Document], seed: int) -> Iterator[Document]:
        """Generated documents among published ones."""
        theirs = mixture.documents(self.tales, self.sentences, self.times, part, seed)
        whole = mixture.shuffle([*(one.texts[0] for one in ours), *theirs], seed)
        return (Document((text,)) for text in whole)


KIND = Everyday
