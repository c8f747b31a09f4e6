"""Five ways to tell a model where a token stands, and which of them notice that words were shuffled."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from engine.model.config import MLP, Attention, MaskKind, ModelConfig, PositionKind, Positions
from engine.model.layers.position import alibi_bias, alibi_slopes, relative_buckets, rotate, rotation, sinusoidal
from engine.model.layers.rotary import unscaled_frequencies
from engine.model.transformer import Transformer
from engine.runtime.run import run

POSITION_KINDS: tuple[PositionKind, ...] = ("learned", "sinusoidal", "rotary", "alibi", "relative", "none")
NOTICED = 1e-4  # of a logit: more than what the order of a sum in float32 changes


def sinusoidal_table(length: int, d: int) -> Tensor:
    """The vectors that are added to the embeddings, pos d (Vaswani et al. 2017, section 3.5)."""
    return sinusoidal(torch.arange(length), d)


def wavelengths(d: int) -> Tensor:
    """Tokens after which each pair of sine and cosine stands as it began, d/2."""
    return 2 * math.pi / unscaled_frequencies(d, 10_000.0)


def clock_hands(pos: int, d: int) -> Tensor:
    """The pairs (sine, cosine) of the sinusoidal vector of a position, from the fastest to the slowest: pair 2."""
    return sinusoidal(torch.tensor([pos]), d)[0].view(-1, 2)


def dot_products(vectors: Tensor) -> Tensor:
    """Dot product of the first of some vectors (pos d) with each of them: by distance, pos."""
    return vectors @ vectors[0]


def rotated_score(q: Tensor, k: Tensor, at: int, of: int) -> Tensor:
    """q·k after RoPE has turned q (d_head) to position `at`, k to `of`: by the distance (Su et al. 2021)."""
    turned = rotate_to(torch.stack([q, k]), torch.tensor([at, of]))
    return turned[0] @ turned[1]


def rotate_to(vectors: Tensor, positions: Tensor) -> Tensor:
    """Each vector (row d_head) turned by its position (row)."""
    cos, sin = rotation(positions, unscaled_frequencies(vectors.shape[-1], 10_000.0))
    return rotate(vectors[None, :, None], cos[None], sin[None])[0, :, 0]


def angle_between(k: Tensor, q: Tensor) -> float:
    """Angle in degrees, in -180..180 and counter-clockwise, from one vector of two numbers to another."""
    cross, dot = k[0] * q[1] - k[1] * q[0], k @ q
    return math.degrees(math.atan2(float(cross), float(dot)))


def alibi(length: int, heads: int) -> Tensor:
    """Bias that ALiBi adds to the scores, head pos key (Press et al. 2022)."""
    positions = torch.arange(length)
    return alibi_bias(alibi_slopes(heads), positions, positions)


def buckets(length: int) -> Tensor:
    """Bucket of T5's 32 that each distance falls into, pos key (Raffel et al. 2020, section 2.1)."""
    positions = torch.arange(length)
    return relative_buckets(positions, positions, Positions(kind="relative"), both_sides=True)


def shuffle_change(kind: PositionKind, mask: MaskKind, ids: Sequence[int], vocab_size: int, seed: int = 0) -> float:
    """Largest change of a logit at the last token when those before it are written backwards: a model of two layers
    with random weights, whose positions are of this `kind`."""
    torch.manual_seed(seed)
    config = ModelConfig(vocab_size, 64, 32, 2, Attention(2, mask=mask), MLP(64), Positions(kind=kind))
    model = Transformer(config).eval()
    turned = [*ids[-2::-1], ids[-1]]
    first, second = (run(model, torch.tensor([list(one)]), keep=["logits"])["logits"][0, -1] for one in (ids, turned))
    return float((first - second).abs().max())
