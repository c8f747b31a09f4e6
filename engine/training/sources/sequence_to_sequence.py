"""Pairs of texts for an encoder-decoder."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from torch import Tensor

from engine.data.documents import Document
from engine.model.config import ModelConfig
from engine.scoring.examples import Examples
from engine.tokenizers import Tokenizer
from engine.tokenizers.continuation import read_target
from engine.training.base.base import mark_id
from engine.training.examples.padding import Rows
from engine.training.examples.sequence_to_sequence import Marks, teacher_forced
from engine.training.recipe.recipe import Recipe
from engine.training.sources.corpus import Tokens
from engine.training.sources.pairs import TaughtPairs
from engine.training.sources.shelved_texts import END, PAD

START = "<s>"


class SequenceToSequence(TaughtPairs):
    def __init__(self, recipe: Recipe, folder: Path) -> None:
        super().__init__(recipe, folder)
        tokenizer, encoder = self.corpus.tokenizer, recipe.model.encoder
        start = encoder.start if recipe.base and encoder is not None else tokenizer.special_tokens[START]
        self.marks = Marks(start, mark_id(tokenizer, END) or 0, mark_id(tokenizer, PAD) or 0)

    def read(self, tokenizer: Tokenizer, document: Document) -> list[list[int]]:
        source, target = document.texts
        end = mark_id(tokenizer, END)
        return [tokenizer.ids(source), list(read_target(tokenizer, target, () if end is None else (end,)).ids)]

    def special_tokens(self) -> tuple[str, ...]:
        return PAD, START, END

    def lengths(self, tokens: Tokens) -> Tensor:
        return tokens.lengths.amax(1) + 1  # the target's start

    def laid_out(self, sources: Rows, targets: Rows) -> Examples:
        return teacher_forced(sources, targets, self.marks)

    def complete_config(self, config: ModelConfig) -> ModelConfig:
        config = super().complete_config(config)
        encoder = config.encoder
        return config if encoder is None else replace(config, encoder=replace(encoder, start=self.marks.start))
