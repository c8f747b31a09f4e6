"""Attention, in the explicit form that shows every step and in the fused form that only gives the result."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

from engine.config import ModelConfig
from engine.hooks import HookPoint
from engine.layers.cache import LayerCache
from engine.layers.dropout import dropout
from engine.layers.mask import AttentionMask
from engine.layers.position import alibi_bias, alibi_slopes, rotary_frequencies, rotate, rotation
from engine.layers.softmax import softmax


class Attention(nn.Module):
    """Multi-head attention (Vaswani et al. 2017, section 3.2), with grouped or shared keys and values where
    configured.

    scores = q k^T / sqrt(d_head);  pattern = softmax((scores + bias masked) / temperature);  out =
    concat_h(pattern v) W_O
    """

    frequencies: Tensor | None
    slopes: Tensor | None
    unit_temperature: Tensor

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        attention = config.attention
        self.heads, self.kv_heads, self.d_head = attention.heads, config.kv_heads, config.d_head
        self.scale = self.d_head**-0.5
        self.dropout = config.dropout
        self.q = nn.Linear(config.d_model, self.heads * self.d_head, bias=attention.bias)
        self.k = nn.Linear(config.d_model, self.kv_heads * self.d_head, bias=attention.bias)
        self.v = nn.Linear(config.d_model, self.kv_heads * self.d_head, bias=attention.bias)
        self.out = nn.Linear(self.heads * self.d_head, config.d_model, bias=attention.out_bias)
        self._add_positions(config)
        self._add_hooks()

    def _add_positions(self, config: ModelConfig) -> None:
        kind = config.positions.kind
        frequencies = rotary_frequencies(self.d_head, config.positions.theta) if kind == "rotary" else None
        self.register_buffer("frequencies", frequencies, persistent=False)
        self.register_buffer(
            "slopes", alibi_slopes(self.heads) if kind == "alibi" else None, persistent=False
        )
        self.register_buffer("unit_temperature", torch.ones(self.heads, device="cpu"), persistent=False)
        if kind == "rotary":
            self.hook_q_rotated = HookPoint("q_rotated", "batch pos head d_head")
            self.hook_k_rotated = HookPoint("k_rotated", "batch pos head d_head")
        if kind == "alibi":
            self.hook_bias = HookPoint("bias", "head pos key")

    def _add_hooks(self) -> None:
        self.hook_q = HookPoint("q", "batch pos head d_head")
        self.hook_k = HookPoint("k", "batch pos head d_head")
        self.hook_v = HookPoint("v", "batch pos head d_head")
        self.hook_scores = HookPoint("scores", "batch head pos key")
        self.hook_mask = HookPoint("mask", "batch head pos key")
        self.hook_masked_scores = HookPoint("masked_scores", "batch head pos key")
        self.hook_temperature = HookPoint("temperature", "head")
        self.hook_pattern = HookPoint("pattern", "batch head pos key")
        self.hook_z = HookPoint("z", "batch pos head d_head")
        self.hook_head_out = HookPoint("head_out", "batch pos head d_model", on_request=True)
        self.hook_out = HookPoint("out", "batch pos d_model")
        inner = [
            self.hook_scores,
            self.hook_mask,
            self.hook_masked_scores,
            self.hook_temperature,
            self.hook_pattern,
        ]
        self.inner_hooks = inner + ([self.hook_bias] if hasattr(self, "hook_bias") else [])

    def forward(self, x: Tensor, mask: AttentionMask, cache: LayerCache | None = None) -> Tensor:
        q = self.hook_q(self.q(x).unflatten(-1, (self.heads, self.d_head)))  # batch pos head d_head
        k = self.hook_k(self.k(x).unflatten(-1, (self.kv_heads, self.d_head)))
        v = self.hook_v(self.v(x).unflatten(-1, (self.kv_heads, self.d_head)))
        if self.frequencies is not None:
            cos, sin = (part.to(x.dtype) for part in rotation(mask.pos, self.frequencies))
            q = self.hook_q_rotated(rotate(q, cos, sin))
            k = self.hook_k_rotated(rotate(k, cos, sin))
        q, k, v = q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2)  # batch head pos d_head
        if cache is not None:
            k, v = cache.append(k, v)
        attend = self.explicit if any(hook.wanted for hook in self.inner_hooks) else self.fused
        z = self.hook_z(attend(q, k, v, mask).transpose(1, 2))  # batch pos head d_head
        return self.hook_out(self.join(z))

    def explicit(self, q: Tensor, k: Tensor, v: Tensor, mask: AttentionMask) -> Tensor:
        group = self.heads // self.kv_heads
        if group > 1:
            k, v = k.repeat_interleave(group, dim=1), v.repeat_interleave(group, dim=1)
        scores = self.hook_scores((q * self.scale) @ k.mT)  # batch head pos key
        allowed = self.hook_mask(mask.tensor.expand(scores.shape))
        biased = scores if self.slopes is None else scores + self.bias(self.slopes, mask, scores.dtype)
        masked_scores = self.hook_masked_scores(torch.where(allowed, biased, float("-inf")))
        temperature = self.hook_temperature(self.unit_temperature)
        unit = temperature is self.unit_temperature
        pattern = self.hook_pattern(softmax(masked_scores, None if unit else temperature[:, None, None]))
        return dropout(pattern, self.dropout, self.training) @ v

    def fused(self, q: Tensor, k: Tensor, v: Tensor, mask: AttentionMask) -> Tensor:
        allowed = None if mask.is_causal or mask.allows_all else mask.tensor
        if self.slopes is not None:
            allowed = torch.where(mask.tensor, self.bias(self.slopes, mask, q.dtype), float("-inf"))
        return scaled_dot_product_attention(
            q,
            k,
            v,
            attn_mask=allowed,
            dropout_p=self.dropout if self.training else 0.0,
            is_causal=allowed is None and not mask.allows_all,
            enable_gqa=self.heads != self.kv_heads,
        )

    def bias(self, slopes: Tensor, mask: AttentionMask, dtype: torch.dtype) -> Tensor:
        return self.hook_bias(alibi_bias(slopes, mask.pos, mask.key).to(dtype))

    def join(self, z: Tensor) -> Tensor:
        """The heads concatenated and sent through W_O; each through its share where that was asked for."""
        if not self.hook_head_out.wanted:
            return self.out(z.flatten(2))
        share = self.out.weight.unflatten(1, (self.heads, self.d_head))  # d_model head d_head
        head_out = self.hook_head_out(torch.einsum("bphd,mhd->bphm", z, share))
        total = head_out.sum(2)
        return total if self.out.bias is None else total + self.out.bias
