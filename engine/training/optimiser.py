"""The optimisers, which weights decay, and what an optimiser remembers from one step to the next."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor, nn

from engine.model import Transformer
from engine.training.recipe import Optimiser


class Optimisers:
    """One optimiser, or several with a part of the model each, stepped as one."""

    def __init__(self, parts: Sequence[torch.optim.Optimizer]) -> None:
        self.parts = tuple(parts)
        self.owner = {id(p): part for part in parts for group in part.param_groups for p in group["params"]}

    @property
    def groups(self) -> Iterator[dict[str, object]]:
        for part in self.parts:
            yield from part.param_groups

    def unscale(self, scaler: torch.amp.GradScaler) -> None:
        for part in self.parts:
            scaler.unscale_(part)

    def step(self, scaler: torch.amp.GradScaler, lr: float) -> None:
        """One update from the gradients, which are forgotten."""
        for group in self.groups:
            group["lr"] = lr
        for part in self.parts:
            scaler.step(part)
            part.zero_grad(set_to_none=True)
        scaler.update()

    def of(self, parameter: Tensor) -> torch.optim.Optimizer:
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


def adamw(named: Sequence[tuple[str, nn.Parameter]], recipe: Optimiser) -> torch.optim.AdamW:
    return torch.optim.AdamW(
        groups(named, recipe.weight_decay), lr=recipe.lr, betas=recipe.betas, eps=recipe.eps, fused=True
    )


def descent(named: Sequence[tuple[str, nn.Parameter]], recipe: Optimiser) -> torch.optim.SGD:
    return torch.optim.SGD(
        groups(named, recipe.weight_decay),
        lr=recipe.lr,
        momentum=recipe.momentum,
        nesterov=recipe.nesterov and recipe.momentum > 0,
        fused=True,
    )


def muon(matrices: Sequence[nn.Parameter], recipe: Optimiser) -> torch.optim.Muon:
    """Its updates are made as large as AdamW's, so that one learning rate is right for both (Liu et al. 2025, 2.2)."""
    return torch.optim.Muon(
        matrices,
        lr=recipe.lr,
        weight_decay=recipe.weight_decay,
        momentum=recipe.momentum,
        nesterov=recipe.nesterov,
        adjust_lr_fn="match_rms_adamw",
    )


def moments(model: nn.Module, optimiser: Optimisers) -> dict[str, Tensor]:
    """The optimisers' whole memory by parameter name, flat, as safetensors wants it."""
    kept: dict[str, Tensor] = {}
    for name, parameter in model.named_parameters():
        for key, value in optimiser.of(parameter).state[parameter].items():
            if value is not None:
                kept[f"{key}.{name}"] = value
    return kept


def remembered(optimiser: torch.optim.Optimizer) -> tuple[str, ...]:
    """What it keeps of each parameter."""
    if isinstance(optimiser, torch.optim.AdamW):
        return "step", "exp_avg", "exp_avg_sq"
    return ("momentum_buffer",) if optimiser.defaults["momentum"] or isinstance(optimiser, torch.optim.Muon) else ()


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
