"""What of a config no model can be built from."""

from __future__ import annotations

from collections.abc import Mapping
from math import isqrt
from typing import TYPE_CHECKING

from engine.plurals import count_words

if TYPE_CHECKING:
    from engine.model.config import Attention, Experts, Latent, ModelConfig, OtherRotation, RotaryScaling

LARGEST_SIZE = 2**30  # of anything; the product of two is still a number of torch's


def check_config(config: ModelConfig) -> None:
    """Raises ValueError for what no model can be built from."""
    check_sizes({"vocab_size": config.vocab_size, "context": config.context, "d_model": config.d_model})
    check_sizes({"head.outputs": config.head.outputs})
    if config.layers < 0:
        raise ValueError(f"layers must be at least 0, got {config.layers}.")
    check_attention(config, config.attention, "attention")
    if config.encoder is not None:
        check_attention(config, config.encoder.attention, "encoder.attention")
        check_attention(config, config.cross_attention, "cross")
        if not 0 <= config.encoder.start < config.vocab_size:
            raise ValueError(f"encoder.start must be an id below {config.vocab_size}, got {config.encoder.start}.")
    elif config.cross is not None:
        raise ValueError("cross is the attention to an encoder, and there is none; give the encoder too.")
    check_positions(config)
    check_ends(config)
    if not config.norm.eps >= 0:
        raise ValueError(f"norm.eps must be at least 0, got {config.norm.eps}.")
    if config.norm.kind == "batch" and config.norm.learned != "all":
        raise ValueError(
            'norm.learned must be "all" for a batch norm, got ' + f'"{config.norm.learned}"; leave it out.'
        )
    plain = config.norm.place == "before" and config.sublayers == "sequential"
    if not config.norm.first and not (plain and config.encoder is None and config.distinct is None):
        raise ValueError(
            "norm.first false is for one stack of different blocks and norms before sequential sublayers; leave it out."
        )
    if not config.residual_scale > 0:
        raise ValueError(f"residual_scale must be above 0, got {config.residual_scale}.")
    if config.layer_scale and (config.encoder is not None or config.residual_scale != 1):
        raise ValueError("layer_scale is for one stack of blocks without residual_scale; leave out one of them.")
    if not 0 <= config.dropout < 1:
        raise ValueError(f"dropout must be in [0, 1), got {config.dropout}.")
    check_sharing(config)
    check_mlp(config)
    if config.vector is not None:
        check_sizes({f"vector.maps.{at}.width": one.width for at, one in enumerate(config.vector.maps)})
        probe = config.vector.probe
        if probe is not None:
            check_sizes({"vector.probe.heads": probe.heads, "vector.probe.d_mlp": probe.d_mlp})
            if config.d_model % max(probe.heads, 1) or len(config.vector.pooled) != 1 or config.norm.kind == "batch":
                raise ValueError(
                    f"vector.probe needs heads that divide {config.d_model}, one thing pooled and a norm of each "
                    f"position, got heads {probe.heads}, pooled {len(config.vector.pooled)}, norm {config.norm.kind}."
                )
        if config.encoder is not None:
            raise ValueError("vector is made of one stack of blocks, and this model has two; leave out one of them.")
    if config.encoder is not None and config.norm.place == "output":
        raise ValueError("norm.place output is for one stack of blocks; leave out the encoder, or choose before.")
    if config.sublayers != "sequential" and (config.encoder is not None or config.norm.place == "after"):
        raise ValueError("parallel sublayers must have their norms before them, and no encoder; use sequential ones.")


def check_sharing(config: ModelConfig) -> None:
    """Layers that share a block, and token vectors that are narrower than the stream."""
    check_sizes({"distinct": config.distinct, "embedding.width": config.embedding.width})
    if config.distinct is not None and (config.distinct > config.layers or config.layers % config.distinct):
        raise ValueError(f"distinct must divide the number of layers, {config.layers}, got {config.distinct}.")
    if config.encoder is not None and (config.distinct is not None or config.embedding.width is not None):
        raise ValueError("distinct and embedding.width are for one stack of blocks; leave out the encoder or those.")
    dropped, seeing = config.embedding.token_dropout, config.attention.mask == "full" and config.encoder is None
    if dropped is not None and not (seeing and config.embedding.patches is None and 0 <= dropped < config.vocab_size):
        raise ValueError(
            f"embedding.token_dropout must be an id below {config.vocab_size}, of one stack that sees both sides, got "
            f"{dropped}; leave it out elsewhere."
        )
    if config.embedding.width is not None and config.embedding.patches is not None:
        raise ValueError("embedding.width is that of token vectors, and this model reads patches; leave it out.")
    if config.embedding.width is not None and config.embedding.sound is not None:
        raise ValueError("embedding.width is that of token vectors, and this model reads sound; leave it out.")
    patches = config.embedding.patches
    if config.attention.block is not None and patches and patches.before != 1:
        raise ValueError(
            f"attention.block knows one vector before the patches, and this model has {patches.before}; leave it out."
        )


def check_mlp(config: ModelConfig) -> None:
    mlp = config.mlp
    if mlp is None:
        return
    check_sizes({"mlp.d_mlp": mlp.d_mlp})
    if not mlp.slope > 0 or (mlp.limit is not None and not mlp.limit > 0):
        raise ValueError(f"mlp.slope and mlp.limit must be above 0, got {mlp.slope} and {mlp.limit}.")
    if mlp.slope != 1.0 and mlp.activation != "silu":
        raise ValueError(f"mlp.slope is that of silu, and mlp.activation is {mlp.activation}; leave it out.")
    if mlp.experts is not None:
        check_experts(config, mlp.experts)


def check_experts(config: ModelConfig, experts: Experts) -> None:
    names = ("count", "used", "shared", "d_dense", "groups", "groups_used", "group_best")
    check_sizes({f"mlp.experts.{name}": getattr(experts, name) for name in names})
    if config.encoder is not None or config.distinct is not None:
        raise ValueError("mlp.experts are for one stack of different blocks; leave out them, or encoder and distinct.")
    if experts.groups_used > experts.groups or experts.count % experts.groups:
        raise ValueError(
            f"mlp.experts.groups must divide {count_words(experts.count, 'expert')}, groups_used be at most as many; "
            f"got {experts.groups} of which {experts.groups_used} are used."
        )
    size = experts.count // experts.groups
    if experts.used > experts.groups_used * size:
        raise ValueError(
            f"mlp.experts.used must be at most {experts.groups_used * size}, which can be chosen, got {experts.used}."
        )
    if experts.groups > 1 and experts.group_best > size:
        raise ValueError(f"mlp.experts.group_best must be at most the {size} of a group, got {experts.group_best}.")
    if experts.shared_gate and experts.shared is None:
        raise ValueError("mlp.experts.shared_gate weighs the shared expert, and there is none; set shared too.")
    outside = [layer for layer in experts.dense if not 0 <= layer < config.layers]
    if outside:
        raise ValueError(f"mlp.experts.dense must be layers 0 to {config.layers - 1}, got {outside[0]}.")


def check_sizes(sizes: Mapping[str, int | None]) -> None:
    for name, size in sizes.items():
        if size is not None and size < 1:
            raise ValueError(f"{name} must be at least 1, got {size}.")
        if size is not None and size > LARGEST_SIZE:
            raise ValueError(f"{name} must be at most {LARGEST_SIZE}, got {size:.2e}.")


def check_attention(config: ModelConfig, attention: Attention, name: str) -> None:
    named = {key: getattr(attention, key) for key in ("d_head", "window", "block", "nearest")}
    check_sizes({f"{name}.{key}": value for key, value in named.items()})
    heads = attention.heads
    shared = heads if attention.kv_heads is None else attention.kv_heads
    if heads < 1 or shared < 1 or heads % shared:
        raise ValueError(f"{name}.heads must be a positive multiple of kv_heads, got {heads} and {shared}.")
    if attention.d_head is None and config.d_model % heads:
        width = config.d_model
        small = [count for count in range(1, isqrt(width) + 1) if width % count == 0]
        divisors = sorted({*small, *(width // count for count in small)})
        fewer, more = [n for n in divisors if n < heads][-1:], [n for n in divisors if n > heads][:1]
        better = " or ".join(map(str, fewer + more))
        raise ValueError(f"d_model {width} cannot be split into {heads} heads; try {better}, or set {name}.d_head.")
    if attention.latent is not None:
        check_latent(config, attention, attention.latent, name)
    for key in ("scale", "softcap"):
        value = getattr(attention, key)
        if value is not None and not value > 0:
            raise ValueError(f"{name}.{key} must be above 0, got {value}.")
    if attention.qk_norm and config.norm.kind == "batch":
        raise ValueError(
            f'{name}.qk_norm normalises each query and key by itself, and norm.kind "batch" does not; leave out one.'
        )
    if attention.block is not None and config.embedding.patches is None:
        raise ValueError(f"{name}.block cuts a picture into squares, and this model reads no picture; use window.")


def check_latent(config: ModelConfig, attention: Attention, latent: Latent, name: str) -> None:
    sizes = {"keys": latent.keys, "queries": latent.queries, "d_value": latent.d_value}
    check_sizes({f"{name}.latent.{key}": value for key, value in sizes.items()})
    positions = config.positions
    if positions.kind != "rotary" or positions.axes != 1 or positions.other is not None or config.encoder is not None:
        raise ValueError(f"{name}.latent is for one stack whose layers all turn by rotary positions; leave it out.")
    width = attention.d_head or config.d_model // max(attention.heads, 1)
    if positions.turned is None or positions.turned >= width:
        raise ValueError(
            f"{name}.latent makes the turned part of a key apart, so positions.turned must be below {width}, got "
            f"{positions.turned}."
        )
    shared = attention.kv_heads not in (None, attention.heads)
    if shared or attention.bias or attention.qk_norm is not None or config.norm.kind not in ("rms", "layer"):
        raise ValueError(f"{name}.latent has a key for each head, no bias, no qk_norm and layer or RMS norms.")


def check_positions(config: ModelConfig) -> None:
    positions, width = config.positions, config.d_head
    if not positions.theta > 0:
        raise ValueError(f"positions.theta must be above 0, got {positions.theta}.")
    if positions.axes not in (1, 2) or (positions.axes == 2 and positions.kind not in ("rotary", "learned")):
        raise ValueError(f"positions.axes must be 1, or 2 for rotary and learned positions, got {positions.axes}.")
    turned = width // positions.axes if positions.turned is None else positions.turned
    if positions.kind == "rotary" and (turned % 2 or not 0 < turned <= width // positions.axes):
        raise ValueError(
            f"rotary positions turn pairs, so d_head must be even, got {turned}."
            if positions.turned is None
            else f"positions.turned must be even and at most {width // positions.axes}, got {turned}."
        )
    if positions.scaling is not None:
        check_scaling(positions.theta, positions.scaling, turned)
    if positions.other is not None:
        check_other(config, positions.other, turned)
    if positions.has_buckets and not 2 < positions.buckets < 2 * positions.farthest:
        raise ValueError(
            f"positions.buckets must be above 2, and farthest beyond half of them, got {positions.buckets}."
        )
    if positions.kind == "disentangled":
        check_disentangled(config)
    plain = positions.kind == "learned" and positions.axes == 1 and config.encoder is None
    if positions.counted != "all" and not plain:
        raise ValueError("positions.counted past padding are learned ones of one stack; leave it out.")
    if positions.relative_bias and not plain:
        raise ValueError("positions.relative_bias stands beside learned positions of one stack; leave it out.")
    plain_rotary = positions.kind == "rotary" and positions.axes == 1 and positions.pairs != "neighbours"
    plain_rotary = plain_rotary and positions.scaling is None and positions.other is None
    if positions.grid and not (plain_rotary and config.embedding.patches is not None and turned % 4 == 0):
        raise ValueError(
            "positions.grid turns the patches of a picture by plain rotary positions, of halves and a multiple of 4 "
            f"components, got {positions.kind} and {turned}; leave it out."
        )
    beside = positions.kind in ("learned", "none") and positions.axes == 1 and not positions.relative_bias
    if positions.picture_bias is not None and not (beside and patches_alone(config)):
        raise ValueError(
            "positions.picture_bias is of a picture behind [CLS], with learned positions or none; leave it out."
        )
    if positions.axes == 2 and config.infill is None:
        raise ValueError("positions.axes 2 are a gap's and a span's; they need the marks of infill.")


def check_disentangled(config: ModelConfig) -> None:
    positions, attention = config.positions, config.attention
    check_sizes({"positions.farthest": positions.farthest})
    if positions.buckets != 0 and not 2 <= positions.buckets < 2 * positions.farthest - 2:
        raise ValueError(
            "positions.buckets must be 0, or 2 and more of which half are below the farthest distance "
            f"{positions.farthest} less 1, got {positions.buckets}."
        )
    if config.encoder is not None or config.embedding.patches is not None or config.embedding.sound is not None:
        raise ValueError("disentangled positions are for one stack that reads tokens; use relative ones elsewhere.")
    if attention.kv_heads not in (None, attention.heads) or attention.qk_norm is not None:
        raise ValueError("disentangled positions need a key for each head and no attention.qk_norm; leave those out.")
    if positions.normed and not (config.norm.kind == "layer" and config.norm.learned == "all"):
        raise ValueError(
            "positions.normed is a layer norm with weight and bias, as the others must be then, got "
            f"{config.norm.kind} with {config.norm.learned} learned; leave it out."
        )


def patches_alone(config: ModelConfig) -> bool:
    """True for pictures whose patches stand behind one vector."""
    patches = config.embedding.patches
    return patches is not None and patches.before == 1 and config.encoder is None and config.attention.nearest is None


def check_other(config: ModelConfig, other: OtherRotation, turned: int) -> None:
    if config.positions.kind != "rotary" or config.positions.axes != 1 or config.encoder is not None:
        raise ValueError("positions.other is for rotary positions with one axis, in one stack of blocks; leave it out.")
    if any(layer < 0 for layer in other.layers):
        raise ValueError(f"positions.other.layers are counted from 0, got {min(other.layers)}.")
    if other.theta is not None and not other.theta > 0:
        raise ValueError(f"positions.other.theta must be above 0, got {other.theta}.")
    if other.scaling is not None and other.theta is None:
        raise ValueError("positions.other.scaling changes angles, and without theta there are none; give theta too.")
    if other.scaling is not None and other.theta is not None:
        check_scaling(other.theta, other.scaling, turned, "positions.other")


def check_scaling(theta: float, scaling: RotaryScaling, turned: int, where: str = "positions") -> None:
    """`turned` is how many of a head's components turn."""
    for name in ("factor", "slow", "fast"):
        if not getattr(scaling, name) > 0:
            raise ValueError(f"{where}.scaling.{name} must be above 0, got {getattr(scaling, name)}.")
    if scaling.trained < 2:
        raise ValueError(f"{where}.scaling.trained must be at least 2, got {scaling.trained}.")
    if scaling.kind == "dynamic" and turned <= 2:
        raise ValueError("dynamic scaling stretches the slowest of several pairs; let more than one pair turn.")
    if scaling.kind == "yarn" and not theta > 1:
        raise ValueError(f"{where}.theta must be above 1 for yarn, got {theta}.")
    for name in ("short", "long"):
        divisors = getattr(scaling, name)
        if scaling.kind == "longrope" and (len(divisors) != turned // 2 or not all(d > 0 for d in divisors)):
            count = count_words(turned // 2, "number")
            raise ValueError(f"{where}.scaling.{name} must be {count} above 0, got {list(divisors)}.")


def check_ends(config: ModelConfig) -> None:
    """Checks what stands before and after the blocks."""
    patches, head, infill = config.embedding.patches, config.head, config.infill
    check_sound(config)
    if head.kind in ("sequence", "token") and head.classes < 1:
        raise ValueError(f"head.classes must be at least 1 for a {head.kind} head, got {head.classes}.")
    if config.tied and head.outputs is not None and head.outputs > config.vocab_size:
        raise ValueError(f"a tied head predicts at most {config.vocab_size} tokens, got head.outputs {head.outputs}.")
    if head.link is not None and head.kind != "sequence":
        raise ValueError(f"head.link is that of a sequence head, and this one is {head.kind}; leave it out.")
    if head.language and (head.kind != "sequence" or head.next_sentence or config.attention.mask != "causal"):
        raise ValueError(
            "head.language is beside the sequence head of a causal model, got one of kind "
            f"{head.kind} with mask {config.attention.mask}; leave it out."
        )
    if head.next_sentence and not head.pooler:
        raise ValueError("head.next_sentence reads the pooler; set head.pooler too.")
    if head.read == "mean" and (head.pooler or head.averaged):
        raise ValueError('head.read "mean" is of all positions, and pooler and averaged read one; leave those out.')
    if head.dense and (head.pooler or head.averaged or not head.over_classes):
        raise ValueError("head.dense stands before one layer over classes, without a pooler; leave one of them out.")
    if head.norm and not head.dense:
        raise ValueError("head.norm stands behind the dense layer of a head over classes; set head.dense too.")
    if head.read == "vector":
        of = config.vector
        if of is None or not of.pooled or of.maps or of.unit or of.probe is not None or head.narrow:
            raise ValueError('head.read "vector" is of what is pooled, and normed or not; set vector so.')
    if head.averaged and (head.pooler or not (patches is not None and patches.distilled)):
        raise ValueError("head.averaged reads [CLS] and [DIST]; set embedding.patches.distilled, and no pooler.")
    if patches is not None:
        check_sizes({"patches.size": patches.size, "patches.channels": patches.channels})
        if patches.image % patches.size:
            raise ValueError(f"patches.size must divide the image's {patches.image} pixels, got {patches.size}.")
        if config.context != patches.before + patches.count:
            wanted = f"{patches.before + patches.count}, {' and '.join(patches.names_before) or 'nothing more'}"
            raise ValueError(f"context must be {wanted} and each patch, got {config.context}.")
        if patches.trained is not None and (patches.trained < patches.size or patches.trained % patches.size):
            raise ValueError(f"patches.trained must be a multiple of {patches.size} pixels, got {patches.trained}.")
        if not 0 <= (patches.registers or 0) <= LARGEST_SIZE or (patches.distilled and not patches.cls):
            raise ValueError(f"patches.registers must be 0 or more, got {patches.registers}; distilled needs [CLS].")
        if head.kind in ("language", "masked"):
            raise ValueError("a model that reads patches has no tokens to predict; give it a sequence head or none.")
    if infill is not None and not (0 <= infill.mask < config.vocab_size and 0 <= infill.start < config.vocab_size):
        raise ValueError(f"infill's marks must be ids below {config.vocab_size}, got {infill.mask} and {infill.start}.")
    if infill is not None and config.attention.mask != "prefix":
        raise ValueError(
            f'attention.mask must be "prefix" where infill says what it is, got {config.attention.mask!r}.'
        )


def check_sound(config: ModelConfig) -> None:
    sound = config.embedding.sound
    if sound is None:
        return
    check_sizes({"embedding.sound.bins": sound.bins, "embedding.sound.positions": sound.positions})
    if config.embedding.patches is not None or config.embedding.segments:
        raise ValueError(
            "embedding.sound is read in place of patches and of two texts; leave out patches and segments."
        )
    if config.encoder is not None and config.rereads:
        raise ValueError(
            f"a decoder after sound has no text to read again; give it a language head, got {config.head.kind}."
        )
    if config.encoder is None and config.context != sound.positions:
        raise ValueError(f"context must be embedding.sound.positions, {sound.positions}, got {config.context}.")
    if config.encoder is None and config.head.kind in ("language", "masked"):
        raise ValueError("one stack that reads sound has no tokens to predict; give it a sequence head or none.")
