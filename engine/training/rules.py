"""The rules by which gradients become updates, on PyTorch's kernels.

They are not torch.optim's: its first use imports PyTorch's compiler, a second's work and 800 modules before the first
step of a training that compiles nothing.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.nn import Parameter

NEWTON_SCHULZ = 3.4445, -4.7750, 2.0315  # coefficients of the quintic iteration, of which there are ROUNDS
ROUNDS = 5
TINY = 1e-7
LIKE_ADAMW = 0.2  # the root mean square of an update of AdamW


class Rule(ABC):
    """Each group of parameters has numbers of its own, `lr` among them, which may change from step to step. `state` is
    what is remembered of each parameter, by the names in `keeps`; empty before its first update."""

    keeps: ClassVar[tuple[str, ...]]

    def __init__(self, groups: Sequence[Mapping[str, Any]], **shared: Any) -> None:
        self.param_groups: list[dict[str, Any]] = [{**shared, **group} for group in groups]
        self.state: dict[Parameter, dict[str, Tensor]] = {p: {} for one in self.param_groups for p in one["params"]}

    @torch.no_grad()
    def step(self) -> None:
        """Those without a gradient stay as they are."""
        for group in self.param_groups:
            if parameters := [p for p in group["params"] if p.grad is not None]:
                self.update(parameters, group)

    @abstractmethod
    def update(self, parameters: Sequence[Parameter], group: Mapping[str, Any]) -> None:
        """In place."""

    def zero_grad(self) -> None:
        for parameter in self.state:
            parameter.grad = None

    def remembered(self, parameters: Sequence[Parameter], name: str) -> list[Tensor]:
        """Zeros at first: counts as scalars, the rest as large as the parameter."""
        for p in parameters:
            if name not in self.state[p]:
                self.state[p][name] = torch.zeros((), device=p.device) if name == "step" else torch.zeros_like(p)
        return [self.state[p][name] for p in parameters]


class AdamW(Rule):
    """Loshchilov & Hutter 2019, algorithm 2."""

    keeps = "step", "exp_avg", "exp_avg_sq"

    def update(self, parameters: Sequence[Parameter], group: Mapping[str, Any]) -> None:
        steps, means, squares = (self.remembered(parameters, name) for name in self.keeps)
        torch._foreach_add_(steps, 1)
        torch._fused_adamw_(
            parameters, gradients_of(parameters), means, squares, [], steps, lr=group["lr"], beta1=group["betas"][0],
            beta2=group["betas"][1], weight_decay=group["weight_decay"], eps=group["eps"], amsgrad=False,
            maximize=False,
        )  # type: ignore[call-overload]  # fmt: skip


class Descent(Rule):
    """Stochastic gradient descent with momentum (Sutskever et al. 2013), which begins as the first gradient."""

    keeps = ("momentum_buffer",)

    def update(self, parameters: Sequence[Parameter], group: Mapping[str, Any]) -> None:
        begun = [p for p in parameters if "momentum_buffer" in self.state[p]]
        fresh = [p for p in parameters if "momentum_buffer" not in self.state[p]]
        for some, first in ((begun, False), (fresh, True)):
            kept = self.remembered(some, "momentum_buffer") if group["momentum"] else []
            if some:
                torch._fused_sgd_(
                    tuple(some), gradients_of(some), kept, lr=group["lr"], momentum=group["momentum"],
                    nesterov=group["nesterov"], weight_decay=group["weight_decay"], dampening=0.0, maximize=False,
                    is_first_step=first and bool(kept),
                )  # fmt: skip


class Muon(Rule):
    """Jordan et al. 2024. Updates are made as large as AdamW's, so that one learning rate is right for both (Liu et
    al. 2025, 2.2). Of matrices."""

    keeps = ("momentum_buffer",)

    def update(self, parameters: Sequence[Parameter], group: Mapping[str, Any]) -> None:
        lr, momentum = group["lr"], group["momentum"]
        means = self.remembered(parameters, "momentum_buffer")
        for p, gradient, mean in zip(parameters, gradients_of(parameters), means, strict=True):
            mean.lerp_(gradient, 1 - momentum)
            update = orthogonalised(gradient.lerp(mean, momentum) if group["nesterov"] else mean)
            p.mul_(1 - lr * group["weight_decay"])
            p.add_(update, alpha=-lr * LIKE_ADAMW * math.sqrt(max(p.shape)))


def gradients_of(parameters: Sequence[Parameter]) -> list[Tensor]:
    return [p.grad for p in parameters if p.grad is not None]


def orthogonalised(matrix: Tensor) -> Tensor:
    """About U V^T of its singular value decomposition, in bfloat16, by a Newton-Schulz iteration."""
    a, b, c = NEWTON_SCHULZ
    tall = matrix.shape[0] > matrix.shape[1]
    found = matrix.bfloat16()
    found = found.T if tall else found
    found = found / found.norm().clamp(min=TINY)
    for _ in range(ROUNDS):
        gram = found @ found.T
        found = torch.addmm(found, torch.addmm(gram, gram, gram, beta=b, alpha=c), found, beta=a)
    return found.T if tall else found
