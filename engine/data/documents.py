"""Documents of a corpus: those to train on and those held out, as they are before they are cut into tokens."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from engine.data.drawing import Part
from engine.data.seeds import seed_for
from engine.data.text import split
from engine.tokenizers import Tokenizer


@dataclass(frozen=True)
class Document:
    """Text, or several that belong together, as a sentence and its translation; `label` is what is known of it."""

    texts: tuple[str, ...]
    label: int = 0


Reading: TypeAlias = Callable[[Tokenizer, Document], Sequence[Sequence[int]]]  # the ids of each text of a document


def read_each(tokenizer: Tokenizer, document: Document) -> list[list[int]]:
    """Ids of each text as they are when it is typed."""
    return [tokenizer.ids(text) for text in document.texts]


def read_parts(tokenizer: Tokenizer, document: Document) -> list[list[int]]:
    """Ids of each text without the tokens that the tokenizer puts around one: parts of a row with its own marks."""
    return [tokenizer.ids(text, special=False) for text in document.texts]


@dataclass(frozen=True)
class Documents:
    """Documents to train on and those held out, each as a function that tells them from the first.

    `read` makes ids of a document. `special_tokens` are the tokenizer's; None leaves it its own. It knows all of
    `alphabet`, whatever it learns from. `template` says which tokens stand around a text, here and around whatever a
    person types: its kind's own, none (`bare`) or [CLS] and [SEP] (`bert`), which are then among `special_tokens`.
    `notes` are sentences about how the data was read.
    """

    train: Callable[[], Iterator[Document]]
    held_out: Callable[[], Iterator[Document]]
    special_tokens: tuple[str, ...] | None = None
    read: Reading = read_each
    template: Literal["own", "bare", "bert"] = "own"
    alphabet: str = ""
    notes: tuple[str, ...] = ()


def stream(write: Callable[[int, int], str], name: str, train: int, held_out: int, seed: int) -> Documents:
    """Generated texts: `write` gives that of a seed and an index. Those held out have a seed of their own."""
    ours, theirs = seed_for(seed, name), seed_for(seed, f"held-out {name}")
    return Documents(
        lambda: (Document((write(ours, index),)) for index in range(train)),
        lambda: (Document((write(theirs, index),)) for index in range(held_out)),
    )


def split_documents(texts: Callable[[Part, int], Iterator[str]], seed: int) -> Documents:
    """Texts that are told apart by their part."""
    return Documents(
        lambda: (Document((text,)) for text in texts("train", seed)),
        lambda: (Document((text,)) for text in texts("held_out", seed)),
    )


def cut(text: str, held_out: float) -> Documents:
    """Makes one document a part: a window may begin anywhere in the text, but none reaches over the cut."""
    first, last = split(text, held_out)
    return Documents(lambda: iter([Document((first,))]), lambda: iter([Document((last,))]))
