"""Repeated random symbols."""

from __future__ import annotations

from pathlib import Path

import numpy
import torch

from engine.data import repeats
from engine.data.kinds.repeats import Repeats
from engine.scoring.examples import Examples
from engine.tokenizers import train
from engine.training.examples.next_token import next_tokens
from engine.training.recipe.recipe import Recipe
from engine.training.sources.source import Part, Source


class RepeatedSequences(Source):
    """The induction task of `engine.data.repeats`, on symbols that can be typed."""

    asks_all = True  # or only what has stood there before

    def __init__(self, recipe: Recipe, folder: Path) -> None:
        super().__init__(recipe)
        self.repeats = recipe.data.expect(Repeats)
        self.tokenizer = train("char", [self.repeats.symbols])
        self.tokenizer.save(folder)
        self.symbols = torch.tensor(self.tokenizer.encode(self.repeats.symbols, special=False).ids)

    def draw(self, part: Part, seed: int) -> Examples:
        size, length = self.recipe.batch.size, self.recipe.batch.context + 1
        shortest, longest = self.repeats.shortest, self.repeats.longest
        generator = numpy.random.default_rng(seed)
        drawn, predictable = repeats.batch(generator, size, length, len(self.symbols), shortest, longest)
        asked = None if self.asks_all else torch.from_numpy(predictable[:, :-1])
        return next_tokens(self.symbols[torch.from_numpy(drawn)], asked)
