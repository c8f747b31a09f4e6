"""Optimisers of torch.optim: which parameters decay, which are updated by Muon, and the state that latest/ keeps."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import Parameter
from torch.optim import SGD, AdamW, Muon, Optimizer

from engine.model.transformer import Transformer
from engine.training.recipe.parts import depths
from engine.training.recipe.recipe import Optimiser

Hold = Callable[[Tensor, Tensor], Tensor]  # what a process has of a whole tensor, and of the parameter it is for


class Optimisers:
    """Optimiser of the whole model: one, or several with a part of the model each, stepped as one."""

    def __init__(self, parts: Sequence[Optimizer]) -> None:
        self.parts = tuple(parts)
        self.owner = {id(p): part for part in parts for group in part.param_groups for p in group["params"]}

    @property
    def groups(self) -> Iterator[dict[str, Any]]:
        for part in self.parts:
            yield from part.param_groups

    def unscale(self, scaler: torch.amp.GradScaler) -> None:
        for part in self.parts:
            scaler.unscale_(part)

    def step(self, scaler: torch.amp.GradScaler, lr: float) -> None:
        """Updates every parameter at the rate `lr`, times the scale of its depth, then clears the gradients."""
        for group in self.groups:
            group["lr"] = lr * group["scale"]
        for part in self.parts:
            scaler.step(part)
            part.zero_grad()
        scaler.update()

    def optimizer_of(self, parameter: Parameter) -> Optimizer:
        """The one that updates this parameter."""
        return self.owner[id(parameter)]


def decays(name: str, parameter: Tensor) -> bool:
    """Tells whether weight decay applies: to matrices that multiply. Biases and norms set a place, not a slope, and the
    rare rows of embeddings would shrink towards zero between the steps that see them."""
    return parameter.dim() >= 2 and "embed" not in name.split(".") and not name.endswith("relative.weight")


def is_muon_matrix(name: str, parameter: Tensor) -> bool:
    """Tells whether Muon updates it: a matrix of a block that multiplies. What stands outside of the blocks are tables
    and heads, whose rows are vectors of their own (Jordan et al. 2024)."""
    return decays(name, parameter) and parameter.dim() == 2 and "blocks" in name.split(".")


def build_optimisers(model: nn.Module, recipe: Optimiser, decay: float = 1.0) -> Optimisers:
    """AdamW, SGD, or Muon for the matrices of the blocks and AdamW for the rest, of the parameters that learn.

    The rate of those at depth d below the head is `decay`^d times that of the head.

    Muon's updates are scaled to the size of AdamW's, so that one learning rate suits both (Liu et al. 2025, 2.2).
    """
    named = list(trainable_parameters(model))
    deep = depths([name for name, _ in model.named_parameters()])
    scales = {name: decay ** deep[name] for name, _ in named}
    if recipe.kind == "sgd":
        nesterov = recipe.nesterov and recipe.momentum > 0
        groups = parameter_groups(named, recipe.weight_decay, scales)
        return Optimisers([SGD(groups, recipe.lr, recipe.momentum, nesterov=nesterov)])
    if recipe.kind == "adamw":
        return Optimisers([build_adamw(named, recipe, scales)])
    matrices = [(name, p) for name, p in named if is_muon_matrix(name, p)]
    others = [(name, p) for name, p in named if not is_muon_matrix(name, p)]
    rest = [build_adamw(others, recipe, scales)] if others else []
    if not matrices:
        return Optimisers(rest)
    muon = Muon(
        parameter_groups(matrices, recipe.weight_decay, scales),
        recipe.lr,
        recipe.weight_decay,
        recipe.momentum,
        recipe.nesterov,
        adjust_lr_fn="match_rms_adamw",
    )
    return Optimisers([muon, *rest])


def build_adamw(
    named: Sequence[tuple[str, Parameter]], recipe: Optimiser, scales: Mapping[str, float] | None = None
) -> AdamW:
    groups = parameter_groups(named, recipe.weight_decay, scales or {name: 1.0 for name, _ in named})
    return AdamW(groups, recipe.lr, recipe.betas, recipe.eps, fused=True)


def parameter_groups(
    named: Sequence[tuple[str, Parameter]], weight_decay: float, scales: Mapping[str, float]
) -> list[dict[str, Any]]:
    """Groups with and without weight decay for each of the `scales` of the rate, which go by parameter name."""
    found: dict[tuple[float, bool], list[Parameter]] = {}
    for scale in sorted(set(scales.values()), reverse=True):
        for decayed in (True, False):
            found[scale, decayed] = [p for name, p in named if (scales[name], decays(name, p)) == (scale, decayed)]
    return [
        {"params": params, "weight_decay": weight_decay if decayed else 0.0, "scale": scale}
        for (scale, decayed), params in found.items()
        if params
    ]


def trainable_parameters(model: nn.Module) -> Iterator[tuple[str, Parameter]]:
    """The parameters that an optimiser updates; the others take no memory of it."""
    return ((name, parameter) for name, parameter in model.named_parameters() if parameter.requires_grad)


def state_names(part: Optimizer) -> tuple[str, ...]:
    """Names of the tensors that it keeps of each parameter."""
    if isinstance(part, AdamW):
        return "step", "exp_avg", "exp_avg_sq"
    return ("momentum_buffer",) if part.defaults["momentum"] else ()


def optimiser_state(model: Transformer, optimisers: Optimisers) -> dict[str, Tensor]:
    """State of all optimisers, as safetensors wants it: flat, by `<state name>.<parameter name>`."""
    return {
        f"{key}.{name}": value
        for name, parameter in trainable_parameters(model)
        for key, value in optimisers.optimizer_of(parameter).state.get(parameter, {}).items()
    }


def hold_whole(whole: Tensor, parameter: Tensor) -> Tensor:
    return whole.to(parameter.device)


def load_optimiser_state(
    model: Transformer, optimisers: Optimisers, kept: dict[str, Tensor], hold: Hold = hold_whole
) -> None:
    """Loads what `optimiser_state` returned. A parameter of which `kept` has nothing begins anew: it was never trained,
    or by another kind of optimiser.

    Raises ValueError where the state of a parameter is incomplete or of another shape, or `kept` is empty.
    """
    for name, parameter in trainable_parameters(model):
        part = optimisers.optimizer_of(parameter)
        names = {key: f"{key}.{name}" for key in state_names(part)}
        absent = [full for full in names.values() if full not in kept]
        if len(absent) == len(names) and kept:
            continue
        if absent:
            raise ValueError(
                f"the optimiser's file must hold {absent[0]}, and does not; begin the run in a new folder."
            )
        for key, full in names.items():
            expected = torch.Size() if key == "step" else parameter.shape
            if kept[full].shape != expected:
                raise ValueError(
                    f"{full} of the optimiser's file must have the shape {list(expected)}, got "
                    f"{list(kept[full].shape)}; begin the run in a new folder."
                )
        part.state[parameter] = {
            key: kept[full].to(parameter.device) if key == "step" else hold(kept[full], parameter)
            for key, full in names.items()
        }
