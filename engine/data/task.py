"""Kinds of data: the options that a recipe's table [data.<name>] has, and the examples they stand for.

A new one is a file of `engine.data.kinds` whose KIND is a frozen dataclass of one of these classes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar, Literal

from engine.data.documents import Documents
from engine.data.drawing import Part
from engine.data.tokenizer_recipe import TokenizerRecipe
from engine.tokenizers import tokenizer_kinds

EVERY = tuple(tokenizer_kinds())
EQUALS, BETWEEN = SEPARATORS = "=", "<sep>"  # between the texts of a pair; the second where "=" may be in them
Subject = Literal["Letters", "Arithmetic", "Languages", "Pictures", "Texts"]
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


@dataclass(frozen=True)
class DataKind(ABC):
    """Options of the table [data.<kind>]; `place` orders the kinds, `subject` is what the tasks are about that learn
    from it, and `tokenizers` are the kinds that suit it."""

    kind: ClassVar[str]
    place: ClassVar[int]
    subject: ClassVar[Subject] = "Texts"
    tokenizers: ClassVar[tuple[str, ...]] = EVERY
    pictures: ClassVar[bool] = False

    def check_tokenizer(self, tokenizer: TokenizerRecipe) -> None:
        """Raises ValueError for a tokenizer that does not suit it."""
        if tokenizer.kind not in self.tokenizers:
            wanted = " or ".join(f'"{kind}"' for kind in self.tokenizers)
            raise ValueError(f'data.tokenizer.kind must be {wanted} for {self.kind}, got "{tokenizer.kind}".')

    def check_context(self, context: int) -> None:  # noqa: B027
        """Raises ValueError where a row of so many tokens is too short for it."""


class RunningText(DataKind):
    """Texts that windows are cut from."""

    @abstractmethod
    def make_documents(self, seed: int) -> Documents:
        """Documents to train on and those held out. Raises ValueError, in a sentence, where they cannot be had."""


class PairTask(DataKind):
    """A text that becomes another. An encoder-decoder learns it, or a decoder that goes on behind a separator."""

    tokenizers: ClassVar[tuple[str, ...]] = ("char",)
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


class LabelTask(DataKind):
    """A text of which a class is asked, one of `labels`."""

    tokenizers: ClassVar[tuple[str, ...]] = ("char",)
    labels: ClassVar[tuple[str, ...]]

    @property
    def alphabet(self) -> str:
        return ""

    @abstractmethod
    def texts(self, part: Part, seed: int) -> Iterator[Labelled]:
        """All examples of a part, from the first; no text of one part is in the other."""


class TagTask(DataKind):
    """A text of which a class is asked for each word, one of `labels`."""

    labels: ClassVar[tuple[str, ...]]

    @abstractmethod
    def sentences(self, part: Part, seed: int) -> Iterator[Tagged]:
        """All examples of a part, from the first; no text of one part is in the other."""


class AnswerTask(DataKind):
    """A question and a text in which its answer stands."""

    @abstractmethod
    def answers(self, part: Part, seed: int) -> Iterator[Answered]:
        """All examples of a part, from the first; no question of one part is in the other."""
