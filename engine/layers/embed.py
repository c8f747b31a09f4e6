"""From token ids to the first residual stream."""

from __future__ import annotations

from torch import Tensor, nn

from engine.config import ModelConfig
from engine.hooks import HookPoint
from engine.layers.dropout import dropout
from engine.layers.position import sinusoidal


class Embed(nn.Module):
    """W_E[id], plus W_P[pos] where positions are learned, plus the sinusoids where they are not."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        kind = config.positions.kind
        self.dropout = config.dropout
        self.tokens = nn.Embedding(config.vocab_size, config.d_model)
        self.positions = nn.Embedding(config.context, config.d_model) if kind == "learned" else None
        self.sinusoids = kind == "sinusoidal"
        self.hook_tokens = HookPoint("tokens", "batch pos d_model")
        if kind in ("learned", "sinusoidal"):
            self.hook_positions = HookPoint("positions", "batch pos d_model")

    def forward(self, ids: Tensor, pos: Tensor) -> Tensor:
        resid = self.hook_tokens(self.tokens(ids))  # batch pos d_model
        if self.positions is not None:
            resid = resid + self.hook_positions(self.positions(pos).expand_as(resid))
        elif self.sinusoids:
            sinusoids = sinusoidal(pos, resid.shape[-1]).to(resid.dtype)
            resid = resid + self.hook_positions(sinusoids.expand_as(resid))
        return dropout(resid, self.dropout, self.training)
