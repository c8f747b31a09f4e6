"""The norms of gradients, and the bound on their length."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

import torch
from torch import Tensor

BLOCK = re.compile(r"(?:encoder\.|decoder\.)?blocks\.\d+")


def norms(gradients: Sequence[Tensor]) -> Tensor:
    """gradient: the Euclidean norm of each."""
    return torch.stack(torch._foreach_norm(list(gradients)))


def bound(gradients: Sequence[Tensor], norm: Tensor, most: float) -> None:
    """Shorten all of them together, in place, where `norm`, that of the whole, exceeds `most` (Pascanu et al. 2013).

    As torch.nn.utils.clip_grad_norm_ does it, number for number. A `most` of 0 leaves them as they are.
    """
    if not most:
        return
    factor = (most / (norm + 1e-6)).clamp(max=1.0)
    if factor.device.type != "cpu" or factor < 1:
        torch._foreach_mul_(list(gradients), factor)


def part_of(name: str) -> str:
    """Of a parameter: "embed", "blocks.0", ..., "head", with "encoder." or "decoder." before a block of two stacks; the
    last norm is the head's."""
    block = BLOCK.match(name)
    return block[0] if block else "embed" if "embed." in name or "relative." in name else "head"


def norms_by_part(names: Iterable[str], each: Tensor) -> Mapping[str, Tensor]:
    """From the norms of single gradients, in the order of `names`."""
    squares: dict[str, list[Tensor]] = {}
    for name, norm in zip(names, each, strict=True):
        squares.setdefault(part_of(name), []).append(norm.square())
    return {part: torch.stack(found).sum().sqrt() for part, found in squares.items()}
