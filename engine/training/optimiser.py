"""AdamW, and which weights decay."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from engine.model import Transformer
from engine.training.recipe import Optimiser


def decays(name: str, parameter: Tensor) -> bool:
    """Matrices that multiply decay. Biases and norms do not (they set a place, not a slope), and neither do embeddings,
    whose rare rows would shrink towards zero between the steps that see them."""
    return parameter.dim() >= 2 and "embed" not in name.split(".") and not name.endswith("relative.weight")


def groups(model: nn.Module, weight_decay: float) -> list[dict[str, object]]:
    named = list(model.named_parameters())
    return [
        {"params": [p for n, p in named if decays(n, p)], "weight_decay": weight_decay},
        {"params": [p for n, p in named if not decays(n, p)], "weight_decay": 0.0},
    ]


def adamw(model: Transformer, recipe: Optimiser) -> torch.optim.AdamW:
    return torch.optim.AdamW(
        groups(model, recipe.weight_decay), lr=recipe.lr, betas=recipe.betas, eps=recipe.eps, fused=True
    )


def moments(model: nn.Module, optimiser: torch.optim.AdamW) -> dict[str, Tensor]:
    """The optimiser's whole memory by parameter name, flat, as safetensors wants it."""
    kept: dict[str, Tensor] = {}
    for name, parameter in model.named_parameters():
        for key, value in optimiser.state[parameter].items():
            kept[f"{key}.{name}"] = value
    return kept


def restore(model: nn.Module, optimiser: torch.optim.AdamW, kept: dict[str, Tensor]) -> None:
    """Raises ValueError where `kept` is not the memory of an optimiser of this model."""
    for name, parameter in model.named_parameters():
        names = {key: f"{key}.{name}" for key in ("step", "exp_avg", "exp_avg_sq")}
        absent = [full for full in names.values() if full not in kept]
        if absent:
            raise ValueError(
                f"the optimiser's file must hold {absent[0]}, and does not; begin the run in a new folder."
            )
        optimiser.state[parameter] = {key: kept[full].to(parameter.device) for key, full in names.items()}
