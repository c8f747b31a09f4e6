"""An adapter that learns in place of the weights (Hu et al. 2022): its matrices are parameters of the model in
training, and whoever looks at a step, or keeps it, is given a model whose weights hold it."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from pathlib import Path

from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from engine.checkpoints.adapter_snapshot import BESIDE, KEY, MODULE, VALUE, checksum
from engine.checkpoints.save import CONFIG
from engine.checkpoints.weights import write_weights
from engine.data.seeds import seed_for
from engine.model.layers.lora import Adapter, merge, new_adapter
from engine.model.transformer import Transformer
from engine.training.recipe.recipe import Recipe
from engine.training.run.atomic import replace_atomically

FOLDER = "adapter"  # of a run: the adapter in PEFT's format, once it has finished


def attach_adapter(model: Transformer, recipe: Recipe, new: Collection[str]) -> Adapter:
    """Gives the model an adapter, the only thing that learns beside the parameters in `new`, which no base had.

    Raises ValueError for a target that is not there, and a rank above a matrix's smaller side.
    """
    lora = recipe.lora
    adapter = new_adapter(
        model, lora.targets, lora.rank, lora.alpha, rank_stabilised=lora.rank_stabilised, dropout=lora.dropout,
        seed=seed_for(recipe.seed, "adapter"), base=recipe.base,
    ).trainable()  # fmt: skip
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(name in new)
    holder = nn.Module()
    for name, pair in adapter.matrices.items():
        for letter, matrix in zip("ab", pair, strict=True):
            holder.register_parameter(f"{name}.{letter}".replace(".", "/"), matrix)  # type: ignore[arg-type]
    model.add_module(MODULE, holder)
    return adapter


def attach_value(model: Transformer) -> nn.Linear:
    """Gives the model in training one number for each position, 0 before it has learned: what is still to be won."""
    head = nn.Linear(model.config.d_model, 1, device=model.device)
    nn.init.zeros_(head.weight)
    nn.init.zeros_(head.bias)
    model.add_module(VALUE, head)
    return head


def held_beside(model: Transformer) -> dict[str, nn.Parameter]:
    """The parameters of a model in training that are not its own: of an adapter, and of a value head."""
    return {name: p for name, p in model.named_parameters() if name.partition(".")[0] in BESIDE}


def merged_model(model: Transformer, adapter: Adapter | None) -> Transformer:
    """The model as it is used: itself where nothing is held beside it, else a copy for looking without that, whose
    weights hold the adapter."""
    beside = [name for name in BESIDE if hasattr(model, name)]
    if not beside:
        return model
    merged = merge(model, {} if adapter is None else {adapter: 1.0})
    for name in beside:
        delattr(merged, name)
    return merged.eval()


def held_weights(model: Transformer, adapter: Adapter | None) -> dict[str, Tensor]:
    """Weights that a merged model does not give back to the bit: those held beside it, and those that an adapter is
    added to."""
    names = [] if adapter is None else [f"{name}.weight" for name in adapter.matrices]
    found = {name: model.get_parameter(name) for name in names} | held_beside(model)
    return {f"held.{name}": tensor.detach().contiguous() for name, tensor in found.items()}


def load_held(model: Transformer, kept: Mapping[str, Tensor]) -> None:
    """Fills in what `held_weights` gave."""
    held = {name.removeprefix("held."): tensor for name, tensor in kept.items() if name.startswith("held.")}
    model.load_state_dict(held, strict=False)


def adapter_file(snapshot: Path) -> Path:
    """Path of the adapter of a kept step, beside its snapshot."""
    return snapshot.with_name(snapshot.name.replace("step-", "adapter-"))


def save_beside(model: Transformer, snapshot: Path) -> None:
    """Keeps what is held beside the model at a step, where something is, beside its whole weights."""
    if held := held_beside(model):
        with replace_atomically(adapter_file(snapshot)) as partial:
            save_file({name: parameter.detach().contiguous() for name, parameter in held.items()}, partial)


def load_beside(model: Transformer, snapshot: Path) -> None:
    """Puts back what was held beside the model at a kept step, and what of its own weights learned there."""
    files = (file for file in (snapshot, adapter_file(snapshot)) if file.exists())  # a whole one, or learned alone
    found = {name: tensor for file in files for name, tensor in load_file(file, device=str(model.device)).items()}
    model.load_state_dict({name: found[name] for name in found if name in learned_state(model)}, strict=False)


def frozen_checksum(model: Transformer, taken: Collection[str]) -> int:
    """Checksum of the parameters in `taken` that do not learn."""
    return checksum({name: p for name, p in model.named_parameters() if name in taken and not p.requires_grad})


def learned_state(model: Transformer) -> dict[str, Tensor]:
    """Every tensor of a model in training but its frozen parameters."""
    frozen = {name for name, parameter in model.named_parameters() if not parameter.requires_grad}
    return {name: tensor for name, tensor in model.state_dict().items() if name not in frozen}


def save_learned(model: Transformer, adapter: Adapter, snapshot: Path) -> None:
    """Writes a snapshot that needs the run's base to be opened."""
    state = model.state_dict()
    told = {
        "scale": {"alpha": adapter.alpha, "rank_stabilised": adapter.rank_stabilised},
        "parameters": sum(state[name].numel() for name in state if name.partition(".")[0] not in BESIDE),
    }
    write_weights(snapshot, learned_state(model), {CONFIG: json.dumps(model.config.to_dict()), KEY: json.dumps(told)})
