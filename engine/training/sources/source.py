"""Where batches come from: each is a function of its step alone, so that any step can be drawn again."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import replace

import torch

from engine.checkpoints.checkpoint import Processor
from engine.data.drawing import Part
from engine.data.seeds import seed_for
from engine.model.config import ModelConfig
from engine.scoring.examples import Examples
from engine.tokenizers import Tokenizer
from engine.training.recipe.recipe import Recipe
from engine.training.sources.corpus import Corpus


class Source(ABC):
    """`end_ids` close a text where the tokenizer does not say; `labels` name the classes of a classifier. Of `count`
    rows `left_out` are too long for the context, and neither learned from nor measured on; both are 0 where texts are
    cut to it."""

    tokenizer: Tokenizer | None = None
    processor: Processor | None = None
    end_ids: tuple[int, ...] = ()
    labels: tuple[str, ...] = ()
    count: int = 0
    left_out: int = 0

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences for a person about the data."""
        corpus: Corpus | None = getattr(self, "corpus", None)
        return () if corpus is None else corpus.notes

    def __init__(self, recipe: Recipe) -> None:
        self.recipe = recipe

    @abstractmethod
    def draw(self, part: Part, seed: int) -> Examples:
        """Draws one batch; the same for the same seed."""

    def batch(self, step: int) -> Examples:
        """Batch that update `step` learns from."""
        return self.draw("train", seed_for(self.recipe.seed, "batch", step))

    def held_out(self, batches: int) -> Iterator[Examples]:
        """Batches that the model is measured on, always the same and never trained on."""
        for index in range(batches):
            yield self.draw("held_out", seed_for(self.recipe.data_seed, "held-out", index))

    def complete_config(self, config: ModelConfig) -> ModelConfig:
        """`config` with what only the data knows. Raises ValueError where the two do not go together.

        The table of a base may have more rows than its tokenizer has tokens, or fewer, as where tokens were added to
        the tokenizer alone; then no text may use one that has no row.
        """
        if self.tokenizer is None:
            return config
        if not self.recipe.base:
            return replace(config, vocab_size=self.tokenizer.vocab_size)
        corpus, rows = getattr(self, "corpus", None), count_rows(config, self.tokenizer)
        for tokens in () if corpus is None or self.tokenizer.vocab_size <= rows else (corpus.train, corpus.held_out):
            if tokens.ids.numel() and (id := int(tokens.ids.max())) >= rows:
                raise ValueError(
                    f"data must be texts of tokens that the base has embeddings of, ids 0 to {rows - 1:,}, and one has "
                    f"{self.tokenizer.decode([id])!r:.80}, id {id:,}, which only the tokenizer of {self.recipe.base} "
                    "knows; take it out of the texts, or give the base a row for it (resize_token_embeddings of "
                    "transformers)."
                )
        return replace(config, vocab_size=rows)


def count_rows(config: ModelConfig, tokenizer: Tokenizer) -> int:
    """Rows of a base's table of embeddings; as many as there are tokens where a [model] does not say."""
    return config.vocab_size if config.vocab_size > 1 else tokenizer.vocab_size


def chance(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)
