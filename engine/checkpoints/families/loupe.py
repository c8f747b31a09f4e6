"""Loupe's own format, for what no published family can express: its config and its names, as they are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from engine.checkpoints.family import Family, Row
from engine.model.config import ModelConfig


class Native(Family):
    def read_config(self, theirs: Mapping[str, Any]) -> ModelConfig:
        if "config" not in theirs:
            raise ValueError("a config.json of model_type 'loupe' must have a table 'config'; it has none.")
        return ModelConfig.from_dict(theirs["config"])

    def write_config(self, config: ModelConfig) -> dict[str, Any]:
        return {"model_type": self.name, "config": config.to_dict()}

    def bind(self, ours: Iterable[str]) -> list[Row]:
        return [Row((name,), (name,)) for name in ours]


FAMILIES = (Native(name="loupe", tied={"head.weight": "embed.tokens.weight"}),)
