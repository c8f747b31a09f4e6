"""The module that layers are, which costs less to call than PyTorch's own."""

from __future__ import annotations

from typing import Any

from torch import nn


class Module(nn.Module):
    """PyTorch's, called straight where nobody registered a hook of PyTorch's kind with it; Loupe's are HookPoints."""

    def __call__(self, *args: Any, **options: Any) -> Any:
        if self._forward_hooks or self._forward_pre_hooks or self._backward_hooks or self._backward_pre_hooks:
            return super().__call__(*args, **options)
        return self.forward(*args, **options)


class Linear(Module, nn.Linear):
    """x W^T + b."""
