"""Generated children's stories."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from engine.data.bounds import at_least
from engine.data.documents import Documents, stream
from engine.data.long_stories import long_story
from engine.data.options import DOCUMENTS, HELD_OUT
from engine.data.stories import story
from engine.data.task import RunningText
from engine.model.option import Option


@dataclass(frozen=True)
class Stories(RunningText):
    """The generated stories of `engine.data.stories`, or of `engine.data.long_stories`; `held_out` of them come from
    another stream of the same seed."""

    documents: int = field(default=20_000, metadata=DOCUMENTS)
    held_out: int = field(default=500, metadata=HELD_OUT)
    long: bool = field(
        default=False, metadata=Option(help="Long stories, in which names come again hundreds of tokens later.")
    )

    kind: ClassVar[str] = "stories"
    place: ClassVar[int] = 0

    def __post_init__(self) -> None:
        at_least("data.stories.documents", self.documents, 1)
        at_least("data.stories.held_out", self.held_out, 1)

    def make_documents(self, seed: int) -> Documents:
        write, name = (long_story, "long stories") if self.long else (story, "stories")
        return stream(write, name, self.documents, self.held_out, seed)


KIND = Stories
