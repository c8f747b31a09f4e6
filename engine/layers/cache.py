"""The KV cache: keys and values of the tokens already read, so that a new token costs one row."""

from __future__ import annotations

import torch
from torch import Tensor

from engine.config import ModelConfig


class LayerCache:
    """Keys and values of one layer, both batch kv_head key d_head, in memory taken once."""

    def __init__(self, k: Tensor, v: Tensor) -> None:
        self.k, self.v = k, v
        self.length = 0

    def append(self, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """Add the keys and values of new tokens (batch kv_head pos d_head); returns all so far."""
        end = self.length + k.shape[2]
        if end > self.k.shape[2]:
            raise ValueError(
                f"the cache holds {self.k.shape[2]} tokens and {end} were put in; make it longer."
            )
        self.k[:, :, self.length : end] = k
        self.v[:, :, self.length : end] = v
        self.length = end
        return self.k[:, :, :end], self.v[:, :, :end]


class KVCache:
    def __init__(self, config: ModelConfig, batch: int, length: int, like: Tensor) -> None:
        """Room for `length` tokens, in the dtype and on the device of `like`."""
        shape = (batch, config.kv_heads, length, config.d_head)

        def empty() -> Tensor:
            return torch.empty(shape, dtype=like.dtype, device=like.device)

        self.layers = [LayerCache(empty(), empty()) for _ in range(config.layers)]
        self.tokens = 0

    @property
    def bytes(self) -> int:
        return sum(c.k.nbytes + c.v.nbytes for c in self.layers)
