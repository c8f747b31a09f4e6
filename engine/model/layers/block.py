"""One transformer block.

resid_pre --> norm1 --> attention --> (+) resid_mid --> norm2 --> MLP --> (+) resid_post       norm before
    '---------------------------------^'------------------------------------^
resid_pre --> attention --> (+) resid_mid --> norm1 --> MLP --> (+) resid_post --> norm2        norm after
    '------------------------^                  '----------------^
resid_pre --> norm1 --> attention --> norm1_after --> (+) resid_mid --> ...                     norm around
resid_pre --> attention --> norm1_after --> (+) resid_mid --> MLP --> norm2_after --> (+) ...   norm of the output
resid_pre --> norm1 --> attention --> (+) resid_post <-- MLP <-- norm2 <-- resid_pre            parallel

In the decoder of an encoder-decoder, attention to the encoder (cross_attn, with norm_cross) stands behind resid_mid,
and resid_cross is what follows it. What a residual connection carries past attention, attention to the encoder and the
MLP are skip1, skip_cross and skip2: the streams as they are, until an edit changes them. Where a model multiplies what
its sublayers add by a number, the products are added1, added_cross and added2.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from engine.model.config import ModelConfig
from engine.model.hooks import HookPoint
from engine.model.layers.attention import Attention, SharedTensors
from engine.model.layers.cache import LayerCache
from engine.model.layers.dropout import dropout
from engine.model.layers.experts import make_mlp
from engine.model.layers.module import Module
from engine.model.layers.norm import NoNorm, make_norm


class Block(Module):
    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        place = config.norm.place
        self.norm_before, self.norm_after = place != "after", place == "after"
        of_stream, of_output = place != "output", place in ("around", "output")
        self.dropout, self.scale = config.dropout, config.residual_scale
        learned = config.layer_scale
        self.scale1 = nn.Parameter(torch.empty(config.d_model)) if learned else None
        self.scale2 = nn.Parameter(torch.empty(config.d_model)) if learned and config.mlp else None
        self.parallel = config.sublayers != "sequential"
        has_norm2 = config.mlp is not None and config.sublayers != "parallel_one_norm"

        def norm(stands: bool = True) -> nn.Module:
            return make_norm(config.norm, config.d_model) if stands else NoNorm()

        self.norm1 = norm(of_stream and config.norm.first)
        self.attn = Attention(config, config.attention)
        self.norm_cross = norm() if config.encoder else None
        self.cross_attn = Attention(config, config.cross_attention, crosses=True) if config.encoder else None
        self.norm2 = norm(of_stream) if has_norm2 else None
        self.mlp = make_mlp(config.mlp, config.d_model) if config.mlp else None
        self.norm1_after = norm() if of_output else None
        self.norm2_after = norm() if of_output and config.mlp else None
        self._add_skips(config)
        self.hook_resid_pre = HookPoint("resid_pre", "batch pos d_model")
        if not self.parallel:
            self.hook_resid_mid = HookPoint("resid_mid", "batch pos d_model")
        if config.encoder:
            self.hook_resid_cross = HookPoint("resid_cross", "batch pos d_model")
        self.hook_resid_post = HookPoint("resid_post", "batch pos d_model")

    def _add_skips(self, config: ModelConfig) -> None:
        """None where no residual connection stands, and where what is added is not scaled."""

        def skip(name: str, stands: bool) -> HookPoint | None:
            return HookPoint(name, "batch pos d_model", on_request=True) if config.residual and stands else None

        self.hook_skip1 = skip("skip1", True)
        self.hook_skip_cross = skip("skip_cross", config.encoder is not None)
        self.hook_skip2 = skip("skip2", config.mlp is not None and not self.parallel)

        def added(name: str, stands: bool = True) -> HookPoint | None:
            scaled = (self.scale != 1 or config.layer_scale) and stands
            return HookPoint(name, "batch pos d_model") if scaled else None

        self.hook_added1 = added("added1")
        self.hook_added_cross = added("added_cross", config.encoder is not None)
        self.hook_added2 = added("added2", config.mlp is not None)

    def forward(
        self,
        resid: Tensor,
        shared: SharedTensors,
        cache: LayerCache | None = None,
        memory: Tensor | None = None,
        across: SharedTensors | None = None,
        cross_cache: LayerCache | None = None,
    ) -> Tensor:
        """batch pos d_model. `memory` (batch key d_model) is the encoder's; `across` says what of it may be seen."""
        resid = self.hook_resid_pre(resid)
        read = self.norm1(resid) if self.norm_before else resid
        out = self.attn(read, shared, cache)
        out = out if self.norm1_after is None else self.norm1_after(out)
        if self.parallel:
            return self.hook_resid_post(self.parallel_sublayers(resid, read, out))
        resid = self.hook_resid_mid(
            self.add(resid, self.scale_output(out, self.hook_added1, self.scale1), self.hook_skip1)
        )
        resid = self.norm1(resid) if self.norm_after else resid
        if self.cross_attn is not None and self.norm_cross is not None and across is not None:
            read = self.norm_cross(resid) if self.norm_before else resid
            out = self.cross_attn(read, across, cross_cache, memory)
            out = self.scale_output(out, self.hook_added_cross, None)
            resid = self.hook_resid_cross(self.add(resid, out, self.hook_skip_cross))
            resid = self.norm_cross(resid) if self.norm_after else resid
        if self.mlp is None or self.norm2 is None:
            return self.hook_resid_post(resid)
        out = self.mlp(self.norm2(resid) if self.norm_before else resid)
        out = out if self.norm2_after is None else self.norm2_after(out)
        out = self.scale_output(out, self.hook_added2, self.scale2)
        resid = self.hook_resid_post(self.add(resid, out, self.hook_skip2))
        return self.norm2(resid) if self.norm_after else resid

    def parallel_sublayers(self, resid: Tensor, read: Tensor, out: Tensor) -> Tensor:
        """Attention's `out` and the MLP's, both from the same stream, added to it together."""
        out = self.scale_output(out, self.hook_added1, self.scale1)
        if self.mlp is None:
            return self.add(resid, out, self.hook_skip1)
        other = self.mlp(read if self.norm2 is None else self.norm2(resid))
        other = other if self.norm2_after is None else self.norm2_after(other)
        return self.add(resid, out + self.scale_output(other, self.hook_added2, self.scale2), self.hook_skip1)

    def scale_output(self, out: Tensor, hook: HookPoint | None, learned: Tensor | None) -> Tensor:
        """Share of a sublayer's output that is added to the stream."""
        return out if hook is None else hook(out * (self.scale if learned is None else learned))

    def add(self, resid: Tensor, out: Tensor, skip: HookPoint | None) -> Tensor:
        out = dropout(out, self.dropout, self.training)
        return out if skip is None else skip(resid) + out
