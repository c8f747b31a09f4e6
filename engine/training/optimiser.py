"""The optimisers, which weights decay, and what an optimiser remembers from one step to the next."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, cast

import torch
from torch import Tensor, nn

from engine.model.transformer import Transformer
from engine.training.recipe import Optimiser
from engine.training.rules import AdamW, Descent, Muon, Rule


class Optimisers:
    """One optimiser, or several with a part of the model each, stepped as one."""

    def __init__(self, parts: Sequence[Rule]) -> None:
        self.parts = tuple(parts)
        self.owner = {id(p): part for part in parts for group in part.param_groups for p in group["params"]}

    @property
    def groups(self) -> Iterator[dict[str, Any]]:
        for part in self.parts:
            yield from part.param_groups

    def unscale(self, scaler: torch.amp.GradScaler) -> None:
        for part in self.parts:
            scaler.unscale_(as_known(part))

    def step(self, scaler: torch.amp.GradScaler, lr: float) -> None:
        """One update from the gradients, which are forgotten."""
        for group in self.groups:
            group["lr"] = lr
        for part in self.parts:
            scaler.step(as_known(part))
            part.zero_grad()
        scaler.update()

    def of(self, parameter: nn.Parameter) -> Rule:
        """The one that updates this parameter."""
        return self.owner[id(parameter)]


def decays(name: str, parameter: Tensor) -> bool:
    """Matrices that multiply decay. Biases and norms do not (they set a place, not a slope), and neither do embeddings,
    whose rare rows would shrink towards zero between the steps that see them."""
    return parameter.dim() >= 2 and "embed" not in name.split(".") and not name.endswith("relative.weight")


def orthogonal(name: str, parameter: Tensor) -> bool:
    """Matrices that Muon updates: those that multiply, but for what turns the stream into classes, whose rows are
    vectors of their own as an embedding's are (Jordan et al. 2024)."""
    return decays(name, parameter) and parameter.dim() == 2 and name.split(".")[0] not in ("head", "next_sentence")


def optimisers(model: Transformer, recipe: Optimiser) -> Optimisers:
    named = list(model.named_parameters())
    if recipe.kind == "sgd":
        return Optimisers([descent(named, recipe)])
    if recipe.kind == "adamw":
        return Optimisers([adamw(named, recipe)])
    matrices = [(name, p) for name, p in named if orthogonal(name, p)]
    rest = [(name, p) for name, p in named if not orthogonal(name, p)]
    parts = [muon([p for _, p in matrices], recipe)] if matrices else []
    return Optimisers([*parts, adamw(rest, recipe)])


def groups(named: Sequence[tuple[str, nn.Parameter]], weight_decay: float) -> list[dict[str, object]]:
    return [
        {"params": [p for n, p in named if decays(n, p)], "weight_decay": weight_decay},
        {"params": [p for n, p in named if not decays(n, p)], "weight_decay": 0.0},
    ]


def adamw(named: Sequence[tuple[str, nn.Parameter]], recipe: Optimiser) -> AdamW:
    return AdamW(groups(named, recipe.weight_decay), lr=recipe.lr, betas=recipe.betas, eps=recipe.eps)


def descent(named: Sequence[tuple[str, nn.Parameter]], recipe: Optimiser) -> Descent:
    nesterov = recipe.nesterov and recipe.momentum > 0
    return Descent(groups(named, recipe.weight_decay), lr=recipe.lr, momentum=recipe.momentum, nesterov=nesterov)


def muon(matrices: Sequence[nn.Parameter], recipe: Optimiser) -> Muon:
    group = {"params": list(matrices), "weight_decay": recipe.weight_decay}
    return Muon([group], lr=recipe.lr, momentum=recipe.momentum, nesterov=recipe.nesterov)


def as_known(rule: Rule) -> torch.optim.Optimizer:
    """A GradScaler is written for torch.optim, of which it takes `param_groups` and `step`."""
    return cast(torch.optim.Optimizer, rule)


def moments(model: nn.Module, optimiser: Optimisers) -> dict[str, Tensor]:
    """The optimisers' whole memory by parameter name, flat, as safetensors wants it."""
    kept: dict[str, Tensor] = {}
    for name, parameter in model.named_parameters():
        for key, value in optimiser.of(parameter).state[parameter].items():
            kept[f"{key}.{name}"] = value
    return kept


def remembered(rule: Rule) -> tuple[str, ...]:
    """What it keeps of each parameter."""
    return () if isinstance(rule, Descent) and not rule.param_groups[0]["momentum"] else rule.keeps


def restore(model: nn.Module, optimiser: Optimisers, kept: dict[str, Tensor]) -> None:
    """A parameter of which `kept` has nothing begins anew: it was never trained, or by another kind of optimiser.

    Raises ValueError where what is kept of one is not whole, or there is nothing at all.
    """
    for name, parameter in model.named_parameters():
        part = optimiser.of(parameter)
        names = {key: f"{key}.{name}" for key in remembered(part)}
        absent = [full for full in names.values() if full not in kept]
        if len(absent) == len(names) and kept:
            continue
        if absent:
            raise ValueError(
                f"the optimiser's file must hold {absent[0]}, and does not; begin the run in a new folder."
            )
        part.state[parameter] = {key: kept[full].to(parameter.device) for key, full in names.items()}
