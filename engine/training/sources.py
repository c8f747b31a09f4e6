"""Where batches come from: each is a function of its step alone, so that any step can be drawn again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

import numpy
import torch

from engine.data import repeats
from engine.tokenizers import Tokenizer, train
from engine.training.corpus import Tokens, open_corpus
from engine.training.objective import Examples, next_tokens
from engine.training.recipe import Recipe, Repeats
from engine.training.seeds import seed_for


class Source(Protocol):
    tokenizer: Tokenizer

    def batch(self, step: int) -> Examples:
        """What update `step` learns from."""

    def held_out(self, batches: int) -> Iterator[Examples]:
        """What the model is measured on, always the same and never trained on."""


def open_source(recipe: Recipe, folder: Path) -> Source:
    """`folder`, the run directory, gets the tokenizer, and keeps what is slow to make again."""
    return RepeatedSequences(recipe, folder) if recipe.data.repeats is not None else Windows(recipe, folder)


def generator(recipe: Recipe, *purpose: str | int) -> torch.Generator:
    return torch.Generator().manual_seed(seed_for(recipe.seed, *purpose))


class Windows:
    """Windows of a corpus. Where it has many documents, half of them begin with one, as a person's prompt does."""

    def __init__(self, recipe: Recipe, folder: Path) -> None:
        self.recipe = recipe
        self.corpus = open_corpus(recipe.data, recipe.seed, folder)
        self.tokenizer: Tokenizer = self.corpus.tokenizer
        self.length = recipe.batch.context + 1
        for part, tokens in (("training", self.corpus.train), ("held-out", self.corpus.held_out)):
            if len(tokens.ids) < self.length:
                raise ValueError(
                    f"the {part} text must have at least batch.context + 1 = {self.length} tokens, "
                    f"got {len(tokens.ids)}; add text or shorten the context."
                )

    def batch(self, step: int) -> Examples:
        return self._windows(self.corpus.train, generator(self.recipe, "batch", step))

    def held_out(self, batches: int) -> Iterator[Examples]:
        for index in range(batches):
            yield self._windows(self.corpus.held_out, generator(self.recipe, "held-out", index))

    def _windows(self, tokens: Tokens, chance: torch.Generator) -> Examples:
        size, last = self.recipe.batch.size, len(tokens.ids) - self.length
        begin = torch.randint(last + 1, (size,), generator=chance)
        if len(tokens.starts) > 1:
            chosen = tokens.starts[torch.randint(len(tokens.starts), (size,), generator=chance)].clamp(max=last)
            begin = torch.where(torch.rand(size, generator=chance) < 0.5, chosen, begin)
        return next_tokens(tokens.ids[begin[:, None] + torch.arange(self.length)].long())


class RepeatedSequences:
    """The induction task of `engine.data.repeats`, on symbols that can be typed."""

    def __init__(self, recipe: Recipe, folder: Path) -> None:
        self.recipe = recipe
        self.repeats = _repeats(recipe)
        self.tokenizer: Tokenizer = train("char", [self.repeats.symbols])
        self.tokenizer.save(folder)
        self.symbols = torch.tensor(self.tokenizer.encode(self.repeats.symbols, special=False).ids)

    def batch(self, step: int) -> Examples:
        return self._draw("batch", step)

    def held_out(self, batches: int) -> Iterator[Examples]:
        for index in range(batches):
            yield self._draw("held-out", index)

    def _draw(self, *purpose: str | int) -> Examples:
        chance = numpy.random.default_rng(seed_for(self.recipe.seed, *purpose))
        size, length = self.recipe.batch.size, self.recipe.batch.context + 1
        shortest, longest = self.repeats.shortest, self.repeats.longest
        drawn, predictable = repeats.batch(chance, size, length, len(self.symbols), shortest, longest)
        asked = torch.from_numpy(predictable[:, :-1]) if self.recipe.objective.kind == "repeated" else None
        return next_tokens(self.symbols[torch.from_numpy(drawn)], asked)


def _repeats(recipe: Recipe) -> Repeats:
    if recipe.data.repeats is None:
        raise ValueError("repeated sequences need [data.repeats] in the recipe; add it.")
    return recipe.data.repeats
