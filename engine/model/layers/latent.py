"""What keys and values, and queries, are made of in multi-head latent attention."""

from __future__ import annotations

from dataclasses import replace

from torch import Tensor

from engine.model.config import Latent as LatentConfig
from engine.model.config import ModelConfig
from engine.model.hooks import HookPoint
from engine.model.layers.module import Linear, Module
from engine.model.layers.norm import make_norm


class Latent(Module):
    """The stream compressed to one vector for keys and values of all heads and, where configured, to one for queries;
    and the part of a key that positions turn, which all heads share (DeepSeek-AI 2024, DeepSeek-V2, equations 9 to 17).
    """

    def __init__(self, config: ModelConfig, latent: LatentConfig) -> None:
        super().__init__()
        norm = replace(config.norm, eps=latent.eps)
        self.keys = Linear(config.d_model, latent.keys, bias=latent.bias)
        self.keys_norm = make_norm(norm, latent.keys, "batch pos d_latent")
        self.shared = Linear(config.d_model, config.d_turned, bias=latent.bias)
        self.queries: Linear | None = None
        self.hook_keys = HookPoint("keys", "batch pos d_latent")
        self.hook_shared = HookPoint("shared", "batch pos d_turned")
        if latent.queries is not None:
            self.queries = Linear(config.d_model, latent.queries, bias=latent.bias)
            self.queries_norm = make_norm(norm, latent.queries, "batch pos d_latent")
            self.hook_queries = HookPoint("queries", "batch pos d_latent")

    def of_keys(self, x: Tensor) -> Tensor:
        """Compressed vector that keys and values are made of, batch pos d_latent."""
        made: Tensor = self.keys_norm(self.hook_keys(self.keys(x)))
        return made

    def of_queries(self, x: Tensor) -> Tensor:
        """Compressed vector that queries are made of, batch pos d_latent; the stream itself where it is not
        compressed."""
        if self.queries is None:
            return x
        made: Tensor = self.queries_norm(self.hook_queries(self.queries(x)))
        return made

    def turned_keys(self, x: Tensor, heads: int) -> Tensor:
        """The first components of every head's key, before they are turned, batch pos head d_turned."""
        return self.hook_shared(self.shared(x))[:, :, None].expand(-1, -1, heads, -1)
