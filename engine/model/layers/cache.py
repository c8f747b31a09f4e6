"""The KV cache: keys and values of the tokens already read, so that a new token costs one row."""

from __future__ import annotations

import torch
from torch import Tensor

from engine.model.config import Attention, ModelConfig, kv_heads


class LayerCache:
    """Keys and values of one layer, batch kv_head key d_head or d_value, in memory taken once."""

    def __init__(self, k: Tensor, v: Tensor) -> None:
        self.k, self.v = k, v
        self.length = 0

    def append(self, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """Add the keys and values of new tokens (batch kv_head pos d_head); returns all so far."""
        begin, new = self.length, k.shape[2]
        end = begin + new
        if end > self.k.shape[2]:
            raise ValueError(f"the cache must hold {end} tokens, and has room for {self.k.shape[2]}; make it longer.")
        self.k.narrow(2, begin, new).copy_(k)  # a third of the time of an index
        self.v.narrow(2, begin, new).copy_(v)
        self.length = end
        return self.k.narrow(2, 0, end), self.v.narrow(2, 0, end)

    def reorder(self, rows: Tensor) -> None:
        """Reorders as `KVCache.reorder` does, for what is appended to afterwards: every row gets memory of its own."""
        self.k, self.v = self.select_batch(self.k, rows), self.select_batch(self.v, rows)

    def select_batch(self, old: Tensor, rows: Tensor) -> Tensor:
        new = old if len(rows) == len(old) else old.new_empty(len(rows), *old.shape[1:])
        new[:, :, : self.length] = old[rows.to(old.device), :, : self.length]
        return new


class KVCache:
    """`cross` holds, for an encoder-decoder, the keys and values of the encoder's `memory`, made once."""

    def __init__(self, config: ModelConfig, batch: int, length: int, like: Tensor, source: int = 0) -> None:
        """Room for `length` tokens, in the dtype and on the device of `like`; the encoder reads `source` tokens."""

        def empty(attention: Attention, room: int) -> LayerCache:
            widths = config.head_width(attention), config.value_width(attention)
            shapes = [(batch, kv_heads(attention), room, width) for width in widths]
            return LayerCache(*(torch.empty(shape, dtype=like.dtype, device=like.device) for shape in shapes))

        self.layers = [empty(config.attention, length) for _ in range(config.layers)]
        crossing = range(config.layers if config.encoder else 0)
        self.cross = [empty(config.cross_attention, source) for _ in crossing]
        self.tokens = 0
        self.ids: Tensor | None = None  # batch pos: what was read, where positions depend on it
        self.memory: Tensor | None = None  # batch key d_model: what the encoder gave

    def cross_of(self, layer: int) -> LayerCache | None:
        return self.cross[layer] if self.cross else None

    def reorder(self, rows: Tensor) -> None:
        """Row i becomes what row rows[i] was; a batch may grow, shrink and repeat rows (the hypotheses of a beam)."""
        for layer in self.layers:
            layer.reorder(rows)
        for layer in self.cross:
            layer.k, layer.v = select_rows(layer.k, rows), select_rows(layer.v, rows)
        self.ids = None if self.ids is None else select_rows(self.ids, rows)
        self.memory = None if self.memory is None else select_rows(self.memory, rows)

    def rewind(self, length: int) -> None:
        """Forget what was read behind the first `length` tokens."""
        for layer in self.layers:
            layer.length = min(layer.length, length)
        self.tokens = min(self.tokens, length)
        self.ids = None if self.ids is None else self.ids[:, :length]

    @property
    def device(self) -> torch.device | None:
        """None where it has no layers."""
        return self.layers[0].k.device if self.layers else None

    def move(self, device: torch.device, dtype: torch.dtype) -> None:
        """Moves all that it holds to a device, in `dtype`."""
        for layer in (*self.layers, *self.cross):
            layer.k, layer.v = layer.k.to(device, dtype), layer.v.to(device, dtype)
        self.ids = None if self.ids is None else self.ids.to(device)
        self.memory = None if self.memory is None else self.memory.to(device, dtype)

    @property
    def bytes(self) -> int:
        return sum(c.k.nbytes + c.v.nbytes for c in (*self.layers, *self.cross))


def select_rows(x: Tensor, rows: Tensor) -> Tensor:
    """x[rows]; where all rows of `x` are one in memory, so are those of the result, which is then not to be written."""
    one = len(x) == 1 or x.stride(0) == 0
    return x[:1].expand(len(rows), *x.shape[1:]) if one else x[rows.to(x.device)]
