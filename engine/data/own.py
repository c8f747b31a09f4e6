"""A person's own data in a recipe: which columns are what, and what is held out.

`[data.rows]` reads a file (engine.data.table), `[data.hub]` a data set by its hub name. What a model can be asked
follows from the columns that are named, by `FORMS`: each objective says which of these it learns from.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field
from typing import Literal

from engine.data.bounds import a_share
from engine.data.options import HELD_OUT
from engine.data.table import Table
from engine.data.task import RunningText
from engine.model.option import Option

Form = Literal["text", "labelled", "pairs", "tagged", "answers", "conversations"]
FORMS: dict[tuple[str, ...], Form] = {
    ("text", "pair", "label"): "labelled",
    ("question", "context", "answer", "start"): "answers",
    ("text",): "text",
    ("text", "label"): "labelled",
    ("source", "target"): "pairs",
    ("tokens", "tags"): "tagged",
    ("messages",): "conversations",
}
NAMED = (
    "text", "pair", "label", "source", "target", "tokens", "tags", "question", "context", "answer", "start",
    "messages",
)  # fmt: skip

HELD_OUT_SHARE = Option(help=HELD_OUT["help"], when=lambda said, _: not said.get("held_out_path"))


@dataclass(frozen=True, kw_only=True)
class Columns(RunningText):
    """The names of the columns that are learned from: `text`, `text` and `label`, `source` and `target`, or `tokens`
    and `tags` (a tag for each token; both are lists or have spaces between words). With `pair`, a second text, the
    label is that of both; an `answer` to the `question` begins at the character `start`, from 0, of the `context`;
    `messages` are lists of role and content. The share `held_out` of the different texts is measured on and never
    learned from; the seed of the recipe says which. Where texts are short, two sources in a row are a longer one, and
    their targets its target: `joined` times as many as there are pairs are learned from beside these.
    """

    text: str = field(default="", metadata=Option(help="The column of the texts."))
    label: str = field(default="", metadata=Option(help="The column of their classes."))
    source: str = field(default="", metadata=Option(help="The column of what is read."))
    target: str = field(default="", metadata=Option(help="The column of what is to be written."))
    tokens: str = field(
        default="", metadata=Option(help="The column of the words, a list or with spaces between them.")
    )
    tags: str = field(default="", metadata=Option(help="The column of a tag for each word."))
    pair: str = field(default="", metadata=Option(help="The column of second texts, whose class is that of both."))
    question: str = field(default="", metadata=Option(help="The column of the questions."))
    context: str = field(default="", metadata=Option(help="The column of the texts in which the answers stand."))
    answer: str = field(default="", metadata=Option(help="The column of the answers."))
    start: str = field(
        default="", metadata=Option(help="The column of the character at which an answer begins, from 0.")
    )
    messages: str = field(
        default="", metadata=Option(help="The column of conversations, lists of messages with role and content.")
    )
    held_out: float = field(default=0.1, metadata=HELD_OUT_SHARE)
    joined: float = field(
        default=0.0,
        metadata=Option(help="How many longer examples are made of two in a row, as a share of the pairs."),
    )

    def __post_init__(self) -> None:
        a_share(f"data.{self.kind}.held_out", self.held_out)
        if not 0 <= self.joined <= 1:
            raise ValueError(f"data.{self.kind}.joined must be a share in [0, 1], got {self.joined}.")
        if self.names not in FORMS:
            got = " and ".join(self.names) or "none"
            raise ValueError(
                f"data.{self.kind}.text must name the column of the texts, alone or with label, or source and target, "
                "or tokens and tags, or text, pair and label, or question, context, answer and start, or "
                "messages, got "
                f"{got}."
            )

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(name for name in NAMED if getattr(self, name))

    @property
    def form(self) -> Form:
        return FORMS[self.names]

    @property
    def two_texts(self) -> bool:
        """True where a model reads two texts together and should tell them apart."""
        return bool(self.pair or self.question)

    @abstractmethod
    def table(self) -> Table:
        """Raises ValueError, in a sentence, where it cannot be had."""
