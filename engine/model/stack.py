"""A stack: embedding, blocks, final norm. A decoder or an encoder is one; an encoder-decoder has two."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from engine.model.config import ModelConfig, Positions
from engine.model.hooks import HookPoint
from engine.model.layers.attention import SharedTensors
from engine.model.layers.block import Block
from engine.model.layers.cache import KVCache
from engine.model.layers.embed import Embed
from engine.model.layers.grid_bias import GridBias
from engine.model.layers.mask import (
    AttentionMask,
    Blocks,
    Causal,
    Full,
    Mask,
    Padding,
    Prefix,
    RowPrefix,
    SlidingWindow,
)
from engine.model.layers.module import Module
from engine.model.layers.norm import make_norm
from engine.model.layers.position import (
    Rotations,
    alibi_bias,
    alibi_slopes,
    distance_rows,
    infill_positions,
    prefix_lengths,
    relative_buckets,
)
from engine.model.layers.rotary import GridRotary, Rotary
from engine.model.layers.tied_blocks import share
from engine.model.twin import computed_by_twin


class Stack(Module):
    """`shared` leaves the token embedding to another stack."""

    slopes: Tensor | None

    def __init__(self, config: ModelConfig, shared: bool = False) -> None:
        super().__init__()
        self.build(config, shared)

    def build(self, config: ModelConfig, shared: bool = False) -> None:
        self.config = config
        heads, positions = config.attention.heads, config.positions
        if config.embedding.of_tokens:
            self.hook_tokens = HookPoint("tokens", "batch pos", on_request=True)
        self.embed = Embed(config, shared)
        self.relative = nn.Embedding(positions.buckets, heads) if positions.has_buckets else None
        disentangled = positions.kind == "disentangled"
        self.distances = nn.Embedding(2 * positions.span, config.d_model) if disentangled else None
        normed = disentangled and positions.normed
        self.distances_norm = nn.LayerNorm(config.d_model, config.norm.eps) if normed else None  # of weights alone
        self.blocks = nn.ModuleList(Block(config.of_layer(layer)) for layer in range(config.layers))
        if config.distinct is not None:
            share(self.blocks, config.distinct)
        self.final_norm = make_norm(config.norm, config.d_model) if config.final_norm else nn.Identity()
        self.rotary, self.other_rotary = self.make_rotary(positions), None
        self.others = () if positions.other is None else positions.other.layers
        if self.others:
            self.other_rotary = self.make_rotary(positions.of_layer(self.others[0]))
        patches = config.embedding.patches
        shared_bias = positions.picture_bias == "shared" and patches is not None
        self.grid_bias = GridBias(patches, heads) if shared_bias and patches is not None else None
        slopes = alibi_slopes(heads) if positions.kind == "alibi" else None
        self.register_buffer("slopes", slopes, persistent=False)

    def make_rotary(self, positions: Positions) -> Rotary | None:
        patches = self.config.embedding.patches
        if positions.kind == "rotary" and positions.grid and patches is not None:
            return GridRotary(self.config.d_turned, positions, patches)
        return Rotary(self.config.d_turned, positions) if positions.kind == "rotary" else None

    def rotary_of(self, layer: int) -> Rotary | None:
        """Rotations of the queries and keys of a layer, if it has any."""
        return self.other_rotary if layer in self.others else self.rotary

    @computed_by_twin
    def forward_resid(
        self,
        ids: Tensor,
        *,
        segments: Tensor | None = None,
        table: Tensor | None = None,
        mask: Mask | None = None,
        padding: Tensor | None = None,
        cache: KVCache | None = None,
        start: int = 0,
        resid: Tensor | None = None,
        memory: Tensor | None = None,
        memory_padding: Tensor | None = None,
        at: slice = slice(None),
    ) -> Tensor:
        """The last residual stream at the positions `at`, behind the final norm, batch pos d_model."""
        whole, past = self.read_so_far(ids, cache)
        index = torch.arange(past, past + self.length(ids), device=ids.device)
        pos = self.positions(whole, index)
        places = self.count_places(ids, pos, padding) if cache is None else pos
        key = torch.arange(past + len(index), device=ids.device)
        masks = self.masks(whole, index, key, mask, padding)
        turns = self.turns(pos, len(key))
        shared = [[self.share(one, turn) for turn in turns] for one in masks]
        across = None if memory is None else self.share_across(index, memory, memory_padding)
        if resid is None:
            resid = self.embed(ids, places, segments, table, padding)
        windowed = self.config.attention.windowed
        for layer, block in enumerate(self.blocks):
            if layer < start:
                continue
            near = shared[0] if windowed is None or layer in windowed else shared[-1]
            one = near[-1] if layer in self.others else near[0]
            if cache is None:
                resid = block(resid, one, memory=memory, across=across)
            else:
                resid = block(resid, one, cache.layers[layer], memory, across, cache.cross_of(layer))
        if cache is not None:
            cache.tokens += len(index)
        return self.final_norm(resid[:, at])

    def replace_tokens(self, ids: Tensor, resid: Tensor | None = None) -> Tensor:
        """`ids` or what an edit puts in their place, where they are read. Raises ValueError for ids that are not in the
        vocabulary."""
        if resid is not None or not self.config.embedding.of_tokens:
            return ids
        read = self.hook_tokens(ids)
        if read is not ids:
            low, high = (int(end) for end in read.aminmax())
            if low < 0 or high >= self.config.vocab_size:
                raise ValueError(
                    f"an edit of tokens must leave ids in 0..{self.config.vocab_size - 1}, got "
                    f"{low if low < 0 else high}; name another token."
                )
        return read

    def length(self, ids: Tensor) -> int:
        patches, sound = self.config.embedding.patches, self.config.embedding.sound
        if sound is not None:
            return sound.positions
        return ids.shape[1] if patches is None else patches.before + patches.count

    def read_so_far(self, ids: Tensor, cache: KVCache | None) -> tuple[Tensor, int]:
        """All ids, those that the cache has seen included where positions depend on them, and how many it has seen."""
        if cache is None:
            return ids, 0
        if self.config.infill is not None:
            cache.ids = ids if cache.ids is None else torch.cat([cache.ids, ids], dim=1)
            return cache.ids, cache.tokens
        return ids, cache.tokens

    def positions(self, ids: Tensor, index: Tensor) -> Tensor:
        """pos; or 2 batch pos where a token has two."""
        config = self.config
        if config.positions.axes == 1 or config.infill is None:
            return index
        return infill_positions(ids, config.infill)[..., index]

    def count_places(self, ids: Tensor, pos: Tensor, padding: Tensor | None) -> Tensor:
        """The places whose learned vectors are added: `pos`, or batch pos, -1 at padding, where they are counted past
        that and there is some."""
        positions = self.config.positions
        real = padding if positions.counted == "real" else None
        if positions.counted == "tokens":
            real = ids != positions.padding
        if real is None or bool(real.all()):
            return pos
        return (real.long().cumsum(1) - 1).masked_fill(~real, -1)

    def masks(
        self, ids: Tensor, pos: Tensor, key: Tensor, override: Mask | None, padding: Tensor | None
    ) -> list[AttentionMask]:
        """Masks: one for all layers, or one for those with a window and one for the rest."""
        attention = self.config.attention
        kinds = [True] if attention.windowed is None or attention.window is None else [True, False]
        return [AttentionMask(self.mask(override, padding, ids, window), pos, key) for window in kinds]

    def mask(
        self,
        override: Mask | None = None,
        padding: Tensor | None = None,
        ids: Tensor | None = None,
        window: bool = True,
    ) -> Mask:
        """The configured mask, or `override`, together with what padding forbids."""
        config = self.config
        attention, infill, patches = config.attention, config.infill, config.embedding.patches
        if override is not None:
            mask = override
        else:
            mask = {"causal": Causal(), "full": Full(), "prefix": Prefix(0)}[attention.mask]
            if infill is not None and ids is not None:
                mask = RowPrefix(prefix_lengths(ids, infill))
            if attention.window is not None and window:
                mask = mask & SlidingWindow(attention.window)
            if attention.block is not None and patches is not None:
                mask = mask & Blocks(patches.side, attention.block)
        return mask if padding is None else mask & Padding(padding)

    def turns(self, pos: Tensor, length: int) -> list[Rotations | None]:
        """cos and sin: those of all layers, or those of most and those of the others."""
        dtype = next(self.parameters()).dtype
        kinds = [self.rotary, self.other_rotary] if self.others else [self.rotary]
        return [None if rotary is None else rotary(pos, length, dtype) for rotary in kinds]

    def share(self, mask: AttentionMask, turn: Rotations | None = None) -> SharedTensors:
        table = None if self.relative is None else self.relative.weight.T
        vectors = self.distance_vectors()
        rows = None if vectors is None else distance_rows(mask.pos, mask.key, self.config.positions)
        return SharedTensors(mask, turn, self.bias(mask), table, vectors, rows)

    def distance_vectors(self) -> Tensor | None:
        """The vectors of disentangled positions, distance d_model."""
        if self.distances is None:
            return None
        made: Tensor = (
            self.distances.weight if self.distances_norm is None else self.distances_norm(self.distances.weight)
        )
        return made

    def bias(self, mask: AttentionMask) -> Tensor | None:
        """head pos key: what positions add to the scores."""
        if self.slopes is not None:
            return alibi_bias(self.slopes, mask.pos, mask.key).to(next(self.parameters()).dtype)
        if self.grid_bias is not None:
            everywhere: Tensor = self.grid_bias()
            return everywhere
        if self.relative is None:
            return None
        config = self.config
        buckets = relative_buckets(mask.pos, mask.key, config.positions, config.attention.mask == "full")
        bias: Tensor = self.relative(buckets).permute(2, 0, 1)
        return bias

    def share_across(self, pos: Tensor, memory: Tensor, padding: Tensor | None) -> SharedTensors:
        mask: Mask = Full() if padding is None else Full() & Padding(padding)
        return SharedTensors(AttentionMask(mask, pos, torch.arange(memory.shape[1], device=memory.device)))
