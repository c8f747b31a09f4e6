"""Attention, in the explicit form that shows every step and in the fused form that only gives the result."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

from engine.model.config import Attention as AttentionConfig
from engine.model.config import ModelConfig, kv_heads
from engine.model.hooks import HookPoint, any_wanted, run_has_edits
from engine.model.layers.cache import LayerCache
from engine.model.layers.dropout import dropout
from engine.model.layers.mask import AttentionMask
from engine.model.layers.module import Linear, Module
from engine.model.layers.norm import make_norm
from engine.model.layers.position import Rotation, rotate, rotate_both
from engine.model.layers.position_override import moved_bias, moved_rotation
from engine.model.layers.softmax import softmax

# --- Products of causal attention in strips ---
# What stands above the diagonal is 0 and is never computed.


LONG = 512  # tokens from which strips pay
STRIP = 128  # rows

NEVER = torch.tensor(float("-inf"), device="cpu")  # a number would be made a tensor in every layer

Product = Callable[[Tensor, Tensor], Tensor]


def triangle(q: Tensor, k: Tensor, products: Product, scale: float) -> Tensor:
    """softmax(scale q k^T) where each query sees itself and what came before, batch head pos key.

    `q` and `k` are batch head pos d_head, `products(q, k)` their scores; heads may share keys.
    """
    batch, heads, length, _ = q.shape
    pattern = q.new_empty(batch, heads, length, length)
    for first, last in strips(length):
        scores = products(q[:, :, first:last], k[:, :, :last]).mul_(scale)
        later = torch.ones(last - first, last - first, dtype=torch.bool, device=q.device).triu_(1)
        scores[..., first:].masked_fill_(later, float("-inf"))
        pattern[:, :, first:last, :last] = scores.softmax(-1)
        pattern[:, :, first:last, last:] = 0
    return pattern


def mix_values(pattern: Tensor, v: Tensor, mixture: Product) -> Tensor:
    """pattern v, batch head pos d_head, of a pattern that is 0 above its diagonal; `mixture` multiplies one strip."""
    length = pattern.shape[-1]
    parts = [mixture(pattern[:, :, first:last, :last], v[:, :, :last]) for first, last in strips(length)]
    return torch.cat(parts, 2)


def strips(length: int) -> Iterator[tuple[int, int]]:
    for first in range(0, length, STRIP):
        yield first, min(first + STRIP, length)


# --- Attention ---


@dataclass(frozen=True)
class Shared:
    """Values that one run makes once for all its layers: who may attend to whom, and what positions do to queries,
    keys, scores.

    `rotation` has two parts where a token has two positions; `bias` is head pos key, `table` head bucket: what each
    relative position adds.
    """

    mask: AttentionMask
    rotation: Rotation | tuple[Rotation, Rotation] | None = None
    bias: Tensor | None = None
    table: Tensor | None = None


class Attention(Module):
    """Multi-head attention (Vaswani et al. 2017, section 3.2), with grouped or shared keys and values where
    configured.

    scores = q k^T / sqrt(d_head);  pattern = softmax((scores + bias masked) / temperature);  out =
    concat_h(pattern v) W_O
    """

    unit_temperature: Tensor

    def __init__(self, config: ModelConfig, attention: AttentionConfig, crosses: bool = False) -> None:
        super().__init__()
        self.heads, self.kv_heads, self.d_head = attention.heads, kv_heads(attention), config.head_width(attention)
        self.scale = self.d_head**-0.5 if attention.scale is None else attention.scale
        self.softcap, self.nearest = attention.softcap, attention.nearest
        self.dropout, self.crosses = config.dropout, crosses
        self.q = Linear(config.d_model, self.heads * self.d_head, bias=attention.bias)
        self.k = Linear(config.d_model, self.kv_heads * self.d_head, bias=attention.bias)
        self.v = Linear(config.d_model, self.kv_heads * self.d_head, bias=attention.bias)
        self.out = Linear(self.heads * self.d_head, config.d_model, bias=attention.out_bias)
        self.register_buffer("unit_temperature", torch.ones(self.heads, device="cpu"), persistent=False)
        self._add_norms(config, attention)
        self._add_hooks(config, attention)

    def _add_norms(self, config: ModelConfig, attention: AttentionConfig) -> None:
        """Norms of queries and keys: `whole` ones see all heads at once."""
        self.normed, self.whole = attention.qk_norm is not None, attention.qk_norm == "all"
        if not self.normed:
            return
        axes = "d_heads" if self.whole else "head d_head"
        widths = (self.heads * self.d_head, self.kv_heads * self.d_head) if self.whole else (self.d_head, self.d_head)
        self.q_norm = make_norm(config.norm, widths[0], f"batch pos {axes}")
        self.k_norm = make_norm(config.norm, widths[1], f"batch {'key' if self.crosses else 'pos'} {axes}")

    def _add_hooks(self, config: ModelConfig, attention: AttentionConfig) -> None:
        kind = config.positions.kind
        self.positions, self.pairs, self.both_sides = config.positions, config.positions.pairs, attention.mask == "full"
        self.hook_position_ids = None
        if kind in ("rotary", "alibi", "relative") and not self.crosses:
            self.hook_position_ids = HookPoint("position_ids", "pos", on_request=True)
        if kind == "rotary" and not self.crosses:
            self.hook_q_rotated = HookPoint("q_rotated", "batch pos head d_head")
            self.hook_k_rotated = HookPoint("k_rotated", "batch pos head d_head")
        biased = kind in ("alibi", "relative") and not self.crosses
        keys = "batch key head d_head" if self.crosses else "batch pos head d_head"
        self.hook_q = HookPoint("q", "batch pos head d_head")
        self.hook_k = HookPoint("k", keys)
        self.hook_v = HookPoint("v", keys)
        self.hook_scores = HookPoint("scores", "batch head pos key")
        if self.softcap is not None:
            self.hook_capped = HookPoint("capped", "batch head pos key")
        if biased:
            self.hook_bias = HookPoint("bias", "head pos key")
        self.hook_mask = HookPoint("mask", "batch head pos key")
        self.hook_masked_scores = HookPoint("masked_scores", "batch head pos key")
        self.hook_temperature = HookPoint("temperature", "head")
        self.hook_pattern = HookPoint("pattern", "batch head pos key")
        self.hook_z = HookPoint("z", "batch pos head d_head")
        self.hook_head_out = HookPoint("head_out", "batch pos head d_model", on_request=True)
        self.hook_out = HookPoint("out", "batch pos d_model")
        inner = [self.hook_scores, self.hook_mask, self.hook_masked_scores, self.hook_temperature, self.hook_pattern]
        inner += [self.hook_bias] if biased else []
        self.inner_hooks = inner + ([self.hook_capped] if self.softcap is not None else [])

    def forward(
        self, x: Tensor, shared: Shared, cache: LayerCache | None = None, memory: Tensor | None = None
    ) -> Tensor:
        """`x` is batch pos d_model; `memory`, batch key d_model, is what keys and values are made of instead of `x`."""
        if self.hook_position_ids is not None and self.hook_position_ids.is_active:
            shared = self.with_position_ids(shared, self.hook_position_ids)
        q = self.query(x)  # batch pos head d_head
        if self.crosses and cache is not None and cache.length:
            k, v = cache.k, cache.v
        else:
            k, v = self.keys_and_values(x if memory is None else memory)
        if shared.rotation is not None:
            q = self.hook_q_rotated(self.turn(q, shared.rotation))
            k = self.hook_k_rotated(self.turn(k, shared.rotation))
        q = q.transpose(1, 2)  # batch head pos d_head
        if not (self.crosses and cache is not None and cache.length):
            k, v = k.transpose(1, 2), v.transpose(1, 2)
            if cache is not None:
                k, v = cache.append(k, v)
        seen = self.softcap is not None or self.nearest is not None or any_wanted(self.inner_hooks)
        attend = (
            self.attend_fused if not seen else self.causal_strips if self.only_pattern_of(q, shared) else self.explicit
        )
        z = self.hook_z(attend(q, k, v, shared).transpose(1, 2))  # batch pos head d_head
        return self.hook_out(self.join(z))

    def with_position_ids(self, shared: Shared, hook: HookPoint) -> Shared:
        """`shared`, once an edit gave tokens other positions."""
        mask = shared.mask
        ids = hook(mask.pos)
        if ids is mask.pos:
            return shared
        if shared.rotation is not None:
            return replace(shared, rotation=moved_rotation(ids, shared.rotation, self.positions, len(mask.key)))
        assert shared.bias is not None
        keys = torch.cat([mask.key[: len(mask.key) - len(ids)], ids])
        moved = moved_bias(ids, keys, shared.bias, shared.table, self.positions, self.both_sides)
        return replace(shared, bias=moved)

    def query(self, x: Tensor) -> Tensor:
        q = self.hook_q(self.q(x).view(*x.shape[:2], self.heads, self.d_head))
        return self.normalise(self.q_norm, q) if self.normed else q

    def keys_and_values(self, x: Tensor) -> tuple[Tensor, Tensor]:
        k = self.hook_k(self.k(x).view(*x.shape[:2], self.kv_heads, self.d_head))
        v = self.hook_v(self.v(x).view(*x.shape[:2], self.kv_heads, self.d_head))
        return (self.normalise(self.k_norm, k) if self.normed else k), v

    def normalise(self, norm: nn.Module, x: Tensor) -> Tensor:
        normed: Tensor = norm(x.flatten(2)).unflatten(-1, x.shape[2:]) if self.whole else norm(x)
        return normed

    def turn(self, x: Tensor, rotation: Rotation | tuple[Rotation, Rotation]) -> Tensor:
        first, second = rotation
        if isinstance(first, tuple) and isinstance(second, tuple):
            return rotate_both(x, (first, second), self.pairs)
        return rotate(x, first, second, self.pairs)  # type: ignore[arg-type]

    def explicit(self, q: Tensor, k: Tensor, v: Tensor, shared: Shared) -> Tensor:
        made = self.products(q, k)
        scores = self.hook_scores(made if self.scale == 1 else made.mul_(self.scale))  # batch head pos key
        if self.softcap is not None:
            scores = self.hook_capped(self.softcap * torch.tanh(scores / self.softcap))
        biased = scores if shared.bias is None else scores + self.hook_bias(shared.bias)
        mask = shared.mask.expand_to(scores.shape)
        allowed = self.hook_mask(self.keep_nearest(mask, biased))
        everything = shared.mask.allows_all and allowed is mask
        masked_scores = self.hook_masked_scores(biased if everything else torch.where(allowed, biased, NEVER))
        unit = self._buffers["unit_temperature"]
        assert unit is not None
        temperature = self.hook_temperature(unit)
        divisor = None if temperature is unit else temperature[:, None, None]
        pattern = self.hook_pattern(softmax(masked_scores, divisor, shared.mask.may_have_empty_rows or run_has_edits()))
        return self.mixture(dropout(pattern, self.dropout, self.training), v)

    def only_pattern_of(self, q: Tensor, shared: Shared) -> bool:
        """True if a long text is attended to in the plain causal way, and only the last of the steps is looked at."""
        if q.shape[2] < LONG or not shared.mask.is_causal or shared.bias is not None or q.requires_grad:
            return False
        if self.softcap is not None or self.nearest is not None or (self.training and self.dropout):
            return False
        return not any(hook.is_active for hook in self.inner_hooks if hook is not self.hook_pattern)

    def causal_strips(self, q: Tensor, k: Tensor, v: Tensor, shared: Shared) -> Tensor:
        """Computes `explicit` for such a text, strip by strip."""
        made = triangle(q, k, self.products, self.scale)
        pattern = self.hook_pattern(made)
        return mix_values(pattern, v, self.mixture) if pattern is made else self.mixture(pattern, v)

    def products(self, q: Tensor, k: Tensor) -> Tensor:
        """q k^T, batch head pos key; queries that share a key are one matrix, so no key is repeated."""
        if self.heads == self.kv_heads:
            return torch.matmul(q, k.mT)
        batch, heads, pos, width = q.shape
        together = q.reshape(batch * self.kv_heads, -1, width)
        return torch.bmm(together, k.flatten(0, 1).mT).view(batch, heads, pos, -1)

    def mixture(self, pattern: Tensor, v: Tensor) -> Tensor:
        """pattern v, batch head pos d_head."""
        if self.heads == self.kv_heads:
            return torch.matmul(pattern, v)
        batch, heads, pos, key = pattern.shape
        together = pattern.reshape(batch * self.kv_heads, -1, key)
        return torch.bmm(together, v.flatten(0, 1)).view(batch, heads, pos, -1)

    def keep_nearest(self, mask: Tensor, scores: Tensor) -> Tensor:
        """`mask`, and of what it allows only the `nearest` keys of each row."""
        if self.nearest is None or self.nearest >= scores.shape[-1]:
            return mask
        best = torch.where(mask, scores, float("-inf")).topk(self.nearest, dim=-1).indices
        return torch.zeros_like(mask).scatter(-1, best, True) & mask

    def attend_fused(self, q: Tensor, k: Tensor, v: Tensor, shared: Shared) -> Tensor:
        mask = shared.mask
        allowed = None if mask.is_causal or mask.allows_all else mask.tensor
        if shared.bias is not None:
            allowed = torch.where(mask.tensor, shared.bias, float("-inf"))
        return scaled_dot_product_attention(
            q,
            k,
            v,
            attn_mask=allowed,
            dropout_p=self.dropout if self.training else 0.0,
            is_causal=allowed is None and not mask.allows_all,
            scale=self.scale,
            enable_gqa=self.heads != self.kv_heads,
        )

    def join(self, z: Tensor) -> Tensor:
        """The heads concatenated and sent through W_O; each through its share where that was asked for."""
        if not self.hook_head_out.is_active:
            return self.out(z.flatten(2))
        share = self.out.adapted_weight.unflatten(1, (self.heads, self.d_head))  # d_model head d_head
        head_out = self.hook_head_out(torch.einsum("bphd,mhd->bphm", z, share))
        total = head_out.sum(2)
        return total if self.out.bias is None else total + self.out.bias
