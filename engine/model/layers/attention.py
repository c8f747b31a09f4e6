"""Attention, in the explicit form that shows every step and in the fused form that only gives the result."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

from engine.model.config import Attention as AttentionConfig
from engine.model.config import ModelConfig, kv_heads
from engine.model.hooks import HookPoint, any_wanted, run_has_edits
from engine.model.layers.cache import LayerCache
from engine.model.layers.causal_strips import LONG, mix_by_strips, pattern_by_strips
from engine.model.layers.dropout import dropout
from engine.model.layers.grid_bias import GridBias
from engine.model.layers.latent import Latent
from engine.model.layers.mask import AttentionMask
from engine.model.layers.module import Linear, Module
from engine.model.layers.norm import give_own_weights, make_norm
from engine.model.layers.position import Rotations, rotate, rotate_both
from engine.model.layers.position_override import moved_bias, moved_rotation, moved_rows
from engine.model.layers.softmax import softmax

NEVER = torch.tensor(float("-inf"), device="cpu")  # a number would be made a tensor in every layer


@dataclass(frozen=True)
class SharedTensors:
    """Values that one run makes once for all layers that are alike: who may attend to whom, and what positions do to
    queries, keys, scores.

    `rotation` has two parts where a token has two positions; `bias` is head pos key, `table` head bucket: what each
    relative position adds. Disentangled positions have `distances`, distance d_model, of which `rows`, pos key, says
    which is that of a pair; `placed`, pos key, is where both tokens have a position, None where all do.
    """

    mask: AttentionMask
    rotation: Rotations | None = None
    bias: Tensor | None = None
    table: Tensor | None = None
    distances: Tensor | None = None
    rows: Tensor | None = None
    placed: Tensor | None = None


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
        self.scale = config.score_scale(attention)
        self.softcap, self.nearest = attention.softcap, attention.nearest
        self.dropout, self.crosses = config.dropout, crosses
        self.d_value = config.value_width(attention)
        self._add_maps(config, attention)
        self.out = Linear(self.heads * self.d_value, config.d_model, bias=attention.out_bias)
        self.sinks = nn.Parameter(torch.zeros(self.heads)) if attention.sinks else None
        self.register_buffer("unit_temperature", torch.ones(self.heads, device="cpu"), persistent=False)
        self._add_norms(config, attention)
        self._add_hooks(config, attention)

    def _add_maps(self, config: ModelConfig, attention: AttentionConfig) -> None:
        """Maps to queries, keys and values, of the stream or of what it is compressed to."""
        latent, width = attention.latent, config.d_model
        self.latent: Latent | None = None if latent is None else Latent(config, latent)
        of_queries = width if latent is None or latent.queries is None else latent.queries
        of_keys, shared = (width, 0) if latent is None else (latent.keys, config.d_turned)
        self.q = Linear(of_queries, self.heads * self.d_head, bias=attention.bias)
        self.k = Linear(of_keys, self.kv_heads * (self.d_head - shared), bias=attention.bias and attention.key_bias)
        self.v = Linear(of_keys, self.kv_heads * self.d_value, bias=attention.bias)
        self.terms = () if self.crosses else config.positions.named_terms
        wide, own = self.heads * self.d_head, self.terms if config.positions.own_maps else ()
        key_bias = attention.bias and attention.key_bias
        self.position_k = Linear(width, wide, bias=key_bias) if "c2p" in own else None
        self.position_q = Linear(width, wide, bias=attention.bias) if "p2c" in own else None

    def _add_norms(self, config: ModelConfig, attention: AttentionConfig) -> None:
        """Norms of queries and keys: `whole` ones see all heads at once."""
        self.normed, self.whole = attention.qk_norm is not None, attention.qk_norm == "all"
        if not self.normed:
            return
        axes = "d_heads" if self.whole else "head d_head"
        widths = (self.heads * self.d_head, self.kv_heads * self.d_head) if self.whole else (self.d_head, self.d_head)
        self.q_norm = make_norm(config.norm, widths[0], f"batch pos {axes}")
        self.k_norm = make_norm(config.norm, widths[1], f"batch {'key' if self.crosses else 'pos'} {axes}")
        if attention.qk_norm == "each":
            give_own_weights(self.q_norm, self.heads)
            give_own_weights(self.k_norm, self.kv_heads)

    def _add_hooks(self, config: ModelConfig, attention: AttentionConfig) -> None:
        kind = config.positions.kind
        added = kind == "alibi" or config.positions.has_buckets or config.positions.picture_bias is not None
        biased = added and not self.crosses
        patches = config.embedding.patches
        own = config.positions.picture_bias == "each" and not self.crosses and patches is not None
        self.grid_bias = GridBias(patches, self.heads) if own and patches is not None else None
        self.positions, self.pairs, self.both_sides = config.positions, config.positions.pairs, attention.mask == "full"
        self.hook_position_ids = None
        if biased or self.terms or (kind == "rotary" and not self.crosses):
            self.hook_position_ids = HookPoint("position_ids", "pos", on_request=True)
        if kind == "rotary" and not self.crosses:
            self.hook_q_rotated = HookPoint("q_rotated", "batch pos head d_head")
            self.hook_k_rotated = HookPoint("k_rotated", "batch pos head d_head")
        keys = "batch key head d_head" if self.crosses else "batch pos head d_head"
        self.hook_q = HookPoint("q", "batch pos head d_head")
        self.hook_k = HookPoint("k", keys)
        values = "d_head" if attention.latent is None else "d_value"
        self.hook_v = HookPoint("v", keys.replace("d_head", values))
        self.hook_scores = HookPoint("scores", "batch head pos key")
        if self.softcap is not None:
            self.hook_capped = HookPoint("capped", "batch head pos key")
        if biased:
            self.hook_bias = HookPoint("bias", "head pos key")
        if "c2p" in self.terms:
            self.hook_c2p = HookPoint("c2p", "batch head pos key")
        if "p2c" in self.terms:
            self.hook_p2c = HookPoint("p2c", "batch head pos key")
        self.hook_mask = HookPoint("mask", "batch head pos key")
        self.hook_masked_scores = HookPoint("masked_scores", "batch head pos key")
        self.hook_temperature = HookPoint("temperature", "head")
        if attention.sinks:
            self.hook_sink = HookPoint("sink", "head")
        self.hook_pattern = HookPoint("pattern", "batch head pos key")
        self.hook_z = HookPoint("z", f"batch pos head {values}")
        self.hook_head_out = HookPoint("head_out", "batch pos head d_model", on_request=True)
        self.hook_out = HookPoint("out", "batch pos d_model")
        inner = [self.hook_scores, self.hook_mask, self.hook_masked_scores, self.hook_temperature, self.hook_pattern]
        inner += [self.hook_bias] if biased else []
        inner += [getattr(self, f"hook_{term}") for term in self.terms]
        inner += [self.hook_sink] if attention.sinks else []
        self.inner_hooks = inner + ([self.hook_capped] if self.softcap is not None else [])

    def forward(
        self, x: Tensor, shared: SharedTensors, cache: LayerCache | None = None, memory: Tensor | None = None
    ) -> Tensor:
        """`x` is batch pos d_model; `memory`, batch key d_model, is what keys and values are made of instead of `x`."""
        shared = shared if self.grid_bias is None else replace(shared, bias=self.grid_bias())
        shared = self.with_position_ids(shared)
        q, k, v = self.project(x, x if memory is None else memory, shared, cache)  # batch head pos d_head
        z = self.hook_z(self.attend(q, k, v, shared).transpose(1, 2))  # batch pos head d_head
        return self.hook_out(self.join(z))

    def with_position_ids(self, shared: SharedTensors) -> SharedTensors:
        """`shared`, once an edit gave tokens other positions."""
        mask, hook = shared.mask, self.hook_position_ids
        if hook is None or not hook.is_active or (ids := hook(mask.pos)) is mask.pos:
            return shared
        if shared.rotation is not None:
            return replace(shared, rotation=moved_rotation(ids, shared.rotation, self.positions, len(mask.key)))
        keys = torch.cat([mask.key[: len(mask.key) - len(ids)], ids])
        if shared.rows is not None:
            rows, placed = moved_rows(ids, keys, self.positions)
            return replace(shared, rows=rows, placed=placed)
        assert shared.bias is not None
        moved = moved_bias(ids, keys, shared.bias, shared.table, self.positions, self.both_sides)
        return replace(shared, bias=moved)

    def project(
        self, x: Tensor, memory: Tensor, shared: SharedTensors, cache: LayerCache | None
    ) -> tuple[Tensor, Tensor, Tensor]:
        q = self.query(x)  # batch pos head d_head
        if self.crosses and cache is not None and cache.length:  # those of a memory are made once
            return q.transpose(1, 2), cache.k, cache.v
        k, v = self.keys_and_values(memory)
        if shared.rotation is not None:
            q = self.hook_q_rotated(self.turn(q, shared.rotation))
            k = self.hook_k_rotated(self.turn(k, shared.rotation))
        q, k, v = q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2)
        return (q, k, v) if cache is None else (q, *cache.append(k, v))

    def query(self, x: Tensor) -> Tensor:
        read = x if self.latent is None else self.latent.of_queries(x)
        q = self.hook_q(self.q(read).view(*x.shape[:2], self.heads, self.d_head))
        return self.normalise(self.q_norm, q) if self.normed else q

    def keys_and_values(self, x: Tensor) -> tuple[Tensor, Tensor]:
        read = x if self.latent is None else self.latent.of_keys(x)
        k = self.k(read).view(*x.shape[:2], self.kv_heads, -1)
        k = self.hook_k(k if self.latent is None else torch.cat([self.latent.turned_keys(x, self.kv_heads), k], dim=-1))
        v = self.hook_v(self.v(read).view(*x.shape[:2], self.kv_heads, self.d_value))
        return (self.normalise(self.k_norm, k) if self.normed else k), v

    def normalise(self, norm: nn.Module, x: Tensor) -> Tensor:
        normed: Tensor = norm(x.flatten(2)).unflatten(-1, x.shape[2:]) if self.whole else norm(x)
        return normed

    def turn(self, x: Tensor, rotation: Rotations) -> Tensor:
        first, second = rotation
        if isinstance(first, tuple) and isinstance(second, tuple):
            return rotate_both(x, (first, second), self.pairs)
        return rotate(x, first, second, self.pairs)  # type: ignore[arg-type]

    def attend(self, q: Tensor, k: Tensor, v: Tensor, shared: SharedTensors) -> Tensor:
        """pattern v, batch head pos d_value, in the fastest of the forms that make what is looked at."""
        if self.softcap is None and self.nearest is None and self.sinks is None and not any_wanted(self.inner_hooks):
            return self.attend_fused(q, k, v, shared)
        return (self.attend_by_strips if self.only_pattern_of(q, shared) else self.explicit)(q, k, v, shared)

    def explicit(self, q: Tensor, k: Tensor, v: Tensor, shared: SharedTensors) -> Tensor:
        scores = self.hook_scores(self.scores(q, k))  # batch head pos key
        capped = scores if self.softcap is None else self.hook_capped(self.softcap * torch.tanh(scores / self.softcap))
        biased = capped if shared.bias is None else capped + self.hook_bias(shared.bias)
        for term, added in self.position_terms(q, k, shared).items():
            biased = biased + (self.hook_c2p if term == "c2p" else self.hook_p2c)(added)
        mask = shared.mask.expand_to(scores.shape)
        allowed = self.hook_mask(self.keep_nearest(mask, biased))
        everything = shared.mask.allows_all and allowed is mask
        masked_scores = self.hook_masked_scores(biased if everything else torch.where(allowed, biased, NEVER))
        empty_rows = self.sinks is None and (shared.mask.may_have_empty_rows or run_has_edits())
        sink = None if self.sinks is None else self.hook_sink(self.sinks)
        pattern = self.hook_pattern(softmax(masked_scores, self.temperature(), empty_rows, sink))
        return self.mixture(dropout(pattern, self.dropout, self.training), v)

    def temperature(self) -> Tensor | None:
        """Divisor of the scores of each head, head 1 1; None where an edit changed no temperature."""
        unit = self._buffers["unit_temperature"]
        assert unit is not None
        temperature = self.hook_temperature(unit)
        return None if temperature is unit else temperature[:, None, None]

    def only_pattern_of(self, q: Tensor, shared: SharedTensors) -> bool:
        """True if a long text is attended to in the plain causal way, and only the last of the steps is looked at."""
        if q.shape[2] < LONG or not shared.mask.is_causal or shared.bias is not None or self.terms or q.requires_grad:
            return False
        if (
            self.softcap is not None
            or self.nearest is not None
            or self.sinks is not None
            or (self.training and self.dropout)
        ):
            return False
        return not any(hook.is_active for hook in self.inner_hooks if hook is not self.hook_pattern)

    def attend_by_strips(self, q: Tensor, k: Tensor, v: Tensor, _: SharedTensors) -> Tensor:
        causal = pattern_by_strips(q, k, self.scores)
        pattern = self.hook_pattern(causal)
        return mix_by_strips(pattern, v, self.mixture) if pattern is causal else self.mixture(pattern, v)

    def position_terms(self, q: Tensor, k: Tensor, shared: SharedTensors) -> dict[str, Tensor]:
        """What disentangled positions add to the scores, each batch head pos key: "c2p", the query with the key of the
        distance, and "p2c", the key with the query of the distance."""
        found: dict[str, Tensor] = {}
        if shared.distances is None or shared.rows is None:
            return found
        distances, rows = dropout(shared.distances, self.dropout, self.training), shared.rows
        if "c2p" in self.terms:
            found["c2p"] = self.pick(q, self.of_distances(distances, "k"), rows)
        if "p2c" in self.terms:
            found["p2c"] = self.pick(k, self.of_distances(distances, "q"), rows.mT).mT
        return found if shared.placed is None else {term: one * shared.placed for term, one in found.items()}

    def of_distances(self, distances: Tensor, which: str) -> Tensor:
        """Keys "k" or queries "q" of the distances (distance d_model), head distance d_head."""
        own = self.position_k if which == "k" else self.position_q
        project = (self.k if which == "k" else self.q) if own is None else own
        made: Tensor = project(distances)
        return made.view(len(distances), self.heads, self.d_head).transpose(0, 1)

    def pick(self, x: Tensor, of_distances: Tensor, rows: Tensor) -> Tensor:
        """Scale times the product of each of `x`, batch head a d_head, with the distances that `rows`, a b, names: of
        shape batch head a b."""
        together = x.transpose(0, 1).flatten(1, 2)  # head batch·a d_head
        products = torch.bmm(together, of_distances.mT).unflatten(1, (len(x), -1)).transpose(0, 1) * self.scale
        return products.gather(-1, rows.expand(*x.shape[:2], -1, -1))

    def scores(self, q: Tensor, k: Tensor) -> Tensor:
        """scale q k^T, batch head pos key."""
        scores = self.products(q, k)
        return scores if self.scale == 1 else scores.mul_(self.scale)

    def products(self, q: Tensor, k: Tensor) -> Tensor:
        """q k^T, batch head pos key; queries that share a key are one matrix, so no key is repeated."""
        if self.heads == self.kv_heads:
            return torch.matmul(q, k.mT)
        batch, heads, pos, width = q.shape
        together = q.reshape(batch * self.kv_heads, -1, width)
        return torch.bmm(together, k.flatten(0, 1).mT).view(batch, heads, pos, -1)

    def mixture(self, pattern: Tensor, v: Tensor) -> Tensor:
        """pattern v, batch head pos d_value."""
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

    def attend_fused(self, q: Tensor, k: Tensor, v: Tensor, shared: SharedTensors) -> Tensor:
        mask = shared.mask
        allowed = None if mask.is_causal or mask.allows_all else mask.tensor
        if shared.bias is not None:
            allowed = torch.where(mask.tensor, shared.bias, float("-inf"))
        if terms := self.position_terms(q, k, shared):
            allowed = torch.where(mask.tensor, sum(terms.values()), float("-inf"))
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
        share = self.out.adapted_weight.unflatten(1, (self.heads, self.d_value))  # d_model head d_value
        head_out = self.hook_head_out(torch.einsum("bphd,mhd->bphm", z, share))
        total = head_out.sum(2)
        return total if self.out.bias is None else total + self.out.bias
