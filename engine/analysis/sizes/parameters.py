"""How many parameters a model has, part by part, each count with the formula that gives it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from engine.analysis.sizes.formula import Formula, Integer, Symbol, formula, product, total
from engine.analysis.sizes.shape import Stack, norm_width, stacks
from engine.model.config import Attention, Latent, ModelConfig
from engine.model.layers.embed import FRAMES
from engine.model.layers.grid_bias import OUTSIDE


@dataclass(frozen=True)
class Part:
    """Some of the parameters, in all layers.

    `tensors` is their name in the model, * for the layer or for all of a module's; `block` is where in the model's
    picture they are, `role` what kind of number they are. `one` counts them in a single layer.
    """

    name: str
    tensors: str
    block: str
    role: str
    one: Formula
    layers: Symbol | None = None

    @property
    def formula(self) -> Formula:
        return self.one if self.layers is None else product([self.layers, self.one])

    @property
    def count(self) -> int:
        return self.formula.value


def parameters(config: ModelConfig) -> list[Part]:
    """Lists the parts in the order of the computation; a tied head, which has no matrix of its own, is listed with
    0."""
    found = list(embedding(config))
    for stack in stacks(config):
        found += stack_parts(stack)
    found += ends(config)
    return [part for part in found if part.count or not part.tensors]


def count(config: ModelConfig) -> int:
    return sum(part.count for part in parameters(config))


def embedding(config: ModelConfig) -> Iterator[Part]:
    """The table of tokens, which two stacks share, but for one that reads sound; or a picture's patches."""
    first = stacks(config)[0]
    prefix, place = first.prefix, f"{first.prefix}embed"
    if config.embedding.sound is not None:
        for number, width in (1, Symbol("M", config.embedding.sound.bins)), (2, first.d):
            title, at, block = f"convolution {number}", f"{place}.conv{number}", f"{prefix}sound"
            yield Part(f"{title}, W", f"{at}.weight", block, "matrix", FRAMES * width * first.d)
            yield Part(f"{title}, bias", f"{at}.bias", block, "bias", first.d)
        if config.encoder is None:
            return
    if config.embedding.patches is None:
        prefix = config.table.removesuffix("embed.tokens.weight")
        yield Part("tokens, W_E", config.table, f"{prefix}tokens", "matrix", first.V * first.E)
        if config.embedding.width is not None:
            yield Part("map to d, W", f"{place}.mapped.weight", f"{prefix}tokens", "matrix", first.E * first.d)
        if config.embedding.width is not None and config.embedding.mapped == "all":
            yield Part("map to d, bias", f"{place}.mapped.bias", f"{prefix}tokens", "bias", first.d)
        return
    yield Part("patches, W", f"{place}.patches.project.weight", f"{prefix}patches", "matrix", first.pixels * first.d)
    if config.embedding.patches.bias:
        yield Part("patches, bias", f"{place}.patches.project.bias", f"{prefix}patches", "bias", first.d)
    if config.embedding.patches.cls:
        yield Part("[CLS]", f"{place}.patches.cls", f"{prefix}patches", "vector", first.d)
    if config.embedding.patches.mask:
        yield Part("[MASK]", f"{place}.patches.mask", f"{prefix}patches", "vector", first.d)
    if config.embedding.patches.registers:
        rows = Symbol("r", config.embedding.patches.registers) * first.d
        yield Part("registers", f"{place}.patches.registers", f"{prefix}patches", "vector", rows)
    if config.embedding.patches.distilled:
        yield Part("[DIST]", f"{place}.patches.distilled", f"{prefix}patches", "vector", first.d)


def stack_parts(stack: Stack) -> Iterator[Part]:
    config, prefix = stack.config, stack.prefix
    positions, patches = config.positions, config.embedding.patches
    if positions.has_places:
        places = config.context if patches is None else patches.places
        rows = Symbol("N" if config.embedding.sound is None else "N_s", places) * stack.embedding_width
        yield Part("positions, W_P", f"{prefix}embed.positions.weight", f"{prefix}positions", "matrix", rows)
        if positions.counted == "tokens":
            place = f"{prefix}embed.padded"
            yield Part("position of padding", place, f"{prefix}positions", "vector", stack.embedding_width)
        if positions.axes == 2:
            inside = f"{prefix}embed.within.weight"
            yield Part("positions in the span", inside, f"{prefix}positions", "matrix", rows)
    if config.embedding.segments:
        rows = Symbol("S", config.embedding.segments) * stack.embedding_width
        yield Part("segments, W_S", f"{prefix}embed.segments.weight", f"{prefix}segments", "matrix", rows)
    if config.embedding.norm:
        each = norm_width(config) * stack.embedding_width
        yield Part("norm of the embedding", f"{prefix}embed.norm.*", f"{prefix}embed_norm", "norm", each)
    if positions.has_buckets:
        table = Symbol("R", positions.buckets) * Symbol("H", config.attention.heads)
        yield Part("relative positions", f"{prefix}relative.weight", f"{prefix}relative", "matrix", table)
    if positions.picture_bias is not None and patches is not None:
        table = Symbol("D_p", (2 * patches.side - 1) ** 2 + OUTSIDE) * Symbol("H", config.attention.heads)
        place, many = (
            ("grid_bias", None) if positions.picture_bias == "shared" else ("blocks.*.attn.grid_bias", stack.blocks)
        )
        block = f"{prefix}relative" if many is None else f"{prefix}attn"
        yield Part("distances of patches", f"{prefix}{place}.weight", block, "matrix", table, many)
    if positions.kind == "disentangled":
        vectors = 2 * Symbol("D", positions.span) * stack.d
        yield Part("distances", f"{prefix}distances.weight", f"{prefix}distances", "matrix", vectors)
        if positions.normed:
            yield Part("norm of the distances", f"{prefix}distances_norm.*", f"{prefix}distances", "norm", 2 * stack.d)
    yield from block_parts(stack)
    if config.final_norm:
        yield norm(stack, "final norm", "final_norm", "final_norm")


def block_parts(stack: Stack) -> Iterator[Part]:
    config, place = stack.config, stack.config.norm.place
    of_output = place in ("around", "output")
    if place != "output":
        layers = stack.blocks if config.norm.first else Symbol("L_n", max(config.layers - 1, 0))
        yield norm(stack, "norm 1", "blocks.*.norm1", "norm1", layers)
    yield from attention_parts(stack, config.attention, "attn")
    if of_output:
        yield norm(stack, "norm 1, after", "blocks.*.norm1_after", "norm1_after", stack.blocks)
    if stack.crosses:
        yield norm(stack, "norm of the crossing", "blocks.*.norm_cross", "norm_cross", stack.blocks)
        yield from attention_parts(stack, config.cross_attention, "cross_attn")
    if config.layer_scale:
        for number, block in ((1, "attn"), (2, "mlp"))[: 1 if config.mlp is None else 2]:
            scale = f"{stack.prefix}blocks.*.scale{number}"
            yield Part(f"scale of the {block}", scale, f"{stack.prefix}{block}", "vector", stack.d, stack.blocks)
    if config.mlp is None:
        return
    if config.sublayers != "parallel_one_norm" and place != "output":
        yield norm(stack, "norm 2", "blocks.*.norm2", "norm2", stack.blocks)
    yield from mlp_parts(stack)
    if of_output:
        yield norm(stack, "norm 2, after", "blocks.*.norm2_after", "norm2_after", stack.blocks)


def attention_parts(stack: Stack, attention: Attention, name: str) -> Iterator[Part]:
    config, d = stack.config, stack.d
    queries, keys = stack.heads(attention), stack.kv_heads(attention)
    place, block = f"{stack.prefix}blocks.*.{name}", f"{stack.prefix}{name}"
    across = "cross " if name == "cross_attn" else ""
    if attention.latent is not None:
        yield from latent_parts(stack, attention, attention.latent, place, block)
        return
    for letter, what, width in (("q", "queries", queries), ("k", "keys", keys), ("v", "values", keys)):
        named = f"{across}{what}, W_{letter.upper()}"
        yield Part(named, f"{place}.{letter}.weight", block, "matrix", d * width, stack.blocks)
        if attention.bias and (letter != "k" or attention.key_bias):
            yield Part(f"{across}{what}, bias", f"{place}.{letter}.bias", block, "bias", width, stack.blocks)
    for term in () if across or not config.positions.own_maps else config.positions.named_terms:
        letter, what = ("k", "keys") if term == "c2p" else ("q", "queries")
        at = f"{place}.position_{letter}"
        yield Part(f"{what} of the distances", f"{at}.weight", block, "matrix", d * queries, stack.blocks)
        if attention.bias and (letter != "k" or attention.key_bias):
            yield Part(f"{what} of the distances, bias", f"{at}.bias", block, "bias", queries, stack.blocks)
    yield Part(f"{across}output, W_O", f"{place}.out.weight", block, "matrix", queries * d, stack.blocks)
    if attention.out_bias:
        yield Part(f"{across}output, bias", f"{place}.out.bias", block, "bias", d, stack.blocks)
    if attention.sinks:
        yield Part(f"{across}sinks", f"{place}.sinks", block, "vector", Symbol("H", attention.heads), stack.blocks)
    if attention.qk_norm is not None:
        width = Symbol("d_h", config.head_width(attention))
        both = 2 * formula(width) if attention.qk_norm == "head" else queries + keys
        learned = int(config.norm.has_weight) if attention.qk_norm == "each" else norm_width(config)
        norms = learned * both
        yield Part(f"{across}norms of queries and keys", f"{place}.[qk]_norm.*", block, "norm", norms, stack.blocks)


def latent_parts(stack: Stack, attention: Attention, latent: Latent, place: str, block: str) -> Iterator[Part]:
    """Lists the maps to what the stream is compressed to, and from that to queries, keys and values."""
    d, layers, c, H = stack.d, stack.blocks, Symbol("c", latent.keys), Symbol("H", attention.heads)
    still = Symbol("d_h", stack.config.head_width(attention)) - stack.d_turned
    down = [("keys and values", "keys", c), ("turned part of the keys", "shared", stack.d_turned)]
    read: Formula = formula(d)
    if latent.queries is not None:
        read = formula(Symbol("c_q", latent.queries))
        down.append(("queries", "queries", Symbol("c_q", latent.queries)))
    for name, tensor, width in down:
        at = f"{place}.latent.{tensor}"
        yield Part(f"{name}, compressed", f"{at}.weight", block, "matrix", d * width, layers)
        if latent.bias:
            yield Part(f"{name}, compressed, bias", f"{at}.bias", block, "bias", formula(width), layers)
        if tensor != "shared":
            each = norm_width(stack.config) * width
            yield Part(f"norm of the compressed {name}", f"{at}_norm.*", block, "norm", each, layers)
    yield Part("queries, W_Q", f"{place}.q.weight", block, "matrix", read * stack.heads(attention), layers)
    yield Part("keys, W_K", f"{place}.k.weight", block, "matrix", c * (H * still), layers)
    yield Part("values, W_V", f"{place}.v.weight", block, "matrix", c * stack.values(attention), layers)
    yield Part("output, W_O", f"{place}.out.weight", block, "matrix", stack.values(attention) * d, layers)
    if attention.out_bias:
        yield Part("output, bias", f"{place}.out.bias", block, "bias", formula(d), layers)
    if attention.sinks:
        yield Part("sinks", f"{place}.sinks", block, "vector", formula(H), layers)


def mlp_parts(stack: Stack) -> Iterator[Part]:
    mlp, d, block = stack.config.mlp, stack.d, f"{stack.prefix}mlp"
    if mlp is None:
        return
    if mlp.experts is not None:
        place = f"{stack.prefix}blocks.*.mlp"
        yield Part("router, W_R", f"{place}.router.weight", block, "matrix", d * stack.X, stack.L_x)
        if mlp.experts.bias:
            yield Part("router, bias", f"{place}.router.bias", block, "bias", stack.X, stack.L_x)
        if mlp.experts.shared_gate:
            yield Part("gate of the shared expert", f"{place}.shared_gate.weight", block, "matrix", d, stack.L_x)
    inward = [("gate, W_1", "pre"), ("up, W_3", "up")] if mlp.gated else [("in, W_1", "pre")]
    for feed in stack.feeds:
        place = f"{stack.prefix}blocks.*.{feed.module}"
        many, layers, width = feed.count, feed.layers, feed.width
        for name, tensor in inward:
            yield Part(f"{feed.title} {name}", f"{place}.{tensor}.weight", block, "matrix", many * d * width, layers)
            if mlp.bias:
                short = name.partition(",")[0]
                bias = f"{place}.{tensor}.bias"
                yield Part(f"{feed.title} {short}, bias", bias, block, "bias", many * width, layers)
        yield Part(f"{feed.title} out, W_2", f"{place}.out.weight", block, "matrix", many * width * d, layers)
        if mlp.bias:
            yield Part(f"{feed.title} out, bias", f"{place}.out.bias", block, "bias", many * d, layers)


def ends(config: ModelConfig) -> Iterator[Part]:
    """Pooler, head, and BERT's second head."""
    last, head = stacks(config)[-1], config.head
    d = last.d
    if head.pooler:
        yield Part("pooler, W", "pooler.dense.weight", "pooler", "matrix", d * d)
        yield Part("pooler, bias", "pooler.dense.bias", "pooler", "bias", d)
    if head.next_sentence:
        yield Part("next sentence", "next_sentence.*", "next_sentence", "matrix", 2 * d + 2)
    if config.vector is not None:
        read = d * max(len(config.vector.pooled), 1)
        if config.vector.probe is not None:
            wide = Symbol("d_p", config.vector.probe.d_mlp)
            yield Part("probe, q", "vector.probe.query", "vector", "vector", formula(d))
            yield Part("probe, maps of its attention", "vector.probe.[qkvo]*.weight", "vector", "matrix", 4 * d * d)
            yield Part("probe, their biases", "vector.probe.[qkvo]*.bias", "vector", "bias", 4 * d)
            yield Part("probe, norm", "vector.probe.norm.*", "vector", "norm", norm_width(config) * d)
            yield Part("probe, MLP", "vector.probe.p*.weight", "vector", "matrix", 2 * d * wide)
            yield Part("probe, biases of the MLP", "vector.probe.p*.bias", "vector", "bias", total([wide, d]))
        if config.vector.norm:
            yield Part("vector, norm", "vector.norm.*", "vector", "norm", norm_width(config) * read)
        for at, made in enumerate(config.vector.maps):
            place = f"vector.maps.{at}.dense"
            yield Part(f"vector, map {at + 1}", f"{place}.weight", "vector", "matrix", read * made.width)
            if made.bias:
                yield Part(f"vector, map {at + 1} bias", f"{place}.bias", "vector", "bias", formula(made.width))
            read = formula(made.width)
    if config.narrows:
        yield Part("head, map to the width of tokens", "head.narrow.weight", "head", "matrix", d * last.E)
    if head.kind == "none":
        return
    dense = last.read  # how wide a dense layer's result is
    if head.kind == "masked" or head.dense:
        into = d if head.kind == "masked" else dense
        yield Part("head, dense", "head.dense.weight", "head", "matrix", into * dense)
        if head.dense_bias:
            yield Part("head, dense bias", "head.dense.bias", "head", "bias", dense)
    if head.kind == "masked" or head.norm:
        yield Part("head, norm", "head.norm.*", "head", "norm", norm_width(config) * dense)
    if config.tied and not head.over_classes:
        yield Part("head, W_U = W_E", "", "head", "matrix", Integer(0))
    else:
        name = "head, W" if head.over_classes else "head, W_U"
        yield Part(name, "head.weight", "head", "matrix", last.outputs * dense)
    if head.has_bias:
        yield Part("head, bias", "head.bias", "head", "bias", last.outputs)
    if head.averaged:
        both = 1 + head.has_bias
        second = last.outputs * d if both == 1 else total([last.outputs * d, last.outputs])
        yield Part("head of [DIST]", "head.distilled.*", "head", "matrix", second)


def norm(stack: Stack, name: str, tensor: str, block: str, layers: Symbol | None = None) -> Part:
    each = norm_width(stack.config) * stack.d
    return Part(name, f"{stack.prefix}{tensor}.*", f"{stack.prefix}{block}", "norm", each, layers)
