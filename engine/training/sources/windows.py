"""Windows of a running text: stories, or a file."""

from __future__ import annotations

from pathlib import Path

import torch

from engine.data.stories import story
from engine.data.text import read_text, split
from engine.training.corpus import Document, Documents, open_corpus
from engine.training.objectives import Examples
from engine.training.objectives.next_token import next_tokens
from engine.training.recipe import Data, Recipe, Stories, Text
from engine.training.seeds import seed_for
from engine.training.sources.source import Part, Source, chance


class Windows(Source):
    """Where the corpus has many documents, half of the windows begin with one, as a person's prompt does."""

    def __init__(self, recipe: Recipe, folder: Path) -> None:
        super().__init__(recipe)
        self.corpus = open_corpus(documents(recipe.data, recipe.seed), recipe.data, recipe.seed, folder)
        self.tokenizer = self.corpus.tokenizer
        self.length = recipe.batch.context + 1
        for part, tokens in (("training", self.corpus.train), ("held-out", self.corpus.held_out)):
            if len(tokens.ids) < self.length:
                raise ValueError(
                    f"the {part} text must have at least batch.context + 1 = {self.length} tokens, "
                    f"got {len(tokens.ids)}; add text or shorten the context."
                )

    def draw(self, part: Part, seed: int) -> Examples:
        tokens = self.corpus.train if part == "train" else self.corpus.held_out
        draw, size, last = chance(seed), self.recipe.batch.size, len(tokens.ids) - self.length
        begin = torch.randint(last + 1, (size,), generator=draw)
        if len(tokens.starts) > 1:
            chosen = tokens.starts[torch.randint(len(tokens.starts), (size,), generator=draw), 0].clamp(max=last)
            begin = torch.where(torch.rand(size, generator=draw) < 0.5, chosen, begin)
        return next_tokens(tokens.ids[begin[:, None] + torch.arange(self.length)].long())


def documents(data: Data, seed: int) -> Documents:
    if data.stories is not None:
        return _stories(data.stories, seed)
    if data.text is not None:
        return _file(data.text)
    raise ValueError(f"windows are cut from [data.stories] or [data.text], got [data.{data.kind}].")


def _stories(recipe: Stories, seed: int) -> Documents:
    ours, theirs = seed_for(seed, "stories"), seed_for(seed, "held-out stories")
    return Documents(
        lambda: (Document((story(ours, index),)) for index in range(recipe.documents)),
        lambda: (Document((story(theirs, index),)) for index in range(recipe.held_out)),
        ended=True,
    )


def _file(recipe: Text) -> Documents:
    """One document each: a window may begin anywhere in the text, but none reaches over the cut."""
    try:
        train_text, held_text = split(read_text(recipe.path), recipe.held_out)
    except FileNotFoundError:
        raise ValueError(
            f"data.text.path must be a file, got {recipe.path}; there is none, correct the path."
        ) from None
    return Documents(lambda: iter([Document((train_text,))]), lambda: iter([Document((held_text,))]), ended=True)
