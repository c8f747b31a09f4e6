"""Reads the matrices of an adapter, and what was saved whole beside them.

The modules and the order of their rows are those of the base's family. Where a file has one matrix for several of ours
(GPT-2's c_attn), an adapter that is read acts on each part with all of A and the part's rows of B.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from engine.checkpoints.adapters.config import (
    CONFIG,
    WEIGHTS,
    AdapterConfig,
    find_adapter_weights,
    name_base,
    read_config,
)
from engine.checkpoints.assemble import check_finite, check_kind
from engine.checkpoints.checkpoint import Checkpoint
from engine.checkpoints.family import SAME, Family, Row
from engine.checkpoints.save import family_for
from engine.checkpoints.weights import Weights, open_weights
from engine.edits import keep_adapter
from engine.model.config import ModelConfig
from engine.model.layers.lora import Adapter, check_fits, list_linears
from engine.model.layers.module import Linear
from engine.model.transformer import Transformer

PREFIX = "base_model.model."
TENSOR = re.compile(r"(.+)\.lora_([AB])\.weight")
SAVED = re.compile(r"\.(?:modules_to_save\.(?:default\.)?|base_layer\.)")  # between a module and its tensor


@dataclass(frozen=True)
class Module:
    """A linear module of a family's files, and the linear maps here that it holds."""

    ours: tuple[str, ...]
    row: Row
    transposed: bool

    def split(self, b: Tensor, config: ModelConfig) -> list[Tensor]:
        """The parts' rows, each out rank, of B (out rank)."""
        if self.row.transform is SAME:
            return [b]
        return self.row.transform.read([b.mT if self.transposed else b], config)

    def join(self, parts: Sequence[Tensor], config: ModelConfig) -> Tensor:
        if self.row.transform is SAME:
            return parts[0]
        (b,) = self.row.transform.write(list(parts), config)
        return b.mT if self.transposed else b


def list_modules(model: Transformer, rows: Sequence[Row]) -> dict[str, Module]:
    """Linear modules by the family's name, found in its rows for the weights of this model's linear maps."""
    linears, found = list_linears(model), {}
    for row in rows:
        ours = [name.removesuffix(".weight") for name in row.target]
        if not all(name in linears and f"{name}.weight" in row.target for name in ours):
            continue
        same = row.transform is SAME
        for source, targets in zip(row.source, [(n,) for n in ours] if same else [tuple(ours)], strict=True):
            columns = [torch.zeros(linears[name].out_features, 1) for name in targets]
            transposed = not same and len(row.transform.write(columns, model.config)[0]) == 1
            found[source.removesuffix(".weight")] = Module(targets, row, transposed)
    return found


def read_adapter(folder: str | Path, checkpoint: Checkpoint, merged: Mapping[str, str] | None = None) -> Adapter:
    """The adapter in a folder of PEFT's for this base, in float32 where it is stored in less; edits find it by its key.

    `merged` are modules outside the blocks, by their names in the file, with the tensors here that hold their change
    already. Raises FileNotFoundError where there is none, ValueError for one that is not plain LoRA or not of this
    base.
    """
    folder = Path(folder)
    path = find_adapter_weights(folder)
    if path is None:
        raise FileNotFoundError(f"an adapter's folder must hold {CONFIG} and {WEIGHTS[0]}; {folder} does not.")
    config, weights, model = read_config(folder / CONFIG), open_weights(path), checkpoint.model
    family, _ = family_for(model.config, checkpoint.family)
    rows = family.bind(model.state_dict())
    modules, saved, merged = list_modules(model, rows), read_saved(weights, family, rows, model.config), merged or {}
    for name, tensor in saved.items():
        if name in merged.values():
            continue
        ours = model.state_dict()[name]
        if ours.shape != tensor.shape or not torch.equal(ours.float(), tensor.float()):
            raise ValueError(
                f"the adapter {folder.name} has a {name.partition('.')[0]} of its own, learned beside its matrices, "
                f"and this model has another; open it with load({str(folder)!r:.200}), which puts that on its base."
            )
    linears = list_linears(model)
    saved |= {target: model.state_dict()[target] for target in merged.values()}
    stored = match_modules(weights, modules, family.spellings, merged)
    check_targets(config, weights, spell_alike(modules, stored, family), stored)
    matrices: dict[str, tuple[Tensor, Tensor]] = {}
    alphas: dict[str, float] = {}
    for name, module in stored.items():
        a, b = read_pair(name, config, weights, module, linears)
        alpha = config.own(config.alpha_pattern, name, config.lora_alpha)
        alphas |= {ours: float(alpha) for ours in module.ours if alpha != config.lora_alpha}
        matrices |= {ours: (a, part) for ours, part in zip(module.ours, module.split(b, model.config), strict=True)}
    adapter = Adapter(
        folder.resolve().name, matrices, config.lora_alpha, config.use_rslora, config.lora_dropout, alphas,
        name_base(config.base) or "", saved,
    )  # fmt: skip
    check_fits(adapter, model)
    keep_adapter(adapter)
    return adapter


def match_modules(
    weights: Weights, modules: Mapping[str, Module], spellings: Any, but: Collection[str] = ()
) -> dict[str, Module]:
    """The modules that a file has matrices of, by the name it gives them, `but` for some."""
    stored: dict[str, Module] = {}
    for tensor in weights:
        match = TENSOR.fullmatch(tensor.removeprefix(PREFIX))
        if match is None or match[1] in but:
            continue
        found = next((modules[name] for name in spellings(match[1]) if name in modules), None)
        if found is None:
            some = ", ".join(dict.fromkeys(name.rpartition(".")[2] for name in modules))
            raise ValueError(
                f"{weights.label(tensor)} acts on a layer that no adapter reaches in this model ({some} are reached); "
                "use its own base."
            )
        stored[match[1]] = found
    return stored


def saved_name(tensor: str) -> str | None:
    """Name in the model of a tensor that is saved whole; None for one that is an A or B."""
    name = tensor.removeprefix(PREFIX)
    return None if TENSOR.fullmatch(name) else SAVED.sub(".", name)


def read_saved(weights: Weights, family: Family, rows: Sequence[Row], config: ModelConfig) -> dict[str, Tensor]:
    """Tensors of the model, by name, that an adapter's file holds whole (PEFT's modules_to_save).

    Raises ValueError for one that is none of the model's, and for a part of what the file's layout keeps together.
    """
    whole = {name: tensor for tensor in weights if (name := saved_name(tensor)) is not None}
    sources = {source for row in rows for source in row.source}
    spelled = {next((s for s in family.spellings(name) if s in sources), name): whole[name] for name in whole}
    found: dict[str, Tensor] = {}
    for row in rows:
        if spelled.keys() >= set(row.source):
            named = [spelled.pop(source) for source in row.source]
            for tensor in named:
                check_kind(tensor, weights)
                check_finite(weights.label(tensor), weights[tensor])
            tensors = row.transform.read([weights[tensor].float() for tensor in named], config)
            found |= dict(zip(row.target, tensors, strict=True))
    for unread in spelled.values():
        raise ValueError(
            f"{weights.label(unread)} is neither A or B of a linear layer nor a whole tensor of a {family.name} model "
            f'with the head "{config.head.kind}"; use its own base.'
        )
    return found


def spell_alike(modules: Collection[str], stored: Collection[str], family: Family) -> list[str]:
    """The family's modules in the spelling of those that a file has: with or without the prefix of the body, and as
    transformers 5 or older files have them."""
    prefix = family.optional_prefix
    whole = any(name.startswith(prefix) for name in stored)
    alike = [name if whole else name.removeprefix(prefix) for name in modules]
    return alike if any(name in alike for name in stored) else [family.module_name(name) for name in alike]


def check_targets(config: AdapterConfig, weights: Weights, expected: Collection[str], stored: Collection[str]) -> None:
    """Raises ValueError where the config and the file speak of different modules."""
    untold = next((name for name in stored if not config.targets(name)), None)
    if untold is not None:
        raise ValueError(
            f"{CONFIG} leaves out {untold}, and {WEIGHTS[0]} has matrices of it; they are of two adapters."
        )
    explicit = config.target_modules not in (None, "all-linear")
    lacking = next((n for n in expected if explicit and n not in stored and config.targets(n)), None)
    lacking = lacking or next((n for n in stored for x in "AB" if f"{PREFIX}{n}.lora_{x}.weight" not in weights), None)
    if lacking is not None:
        raise ValueError(f"{WEIGHTS[0]} lacks A or B of {lacking}, which {CONFIG} names; fetch the file again.")


def read_pair(
    name: str, config: AdapterConfig, weights: Weights, module: Module, linears: Mapping[str, Linear]
) -> tuple[Tensor, Tensor]:
    rank = config.own(config.rank_pattern, name, config.r)
    inputs, outputs = linears[module.ours[0]].in_features, sum(linears[ours].out_features for ours in module.ours)
    return read_matrices(name, weights, rank, (outputs, inputs))


def read_matrices(name: str, weights: Weights, rank: int, shape: tuple[int, int]) -> tuple[Tensor, Tensor]:
    """A (rank in) and B (out rank) of a module whose weight has that shape, out in."""
    pair = []
    for letter, expected in (("A", (rank, shape[1])), ("B", (shape[0], rank))):
        tensor = f"{PREFIX}{name}.lora_{letter}.weight"
        if tensor not in weights:
            raise ValueError(f"{WEIGHTS[0]} lacks A or B of {name}; fetch the file again.")
        if weights.shapes[tensor] != expected:
            raise ValueError(
                f"{weights.label(tensor)} must have shape {expected} by {CONFIG} and the base, got "
                f"{weights.shapes[tensor]}; they are not of one adapter."
            )
        check_kind(tensor, weights)
        found = weights[tensor]
        check_finite(weights.label(tensor), found)
        pair.append(found if found.dtype == torch.float64 else found.float())
    return pair[0], pair[1]
