"""A weight that stays as a quantised file holds it, and is decoded only where something is computed with it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

import torch
from torch import Tensor

from engine.model.quantised.scheme import Scheme
from engine.model.stored import StoredTensor, aten

# Views that keep rows whole, and where their arguments name the axis that they go along.
ROWS = {
    aten.select.int: 0,
    aten.slice.Tensor: 0,
    aten.split.Tensor: 1,
    aten.split_with_sizes.default: 1,
    aten.unbind.int: 0,
}
SAME = frozenset((aten.alias.default, aten.detach.default))


class QuantisedTensor(StoredTensor):
    """A tensor of `dtype` whose rows are blocks of `scheme`: `stored` is uint8, with bytes in place of its last axis.

    Rows of it, and itself turned over (`turned`: the last two axes exchanged), are of the same kind; picked rows are
    decoded alone. Every other operation gets all numbers decoded, for as long as it takes.
    """

    scheme: Scheme
    turned: bool

    @staticmethod
    @torch.inference_mode(False)
    def __new__(
        cls, stored: Tensor, scheme: Scheme, dtype: torch.dtype = torch.float32, turned: bool = False
    ) -> QuantisedTensor:
        shape = [*stored.shape[:-1], stored.shape[-1] // scheme.bytes * scheme.numbers]
        strides = [prod(shape[axis + 1 :]) for axis in range(len(shape))]
        if turned:
            shape[-2:], strides[-2:] = shape[:-3:-1], strides[:-3:-1]
        made: QuantisedTensor = Tensor._make_wrapper_subclass(
            cls, shape, strides=strides, dtype=dtype, device=stored.device
        )
        made.stored, made.scheme, made.turned, made.mapped = stored, scheme, turned, False
        return made

    def __init__(
        self, stored: Tensor, scheme: Scheme, dtype: torch.dtype = torch.float32, turned: bool = False
    ) -> None:
        pass

    def like(self, stored: Tensor, turned: bool = False) -> QuantisedTensor:
        return QuantisedTensor(stored, self.scheme, self.dtype, turned)

    def of(self, dtype: torch.dtype) -> QuantisedTensor:
        """The same, decoded to another dtype."""
        return QuantisedTensor(self.stored, self.scheme, dtype, self.turned)

    def numbers(self) -> Tensor:
        found = self.scheme.read(self.stored).to(self.dtype)
        return found.mT if self.turned else found

    def as_in_file(self) -> Tensor:
        """A file of weights that Loupe writes holds the numbers."""
        return self.numbers()

    def view_stored(self, function: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        if function in SAME:
            return self.like(self.stored, self.turned)
        last = {self.dim() - 1, self.dim() - 2}
        over = function is aten.transpose.int and {axis % self.dim() for axis in args[:2]} == last
        if over or (function is aten.t.default and self.dim() == 2):
            return self.like(self.stored, not self.turned)
        if function not in ROWS or kwargs or self.turned:
            return None
        at = ROWS[function]
        axis = args[at] % self.dim() if len(args) > at else 0
        if axis == self.dim() - 1:
            return None
        made = function(self.stored, *args)
        return self.like(made) if isinstance(made, Tensor) else [self.like(one) for one in made]

    def pick(self, function: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Tensor | None:
        """Rows of a table, decoded."""
        if self.turned or self.dim() != 2:
            return None
        if function is aten.embedding.default:
            chosen = args[0]
        elif function is aten.index_select.default and args[0] == 0:
            chosen = args[1]
        elif function is aten.index.Tensor and len(args[0]) == 1 and args[0][0].dtype != torch.bool:
            chosen = args[0][0]
        else:
            return None
        return self.scheme.read(self.stored[chosen]).to(self.dtype)


def take_rows(tensor: Tensor, order: Tensor) -> Tensor:
    """Rows in another order; a quantised tensor stays one, with a copy of its bytes."""
    if isinstance(tensor, QuantisedTensor) and not tensor.turned:
        return tensor.like(tensor.stored[order])
    return tensor[order.to(tensor.device)]
