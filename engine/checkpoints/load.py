"""Opening a checkpoint."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from engine.checkpoints.assemble import assemble
from engine.checkpoints.checkpoint import Checkpoint
from engine.checkpoints.families import FAMILIES, NATIVE
from engine.checkpoints.family import Family
from engine.checkpoints.locate import Place, locate
from engine.checkpoints.report import Report
from engine.checkpoints.save import CONFIG
from engine.checkpoints.weights import Weights, open_weights, read_json
from engine.config import ModelConfig
from engine.tokenizers import Tokenizer, read_tokenizer


def load(name_or_path: str | Path, dtype: torch.dtype = torch.float32) -> Checkpoint:
    """A shipped name, a folder (a training run's too), or a weights file in one; half precision is widened to
    `dtype`.

    Raises FileNotFoundError where there is nothing of the kind, ValueError for what cannot be read as a whole
    model; a tokenizer that cannot be read is a note in the report.
    """
    place = locate(name_or_path)
    weights = open_weights(place.weights)
    family, config = describe(place, weights)
    model, report = assemble(family, config, weights, dtype)
    tokenizer, notes = tokenizer_of(place, config)
    card = place.find("card.json")
    return Checkpoint(
        model=model,
        tokenizer=tokenizer,
        card=read_json(card) if card else {},
        report=Report(report.rows, report.notes + notes),
        name=place.name,
        end_ids=end_ids(place, config),
    )


def describe(place: Place, weights: Weights) -> tuple[Family, ModelConfig]:
    """From the weights file where it describes itself, otherwise from config.json."""
    if CONFIG in weights.metadata:
        try:
            return NATIVE, ModelConfig.from_dict(json.loads(weights.metadata[CONFIG]))
        except json.JSONDecodeError as error:
            raise ValueError(f"{place.weights} must describe itself in JSON, and does not ({error}).") from None
    path = place.find("config.json")
    if path is None:
        raise FileNotFoundError(f"{place.weights.name} needs a config.json beside it, and {place.folders[0]} has none.")
    theirs = read_json(path)
    family = family_of(theirs)
    return family, family.read_config(theirs)


def family_of(theirs: Mapping[str, Any]) -> Family:
    """By `model_type`; files from before there was one name their architecture."""
    named, architectures = theirs.get("model_type"), theirs.get("architectures") or []
    for family in FAMILIES.values():
        if named == family.name or (named is None and family.architecture in architectures):
            return family
    raise ValueError(
        f"config.json's model_type must be one of {', '.join(FAMILIES)}, got {named!r}: no such family yet."
    )


def tokenizer_of(place: Place, config: ModelConfig) -> tuple[Tokenizer | None, tuple[str, ...]]:
    tokenizer = None
    for folder in place.folders:
        try:
            tokenizer = tokenizer or read_tokenizer(folder)
        except ValueError as error:
            return None, (f"No tokenizer: {error}",)
    if tokenizer is not None and tokenizer.vocab_size > config.vocab_size:
        sizes = f"The tokenizer has {tokenizer.vocab_size} tokens and the model {config.vocab_size}"
        return tokenizer, (f"{sizes}; the model cannot read those beyond.",)
    return tokenizer, ()


def end_ids(place: Place, config: ModelConfig) -> tuple[int, ...]:
    """`eos_token_id` of generation_config.json, else of config.json, where it lies in the vocabulary."""
    for name in ("generation_config.json", "config.json"):
        path = place.find(name)
        found = read_json(path).get("eos_token_id") if path else None
        ids = found if isinstance(found, list) else [found]
        inside = tuple(i for i in ids if type(i) is int and 0 <= i < config.vocab_size)
        if inside:
            return inside
    return ()
