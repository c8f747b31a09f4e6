"""An adapter that learns in place of the weights (Hu et al. 2022): its matrices are parameters of the model in
training, and whoever looks at a step, or keeps it, is given a model whose weights hold it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path

from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from engine.data.seeds import seed_for
from engine.model.layers.lora import Adapter, merge, new_adapter
from engine.model.transformer import Transformer
from engine.training.atomic import replace_atomically
from engine.training.recipe import Recipe

MODULE = "adapter"  # of the model in training
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


def merged_model(model: Transformer, adapter: Adapter | None) -> Transformer:
    """The model as it is used: itself without an adapter, else a copy for looking whose weights hold that."""
    if adapter is None:
        return model
    merged = merge(model, {adapter: 1.0})
    delattr(merged, MODULE)
    return merged.eval()


def held_weights(model: Transformer, adapter: Adapter | None) -> dict[str, Tensor]:
    """What a merged model does not give back to the bit: the adapter, and the weights that it is added to."""
    if adapter is None:
        return {}
    names = [f"{name}.weight" for name in adapter.matrices]
    found = {name: model.get_parameter(name).detach() for name in names}
    found |= {f"{MODULE}.{name}": matrix.detach() for name, matrix in getattr(model, MODULE).named_parameters()}
    return {f"held.{name}": tensor.contiguous() for name, tensor in found.items()}


def load_held(model: Transformer, kept: Mapping[str, Tensor]) -> None:
    """Fills in what `held_weights` gave."""
    held = {name.removeprefix("held."): tensor for name, tensor in kept.items() if name.startswith("held.")}
    model.load_state_dict(held, strict=False)


def adapter_file(snapshot: Path) -> Path:
    """Where the adapter of a kept step lies, beside that."""
    return snapshot.with_name(snapshot.name.replace("step-", "adapter-"))


def save_matrices(model: Transformer, snapshot: Path) -> None:
    """Keeps the adapter of a step beside its merged weights."""
    with replace_atomically(adapter_file(snapshot)) as partial:
        save_file({n: p.detach().contiguous() for n, p in getattr(model, MODULE).named_parameters()}, partial)


def load_matrices(model: Transformer, snapshot: Path) -> None:
    """Puts back the adapter of a kept step, and the head that learned beside it."""
    found = load_file(adapter_file(snapshot), device=str(model.device))
    learned = {name for name, parameter in model.named_parameters() if parameter.requires_grad}
    whole = load_file(snapshot, device=str(model.device))
    state = {name: tensor for name, tensor in whole.items() if name in learned}
    model.load_state_dict(state | {f"{MODULE}.{name}": tensor for name, tensor in found.items()}, strict=False)
