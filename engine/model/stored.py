"""A weight that stays as it is stored, a map of its file, and is converted only where something is computed with it.

A model of such weights is as immutable as any other, and threads share it: what is converted belongs to one operation
of one of them, and is freed with it.
"""

from __future__ import annotations

import mmap
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

LARGE = 2**18  # bytes
aten = torch.ops.aten
PICKING = frozenset((aten.embedding.default, aten.index.Tensor, aten.index_select.default))  # read few rows of many


class StoredTensor(Tensor):
    """A tensor of `dtype` whose numbers are those of `stored`, in its own dtype.

    A view of it is one of the same kind. Every other operation gets the numbers converted, for as long as it takes, so
    that its result is bit for bit that of a tensor converted beforehand. `mapped` says that `stored` is a map of a
    file, which takes none of the process' own memory. Nothing can be written to it.
    """

    stored: Tensor
    mapped: bool
    __torch_function__ = torch._C._disabled_torch_function_impl  # type: ignore[assignment]

    @staticmethod
    @torch.inference_mode(False)  # else PyTorch could make no views of it there
    def __new__(cls, stored: Tensor, dtype: torch.dtype, mapped: bool = True) -> StoredTensor:
        made: StoredTensor = Tensor._make_wrapper_subclass(
            cls,
            stored.shape,
            strides=stored.stride(),
            storage_offset=stored.storage_offset(),
            dtype=dtype,
            device=stored.device,
        )
        made.stored, made.mapped = stored, mapped
        return made

    def __init__(self, stored: Tensor, dtype: torch.dtype, mapped: bool = True) -> None:
        pass

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]
        cls, function: Any, types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        written = [one for one, named in zip(args, function._schema.arguments, strict=False) if named.is_write]
        if any(isinstance(one, cls) for one in written):
            raise RuntimeError(
                "a weight that stays in its file must not be written to; open the checkpoint on a machine whose "
                "memory holds its weights, and change them there."
            )
        first = args[0] if args else None
        if isinstance(first, cls) and not any(isinstance(one, torch.dtype) for one in (*args, *kwargs.values())):
            if (made := first.view_stored(function, args[1:], kwargs)) is not None:
                return made
            if function in PICKING and (made := first.pick(function, args[1:], kwargs)) is not None:
                return made
        return function(*_convert(args), **{name: _convert(one) for name, one in kwargs.items()})

    def numbers(self) -> Tensor:
        """All numbers, converted."""
        return convert(self.stored, self.dtype)

    def as_in_file(self) -> Tensor:
        """Its bytes, as a file of weights holds them."""
        return self.stored

    def view_stored(self, function: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """A view of what is stored, None where the function makes none."""
        if not function.is_view:
            return None
        made = function(self.stored, *args, **kwargs)
        return _wrap(made, self) if isinstance(made, Tensor) else [_wrap(one, self) for one in made]

    def pick(self, function: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Tensor | None:
        """Some rows, converted; None where all must be."""
        picked: Tensor = function(self.stored, *args, **kwargs)
        return picked.to(self.dtype)

    def __deepcopy__(self, memo: dict[int, Any]) -> nn.Parameter:
        """A copy in memory, which can be written to."""
        return nn.Parameter(self.detach().clone(), requires_grad=self.requires_grad)

    def numpy(self, **options: Any) -> Any:
        return _convert(self).numpy(**options)

    def tolist(self) -> Any:
        return _convert(self).tolist()


def as_stored(tensor: Tensor) -> Tensor:
    """The tensor as it is stored; any other as it is."""
    return tensor.as_in_file() if isinstance(tensor, StoredTensor) else tensor


def stored_state(model: nn.Module) -> dict[str, Tensor]:
    """The model's state_dict as its file holds it, with what lies in memory alone as it is."""
    return {name: as_stored(tensor) for name, tensor in model.state_dict().items()}


def saved_dtype(model: nn.Module) -> torch.dtype:
    """Dtype that the model's first weight, its table of tokens if it has one, is stored in."""
    return as_stored(next(model.parameters())).dtype


def _convert(value: Any) -> Any:
    if isinstance(value, StoredTensor):
        return value.numbers()
    return type(value)(map(_convert, value)) if isinstance(value, (list, tuple)) else value


def convert(stored: Tensor, dtype: torch.dtype) -> Tensor:
    """`stored.to(dtype)`; a large one in pages that go back to the system once nobody holds them. The C library, which
    keeps what is freed, would put what a run records between two such matrices and take new memory for the next."""
    if stored.dtype == dtype or stored.nbytes < LARGE:
        return stored.to(dtype)
    private = {"flags": mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS} if sys.platform != "win32" else {}
    pages = mmap.mmap(-1, stored.numel() * dtype.itemsize, **private)
    like = torch.empty_like(stored, device="meta")
    return torch.frombuffer(pages, dtype=dtype).as_strided(like.shape, like.stride()).copy_(stored)


def _wrap(view: Tensor, of: StoredTensor) -> StoredTensor:
    return StoredTensor(view, of.dtype, of.mapped)
