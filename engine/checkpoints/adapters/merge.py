"""Opens the folder of an adapter as the model that it makes of its base, and takes it out of the weights again."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from torch import Tensor

from engine.checkpoints.adapters.config import CONFIG, HEADS, WEIGHTS, AdapterConfig, read_config
from engine.checkpoints.adapters.read import (
    PREFIX,
    TENSOR,
    list_modules,
    read_adapter,
    read_matrices,
    read_saved,
    saved_name,
)
from engine.checkpoints.assemble import build_without_memory
from engine.checkpoints.checkpoint import Checkpoint
from engine.checkpoints.family import SAME
from engine.checkpoints.folder_settings import read_folder_settings
from engine.checkpoints.heads import with_head
from engine.checkpoints.keys import read_link
from engine.checkpoints.locate import CheckpointLocation
from engine.checkpoints.save import family_for
from engine.checkpoints.weights import Weights, open_weights, read_json
from engine.edits.adapters import digest_of
from engine.model.config import HeadKind, ModelConfig
from engine.model.layers.lora import merge
from engine.model.transformer import Transformer


def open_adapter(base: Checkpoint, folder: Path) -> Checkpoint:
    """The model that a folder of PEFT's makes of its base: the weights hold the adapter at strength 1, and what it
    saved whole stands in its place; a new head makes the base a classifier.

    Raises ValueError as `read_adapter` does, and where neither holds a tensor of the head.
    """
    weights = open_weights(folder / next(name for name in WEIGHTS if (folder / name).is_file()))
    if any(saved_name(tensor) is not None for tensor in weights):
        base = with_saved(base, folder, weights)
    outside = list_outside(base, weights)
    adapter = read_adapter(folder, with_outside(base, read_config(folder / CONFIG), weights, outside), outside)
    base = replace(base, model=with_tensors(base.model, adapter.saved))
    model = merge(base.model, {adapter: 1.0})
    model.merged = frozenset({*base.model.merged, digest_of(adapter.key)})
    return replace(base, model=model, adapters=(*base.adapters, adapter))


def list_outside(base: Checkpoint, weights: Weights) -> dict[str, str]:
    """Modules outside the blocks that a file has matrices of, such as a pooler, by the name it gives them, with their
    weight here. No edit reaches those: they are merged and count as saved whole."""
    family, _ = family_for(base.config, base.family)
    rows = family.bind(base.model.state_dict())
    modules = list_modules(base.model, rows)
    plain = {row.source[0].removesuffix(".weight"): row.target[0] for row in rows if row.transform is SAME}
    found: dict[str, str] = {}
    for tensor in weights:
        match = TENSOR.fullmatch(tensor.removeprefix(PREFIX))
        names = () if match is None else family.spellings(match[1])
        target = next((plain[name] for name in names if name in plain), None)
        if match is not None and target is not None and modules.keys().isdisjoint(names):
            found[match[1]] = target
    return found


def with_outside(base: Checkpoint, config: AdapterConfig, weights: Weights, outside: Mapping[str, str]) -> Checkpoint:
    """The base with what the file adds to the weights of these modules."""
    changed: dict[str, Tensor] = {}
    for name, target in outside.items():
        weight, rank = base.model.state_dict()[target], config.own(config.rank_pattern, name, config.r)
        a, b = read_matrices(name, weights, rank, (len(weight), weight.shape[-1]))
        alpha = config.own(config.alpha_pattern, name, config.lora_alpha)
        change = b @ a * (alpha / (math.sqrt(rank) if config.use_rslora else rank))
        changed[target] = (weight + change).to(weight.dtype)
    return replace(base, model=with_tensors(base.model, changed))


def with_tensors(model: Transformer, tensors: Mapping[str, Tensor]) -> Transformer:
    """The model with some of its tensors in place of its own; all others are shared."""
    if not tensors:
        return model
    changed = merge(model, {})
    changed.load_state_dict({name: each.to(model.dtype) for name, each in tensors.items()}, strict=False, assign=True)
    return changed


def with_saved(base: Checkpoint, folder: Path, weights: Weights) -> Checkpoint:
    settings = read_folder_settings(CheckpointLocation(folder.name, folder / CONFIG, (folder,)))
    kind = find_head(base, weights, read_json(folder / CONFIG).get("task_type"))
    config = with_head(base.config, kind, base.family)
    if kind in ("sequence", "token"):
        config = replace(config, head=replace(config.head, classes=count_rows(weights, config, base.family)))
    if kind == "sequence":
        pad = base.settings.config.get("pad_token_id", base.tokenizer.pad_id if base.tokenizer else None)
        last = config.head.read == "last" and config.head.mark is None
        asked = settings.config.get("problem_type")
        own = base.config.head.link if kind == base.config.head.kind else None
        link = own if asked is None else read_link(asked, settings.config)
        config = replace(config, head=replace(config.head, link=link, padding=pad if last else None))
    theirs = base.model.state_dict()
    shared = config.tied and kind in ("language", "masked")
    if shared:  # saved whole, the table and the head are two tensors
        config = replace(config, tied=bool(read_json(folder / CONFIG).get("ensure_weight_tying")))
        theirs |= {} if config.tied else {"head.weight": theirs["embed.tokens.weight"]}
    family, _ = family_for(config, base.family)
    model = build_without_memory(config)
    saved = read_saved(weights, family, family.bind(model.state_dict()), config)
    if shared and config.tied and "head.weight" in saved:
        saved["embed.tokens.weight"] = saved.pop("head.weight")
    same = kind == base.config.head.kind
    state: dict[str, Tensor] = {}
    for name, ours in model.state_dict().items():
        held = theirs.get(name) if same or not name.startswith("head.") else None
        found = saved.get(name, held)
        if found is None or found.shape != ours.shape:
            got = "it is not there" if found is None else f"it has shape {tuple(found.shape)}"
            raise ValueError(
                f"the adapter {folder.name} must bring {name} with shape {tuple(ours.shape)}, which its base has not, "
                f"and {got}; train it with that module in modules_to_save, or use its own base."
            )
        state[name] = found.to(base.model.dtype)
    model.load_state_dict(state, assign=True)
    labels = settings.read_labels(config) or (base.labels if len(base.labels) == config.head.classes else ())
    return replace(base, model=model.eval(), labels=labels)


def find_head(base: Checkpoint, weights: Weights, task: object) -> HeadKind:
    """The kind of head that PEFT's task_type names, else the first of those that have all that was saved."""
    if task in HEADS:
        return HEADS[str(task)]
    own = base.config.head.kind
    whole = [name for tensor in weights if (name := saved_name(tensor)) is not None]
    for kind in (own, *HEADS.values()):
        config = replace(with_head(base.config, kind, base.family), tied=False)
        family, _ = family_for(config, base.family)
        sources = {source for row in family.bind(build_without_memory(config).state_dict()) for source in row.source}
        if all(sources.intersection(family.spellings(name)) for name in whole):
            return kind
    return own


def count_rows(weights: Weights, config: ModelConfig, first: str) -> int:
    """Number of classes of a head that an adapter saved."""
    family, _ = family_for(config, first)
    rows = (row for row in family.bind(build_without_memory(config).state_dict()) if "head.weight" in row.target)
    names = {source for row in rows for source in row.source}
    for tensor in weights:
        name = saved_name(tensor)
        if name is not None and names.intersection(family.spellings(name)):
            return weights.shapes[tensor][0]
    return config.head.classes


def split_adapters(checkpoint: Checkpoint) -> Checkpoint:
    """The checkpoint without what its adapters added to its weights, to the rounding of these."""
    model = merge(checkpoint.model, dict.fromkeys(checkpoint.adapters, -1.0))
    model.merged = frozenset()
    return replace(checkpoint, model=model, adapters=())
