"""Opening a checkpoint."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from engine.checkpoints.assemble import assemble
from engine.checkpoints.checkpoint import Checkpoint, Processor
from engine.checkpoints.families import FAMILIES, NATIVE
from engine.checkpoints.family import Family
from engine.checkpoints.llama2c import is_llama2c, read_llama2c, tokenizer_beside
from engine.checkpoints.locate import Place, locate
from engine.checkpoints.nanogpt import read_nanogpt
from engine.checkpoints.report import Report
from engine.checkpoints.save import CONFIG
from engine.checkpoints.weights import Weights, open_weights, read_json
from engine.config import ModelConfig
from engine.limits import MAX_DOWNLOAD
from engine.processors import read_processor
from engine.tokenizers import Tokenizer, read_tokenizer

START = "decoder_start_token_id"


def load(name_or_path: str | Path, dtype: torch.dtype = torch.float32) -> Checkpoint:
    """A shipped name, a folder (a training run's too), a weights file in one (also llama2.c's `.bin` and nanoGPT's or
    minGPT's `.pt`), or `hub:org/name[@revision]`; half precision is widened to `dtype`.

    Raises FileNotFoundError where there is nothing of the kind, ValueError for what cannot be read as a whole
    model, PermissionError and ConnectionError where a hub does not give it; a tokenizer or a processor that cannot be
    read is a note in the report.
    """
    place = place_of(name_or_path)
    family, config, weights, assumed = open_model(place)
    model, report = assemble(family, config, weights, dtype)
    tokenizer, notes = tokenizer_of(place, config)
    processor, more = processor_of(place)
    card = place.find("card.json")
    return Checkpoint(
        model=model,
        tokenizer=tokenizer,
        card=read_json(card) if card else {},
        report=Report(report.rows, report.notes + assumed + notes + more),
        name=place.name,
        end_ids=end_ids(place, config),
        processor=processor,
        labels=labels(place, config),
    )


def place_of(name_or_path: str | Path) -> Place:
    """Where it is, fetched from the hub first where that is what was named."""
    if not (isinstance(name_or_path, str) and name_or_path.startswith("hub:")):
        return locate(name_or_path)
    from engine.checkpoints.hub import folder_of  # what speaks to a network is slow to import

    return replace(locate(folder_of(name_or_path, MAX_DOWNLOAD)), name=name_or_path)


def open_model(place: Place) -> tuple[Family, ModelConfig, Weights, tuple[str, ...]]:
    """What kind of model the weights are, with what had to be assumed in sentences."""
    path = place.weights
    if path.suffix == ".bin" and is_llama2c(path):
        return *read_llama2c(path), ()
    if path.suffix in (".pt", ".pth") and place.find("config.json") is None:
        return read_nanogpt(path)
    weights = open_weights(path)
    return *describe(place, weights), weights, ()


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
    generation = place.find("generation_config.json")
    if theirs.get(START) is None and generation is not None:
        theirs[START] = read_json(generation).get(START)
    family = family_of(theirs, weights.shapes)
    return family, family.read_config(theirs)


def family_of(theirs: Mapping[str, Any], stored: Collection[str]) -> Family:
    """By `model_type`; files from before there was one name their architecture. `stored` are the file's tensors.

    Of a type's architectures with the head that config.json names, the first of which the file has all signs.
    """
    named = theirs.get("model_type")
    of_type = FAMILIES.get(named, ()) if isinstance(named, str) else ()
    of_type = of_type or tuple(f for families in FAMILIES.values() for f in families if declares(theirs, f))
    if not of_type or (named is not None and named != of_type[0].name):
        raise ValueError(
            f"config.json's model_type must be one of {', '.join(FAMILIES)}, got {named!r}: no such family yet."
        )
    heads = {family.head for family in of_type if declares(theirs, family)}
    if not heads and len(of_type) > 1 and theirs.get("architectures"):
        known = ", ".join(dict.fromkeys(name for f in of_type for name in (f.architecture or "", *f.also)))
        raise ValueError(f"config.json's architectures must be one of {known}, got {theirs['architectures']}.")
    among = [family for family in of_type if not heads or family.head in heads]
    return next((family for family in among if family.shows(stored)), among[0])


def declares(theirs: Mapping[str, Any], family: Family) -> bool:
    names = theirs.get("architectures")
    return isinstance(names, list) and any(name in names for name in (family.architecture, *family.also))


def tokenizer_of(place: Place, config: ModelConfig) -> tuple[Tokenizer | None, tuple[str, ...]]:
    tokenizer: Tokenizer | None = None
    for folder in place.folders:
        try:
            if place.weights.suffix == ".bin" and is_llama2c(place.weights):
                tokenizer = tokenizer_beside(place.weights, config.vocab_size)
            tokenizer = tokenizer or read_tokenizer(folder)
        except ValueError as error:
            return None, (f"No tokenizer: {error}",)
    if tokenizer is not None and tokenizer.vocab_size > config.vocab_size:
        sizes = f"The tokenizer has {tokenizer.vocab_size} tokens and the model {config.vocab_size}"
        return tokenizer, (f"{sizes}; the model cannot read those beyond.",)
    return tokenizer, ()


def processor_of(place: Place) -> tuple[Processor | None, tuple[str, ...]]:
    try:
        found = (read_processor(folder) for folder in place.folders)
        return next((processor for processor in found if processor is not None), None), ()
    except ValueError as error:
        return None, (f"No processor of pictures: {error}",)


def labels(place: Place, config: ModelConfig) -> tuple[str, ...]:
    """The names of the classes, from `id2label` of config.json; empty where it does not name each."""
    path = place.find("config.json")
    named = read_json(path).get("id2label") if path and config.head.classes else None
    named = named if isinstance(named, dict) else {}
    names = tuple(named.get(str(i)) for i in range(config.head.classes))
    return tuple(map(str, names)) if all(isinstance(name, str) for name in names) else ()


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
