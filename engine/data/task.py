"""What a task on sequences is: the options that a recipe's table [data.<name>] has, and the examples they stand for.

A new task is one file with a frozen dataclass of one of these kinds, and its row in `Data` of
`engine.training.recipe.data_recipe`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar

from engine.data.drawing import Part

EVERY = "char", "word", "byte", "bpe", "bpe-characters", "wordpiece", "unigram"  # kinds of tokenizers
EQUALS, BETWEEN = SEPARATORS = "=", "<sep>"  # between the texts of a pair; the second where "=" may be in them
PUBLISHED = ", published"  # behind the name of a group


@dataclass(frozen=True)
class Pair:
    """`published`: others have written it, see `engine.data.published`."""

    source: str
    target: str
    published: bool = field(default=False, kw_only=True)


@dataclass(frozen=True)
class Labelled:
    """A text and the number of its class; `pair` is the second text where a class is asked of two."""

    text: str
    label: int
    pair: str = ""


@dataclass(frozen=True)
class Tagged:
    """A sentence as its words, without spaces in them, and a tag for each."""

    words: tuple[str, ...]
    tags: tuple[str, ...]

    @property
    def text(self) -> str:
        return " ".join(self.words)


@dataclass(frozen=True)
class Answered:
    """A question whose answer stands in the `context`, from its character `start` on, counted from 0."""

    question: str
    context: str
    answer: str
    start: int


class PairTask(ABC):
    """A text that becomes another. An encoder-decoder learns it, or a decoder that goes on behind a separator."""

    tokenizers: ClassVar[tuple[str, ...]] = ("char",)  # the kinds that suit it
    separator: ClassVar[str] = EQUALS  # one token, whatever the tokenizer; one of SEPARATORS, or "": each source's last
    ended: ClassVar[bool] = True  # False where all targets have one length, so that a decoder is not asked for the end
    grouped: ClassVar[str] = ""  # what `group` says of an example, such as "length"

    @property
    def alphabet(self) -> str:
        """Characters, or words where those are tokens, that the tokenizer must know, whether or not the examples it
        learns from have them."""
        return ""

    @abstractmethod
    def pairs(self, part: Part, seed: int) -> Iterator[Pair]:
        """All examples of a part, from the first; no source of one part is in the other."""

    def group(self, pair: Pair) -> int | str:
        """Difficulty of an example in the unit that `grouped` names, or its kind."""
        return len(pair.source)

    def origins(self, pair: Pair) -> tuple[int, ...]:
        """Finds for each character of the target which one of the source it is, counted from 0; () where that is not
        so."""
        return ()


class LabelTask(ABC):
    """A text of which a class is asked, one of `labels`."""

    tokenizers: ClassVar[tuple[str, ...]] = ("char",)
    labels: ClassVar[tuple[str, ...]]

    @property
    def alphabet(self) -> str:
        return ""

    @abstractmethod
    def texts(self, part: Part, seed: int) -> Iterator[Labelled]:
        """All examples of a part, from the first; no text of one part is in the other."""


class TagTask(ABC):
    """A text of which a class is asked for each word, one of `labels`."""

    tokenizers: ClassVar[tuple[str, ...]] = EVERY
    labels: ClassVar[tuple[str, ...]]

    @abstractmethod
    def sentences(self, part: Part, seed: int) -> Iterator[Tagged]:
        """All examples of a part, from the first; no text of one part is in the other."""


class AnswerTask(ABC):
    """A question and a text in which its answer stands."""

    tokenizers: ClassVar[tuple[str, ...]] = EVERY

    @abstractmethod
    def answers(self, part: Part, seed: int) -> Iterator[Answered]:
        """All examples of a part, from the first; no question of one part is in the other."""
