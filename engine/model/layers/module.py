"""The module that layers are, which costs less to call than PyTorch's own."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

from engine.model.hooks import adapt, run_has_edits


class Module(nn.Module):
    """PyTorch's, called straight where nobody registered a hook of PyTorch's kind with it; Loupe's are HookPoints.

    The modules in it are plain attributes too: PyTorch looks for those in vain first, which takes ten times as long.
    """

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        if name in self._modules:
            self.__dict__[name] = value

    def __delattr__(self, name: str) -> None:
        if name in self._modules:
            self.__dict__.pop(name, None)
        super().__delattr__(name)

    def __call__(self, *args: Any, **options: Any) -> Any:
        if self._forward_hooks or self._forward_pre_hooks or self._backward_hooks or self._backward_pre_hooks:
            return super().__call__(*args, **options)
        return self.forward(*args, **options)


class Linear(Module, nn.Linear):
    """x W^T + b, and what the adapters of the active run add to it.

    `name` is its place in the model ("blocks.0.attn.q"); where layers share their tensors, that in the first of them.
    """

    name = ""

    def forward(self, x: Tensor) -> Tensor:
        weight, bias = self._parameters["weight"], self._parameters["bias"]  # where PyTorch looks last
        assert weight is not None
        return adapt(self.name, x, linear(x, weight, bias), self.training)

    @property
    def adapted_weight(self) -> Tensor:
        """W with what the adapters of the active run add to it, out in."""
        if not run_has_edits():
            return self.weight
        identity = torch.eye(self.in_features, dtype=self.weight.dtype, device=self.weight.device)
        return adapt(self.name, identity, self.weight.mT, False).mT
