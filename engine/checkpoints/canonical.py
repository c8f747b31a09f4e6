"""One way to write each model: what a config leaves to a default is filled in, what says nothing in it is reset.

Two configs are of the same model exactly when they are equal in this form.
"""

from __future__ import annotations

from dataclasses import replace

from engine.model.config import (
    MLP,
    Attention,
    Embedding,
    ModelConfig,
    Norm,
    OtherRotation,
    OutputHead,
    Positions,
    kv_heads,
)

PREDICTS = ("language", "masked")


def canonical_config(config: ModelConfig) -> ModelConfig:
    encoder = config.encoder
    return replace(
        config,
        vocab_size=config.vocab_size if config.embedding.patches is None else 1,
        context=canonical_context(config),
        attention=canonical_attention(config, config.attention),
        mlp=canonical_mlp(config.mlp),
        positions=canonical_positions(config),
        norm=canonical_norm(config),
        distinct=None if config.distinct == config.layers else config.distinct,
        embedding=canonical_embedding(config.embedding),
        head=canonical_head(config),
        tied=config.tied if config.head.kind in PREDICTS or config.head.language else True,
        encoder=None if encoder is None else replace(encoder, attention=canonical_attention(config, encoder.attention)),
        cross=None if encoder is None else canonical_attention(config, config.cross_attention),
    )


def canonical_context(config: ModelConfig) -> int:
    patches = config.embedding.patches
    return config.context if patches is None else patches.places + (patches.registers or 0)


def canonical_norm(config: ModelConfig) -> Norm:
    given = replace(config.norm, final=config.final_norm)
    if given.kind == "none":
        return replace(given, eps=0.0, learned="all", first=True)
    return replace(given, learned="all") if given.kind == "rms" and given.has_weight else given


def canonical_embedding(given: Embedding) -> Embedding:
    patches = given.patches
    if patches is not None and patches.trained is not None:  # the size of what is read is no part of a model
        given = replace(given, patches=replace(patches, image=patches.trained, trained=None))
    return replace(given, mapped="all") if given.width is None else given


def canonical_attention(config: ModelConfig, given: Attention) -> Attention:
    width = config.head_width(given)
    return replace(
        given,
        kv_heads=kv_heads(given),
        d_head=width,
        scale=config.score_scale(given),
        key_bias=given.key_bias or not given.bias,
        windowed=None if given.window is None else given.windowed,
    )


def canonical_mlp(given: MLP | None) -> MLP | None:
    if given is None or given.experts is None:
        return given
    experts = given.experts
    experts = replace(experts, d_dense=(experts.d_dense or given.d_mlp) if experts.dense else None)
    if experts.groups == 1:
        experts = replace(experts, groups_used=1, group_best=1)
    return replace(given, experts=experts)


def canonical_positions(config: ModelConfig) -> Positions:
    given, plain = config.positions, Positions(config.positions.kind, axes=config.positions.axes)
    if given.kind == "rotary":
        plain = replace(plain, theta=given.theta, turned=config.d_turned, scaling=given.scaling, grid=given.grid)
    if given.kind == "learned":  # what is real is counted, or all: without padding that is one model
        tokens = given.counted == "tokens"
        plain = replace(plain, counted="tokens" if tokens else "all", padding=given.padding if tokens else 0)
        plain = replace(plain, relative_bias=given.relative_bias)
    if given.picture_bias is not None:
        plain = replace(plain, picture_bias=given.picture_bias)
    if given.has_buckets or given.kind == "disentangled":
        plain = replace(plain, buckets=given.buckets, farthest=given.farthest)
    if given.kind == "disentangled":
        plain = replace(plain, terms=given.terms, own_maps=given.own_maps, normed=given.normed, added=given.added)
    if given.kind == "rotary":
        return with_other_layers(replace(plain, pairs=given.pairs or "halves"), given.other, config.layers)
    return replace(plain, pairs=given.pairs or "neighbours") if given.kind == "sinusoidal" else plain


def with_other_layers(plain: Positions, other: OtherRotation | None, layers: int) -> Positions:
    """Some layers that turn otherwise than `plain`, in order; where all do, their way is that of the model."""
    if other is None:
        return plain
    made = replace(other, layers=tuple(layer for layer in range(layers) if layer in other.layers))
    if len(made.layers) == layers and layers:
        return replace(plain, other=made).of_layer(0)
    same = (made.theta, made.scaling) == (plain.theta, plain.scaling)
    return plain if same or not made.layers else replace(plain, other=made)


def canonical_head(config: ModelConfig) -> OutputHead:
    given = config.head
    narrow = config.narrows and given.kind not in PREDICTS
    plain = OutputHead(given.kind, pooler=given.pooler, next_sentence=given.next_sentence, narrow=narrow)
    if given.language:
        plain = replace(plain, language=True, scale=given.scale, softcap=given.softcap, outputs=given.outputs)
    if given.pooler:
        plain = replace(plain, pooler_activation=given.pooler_activation)
    if given.kind == "sequence" or given.pooler:
        plain = replace(plain, read=given.read)
    if given.kind == "sequence":
        plain = replace(plain, link=None if given.link == "identity" and given.classes == 1 else given.link)
        if given.read == "last":
            plain = replace(plain, padding=given.padding, mark=given.mark)
    if given.kind == "none":
        return plain
    plain = replace(plain, bias=given.has_bias)
    if given.dense:
        plain = replace(plain, dense=True, activation=given.activation, dense_bias=given.dense_bias, norm=given.norm)
    if given.kind == "sequence" and given.averaged:
        plain = replace(plain, averaged=True)
    if given.kind not in PREDICTS:
        return replace(plain, classes=0 if given.kind == "span" else given.classes)
    return replace(
        given,
        classes=0,
        read=plain.read,
        bias=plain.bias,
        dense=False,
        pooler_activation=plain.pooler_activation,
        averaged=False,
        narrow=False,
        outputs=config.outputs,
        norm=False,
        activation=given.activation if given.kind == "masked" else plain.activation,
        dense_bias=given.dense_bias if given.kind == "masked" else plain.dense_bias,
    )
