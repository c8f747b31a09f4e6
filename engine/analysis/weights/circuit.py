"""What one attention head does with the stream, as one matrix (Elhage et al. 2021, "A Mathematical Framework")."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from engine.analysis.weights.spectrum import Spectrum, summarise_spectrum
from engine.model.layers.attention import Attention
from engine.model.layers.norm import BatchNorm, LayerNorm, RMSNorm, stretch
from engine.model.stack import Stack
from engine.model.transformer import Transformer
from engine.runtime.trace import Trace

PATTERN = re.compile(r"(?:(encoder|decoder)\.)?blocks\.(\d+)\.(attn|cross_attn)\.pattern")

Which = Literal["qk", "ov"]


@dataclass(frozen=True)
class Circuit:
    """`left` is d_model d_head, `right` d_head d_model; the circuit is their product."""

    left: Tensor
    right: Tensor

    @property
    def matrix(self) -> Tensor:
        """d_model d_model."""
        return self.left @ self.right

    @property
    def spectrum(self) -> Spectrum:
        """The d_head singular values that can differ from zero, from the factors: A B has those of R_A R_B^T."""
        inner = torch.linalg.qr(self.left.double())[1] @ torch.linalg.qr(self.right.mT.double())[1].mT
        return summarise_spectrum(torch.linalg.svdvals(inner))


def circuit(model: Transformer, layer: int, head: int, which: Which, side: str = "", crosses: bool = False) -> Circuit:
    """QK = W_Q^T W_K, whose x_pos^T QK x_key is the score; OV = W_V W_O, what x_key OV adds to the stream.

    `side` is "encoder" or "decoder" of two stacks, `crosses` takes the attention of one to the other. A query takes
    the key and value of its group. The circuit is that of the weights alone: without 1 / sqrt(d_head), biases and
    norms before it, and of rotated positions it is that between a position and itself; a norm that stands behind the
    attention is in W_O (`writing_rows`). Raises ValueError for a layer, head or side that the model lacks.
    """
    attention = attention_of(model, layer, side, crosses)
    if not 0 <= head < attention.heads:
        raise ValueError(f"head must be 0 to {attention.heads - 1}, got {head}.")
    group = head * attention.kv_heads // attention.heads
    if which == "qk":
        return Circuit(reading_rows(attention, "q")[head].mT, reading_rows(attention, "k")[group])
    return Circuit(reading_rows(attention, "v")[group].mT, writing_rows(model, layer, side, crosses)[head])


def writing_rows(model: Transformer, layer: int, side: str = "", crosses: bool = False) -> Tensor:
    """W_O, head d_head d_model, through which heads add to the stream, times the scale of what they add. Where a norm
    stands behind the attention, that is what the norm makes of it, without its bias and the division that depends on
    the text."""
    attention = attention_of(model, layer, side, crosses)
    W_O, behind = rows(attention.out.weight.mT, attention.heads), norm_behind(model, layer, side, crosses)
    W_O = W_O if model.config.residual_scale == 1 else W_O * model.config.residual_scale
    learned = stack_of(model, side).blocks[layer].scale1
    W_O = W_O * learned if isinstance(learned, Tensor) else W_O
    return W_O if behind is None else linear_part(behind, W_O.float()).to(W_O.dtype)


def norm_behind(model: Transformer, layer: int, side: str = "", crosses: bool = False) -> nn.Module | None:
    """The norm between an attention and the stream that it adds to."""
    found = None if crosses else stack_of(model, side).blocks[layer].norm1_after
    return found if isinstance(found, nn.Module) else None


def stack_of(model: Transformer, side: str) -> Stack:
    return model if model.config.encoder is None else model.encoder if side == "encoder" else model.decoder


def linear_part(norm: nn.Module, x: Tensor) -> Tensor:
    """A norm without its bias and the division that depends on the text."""
    if isinstance(norm, BatchNorm):
        return x * norm.weight.float() / (norm.variance.float() + norm.eps).sqrt()
    if isinstance(norm, LayerNorm):
        x = x - x.mean(-1, keepdim=True)
    return stretch(norm, x) if isinstance(norm, LayerNorm | RMSNorm) else x


def by_head(model: Transformer, name: str) -> Tensor:
    """W_Q, W_K, W_V or W_O by its name in the model, as head d_head d_model; W_K and W_V have one of each group.

    Raises ValueError for any other tensor.
    """
    owner, _, letter = name.removesuffix(".weight").rpartition(".")
    found = dict(model.named_modules()).get(owner)
    if not isinstance(found, Attention) or letter not in ("q", "k", "v", "out"):
        raise ValueError(f"only the matrices q, k, v and out of an attention are made of heads, and not {name}.")
    weight: Tensor = getattr(found, letter).weight
    return rows(weight.mT if letter == "out" else weight, found.heads if letter in "q out" else found.kv_heads)


def locate_pattern(trace: Trace, hook: str) -> tuple[int, str, bool]:
    """Layer, side and whether it crosses, of the hook of a pattern. Raises ValueError for any other hook."""
    found = PATTERN.fullmatch(hook)
    if found is None or hook not in trace.hooks:
        raise ValueError(f"this run has no pattern {hook[:100]!r} whose weights could be multiplied by what they move.")
    return int(found[2]), found[1] or "", found[3] == "cross_attn"


def attention_of(model: Transformer, layer: int, side: str, crosses: bool) -> Attention:
    stacks = {"": model} if model.config.encoder is None else {"encoder": model.encoder, "decoder": model.decoder}
    if side not in stacks:
        known = " or ".join(map(repr, stacks))
        raise ValueError(f"side must be {known} for this model, got {side!r}.")
    blocks = stacks[side].blocks
    if not 0 <= layer < len(blocks):
        raise ValueError(f"layer must be 0 to {len(blocks) - 1}, got {layer}.")
    attention = blocks[layer].cross_attn if crosses else blocks[layer].attn
    if not isinstance(attention, Attention):
        raise ValueError("only the decoder behind an encoder attends across; leave crosses out.")
    return attention


def rows(weight: Tensor, heads: int) -> Tensor:
    """head d_head d_model."""
    return weight.unflatten(0, (heads, -1))


def reading_rows(attention: Attention, letter: str) -> Tensor:
    """W_Q, W_K or W_V, head d_head d_model, from the stream; of latent attention the product with what compresses it,
    the norm between them without its division."""
    weight: Tensor = getattr(attention, letter).weight
    own = rows(weight, attention.heads if letter == "q" else attention.kv_heads)
    latent = attention.latent
    if latent is None or (letter == "q" and latent.queries is None):
        return own
    if letter == "q":
        assert latent.queries is not None
        return linear_part(latent.queries_norm, own.float()).to(own.dtype) @ latent.queries.weight
    made = linear_part(latent.keys_norm, own.float()).to(own.dtype) @ latent.keys.weight
    shared = latent.shared.weight.expand(attention.kv_heads, -1, -1)
    return torch.cat([shared, made], dim=1) if letter == "k" else made
