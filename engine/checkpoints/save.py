"""Writing a checkpoint, in a published family's format where there is one for it."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import Any

from engine.checkpoints.assemble import expected_shapes, without_memory
from engine.checkpoints.checkpoint import Checkpoint
from engine.checkpoints.families import FAMILIES, NATIVE
from engine.checkpoints.family import Family
from engine.checkpoints.translate import inverse, translate
from engine.checkpoints.weights import write_weights
from engine.model.config import ModelConfig
from engine.model.transformer import Transformer

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


def family_for(config: ModelConfig, first: str = "") -> tuple[Family, dict[str, Any]]:
    """The first family that expresses `config` exactly, or Loupe's own, and the config.json it writes.

    It also has to have a row for every tensor of such a model. Those called `first` are tried before all others.
    """
    published = [family for families in FAMILIES.values() for family in families if family is not NATIVE]
    for family in sorted(published, key=lambda family: family.name != first):
        try:
            theirs = family.write_config(config)
            expected_shapes(family, without_memory(config))
        except ValueError:
            continue
        return family, theirs
    return NATIVE, NATIVE.write_config(config)


def _write(checkpoint: Checkpoint, folder: Path) -> None:
    model = checkpoint.model
    family, config = family_for(model.config, checkpoint.family)
    state = model.state_dict()
    if family is NATIVE:
        save_weights(model, folder / "model.safetensors")
    else:
        tensors = dict(translate(state, inverse(family.bind(state)), model.config))
        write_weights(folder / "model.safetensors", tensors, {"format": "pt"})
    write_beside(checkpoint, folder, config)


def write_beside(checkpoint: Checkpoint, folder: Path, config: Mapping[str, Any]) -> None:
    """All files but the weights; `config` is that of the family in whose format they are."""
    for part in (checkpoint.tokenizer, checkpoint.processor):
        if part is not None:
            part.save(folder)
    named = {**named_classes(checkpoint), **precision(checkpoint.model)}
    _write_json(folder / "card.json", checkpoint.card)
    _write_json(folder / "config.json", {**ids(checkpoint), **config, **named})


def ids(checkpoint: Checkpoint) -> dict[str, Any]:
    """The tokens that transformers wants to know."""
    end = list(checkpoint.end_ids)
    pad = checkpoint.tokenizer.pad_id if checkpoint.tokenizer is not None else None
    return {"bos_token_id": None, "eos_token_id": end[0] if len(end) == 1 else end or None, "pad_token_id": pad}


def named_classes(checkpoint: Checkpoint) -> dict[str, Any]:
    classes = checkpoint.config.head.classes
    if not classes:
        return {}
    names = checkpoint.labels or [f"LABEL_{i}" for i in range(classes)]
    by_id = {str(i): name for i, name in enumerate(names)}
    return {"id2label": by_id, "label2id": {name: int(i) for i, name in by_id.items()}}


def precision(model: Transformer) -> dict[str, str]:
    return {"dtype": str(model.dtype).removeprefix("torch.")}


def _write_json(path: Path, data: Mapping[str, Any]) -> None:
    path.write_text(json.dumps(data, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
