"""Prompts of one table each, of which every answer is asked."""

from __future__ import annotations

from pathlib import Path

import torch

from engine.data.kinds.in_context import BETWEEN, line, rows, signs
from engine.data.seeds import seed_for
from engine.scoring.examples import Examples
from engine.tokenizers import train
from engine.training.examples.next_token import next_tokens
from engine.training.recipe.recipe import Recipe
from engine.training.sources.source import Part, Source


class Prompts(Source):
    """Prompts of as many rows of a table as the context holds, the last one cut. In each row what comes behind the
    colon is asked, its line break included: the first answer can only be guessed, and each further one has one more row
    above it.
    """

    def __init__(self, recipe: Recipe, folder: Path) -> None:
        super().__init__(recipe)
        self.tokenizer = train("char", [signs()])
        self.tokenizer.save(folder)
        ids = self.tokenizer.encode(signs(), special=False).ids
        self.ids = dict(zip(signs(), ids, strict=True))

    def draw(self, part: Part, seed: int) -> Examples:
        size, length = self.recipe.batch.size, self.recipe.batch.context + 1
        drawn = [self.prompt(part, seed_for(seed, row), length) for row in range(size)]
        ids = torch.tensor([ids for ids, _ in drawn])
        asked = torch.tensor([asked for _, asked in drawn])
        return next_tokens(ids, asked[:, 1:])

    def prompt(self, part: Part, seed: int, length: int) -> tuple[list[int], list[bool]]:
        """The ids of a prompt, and which of them belong to an answer."""
        ids: list[int] = []
        asked: list[bool] = []
        for word, answer in rows(part, seed):
            text = line(word, answer)
            ids += map(self.ids.__getitem__, text)
            read = len(word) + len(BETWEEN.rstrip())
            asked += [place >= read for place in range(len(text))]
            if len(ids) >= length:
                break
        return ids[:length], asked[:length]
