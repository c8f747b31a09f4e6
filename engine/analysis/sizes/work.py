"""How many floating-point operations reading a text takes: two for each multiply and add of a matrix product.

What is left out (norms, activations, softmax, biases) grows with the width, and matrix products with its square. Scores
that a mask forbids are counted, as in the published counts (Kaplan et al. 2020, table 1; Hoffmann et al. 2022, appendix
F): they are computed, and then masked. Of a window only what it sees is counted.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from engine.analysis.sizes.formula import Formula, Minimum, Symbol, formula, total
from engine.analysis.sizes.shape import Stack, stacks
from engine.model.config import Attention, Latent, ModelConfig
from engine.model.layers.embed import FRAMES

BACKWARD = 2  # times the forward pass: one product for the inputs' gradient, one for the weights'


@dataclass(frozen=True)
class Work:
    """Operations for one text. `quadratic` work grows with the square of the length."""

    name: str
    block: str
    formula: Formula
    quadratic: bool = False

    @property
    def flops(self) -> int:
        return self.formula.value


def forward(config: ModelConfig, length: int, target: int | None = None) -> list[Work]:
    """Work that one text of `length` tokens takes; with two stacks, `target` tokens (by default as many) go through the
    decoder.

    Training takes three times as much: the backward pass is two products for each of the forward's.
    """
    found: list[Work] = []
    sound = config.embedding.sound
    source = Symbol("n", length) if sound is None else Symbol("N_s", sound.positions)
    patches, last = config.embedding.patches, source
    if sound is not None:
        wide = stacks(config)[0].d
        found.append(Work("convolution 1", "sound", 4 * FRAMES * source * Symbol("M", sound.bins) * wide))
        found.append(Work("convolution 2", "sound", 2 * FRAMES * source * wide * wide))
    if patches is not None:
        count, stack = Symbol("p", patches.count), stacks(config)[0]
        found.append(Work("patches", "patches", 2 * count * stack.pixels * stack.d))
    if config.embedding.width is not None:
        stack = stacks(config)[0]
        found.append(Work("map to d", "tokens", 2 * source * stack.E * stack.d))
    for stack in stacks(config):
        last = Symbol("m", length if target is None else target) if stack.crosses else source
        found += stack_work(stack, last, source)
    return found + list(end_work(config, last))


def per_token(config: ModelConfig, length: int, target: int | None = None) -> float:
    """Operations of the forward pass divided by all tokens read, the target's among them."""
    read = length
    if config.encoder is not None:
        read += length if target is None else target
    return sum(work.flops for work in forward(config, length, target)) / read


def stack_work(stack: Stack, tokens: Symbol, source: Symbol) -> Iterator[Work]:
    config = stack.config
    yield from attention_work(stack, config.attention, tokens, tokens, "attn")
    if stack.crosses:
        yield from attention_work(stack, config.cross_attention, tokens, source, "cross_attn")
    yield from mlp_work(stack, tokens)


def mlp_work(stack: Stack, tokens: Symbol) -> Iterator[Work]:
    mlp, d, block = stack.config.mlp, stack.d, f"{stack.prefix}mlp"
    if mlp is None:
        return
    if mlp.experts is not None:
        read = stack.X + 1 if mlp.experts.shared_gate else stack.X
        yield Work("router", block, 2 * tokens * stack.L_x * d * read)
    for feed in stack.feeds:
        layers = stack.L if mlp.experts is None else feed.layers
        products = 3 if mlp.gated else 2
        yield Work(feed.title, block, 2 * products * tokens * layers * feed.seen * d * feed.width)


def attention_work(stack: Stack, attention: Attention, tokens: Symbol, read: Symbol, name: str) -> Iterator[Work]:
    layers, d, block = stack.L, stack.d, f"{stack.prefix}{name}"
    across = "cross-attention" if name == "cross_attn" else "attention"
    queries, keys = stack.heads(attention), stack.kv_heads(attention)
    if attention.latent is not None:
        yield from latent_work(stack, attention, attention.latent, tokens, block)
        return
    yield Work(f"{across}: queries and output", block, 4 * tokens * layers * d * queries)
    yield Work(f"{across}: keys and values", block, 4 * read * layers * d * keys)
    pairs = total([many * reach * tokens for many, reach in reaches(attention, read, layers, stack.config)])
    yield Work(f"{across}: scores and weighted values", block, 4 * pairs * queries, quadratic=True)
    if name == "attn" and (terms := len(stack.config.positions.named_terms)):
        distances = 2 * Symbol("D", stack.config.positions.span)
        yield Work("attention: distances", block, 2 * terms * layers * d * queries * distances)
        yield Work("attention: scores of the distances", block, 2 * terms * tokens * layers * distances * queries)


def latent_work(stack: Stack, attention: Attention, latent: Latent, tokens: Symbol, block: str) -> Iterator[Work]:
    layers, d, c = stack.L, stack.d, Symbol("c", latent.keys)
    queries, values = stack.heads(attention), stack.values(attention)
    still = Symbol("H", attention.heads) * (Symbol("d_h", stack.config.head_width(attention)) - stack.d_turned)
    yield Work("attention: compressed keys and values", block, 2 * tokens * layers * d * (c + stack.d_turned))
    yield Work("attention: keys and values", block, 2 * tokens * layers * c * total([still, values]))
    if latent.queries is None:
        yield Work("attention: queries", block, 2 * tokens * layers * d * queries)
    else:
        narrow = Symbol("c_q", latent.queries)
        yield Work("attention: queries", block, 2 * tokens * layers * narrow * total([formula(d), queries]))
    yield Work("attention: output", block, 2 * tokens * layers * values * d)
    pairs = total([many * reach * tokens for many, reach in reaches(attention, tokens, layers, stack.config)])
    yield Work("attention: scores and weighted values", block, 2 * pairs * total([queries, values]), quadratic=True)


def reaches(
    attention: Attention, read: Symbol, layers: Symbol, config: ModelConfig
) -> Iterator[tuple[Formula, Formula]]:
    """Counts how many layers see how many keys at most."""
    if attention.window is None:
        yield layers, formula(read)
        return
    w = Symbol("w", attention.window)
    near = Minimum(read, 2 * w - 1 if attention.mask == "full" else formula(w))
    if attention.windowed is None:
        yield layers, near
        return
    windowed = len([layer for layer in attention.windowed if layer < config.layers])
    yield Symbol("L_w", windowed), near
    yield layers - Symbol("L_w", windowed), read


def end_work(config: ModelConfig, tokens: Symbol) -> Iterator[Work]:
    last, head = stacks(config)[-1], config.head
    d, read = last.d, last.read
    if head.pooler:
        yield Work("pooler", "pooler", 2 * d * d)
    if head.next_sentence:
        yield Work("next sentence", "next_sentence", 4 * d)
    if config.vector is not None:
        made, many = d * max(len(config.vector.pooled), 1), formula(1 if config.vector.pooled else tokens)
        for one in config.vector.maps:
            yield Work("vector: map", "vector", 2 * many * made * one.width)
            made = formula(one.width)
    if config.narrows:
        rows = formula(1 if head.kind == "sequence" else tokens)
        yield Work("head: map to the width of tokens", "head", 2 * rows * d * last.E)
    if head.kind == "masked" or head.dense:
        rows = formula(1 if head.kind == "sequence" else tokens)
        yield Work("head: dense", "head", 2 * rows * (d if head.kind == "masked" else read) * read)
    if head.kind in ("language", "masked", "token", "span"):
        yield Work("head: logits", "head", 2 * tokens * last.outputs * read)
    if head.kind == "sequence":
        yield Work("head: classes", "head", (4 if head.averaged else 2) * last.outputs * read)
