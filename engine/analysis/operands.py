"""The model's own numbers behind one element of a trace: what an arithmetic panel needs beside the trace itself."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from engine.model.layers.head import ClassHead, LanguageHead
from engine.model.layers.mask import AttentionMask, Full
from engine.model.layers.norm import LayerNorm, RMSNorm
from engine.model.layers.position import sinusoidal
from engine.model.stack import Stack
from engine.model.transformer import Transformer


@dataclass(frozen=True)
class Operands:
    """`weights` multiply the inputs of the element one by one; `bias` is what is added, None where there is nothing."""

    weights: Tensor  # 1-D
    bias: float | None = None


def operands(model: Transformer, hook: str, unit: int, row: int = 0, length: int = 0) -> Operands:
    """The weights that made `hook`[..., unit] (heads flattened).

    For a linear map its row of weights; for a norm its one weight; for an embedding the element of row `row` (a token
    id or a position); for a rotation cos and sin at position `row` of a text of `length` tokens. Raises ValueError
    where the element has no weights.
    """
    if hook in ("logits", "head.cls"):
        return output(model, hook, unit)
    owner, _, name = hook.rpartition(".")
    modules = dict(model.named_modules())
    parent = modules.get(owner)
    stack = (
        modules[owner.partition("blocks.")[0].rstrip(".")]
        if "blocks." in owner
        else modules.get(owner.rpartition(".")[0])
    )
    if name == "positions" and isinstance(stack, Stack) and stack.embed.sinusoids:
        config = stack.config
        width = config.d_embed if stack.embed.maps_all else config.d_model
        table = sinusoidal(torch.arange(config.context), width, config.positions.pairs)
        return element(table, hook, row, unit)
    if name in ("q_rotated", "k_rotated") and isinstance(stack, Stack):
        return turned(stack, hook, index(row, stack.config.context, hook), unit, length)
    if name == "bias" and isinstance(stack, Stack):
        return biased(stack, hook, unit, row)
    if hook == "embed.patches":
        return patched(model, unit, row)
    if name == "pre" and hasattr(parent, "dense"):
        hook, parent = f"{owner}.dense", None
    if name == "tokens" and parent is not None and parent.tokens is None:
        return element(W_E(model), hook, row, unit)
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


def output(model: Transformer, hook: str, unit: int) -> Operands:
    """The row of W_U, or of a class head, that makes logit `unit`."""
    head, mean = model.head, model.config.head.averaged == (hook == "logits")  # an averaged head's are a mean
    if mean or not isinstance(head, LanguageHead | ClassHead):
        raise ValueError(f"{hook!r} is not made with weights of this model; ask for logits, head.cls, head.distilled.")
    weight = W_E(model) if head.weight is None else head.weight
    at = index(unit, model.config.outputs, hook)
    bias = head.bias
    return Operands(weight[at].detach(), None if bias is None else float(bias.detach()[at]))


def W_E(model: Transformer) -> Tensor:
    table = model.table
    if table is None:
        raise ValueError("this model reads pictures, and has no table of tokens.")
    return table


def biased(stack: Stack, hook: str, head: int, distance: int) -> Operands:
    """What head `head` adds to a score whose key stands `distance` before the query (after it where negative)."""
    ends = torch.tensor([max(distance, 0)]), torch.tensor([max(-distance, 0)])
    bias = stack.bias(AttentionMask(Full(), *ends))
    if bias is None:
        raise ValueError(f"{hook!r} is not made by this model; its positions add nothing to the scores.")
    return Operands(bias[index(head, len(bias), hook)].detach().flatten())


def patched(model: Transformer, unit: int, row: int) -> Operands:
    """The weights of a patch's pixels; before them stand [CLS] and [DIST], each the whole of its element."""
    patches = model.embed.patches
    if patches is None:
        raise ValueError("'embed.patches' is not made by this model; it reads tokens.")
    before = [vector.detach() for vector in (patches.cls, patches.distilled) if vector is not None]
    if row < len(before):
        return element(torch.stack(before), "embed.patches", row, unit)
    return Operands(patches.project.weight[unit].detach(), float(patches.project.bias.detach()[unit]))


def turned(stack: Stack, hook: str, pos: int, unit: int, length: int) -> Operands:
    """cos and sin of the angle by which component `unit` is turned at `pos`; 1 and 0 for one that is not turned."""
    if stack.frequencies is None:
        raise ValueError(f"{hook!r} is not made with weights of this model; it does not rotate its queries.")
    cos, sin = stack.rotation(torch.tensor([pos]), max(length, pos + 1), torch.float32)
    unit %= stack.config.d_head
    if unit >= cos.numel():
        return Operands(torch.tensor([1.0, 0.0]))
    return Operands(torch.stack([cos.flatten()[unit], sin.flatten()[unit]]))


def element(table: Tensor, hook: str, row: int, unit: int) -> Operands:
    return Operands(table[index(row, table.shape[0], hook), index(unit, table.shape[1], hook)].reshape(1))


def index(i: int, size: int, hook: str) -> int:
    if not 0 <= i < size:
        raise ValueError(f"an index of {hook} must be in 0..{size - 1}, got {i}.")
    return i
