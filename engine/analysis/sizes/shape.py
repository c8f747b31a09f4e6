"""The numbers of one stack of blocks, as the symbols that formulas are written in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from engine.analysis.sizes.formula import Formula, Integer, Symbol
from engine.model.config import Attention, ModelConfig, kv_heads


@dataclass(frozen=True)
class Feed:
    """MLPs of one kind: `count` of them in each of `layers`, of which each token sees `seen`. `module` is where they
    are in a block, `title` what they are called."""

    title: str
    module: str
    width: Symbol
    layers: Symbol
    count: Formula = Integer(1)
    seen: Formula = Integer(1)


@dataclass(frozen=True)
class Stack:
    """A decoder, an encoder, or one of two: `prefix` is what its tensors' names begin with."""

    config: ModelConfig
    prefix: str = ""
    crosses: bool = False
    L: Symbol = Symbol("L", 0)

    @property
    def title(self) -> str:
        return self.prefix.rstrip(".")

    @property
    def d(self) -> Symbol:
        return Symbol("d", self.config.d_model)

    @property
    def E(self) -> Symbol:
        """The width of the token vectors: d, unless they have one of their own."""
        return self.d if self.config.embedding.width is None else Symbol("E", self.config.d_embed)

    @property
    def embedding_width(self) -> Symbol:
        """The width in which tokens, positions and segments are added up."""
        return self.E if self.config.embedding.mapped == "all" else self.d

    @property
    def read(self) -> Symbol:
        """The width that the head's last matrix reads."""
        vector = self.config.vector
        if self.config.head.read == "vector" and vector is not None and len(vector.pooled) > 1:
            return Symbol("d_w", vector.width(self.config.d_model))
        return self.d if self.config.head.over_classes and not self.config.narrows else self.E

    @property
    def blocks(self) -> Symbol:
        """Number of different blocks: L, unless layers share them."""
        distinct = self.config.distinct
        return self.L if distinct in (None, self.config.layers) else Symbol("L_d", distinct or 0)

    @property
    def d_ff(self) -> Symbol:
        return Symbol("d_ff", self.config.mlp.d_mlp if self.config.mlp else 0)

    @property
    def feeds(self) -> list[Feed]:
        """MLPs: one a block, or its experts and what stands beside them."""
        mlp = self.config.mlp
        if mlp is None:
            return []
        if mlp.experts is None:
            return [Feed("MLP", "mlp", self.d_ff, self.blocks)]
        experts = mlp.experts
        width = Symbol("d_1", experts.d_dense or mlp.d_mlp)
        dense = Feed("MLP", "mlp", width, Symbol("L_1", len(set(experts.dense))))
        routed = Feed("experts", "mlp.experts", self.d_ff, self.L_x, self.X, Symbol("k", experts.used))
        found = [dense, routed] if experts.dense else [routed]
        if experts.shared is not None:
            found.append(Feed("shared expert", "mlp.shared", Symbol("d_s", experts.shared), self.L_x))
        return found

    @property
    def X(self) -> Symbol:
        """Number of experts of a layer."""
        experts = self.config.mlp and self.config.mlp.experts
        return Symbol("X", experts.count if experts else 0)

    @property
    def L_x(self) -> Symbol:
        """Number of layers that have experts."""
        experts = self.config.mlp and self.config.mlp.experts
        return Symbol("L_x", self.L.number - len(set(experts.dense)) if experts else 0)

    @property
    def V(self) -> Symbol:
        return Symbol("V", self.config.vocab_size)

    @property
    def outputs(self) -> Symbol:
        """Number of outputs of the head: the vocabulary, a part of it, or classes."""
        if self.config.head.over_classes:
            return Symbol("K", self.config.outputs)
        return self.V if self.config.outputs == self.config.vocab_size else Symbol("V_out", self.config.outputs)

    def heads(self, attention: Attention) -> Formula:
        """The width of all queries side by side: d, wherever it is as wide."""
        width = self.config.head_width(attention)
        if width * attention.heads == self.config.d_model:
            return self.d
        return Symbol("H", attention.heads) * Symbol("d_h", width)

    def kv_heads(self, attention: Attention) -> Formula:
        """The width of all keys, and of all values, side by side."""
        shared = kv_heads(attention)
        if shared == attention.heads:
            return self.heads(attention)
        return Symbol("H_kv", shared) * Symbol("d_h", self.config.head_width(attention))

    def values(self, attention: Attention) -> Formula:
        """The width of what all heads mix of their values, side by side."""
        width = self.config.value_width(attention)
        if width == self.config.head_width(attention):
            return self.heads(attention)
        return Symbol("H", attention.heads) * Symbol("d_v", width)

    @property
    def d_turned(self) -> Symbol:
        return Symbol("d_r", self.config.d_turned)

    @property
    def pixels(self) -> Formula:
        """The numbers of one patch."""
        patches = self.config.embedding.patches
        if patches is None:
            return Integer(0)
        side = Symbol("P", patches.size)
        return side * side * Symbol("C", patches.channels)


def stacks(config: ModelConfig) -> Sequence[Stack]:
    """The encoder first where there are two. Its depth is L_e only where the decoder's is another."""
    depth = Symbol("L", config.layers)
    if config.encoder is None:
        return [Stack(config, L=depth)]
    first = depth if config.encoder.layers == config.layers else Symbol("L_e", config.encoder.layers)
    return [
        Stack(config.encoder_stack, "encoder.", L=first),
        Stack(config.decoder_stack, "decoder.", crosses=True, L=depth),
    ]


def reading(config: ModelConfig, image: int) -> ModelConfig:
    """The same model for square pictures of `image` pixels a side, in patches as large as before.

    Raises ValueError for a model that reads no pictures, and for a side that its patches do not divide.
    """
    patches = config.embedding.patches
    if patches is None:
        raise ValueError("the model must read pictures, and this one reads tokens; ask for another length of text.")
    larger = replace(patches, image=image)
    embedding = replace(config.embedding, patches=larger)
    return replace(config, context=larger.before + larger.count, embedding=embedding)


def norm_width(config: ModelConfig) -> int:
    """Parameters a component of a norm has: weight and bias, weight alone, none."""
    return config.norm.has_weight + config.norm.has_bias
