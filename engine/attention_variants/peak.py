"""How many bytes of tensors a computation holds at its peak, counted as they are made and dropped."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode


class PeakBytes(TorchDispatchMode):
    """`with PeakBytes() as seen: ...` leaves the highest sum in `seen.peak`, for this thread alone.

    A tensor counts from the operation that makes its storage until nobody refers to it. What existed before does not
    count, and neither does the scratch space inside one operation (a fused attention's is a constant per thread).
    """

    def __init__(self) -> None:
        super().__init__()
        self.live = self.peak = 0

    def __torch_dispatch__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        out = func(*args, **(kwargs or {}))
        known = {given.untyped_storage()._cdata for given in _tensors([args, list((kwargs or {}).values())])}
        for made in _tensors([out]):
            if (storage := made.untyped_storage())._cdata not in known:
                known.add(storage._cdata)
                self._add(storage.nbytes())
                weakref.finalize(storage, self._add, -storage.nbytes())
        return out

    def _add(self, size: int) -> None:
        self.live += size
        self.peak = max(self.peak, self.live)


def _tensors(values: Iterable[Any]) -> Iterator[Tensor]:
    for value in values:
        if isinstance(value, Tensor):
            yield value
        elif isinstance(value, list | tuple):
            yield from _tensors(value)
