"""One transformer block.

resid_pre --> norm1 --> attention --> (+) resid_mid --> norm2 --> MLP --> (+) resid_post       norm before
    '---------------------------------^'------------------------------------^
resid_pre --> attention --> (+) resid_mid --> norm1 --> MLP --> (+) resid_post --> norm2        norm after
    '------------------------^                  '----------------^
"""

from __future__ import annotations

from torch import Tensor, nn

from engine.config import ModelConfig
from engine.hooks import HookPoint
from engine.layers.attention import Attention
from engine.layers.cache import LayerCache
from engine.layers.dropout import dropout
from engine.layers.mask import AttentionMask
from engine.layers.mlp import MLP
from engine.layers.norm import make_norm


class Block(nn.Module):
    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.norm_before = config.norm.place == "before"
        self.residual, self.dropout = config.residual, config.dropout
        self.norm1 = make_norm(config.norm, config.d_model)
        self.attn = Attention(config)
        self.norm2 = make_norm(config.norm, config.d_model) if config.mlp else None
        self.mlp = MLP(config.mlp, config.d_model) if config.mlp else None
        self.hook_resid_pre = HookPoint("resid_pre", "batch pos d_model")
        self.hook_resid_mid = HookPoint("resid_mid", "batch pos d_model")
        self.hook_resid_post = HookPoint("resid_post", "batch pos d_model")

    def forward(self, resid: Tensor, mask: AttentionMask, cache: LayerCache | None = None) -> Tensor:
        resid = self.hook_resid_pre(resid)
        read = self.norm1(resid) if self.norm_before else resid
        resid = self.hook_resid_mid(self.add(resid, self.attn(read, mask, cache)))
        if not self.norm_before:
            resid = self.norm1(resid)
        if self.mlp is None or self.norm2 is None:
            return self.hook_resid_post(resid)
        read = self.norm2(resid) if self.norm_before else resid
        resid = self.hook_resid_post(self.add(resid, self.mlp(read)))
        return resid if self.norm_before else self.norm2(resid)

    def add(self, resid: Tensor, out: Tensor) -> Tensor:
        out = dropout(out, self.dropout, self.training)
        return resid + out if self.residual else out
