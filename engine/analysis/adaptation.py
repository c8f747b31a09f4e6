"""What a training changed of the model that it began with: every matrix, every head's pattern, what was forgotten.

A change of rank r catches at most the r largest singular values of a matrix's change (Eckart & Young 1936): the best
that LoRA of that rank could do (Hu et al. 2022, section 4.1).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import Tensor

from engine.model.transformer import Transformer
from engine.runtime.run import run
from engine.tokenizers.encoding import Encoding

BLOCK = re.compile(r"(?:(encoder|decoder)\.)?blocks\.(\d+)\.(.+)\.weight")


@dataclass(frozen=True)
class MatrixChange:
    """`relative` is ||W' - W|| / ||W||, of Frobenius norms; inf where W is zero."""

    stack: str
    layer: int
    part: str
    relative: float

    @property
    def name(self) -> str:
        return f"{self.stack}blocks.{self.layer}.{self.part}"


def matrix_changes(base: Transformer, result: Transformer) -> list[MatrixChange]:
    """Compares every matrix of the blocks that both models have in the same shape."""
    before, found = dict(base.named_parameters()), []
    for name, after in result.named_parameters():
        place = BLOCK.fullmatch(name)
        if place is None or after.ndim != 2 or name not in before or before[name].shape != after.shape:
            continue
        stack = f"{place[1]}." if place[1] else ""
        found.append(MatrixChange(stack, int(place[2]), place[3], relative_change(before[name], after)))
    return found


@torch.no_grad()
def relative_change(before: Tensor, after: Tensor) -> float:
    size, change = float(before.double().norm()), float((after.double() - before.double()).norm())
    return change / size if size else math.inf if change else 0.0


@torch.no_grad()
def change_of(base: Transformer, result: Transformer, name: str) -> tuple[Tensor, Tensor]:
    """A matrix before, and what was added to it, out in. Raises KeyError where a model lacks it."""
    before, after = (model.get_parameter(f"{name}.weight").detach() for model in (base, result))
    return before, after - before


def singular_values(matrix: Tensor) -> Tensor:
    """Singular values of a matrix, the largest first, in double precision."""
    return torch.linalg.svdvals(matrix.detach().double())


def caught(values: Tensor) -> Tensor:
    """Share of ||M||², by r - 1, that the best matrix of rank r has of one with these singular values (Eckart & Young
    1936)."""
    squares = values.double().square().cumsum(0)
    return squares / squares[-1].clamp_min(torch.finfo(torch.float64).tiny)


def pattern_changes(base: Transformer, result: Transformer, texts: Iterable[Encoding | list[int]]) -> Tensor:
    """Mean share of the weight that moved in each head's rows on the same texts, layer head: half the sum of absolute
    differences."""
    total, rows = None, 0
    for text in texts:
        before, after = (
            run(model, text, keep=["*attn.pattern"]).stack("attn.pattern").double() for model in (base, result)
        )
        moved = (after - before).abs().sum(-1).div(2).sum((1, 3))  # layer head
        total, rows = moved if total is None else total + moved, rows + before.shape[1] * before.shape[3]
    if total is None:
        raise ValueError("expected texts to compare the patterns on, got none.")
    return total / rows
