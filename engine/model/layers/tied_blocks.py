"""Layers that share one block's tensors (Lan et al. 2020, section 3.1), each with its own hooks."""

from __future__ import annotations

from functools import partial
from typing import Any

from torch import nn


def share(blocks: nn.ModuleList, distinct: int) -> None:
    """Let every len(blocks) / `distinct` blocks in a row use the tensors of the first of them.

    They stay the same tensors whatever is loaded, moved or trained. A state dict holds each once, under the name of the
    first block that uses it.
    """
    run = len(blocks) // distinct
    owners = {layer: layer - layer % run for layer in range(len(blocks)) if layer % run}
    for layer, owner in owners.items():
        for module, its in zip(blocks[layer].modules(), blocks[owner].modules(), strict=True):
            module._parameters, module._buffers = its._parameters, its._buffers
    blocks.register_state_dict_post_hook(partial(without_copies, owners))
    blocks.register_load_state_dict_pre_hook(partial(with_copies, owners))


def without_copies(owners: dict[int, int], blocks: nn.Module, state: dict[str, Any], prefix: str, *_: Any) -> None:
    copies = tuple(f"{prefix}{layer}." for layer in owners)
    for name in [name for name in state if name.startswith(copies)]:
        del state[name]


def with_copies(owners: dict[int, int], blocks: nn.Module, state: dict[str, Any], prefix: str, *_: Any) -> None:
    """PyTorch loads every block by itself, and asks for its tensors under its own name."""
    for layer, owner in owners.items():
        own = f"{prefix}{owner}."
        state |= {f"{prefix}{layer}.{n.removeprefix(own)}": t for n, t in list(state.items()) if n.startswith(own)}
