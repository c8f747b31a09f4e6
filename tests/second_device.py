"""A second device that computes, on a machine that has none: its tensors say that they are on `SECOND`.

Beneath each lies a tensor of the CPU, so that results can be compared bit for bit. As on CUDA, an operation whose
tensors are on two devices fails, unless those of the CPU are single numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

from engine.model.transformer import Transformer
from engine.model.twin import Twin

SECOND = torch.device("meta")


class There(Tensor):
    """A tensor on the second device; `held` are its numbers."""

    held: Tensor

    @staticmethod
    def __new__(cls, real: Tensor) -> There:
        made = Tensor._make_wrapper_subclass(  # type: ignore[attr-defined]
            cls, real.shape, strides=real.stride(), storage_offset=real.storage_offset(), dtype=real.dtype,
            device=SECOND, requires_grad=False,
        )  # fmt: skip
        made.held = real
        return made

    @classmethod
    def __torch_dispatch__(cls, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return dispatch(function, args, kwargs or {})


def dispatch(function: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    tensors = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, Tensor)]
    there = [tensor for tensor in tensors if isinstance(tensor, There)]
    asked = kwargs.get("device")
    moves = function in (torch.ops.aten._to_copy.default, torch.ops.aten.copy_.default)
    beside = [tensor for tensor in tensors if not isinstance(tensor, There) and tensor.dim()]
    if there and beside and not moves:
        raise RuntimeError(f"{function}: tensors of {tuple(beside[0].shape)} on the CPU and of the second device meet")
    onto = SECOND if asked is None and there else asked
    kwargs = {**kwargs, "device": "cpu"} if asked is not None else kwargs
    plain = tree_map(lambda leaf: leaf.held if isinstance(leaf, There) else leaf, (args, kwargs))
    made = function(*plain[0], **plain[1])
    if onto is None or torch.device(onto) != SECOND:
        return made
    same = {id(tensor.held): tensor for tensor in there}  # what an operation in place returns is its tensor
    return tree_map(lambda leaf: same.get(id(leaf), There(leaf)) if isinstance(leaf, Tensor) else leaf, made)


class Second(TorchDispatchMode):
    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        given = kwargs or {}
        with self:  # in inference mode, operations arrive whole that are made of others
            made = function.decompose(*args, **given)
        if made is not NotImplemented:
            return made
        new = given.get("device") is not None and torch.device(given["device"]) == SECOND
        if new or any(isinstance(leaf, There) for leaf in tree_leaves((args, given))):
            return dispatch(function, args, given)
        return function(*args, **given)


class Crossings(TorchFunctionMode):
    """What PyTorch does above its operations: numbers of Python become a tensor, and a tensor numbers."""

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        given = kwargs or {}
        if function is torch.tensor and given.get("device") is not None and torch.device(given["device"]) == SECOND:
            return function(*args, **{**given, "device": "cpu"}).to(SECOND)
        if function is Tensor.tolist and isinstance(args[0], There):
            return args[0].held.tolist()
        return function(*args, **given)


class Chance(torch.Generator):
    """The second device draws as the CPU does."""

    def __new__(cls, device: Any = "cpu") -> Chance:
        return super().__new__(cls, "cpu" if torch.device(device) == SECOND else device)


@contextmanager
def second_device() -> Iterator[None]:
    """The second device is there in the block, with gradients too."""
    with Second(), Crossings(), patch.object(torch, "Generator", Chance):
        yield


def on_second_device(function: Callable[..., Any]) -> Callable[..., Any]:
    """`function`, with the second device there while it computes.

    PyTorch takes no tensors of a kind of its own in inference mode; `no_grad` stands in for it.
    """

    def compute(*given: Any, **options: Any) -> Any:
        with Second(), torch.inference_mode(False), torch.no_grad():
            return function(*given, **options)

    return compute


class SecondTwin(Twin):
    """A twin on the second device; `told` are the sentences for the session."""

    def __init__(self, model: Transformer, dtype: torch.dtype = torch.float32) -> None:
        self.told: list[str] = []
        with Second():
            super().__init__(model, SECOND, dtype, self.told.append)

    compute = on_second_device(Twin.compute)
