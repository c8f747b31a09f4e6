"""Windows of a running text: what is generated, a file, the Python reference, or the texts of a table one by one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import ClassVar, Literal

import torch
from torch import Tensor

from engine.data.documents import Document
from engine.data.task import RunningText
from engine.scoring.examples import Examples
from engine.tokenizers import END, Tokenizer
from engine.training.examples.next_token import next_tokens
from engine.training.recipe.recipe import Recipe
from engine.training.sources.corpus import open_corpus
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
        if not isinstance(recipe.data.table, RunningText):
            raise ValueError(f"windows are cut from running text, and [data.{recipe.data.kind}] is none.")
        told = recipe.data.table.make_documents(recipe.data_seed)
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
