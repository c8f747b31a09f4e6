"""The model's own numbers behind one element of a trace: what an arithmetic panel needs beside the trace itself."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from engine.layers.attention import Attention
from engine.layers.norm import LayerNorm, RMSNorm
from engine.layers.position import rotation, sinusoidal
from engine.model import Transformer


@dataclass(frozen=True)
class Operands:
    """`weights` multiply the inputs of the element one by one; `bias` is what is added, None where there is nothing."""

    weights: Tensor  # 1-D
    bias: float | None = None


def operands(model: Transformer, hook: str, unit: int, row: int = 0) -> Operands:
    """The weights that made `hook`[..., unit] (heads flattened).

    For a linear map its row of weights; for a norm its one weight; for an embedding the element of row `row` (a token
    id or a position); for a rotation cos and sin at position `row`. Raises ValueError where the element has no weights.
    """
    if hook == "logits":
        weight = model.embed.tokens.weight if model.head.weight is None else model.head.weight
        return Operands(weight[index(unit, weight.shape[0], hook)].detach())
    if hook == "embed.positions" and model.config.positions.kind == "sinusoidal":
        return element(sinusoidal(torch.arange(model.config.context), model.config.d_model), hook, row, unit)
    owner, _, name = hook.rpartition(".")
    modules = dict(model.named_modules())
    parent = modules.get(owner)
    if name in ("q_rotated", "k_rotated") and isinstance(parent, Attention):
        return turned(parent, hook, index(row, model.config.context, hook), unit)
    module = modules.get(hook) or (parent if name == "out" else None)
    if isinstance(module, nn.Linear):
        weight = module.weight[index(unit, module.out_features, hook)].detach()
        return Operands(weight, None if module.bias is None else float(module.bias.detach()[unit]))
    if isinstance(module, nn.Embedding):
        return element(module.weight.detach(), hook, row, unit)
    if isinstance(module, LayerNorm | RMSNorm):
        at = index(unit, len(module.weight), hook)
        bias = float(module.bias.detach()[at]) if isinstance(module, LayerNorm) else None
        return Operands(module.weight[at : at + 1].detach(), bias)
    raise ValueError(f"{hook!r} is not made with weights of this model; ask for a projection, a norm or an embedding.")


def turned(attention: Attention, hook: str, pos: int, unit: int) -> Operands:
    """cos and sin of the angle by which component `unit` is turned at `pos`."""
    if attention.frequencies is None:
        raise ValueError(f"{hook!r} is not made with weights of this model; it does not rotate its queries.")
    cos, sin = rotation(torch.tensor([pos]), attention.frequencies)
    return Operands(torch.stack([cos.flatten()[unit % cos.numel()], sin.flatten()[unit % sin.numel()]]))


def element(table: Tensor, hook: str, row: int, unit: int) -> Operands:
    return Operands(table[index(row, table.shape[0], hook), index(unit, table.shape[1], hook)].reshape(1))


def index(i: int, size: int, hook: str) -> int:
    if not 0 <= i < size:
        raise ValueError(f"an index of {hook} must be in 0..{size - 1}, got {i}.")
    return i
