"""Writing a checkpoint, in a published family's format where there is one for it."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import Any

from engine.checkpoints.checkpoint import Checkpoint
from engine.checkpoints.families import FAMILIES, NATIVE
from engine.checkpoints.family import Family
from engine.checkpoints.translate import inverse, translate
from engine.checkpoints.weights import write_weights
from engine.config import ModelConfig
from engine.model import Transformer

CONFIG = "loupe.config"  # the metadata key of a weights file that describes its own model


def save(checkpoint: Checkpoint, folder: Path) -> None:
    """Written to a folder beside `folder` first and moved when it is whole, config.json last."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    partial = Path(mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
    try:
        _write(checkpoint, partial)
        folder.mkdir(exist_ok=True)
        for file in sorted(partial.iterdir(), key=lambda file: file.name == "config.json"):
            os.replace(file, folder / file.name)
    finally:
        rmtree(partial)


def save_weights(model: Transformer, path: Path) -> None:
    """One self-describing file, under Loupe's own names: `load(path)` needs no config.json beside it."""
    write_weights(path, model.state_dict(), {CONFIG: json.dumps(model.config.to_dict())})


def family_for(config: ModelConfig) -> tuple[Family, dict[str, Any]]:
    """The first family that expresses `config` exactly, or Loupe's own, and the config.json it writes."""
    for family in FAMILIES.values():
        if family is NATIVE:
            continue
        try:
            return family, family.write_config(config)
        except ValueError:
            continue
    return NATIVE, NATIVE.write_config(config)


def _write(checkpoint: Checkpoint, folder: Path) -> None:
    model = checkpoint.model
    family, config = family_for(model.config)
    end = list(checkpoint.end_ids)
    ends = {"bos_token_id": None, "eos_token_id": end[0] if len(end) == 1 else end or None}
    state = model.state_dict()
    if family is NATIVE:
        save_weights(model, folder / "model.safetensors")
    else:
        tensors = dict(translate(state, inverse(family.bind(state)), model.config))
        write_weights(folder / "model.safetensors", tensors, {"format": "pt"})
    if checkpoint.tokenizer is not None:
        checkpoint.tokenizer.save(folder)
    _write_json(folder / "card.json", checkpoint.card)
    _write_json(folder / "config.json", {**config, **ends, "dtype": str(model.dtype).removeprefix("torch.")})


def _write_json(path: Path, data: Mapping[str, Any]) -> None:
    path.write_text(json.dumps(data, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
