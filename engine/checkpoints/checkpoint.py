"""A model with everything that belongs to it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from engine.checkpoints.report import Report
from engine.config import ModelConfig
from engine.model import Transformer
from engine.tokenizers import Tokenizer


@dataclass(frozen=True)
class Checkpoint:
    """`card` is what its makers say about it (card.json); `end_ids` are the tokens that end a text.

    `end_ids` left empty are the tokenizer's.
    """

    model: Transformer
    tokenizer: Tokenizer | None = None
    card: Mapping[str, Any] = field(default_factory=dict)
    report: Report = field(default_factory=Report)
    name: str = ""
    end_ids: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        end = self.tokenizer.end_id if self.tokenizer is not None else None
        if not self.end_ids and end is not None:
            object.__setattr__(self, "end_ids", (end,))

    @property
    def config(self) -> ModelConfig:
        return self.model.config

    def save(self, folder: str | Path) -> None:
        """config.json, model.safetensors, card.json and the tokenizer's files.

        In the format of the first family that can express the model exactly, so that transformers reads it
        where it has such a model; otherwise in Loupe's own.
        """
        from engine.checkpoints.save import save

        save(self, Path(folder))
