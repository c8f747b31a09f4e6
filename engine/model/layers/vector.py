"""One vector for a whole text: pooled of the last residual stream, mapped, and divided by its length."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from engine.model.config import ModelConfig, Pooling, Probe, VectorMap
from engine.model.hooks import HookPoint
from engine.model.layers.mlp import ACTIVATIONS
from engine.model.layers.module import Module
from engine.model.layers.norm import make_norm

SHORTEST = 1e-12  # what a length is at least, where it divides (PyTorch's normalize)


class TextVector(Module):
    """`vector` of a config: `pooled`, then each of the maps, then `out` (Reimers & Gurevych 2019, section 3)."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        assert config.vector is not None
        self.kinds, self.unit = config.vector.pooled, config.vector.unit
        of = "batch" if self.kinds else "batch pos"
        patches = config.embedding.patches
        self.mark, self.skipped = config.vector.mark, 0
        if config.vector.patches and patches is not None:
            self.skipped = patches.before
        self.hook_pooled = HookPoint("pooled", f"{of} pooled") if self.kinds else None
        width = config.d_model * max(len(self.kinds), 1)
        self.probe = None if config.vector.probe is None else ProbeAttention(config, config.vector.probe)
        self.norm = make_norm(config.norm, width, f"{of} pooled") if config.vector.norm else None
        widths = [width, *(one.width for one in config.vector.maps)]
        self.maps = nn.ModuleList(
            MapOfVector(one, width, of) for one, width in zip(config.vector.maps, widths, strict=False)
        )
        self.hook_out = HookPoint("out", f"{of} component")

    def forward(self, last: Tensor, real: Tensor | None, ids: Tensor | None = None) -> Tensor:
        """batch component, or batch pos component where nothing is pooled. `last` is batch pos d_model, `real` batch
        pos, False at padding, `ids` batch pos."""
        x = last
        if self.hook_pooled is not None:
            if self.probe is None:
                x = torch.cat([(last * self.weigh(kind, last, real, ids)).sum(1) for kind in self.kinds], dim=-1)
            else:
                x = self.probe(last, self.find_pooled(last, real, ids))
            x = self.hook_pooled(x)
        if self.norm is not None:
            x = self.norm(x)
        for made in self.maps:
            x = made(x)
        if self.unit:
            x = x / torch.linalg.vector_norm(x, dim=-1, keepdim=True).clamp(min=SHORTEST)
        return self.hook_out(x)

    def weigh(self, kind: Pooling, last: Tensor, real: Tensor | None, ids: Tensor | None) -> Tensor:
        """As `pooling_weights`, of what is pooled; the first position is that of all, where else patches alone are."""
        whole = self.skipped and kind == "first"
        return pooling_weights(last, kind, real if whole else self.find_pooled(last, real, ids))

    def find_pooled(self, last: Tensor, real: Tensor | None, ids: Tensor | None) -> Tensor | None:
        """Positions that are pooled, batch pos: those that are `real`, or of these the ones of the id `mark` in a text
        that has one; of a picture whose patches alone are pooled, those; None for all."""
        if self.skipped:
            return (torch.arange(last.shape[1], device=last.device) >= self.skipped).expand(last.shape[:2])
        if self.mark is None or ids is None or ids.dim() != 2:
            return real
        marks = ids == self.mark if real is None else (ids == self.mark) & real
        some = marks.any(1, keepdim=True)
        return torch.where(some, marks, torch.ones_like(marks) if real is None else real)


class ProbeAttention(Module):
    """pattern = softmax(q k^T / sqrt(d_head)) of one learned query over all positions; out = concat_h(pattern v) W_O +
    b; then out + MLP(norm(out)) (Zhai et al. 2022, section 3.1)."""

    def __init__(self, config: ModelConfig, probe: Probe) -> None:
        super().__init__()
        width = config.d_model
        self.heads, self.d_head = probe.heads, width // probe.heads
        self.query = nn.Parameter(torch.empty(width))
        self.q, self.k, self.v, self.out = (nn.Linear(width, width) for _ in range(4))
        self.norm = make_norm(config.norm, width, "batch d_model")
        self.pre, self.post = nn.Linear(width, probe.d_mlp), nn.Linear(probe.d_mlp, width)
        self.activation = ACTIVATIONS[probe.activation]
        self.hook_pattern = HookPoint("pattern", "batch head pos")
        self.hook_z = HookPoint("z", "batch head d_head")
        self.hook_attended = HookPoint("attended", "batch d_model")
        self.hook_pre = HookPoint("mlp_pre", "batch d_mlp")
        self.hook_post = HookPoint("mlp_post", "batch d_mlp")

    def forward(self, last: Tensor, real: Tensor | None) -> Tensor:
        """batch d_model."""
        q = self.q(self.query).view(self.heads, self.d_head, 1)
        k, v = (made(last).unflatten(-1, (self.heads, self.d_head)).transpose(1, 2) for made in (self.k, self.v))
        scores = (k @ q).squeeze(-1) * self.d_head**-0.5  # batch head pos
        if real is not None:
            scores = scores.masked_fill(~real[:, None], float("-inf"))
        pattern = self.hook_pattern(scores.softmax(-1))
        z = self.hook_z((pattern[:, :, None] @ v).squeeze(2))
        out = self.hook_attended(self.out(z.flatten(1)))
        return out + self.post(self.hook_post(self.activation(self.hook_pre(self.pre(self.norm(out))))))


class MapOfVector(Module):
    """act(W x + b)."""

    def __init__(self, config: VectorMap, reads: int, of: str) -> None:
        super().__init__()
        self.dense = nn.Linear(reads, config.width, bias=config.bias)
        self.activation = None if config.activation == "identity" else ACTIVATIONS[config.activation]
        axes = f"{of} component"
        self.hook_pre = None if self.activation is None else HookPoint("pre", axes)
        self.hook_out = HookPoint("out", axes)

    def forward(self, x: Tensor) -> Tensor:
        made = self.dense(x)
        if self.activation is not None and self.hook_pre is not None:
            made = self.activation(self.hook_pre(made))
        return self.hook_out(made)


def pool(last: Tensor, kind: Pooling, real: Tensor | None = None) -> Tensor:
    """batch d_model, of the last residual stream, batch pos d_model, where it is `real` (batch pos)."""
    return (last * pooling_weights(last, kind, real)).sum(1)


def pooling_weights(last: Tensor, kind: Pooling, real: Tensor | None = None) -> Tensor:
    """What each number of the last residual stream is multiplied by before the sum over positions, batch pos d_model
    or batch pos 1."""
    if real is None:
        real = torch.ones(last.shape[:2], dtype=torch.bool, device=last.device)
    return WEIGHTS[kind](last, real)


def weigh_first(last: Tensor, real: Tensor) -> Tensor:
    return at_position(last, real.int().argmax(1))


def weigh_last(last: Tensor, real: Tensor) -> Tensor:
    pos = torch.arange(real.shape[1], device=real.device)
    return at_position(last, (real * pos).argmax(1))


def at_position(last: Tensor, at: Tensor) -> Tensor:
    pos = torch.arange(last.shape[1], device=last.device)
    return (pos == at[:, None]).to(last.dtype)[..., None]


def weigh_mean(last: Tensor, real: Tensor) -> Tensor:
    counted = real.to(last.dtype)
    return (counted / counted.sum(1, keepdim=True).clamp(min=1))[..., None]


def weigh_later_more(last: Tensor, real: Tensor) -> Tensor:
    counted = (real.long().cumsum(1) * real).to(last.dtype)
    return (counted / counted.sum(1, keepdim=True).clamp(min=1))[..., None]


def scale_sum(last: Tensor, real: Tensor) -> Tensor:
    counted = real.to(last.dtype)
    return (counted / counted.sum(1, keepdim=True).clamp(min=1).sqrt())[..., None]


def take_greatest(last: Tensor, real: Tensor) -> Tensor:
    best = last.masked_fill(~real[..., None], float("-inf")).argmax(1, keepdim=True)
    return torch.zeros_like(last).scatter(1, best, 1.0)


WEIGHTS: dict[Pooling, Callable[[Tensor, Tensor], Tensor]] = {
    "first": weigh_first,
    "last": weigh_last,
    "mean": weigh_mean,
    "max": take_greatest,
    "weighted_mean": weigh_later_more,
    "scaled_sum": scale_sum,
}
