"""Experts in files and in config.json: each expert's matrices by themselves, or those of all in one tensor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from engine.checkpoints.family import Transform
from engine.checkpoints.keys import Key, Table, write_only_key
from engine.model.config import ModelConfig


def stack(tensors: list[Tensor], config: ModelConfig) -> list[Tensor]:
    """Stacks one tensor an expert to one of all, expert out in."""
    first = tensors[0]
    if first.is_meta:  # torch.stack would import PyTorch's compiler
        return [first.new_empty((len(tensors), *first.shape))]
    return [torch.stack(tensors)]


def unstack(tensors: list[Tensor], config: ModelConfig) -> list[Tensor]:
    return list(tensors[0])


STACKED = Transform(stack, unstack)


MLP = "blocks.{}.mlp."
INWARD = (f"{MLP}experts.pre.weight", f"{MLP}experts.up.weight")


def expert_rows(theirs: str, names: Sequence[str] = ("gate_proj", "up_proj", "down_proj")) -> tuple[Any, ...]:
    """Rows of gated experts in the module called `theirs` (with {} for the layer): each by itself, as in published
    files, or all in one tensor, as transformers 5 holds them."""
    gate, up, down = names
    return (
        (f"{theirs}.experts.*.{gate}.weight", INWARD[0], STACKED),
        (f"{theirs}.experts.*.{up}.weight", INWARD[1], STACKED),
        (f"{theirs}.experts.*.{down}.weight", f"{MLP}experts.out.weight", STACKED),
        (f"{theirs}.gate.weight", f"{MLP}router.weight"),
    )


def shared_rows(theirs: str) -> tuple[Any, ...]:
    """Rows of a shared expert, which is in the module called `theirs`."""
    named = {"gate_proj": "pre", "up_proj": "up", "down_proj": "out"}
    return tuple((f"{theirs}.{one}.weight", f"{MLP}shared.{ours}.weight") for one, ours in named.items())


def used_key(usual: int) -> Key:
    """Key of how many experts a token sees; without one, `usual`, or all where there are fewer."""

    def least(theirs: Table) -> int:
        counts = (theirs.get(name) for name in ("num_local_experts", "num_experts"))
        return min(count for count in (usual, *counts) if count)

    return Key("num_experts_per_tok", "mlp.experts.used", default=least)


def read_dense(theirs: Table) -> tuple[int, ...]:
    """Layers without experts, by `mlp_only_layers` and `decoder_sparse_step`: Qwen's words."""
    named, step = theirs.get("mlp_only_layers") or [], theirs.get("decoder_sparse_step") or 1
    return tuple(n for n in range(theirs["num_hidden_layers"]) if n in named or (n + 1) % step)


QWEN = (
    Key("norm_topk_prob", "mlp.experts.renormalised", default=False),
    Key("moe_intermediate_size", "mlp.d_mlp"),
    Key(
        "intermediate_size",
        "mlp.experts.d_dense",
        default=lambda theirs: theirs["moe_intermediate_size"],
        writes=lambda width, ours: width or ours["mlp"]["d_mlp"],
    ),
    Key(
        "mlp_only_layers",
        "mlp.experts.dense",
        default=read_dense,
        reads=lambda _, theirs: read_dense(theirs),
        writes=lambda layers, _: list(layers),
    ),
    write_only_key("decoder_sparse_step", lambda _: 1),
)
