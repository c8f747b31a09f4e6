"""One switch at a time: what it stands at, the config with it set, and what else it can be set to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, get_args

from engine.model.config import MLP, Activation, Encoder, Experts, ModelConfig, OutputHead, Patches, kv_heads

EXPERTS = ("none", "1 of 8", "2 of 8", "8 of 64")  # Switch, Mixtral, OLMoE
WINDOWS = ("all", "128", "512", "1024", "4096")
PICTURE = Patches(image=224, size=16)  # ViT-B/16's, for a model of tokens that is to read pictures
TEXT = {"vocab_size": 30_522, "context": 512}  # BERT's, for a model of pictures that is to read tokens
AS_MANY = "as many"
AS_STREAM, NARROW = "d", "128"  # how wide token vectors are: like the stream, or as in ALBERT and ELECTRA
EACH = "as layers"
CLASSES = 1000  # of a head that had none


def attention(config: ModelConfig, **changes: Any) -> ModelConfig:
    """Changes of the attention of all stacks; mask and window are the last stack's alone."""
    changed = replace(config, attention=replace(config.attention, **changes))
    both = {key: value for key, value in changes.items() if key not in ("mask", "window", "windowed")}
    if config.encoder is None or not both:
        return changed
    encoder = replace(config.encoder, attention=replace(config.encoder.attention, **both))
    cross = None if config.cross is None else replace(config.cross, **both)
    return replace(changed, encoder=encoder, cross=cross)


def mlp(config: ModelConfig, feed_forward: MLP | None) -> ModelConfig:
    encoder = None if config.encoder is None else replace(config.encoder, mlp=feed_forward)
    return replace(config, mlp=feed_forward, encoder=encoder)


def set_mask(config: ModelConfig, kind: str) -> ModelConfig:
    """Without a prefix there are no spans to fill, and no second positions inside them."""
    if kind != "prefix" and config.infill is not None:
        config = replace(
            config,
            infill=None,
            positions=replace(config.positions, axes=1),
            attention=replace(config.attention, mask=kind),  # type: ignore[arg-type]
        )
    return attention(config, mask=kind)


def set_window(config: ModelConfig, width: str) -> ModelConfig:
    if width == "all":
        return attention(config, window=None, windowed=None)
    return attention(config, window=int(width))


def windows(config: ModelConfig) -> Sequence[str]:
    own = get_window(config)
    return WINDOWS if own in WINDOWS else (*WINDOWS, own)


def get_window(config: ModelConfig) -> str:
    return "all" if config.attention.window is None else str(config.attention.window)


def set_positions(config: ModelConfig, kind: str) -> ModelConfig:
    axes = config.positions.axes if kind in ("rotary", "learned") else 1
    buckets = max(config.positions.buckets, 4)  # 0 are of disentangled positions alone
    made = replace(config.positions, buckets=buckets, turned=None, other=None, relative_bias=False)
    changed = replace(made, kind=kind, axes=axes)  # type: ignore[arg-type]
    return replace(config, positions=changed)


def set_norm(config: ModelConfig, kind: str) -> ModelConfig:
    keeps = config.norm.learned if kind in ("layer", "rms") else "all"
    return replace(config, norm=replace(config.norm, kind=kind, learned=keeps))  # type: ignore[arg-type]


def get_learned(config: ModelConfig) -> str:
    """Names what its norms learn, in one word where two mean the same."""
    norm = config.norm
    return "all" if norm.kind != "layer" and norm.learned == "weight" else norm.learned


def set_learned(config: ModelConfig, wanted: str) -> ModelConfig:
    return replace(config, norm=replace(config.norm, learned=wanted))  # type: ignore[arg-type]


def norm_parts_learned(config: ModelConfig) -> Sequence[str]:
    kind = config.norm.kind
    return ("all", "weight", "none") if kind == "layer" else ("all", "none") if kind == "rms" else ("all",)


def set_place(config: ModelConfig, place: str) -> ModelConfig:
    return replace(config, norm=replace(config.norm, place=place, first=True))  # type: ignore[arg-type]


def set_sublayers(config: ModelConfig, kind: str) -> ModelConfig:
    return replace(config, sublayers=kind, norm=replace(config.norm, first=True))  # type: ignore[arg-type]


def get_mlp(config: ModelConfig) -> str:
    if config.mlp is None:
        return "none"
    return "gated" if config.mlp.gated else "plain"


def set_mlp(config: ModelConfig, kind: str) -> ModelConfig:
    if kind == "none":
        return mlp(config, None)
    present = config.mlp or MLP(4 * config.d_model)
    return mlp(config, replace(present, gated=kind == "gated"))


def get_experts(config: ModelConfig) -> str:
    experts = None if config.mlp is None else config.mlp.experts
    return "none" if experts is None else f"{experts.used} of {experts.count}"


def set_experts(config: ModelConfig, wanted: str) -> ModelConfig:
    if config.mlp is None or wanted == get_experts(config):
        return config
    if wanted == "none":
        return mlp(config, replace(config.mlp, experts=None))
    used, count = map(int, wanted.split(" of "))
    made = replace(config.mlp.experts or Experts(count, used), count=count, used=used, groups=1, groups_used=1)
    return mlp(config, replace(config.mlp, experts=replace(made, group_best=1)))


def experts(config: ModelConfig) -> Sequence[str]:
    own = get_experts(config)
    if config.mlp is None or config.encoder is not None or config.distinct is not None:
        return (own,)
    return EXPERTS if own in EXPERTS else (*EXPERTS, own)


def get_activation(config: ModelConfig) -> str:
    return "none" if config.mlp is None else config.mlp.activation


def set_activation(config: ModelConfig, kind: str) -> ModelConfig:
    return config if config.mlp is None else mlp(config, replace(config.mlp, activation=kind))  # type: ignore[arg-type]


def activations(config: ModelConfig) -> Sequence[str]:
    return ("none",) if config.mlp is None else get_args(Activation)


def get_kv_heads(config: ModelConfig) -> str:
    shared = kv_heads(config.attention)
    return AS_MANY if shared == config.attention.heads else str(shared)


def set_kv_heads(config: ModelConfig, wanted: str) -> ModelConfig:
    return attention(config, kv_heads=None if wanted == AS_MANY else int(wanted))


def divisors(config: ModelConfig) -> Sequence[str]:
    """Number of heads of keys and values the heads can share."""
    heads = config.attention.heads
    return [AS_MANY, *(str(number) for number in range(heads // 2, 0, -1) if heads % number == 0)]


def get_biases(config: ModelConfig) -> str:
    found = {config.attention.bias, config.attention.out_bias}
    found |= set() if config.mlp is None else {config.mlp.bias}
    return "some" if len(found) == 2 else "yes" if True in found else "no"


def set_biases(config: ModelConfig, wanted: str) -> ModelConfig:
    if wanted == "some":
        return config
    biased = wanted == "yes"
    changed = attention(config, bias=biased, out_bias=biased)
    return changed if changed.mlp is None else mlp(changed, replace(changed.mlp, bias=biased))


def biases(config: ModelConfig) -> Sequence[str]:
    return ("yes", "no", "some") if get_biases(config) == "some" else ("yes", "no")


def set_head(config: ModelConfig, kind: str) -> ModelConfig:
    classes = config.head.classes or (CLASSES if kind in ("sequence", "token") else 0)
    dense = config.head.dense and kind in ("sequence", "token", "span")
    changed: dict[str, Any] = {"kind": kind, "classes": classes, "dense": dense, "norm": config.head.norm and dense}
    return replace(config, head=replace(config.head, **changed))


def get_pooler(config: ModelConfig) -> str:
    return "yes" if config.head.pooler else "no"


def set_pooler(config: ModelConfig, wanted: str) -> ModelConfig:
    kept = {} if wanted == "no" else {"dense": False, "norm": False}
    return replace(config, head=replace(config.head, pooler=wanted == "yes", next_sentence=False, **kept))  # type: ignore[arg-type]


def get_stacks(config: ModelConfig) -> str:
    return "one" if config.encoder is None else "two"


def set_stacks(config: ModelConfig, wanted: str) -> ModelConfig:
    """A second stack is like the first, but sees both sides, and stands before it."""
    if wanted == "one":
        return replace(config, encoder=None, cross=None)
    seeing = replace(config.attention, mask="full", window=None, windowed=None)
    norm = replace(config.norm, first=True)
    return replace(config, encoder=Encoder(config.layers, seeing, config.mlp), norm=norm)


def get_input(config: ModelConfig) -> str:
    return "tokens" if config.embedding.patches is None else "patches"


def set_input(config: ModelConfig, wanted: str) -> ModelConfig:
    if wanted == "patches":
        embedding = replace(config.embedding, patches=PICTURE)
        head = config.head if config.head.kind in ("sequence", "none") else OutputHead("sequence", classes=CLASSES)
        return replace(config, embedding=embedding, head=head, context=PICTURE.count + 1, vocab_size=1)
    head = replace(config.head, kind="none") if config.head.kind == "sequence" else config.head
    return replace(config, embedding=replace(config.embedding, patches=None), head=head, **TEXT)  # type: ignore[arg-type]


def set_segments(config: ModelConfig, wanted: str) -> ModelConfig:
    return replace(config, embedding=replace(config.embedding, segments=int(wanted)))


def get_width(config: ModelConfig) -> str:
    return AS_STREAM if config.embedding.width is None else str(config.embedding.width)


def set_width(config: ModelConfig, wanted: str) -> ModelConfig:
    width = None if wanted == AS_STREAM else int(wanted)
    return replace(config, embedding=replace(config.embedding, width=width))


def widths(config: ModelConfig) -> Sequence[str]:
    return list(dict.fromkeys([AS_STREAM, NARROW, get_width(config)]))


def get_sharing(config: ModelConfig) -> str:
    return EACH if config.distinct in (None, config.layers) else str(config.distinct)


def set_sharing(config: ModelConfig, wanted: str) -> ModelConfig:
    norm = replace(config.norm, first=config.norm.first or wanted != EACH)
    return replace(config, distinct=None if wanted == EACH else int(wanted), norm=norm)


def sharings(config: ModelConfig) -> Sequence[str]:
    return list(dict.fromkeys([EACH, "1", get_sharing(config)]))


def get_qk_norm(config: ModelConfig) -> str:
    return config.attention.qk_norm or "none"


def set_qk_norm(config: ModelConfig, wanted: str) -> ModelConfig:
    return attention(config, qk_norm=None if wanted == "none" else wanted)
