"""What wrote the residual stream: the embedding, each head, each MLP and the biases, as terms of an exact sum.

Norms divide by a scale that depends on the whole stream. It is taken as this run had it and held still (Elhage et al.
2021, "A Mathematical Framework for Transformer Circuits", "Handling Layer Normalization"): then all that lies between
what a part writes and what reads it is linear, and the terms add up to what was read. Norms that stand behind a
sublayer, or behind the sum, are held still in the same way.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import Literal

import torch
from torch import Tensor, nn

from engine.analysis.weights.circuit import stack_of
from engine.model.layers.attention import Attention
from engine.model.layers.block import Block
from engine.model.layers.experts import Experts
from engine.model.layers.mlp import MLP
from engine.model.layers.norm import BatchNorm, LayerNorm, RMSNorm, stretch
from engine.model.stack import Stack
from engine.model.transformer import Transformer
from engine.runtime.trace import Trace

Kind = Literal[
    "token", "patch", "sound", "segment", "position", "within", "distance", "head", "cross head", "MLP", "bias",
    "edit",
]  # fmt: skip
Sublayer = tuple[int, str]  # layer, and "attn", "cross_attn" or "mlp"

SUBLAYERS = "attn", "cross_attn", "mlp"
EMBEDDING: dict[str, Kind] = {
    "tokens": "token",
    "patches": "patch",
    "conv2.post": "sound",
    "segments": "segment",
    "positions": "position",
    "within": "within",
}


@dataclass(frozen=True)
class Writer:
    """A part that adds to the stream. `layer` is None for the embedding's parts, and for what stands behind the blocks;
    the biases of one layer, its norms' too, are one. "edit" is all that edits of a run added by other ways."""

    kind: Kind
    layer: int | None = None
    head: int | None = None


@dataclass
class Terms:
    """Terms of each writer in some linear readings of the stream, writer -> reading. `covectors` are what of a
    sublayer's output (reading d_model) counts."""

    values: dict[Writer, Tensor] = field(default_factory=dict)
    covectors: dict[Sublayer, Tensor] = field(default_factory=dict)

    def add(self, writer: Writer, value: Tensor) -> None:
        self.values[writer] = self.values[writer] + value if writer in self.values else value

    def __iadd__(self, other: Terms) -> Terms:
        for writer, value in other.values.items():
            self.add(writer, value)
        return self

    @property
    def matrix(self) -> Tensor:
        """writer reading."""
        return torch.stack(list(self.values.values()))


class Walk:
    """The way back from readings of the stream at one position of the first text to the embedding, in float64.

    `side` is "encoder" or "decoder" of two stacks. Raises ValueError for a run behind a cache, and for a position that
    the run does not have.
    """

    def __init__(self, model: Transformer, trace: Trace, pos: int, side: str = "") -> None:
        if trace.past:
            raise ValueError("the stream of a run behind a cache is not whole; run the whole text without a cache.")
        self.trace, self.pos = trace, pos
        self.stack: Stack = stack_of(model, side)
        self.prefix = "" if model.config.encoder is None else f"{side or 'decoder'}."
        length = trace[f"{self.prefix}blocks.0.resid_pre"].shape[1]
        if not 0 <= pos < length:
            raise ValueError(f"a position must be 0 to {length - 1}, got {pos}.")

    def value(self, name: str) -> Tensor:
        """A recorded value of the stack at the position."""
        return self.trace[f"{self.prefix}{name}"][0, self.pos].double()

    def back(self, read: Tensor, layer: int, behind: str = "") -> Terms:
        """Terms of what reads the stream (reading d_model) into block `layer`, or behind the last, or within a block,
        `behind` its own attention."""
        whole, terms = self.read_whole(read, layer, behind), Terms()
        blocks: list[Block] = list(self.stack.blocks)  # type: ignore[arg-type]
        if behind:
            read = self.through_block(read, blocks[layer], layer, terms, (behind,))
        for at in reversed(range(layer)):
            read = self.through_block(read, blocks[at], at, terms)
        self.through_embedding(read, terms)
        if self.trace.edits:
            terms.add(Writer("edit"), whole - terms.matrix.sum(0))
        return terms

    def read_whole(self, read: Tensor, layer: int, behind: str = "") -> Tensor:
        """Readings of the stream as it was."""
        if behind:
            after = self.stack.config.norm.place == "after"
            return read @ self.value(f"blocks.{layer}.{'norm1.out' if after else 'resid_mid'}")
        if layer < len(self.stack.blocks):
            return read @ self.value(f"blocks.{layer}.resid_pre")
        last = f"blocks.{layer - 1}."
        normed = self.prefix + last + "norm2.out" in self.trace and self.stack.config.norm.place == "after"
        return read @ self.value(f"{last}{'norm2.out' if normed else 'resid_post'}")

    def through_block(
        self, read: Tensor, block: Block, layer: int, terms: Terms, sublayers: Collection[str] = SUBLAYERS
    ) -> Tensor:
        """Adds the terms of a block, or of some of it; what reads its output, as what reads its input (reading
        d_model)."""
        at, bias = f"blocks.{layer}.", Writer("bias", layer)
        parts: list[tuple[str, nn.Module, nn.Module | None, nn.Module | None, str]] = [
            ("attn", block.attn, block.norm1_after, block.norm1, "resid_mid")
        ]
        if block.cross_attn is not None:
            parts.append(("cross_attn", block.cross_attn, None, block.norm_cross, "resid_cross"))
        if block.mlp is not None:
            parts.append(("mlp", block.mlp, block.norm2_after, block.norm2, "resid_post"))
        for name, part, around, norm, sum_of in reversed(parts):
            if name not in sublayers:
                continue
            if block.norm_after and norm is not None:
                read, constant = self.through_norm(read, norm, f"{at}{norm_name(name)}", self.value(f"{at}{sum_of}"))
                terms.add(bias, constant)
            learned = block.scale1 if name == "attn" else block.scale2 if name == "mlp" else None
            weighed = read * (block.scale if learned is None else learned.double())
            self.through_sublayer(weighed, part, around, (layer, name), terms)
            if block.hook_skip1 is None and not (block.parallel and name == "mlp"):  # no residual connection
                read = torch.zeros_like(read)
        return read

    def through_sublayer(
        self, read: Tensor, part: nn.Module, around: nn.Module | None, at: Sublayer, terms: Terms
    ) -> None:
        layer, name = at
        hook, bias = f"blocks.{layer}.{name}.", Writer("bias", layer)
        if around is not None:
            given = self.value(f"{hook}out")
            read, constant = self.through_norm(read, around, f"blocks.{layer}.{norm_name(name)}_after", given)
            terms.add(bias, constant)
        terms.covectors[at] = read
        if isinstance(part, Experts):  # whose biases count as much as each expert's weight
            terms.add(Writer("MLP", layer), read @ self.value(f"{hook}out"))
            return
        assert isinstance(part, Attention | MLP)
        if part.out.bias is not None:
            terms.add(bias, read @ part.out.bias.double())
        if isinstance(part, MLP):
            out = self.value(f"{hook}out")
            terms.add(Writer("MLP", layer), read @ (out if part.out.bias is None else out - part.out.bias.double()))
            return
        kind: Kind = "cross head" if name == "cross_attn" else "head"
        each = (weigh_heads(read, part) * self.value(f"{hook}z")).sum(-1)  # reading head
        for head in range(part.heads):
            terms.add(Writer(kind, layer, head), each[:, head])

    def through_norm(self, read: Tensor, norm: nn.Module, name: str, given: Tensor) -> tuple[Tensor, Tensor]:
        """Carries what reads a norm's output back to its input `given`; the second is what it adds whatever that is."""
        scale = self.trace.get(f"{self.prefix}{name}.scale") if self.trace.edits else None
        if scale is not None and scale.shape[1] == self.trace[f"{self.prefix}blocks.0.resid_pre"].shape[1]:
            return hold_norm(norm, read, given, scale[0, self.pos].double())
        return hold_norm(norm, read, given)

    def through_embedding(self, read: Tensor, terms: Terms) -> None:
        embed, bias = self.stack.embed, Writer("bias")
        if embed.maps_all and embed.mapped is not None:
            if embed.mapped.bias is not None:
                terms.add(bias, read @ embed.mapped.bias.double())
            read = read @ embed.mapped.weight.double()
        parts = dict(self.embedding_parts())
        if embed.norm is not None:
            read, constant = self.through_norm(read, embed.norm, "embed.norm", sum(parts.values(), torch.zeros(1)))
            terms.add(bias, constant)
        for kind, vector in parts.items():
            terms.add(Writer(kind), read @ vector)

    def embedding_parts(self) -> Iterator[tuple[Kind, Tensor]]:
        for name, kind in EMBEDDING.items():
            hook = "mapped" if name == "tokens" and self.stack.embed.maps_tokens else name
            if f"{self.prefix}embed.{name}" in self.trace:
                yield kind, self.value(f"embed.{hook}")


def norm_name(sublayer: str) -> str:
    return {"attn": "norm1", "cross_attn": "norm_cross", "mlp": "norm2"}[sublayer]


def weigh_heads(read: Tensor, attention: Attention) -> Tensor:
    """Carries what reads the output of an attention back to what reads its heads' mixtures z, reading head d_head."""
    return (read @ attention.out.weight.double()).unflatten(-1, (attention.heads, attention.d_value))


def hold_norm(norm: nn.Module, read: Tensor, given: Tensor, scale: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Carries what reads a norm's output (reading width) back to its input, with the scale of `given` (width) held
    still; the second is what the norm adds whatever it is given (reading)."""
    nothing = read.new_zeros(len(read))
    if isinstance(norm, LayerNorm):
        scale = (given.var(unbiased=False) + norm.eps).sqrt() if scale is None else scale
        weighed = stretch(norm, read)
        constant = nothing if norm.bias is None else read @ norm.bias.double()
        return (weighed - weighed.mean(-1, keepdim=True)) / scale, constant
    if isinstance(norm, RMSNorm):
        scale = (given.square().mean() + norm.eps).sqrt() if scale is None else scale
        return stretch(norm, read) / scale, nothing
    if isinstance(norm, BatchNorm):
        factor = norm.weight.double() / (norm.variance.double() + norm.eps).sqrt()
        return read * factor, read @ (norm.bias.double() - norm.mean.double() * factor)
    return read, nothing
