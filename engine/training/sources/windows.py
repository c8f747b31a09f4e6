"""Windows of a running text: what is generated, a file, the Python reference, or the texts of a table one by one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import ClassVar, Literal

import torch
from torch import Tensor

from engine.data import everyday, mixture
from engine.data.instructions import Bilingual
from engine.data.long_stories import long_story
from engine.data.own import Columns
from engine.data.own_tasks import OwnTexts
from engine.data.published import locate
from engine.data.seeds import seed_for
from engine.data.stories import story
from engine.data.text import python_reference, read_encoded, split
from engine.scoring.examples import Examples
from engine.tokenizers import END, Tokenizer
from engine.training.examples.next_token import next_tokens
from engine.training.recipe.data_recipe import Data, Everyday, Stories, Text
from engine.training.recipe.recipe import Recipe
from engine.training.sources.corpus import Document, Documents, open_corpus
from engine.training.sources.source import Part, Source, chance


class Windows(Source):
    """Source of windows of a corpus. Where the corpus has many documents, half of the windows begin with one, as a
    person's prompt does.

    `more` is how many tokens a window has beyond the context.
    """

    special_tokens: ClassVar[tuple[str, ...]] = (END,)
    template: ClassVar[Literal["bare", "bert"]] = "bare"
    more: int = 1

    def __init__(self, recipe: Recipe, folder: Path) -> None:
        super().__init__(recipe)
        told = documents(recipe.data, recipe.data_seed)
        told = replace(told, special_tokens=self.special_tokens, template=self.template, read=self.read)
        self.corpus = open_corpus(told, recipe.data, recipe.data_seed, folder, recipe.base)
        self.tokenizer = self.corpus.tokenizer
        self.length = recipe.batch.context + self.more
        for part, tokens in (("training", self.corpus.train), ("held-out", self.corpus.held_out)):
            if len(tokens.ids) < self.length:
                count = f"batch.context {'-' if self.more < 0 else '+'} {abs(self.more)} = {self.length}"
                raise ValueError(
                    f"the {part} text must have at least {count} tokens, "
                    f"got {len(tokens.ids)}; add text or shorten the context."
                )

    @staticmethod
    def read(tokenizer: Tokenizer, document: Document, marked: bool = True) -> list[list[int]]:
        """Ids of each text as they are when it is typed (`marked`: with the tokens that stand around it), and its end
        token after it."""
        end = [] if tokenizer.end_id is None else [tokenizer.end_id]
        texts = (tokenizer.ids(text, special=marked) for text in document.texts)
        return [ids if end and ids[-1:] == end else [*ids, *end] for ids in texts]

    def draw(self, part: Part, seed: int) -> Examples:
        return next_tokens(self.windows(part, chance(seed)))

    def windows(self, part: Part, draw: torch.Generator) -> Tensor:
        """batch pos"""
        tokens = self.corpus.train if part == "train" else self.corpus.held_out
        size, last = self.recipe.batch.size, len(tokens.ids) - self.length
        begin = torch.randint(last + 1, (size,), generator=draw)
        if len(tokens.starts) > 1:
            chosen = tokens.starts[torch.randint(len(tokens.starts), (size,), generator=draw), 0].clamp(max=last)
            begin = torch.where(torch.rand(size, generator=draw) < 0.5, chosen, begin)
        return tokens.ids[begin[:, None] + torch.arange(self.length)].long()


def documents(data: Data, seed: int) -> Documents:
    if data.stories is not None:
        if data.stories.long:
            return _streams(long_story, "long stories", data.stories, seed)
        return _streams(story, "stories", data.stories, seed)
    if data.everyday is not None:
        style = data.everyday.style
        write = everyday.document if style == "plain" else partial(everyday.styled_document, style=style)
        told = _streams(write, "everyday", data.everyday, seed)
        return _mixed(told, data.everyday, seed) if data.everyday.tales or data.everyday.sentences else told
    if data.text is not None:
        return _file(data.text)
    if data.python_reference is not None:
        return _halves(*split(python_reference(), data.python_reference.held_out))
    if data.bilingual is not None:
        return _bilingual(data.bilingual, seed)
    if isinstance(data.table, Columns):
        return _rows(data.table, seed)
    raise ValueError(f"windows are cut from running text, and [data.{data.kind}] is none.")


def _streams(write: Callable[[int, int], str], name: str, recipe: Stories | Everyday, seed: int) -> Documents:
    """Generated texts, held out by a seed of their own."""
    ours, theirs = seed_for(seed, name), seed_for(seed, f"held-out {name}")
    return Documents(
        lambda: (Document((write(ours, index),)) for index in range(recipe.documents)),
        lambda: (Document((write(theirs, index),)) for index in range(recipe.held_out)),
    )


def _mixed(told: Documents, recipe: Everyday, seed: int) -> Documents:
    """Generated texts among real ones."""

    def texts(part: Part, ours: Iterator[Document]) -> Iterator[Document]:
        theirs = mixture.documents(recipe.tales, recipe.sentences, recipe.times, part, seed)
        whole = mixture.mixed([*(one.texts[0] for one in ours), *theirs], seed)
        return (Document((text,)) for text in whole)

    return Documents(lambda: texts("train", told.train()), lambda: texts("held_out", told.held_out()))


def _bilingual(recipe: Bilingual, seed: int) -> Documents:
    return Documents(
        lambda: (Document((text,)) for text in recipe.texts("train", seed)),
        lambda: (Document((text,)) for text in recipe.texts("held_out", seed)),
        alphabet=" ",  # that stands around a special token, and is none between two words
    )


def _rows(options: Columns, seed: int) -> Documents:
    own = OwnTexts(options, options.table())
    if len(set(own.all)) == 1 and not own.table.held_out:
        return _halves(*split(own.all[0], options.held_out))
    return Documents(
        lambda: (Document((text,)) for text in own.texts("train", seed)),
        lambda: (Document((text,)) for text in own.texts("held_out", seed)),
    )


def _file(recipe: Text) -> Documents:
    try:
        text, encoding = read_encoded(locate(recipe.path))
        note = "" if encoding.startswith("UTF-") else f"{Path(recipe.path).name} was read as {encoding}."
        return replace(_halves(*split(text, recipe.held_out)), notes=(note,) if note else ())
    except FileNotFoundError:
        raise ValueError(
            f"data.text.path must be a file, and there is no {Path(recipe.path).name} where it says; bring that file "
            "back, or correct the path."
        ) from None


def _halves(train_text: str, held_text: str) -> Documents:
    """Cuts one document each: a window may begin anywhere in the text, but none reaches over the cut."""
    return Documents(lambda: iter([Document((train_text,))]), lambda: iter([Document((held_text,))]))
