"""T5 (Raffel et al. 2020), as transformers names it: the first version, and 1.1 with its gated MLP and untied head."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from engine.checkpoints.family import DROPPED, Family
from engine.checkpoints.keys import ACTIVATIONS, Key, check_word, write_only_key, write_word
from engine.checkpoints.kinds import size
from engine.checkpoints.tasks import TOKEN, body_of, classifier, pair_with_tasks, rename_prefix

MLPS = {  # activation, gated
    "relu": ("relu", False),
    "gated-gelu": ("gelu_tanh", True),
    "gated-silu": ("silu", True),
    "gated-relu": ("relu", True),
    "gelu": ("gelu", False),
    "gelu_new": ("gelu_tanh", False),
    "silu": ("silu", False),
    **{word: (ours, False) for word, ours in ACTIVATIONS.items()},
    **{f"gated-{word}": (ours, True) for word, ours in ACTIVATIONS.items() if word != "gelu"},
}


def read_mlp(word: Any, theirs: Mapping[str, Any]) -> tuple[str, bool]:
    """Activation, and whether it gates: `dense_act_fn` and `is_gated_act` count before what `feed_forward_proj` says of
    both in one `word`."""
    activation, gated = check_word("feed_forward_proj", word, MLPS)
    if theirs.get("dense_act_fn") is not None:
        activation = check_word("dense_act_fn", theirs["dense_act_fn"], ACTIVATIONS)
    return activation, gated if theirs.get("is_gated_act") is None else theirs["is_gated_act"]


def write_mlp(both: tuple[str, bool], _: Mapping[str, Any]) -> str:
    return next((word for word, meant in MLPS.items() if meant == tuple(both)), "gated-gelu")


def mlp_key(stack: str) -> Key:
    paths = (f"{stack}mlp.activation", f"{stack}mlp.gated")
    return Key("feed_forward_proj", paths, default=("relu", False), values=MLPS, reads=read_mlp, writes=write_mlp)


def scale_of_tied(theirs: Mapping[str, Any]) -> float:
    """The output embedding is the input's only after division by sqrt(d_model); files say both in one word."""
    scale: float = 1.0 if theirs.get("tie_word_embeddings") is False else theirs["d_model"] ** -0.5
    return scale


def without_stack(ours: str | tuple[str, ...]) -> str | tuple[str, ...]:
    """The names of an encoder that stands alone."""
    return ours.removeprefix("encoder.") if isinstance(ours, str) else tuple(n.removeprefix("encoder.") for n in ours)


KEYS = (
    Key("vocab_size", "vocab_size"),
    Key("n_positions", "context", default=512),
    Key("d_model", "d_model"),
    Key("num_layers", "encoder.layers"),
    Key("num_decoder_layers", "layers", default=lambda theirs: theirs["num_layers"]),
    Key("num_heads", "attention.heads"),
    Key("num_heads", "encoder.attention.heads"),
    Key("d_kv", "attention.d_head"),
    Key("d_kv", "encoder.attention.d_head"),
    Key("d_ff", "mlp.d_mlp"),
    Key("d_ff", "encoder.mlp.d_mlp"),
    mlp_key(""),
    mlp_key("encoder."),
    write_only_key("dense_act_fn", lambda ours: write_word(ours["mlp"]["activation"], ACTIVATIONS)),
    write_only_key("is_gated_act", lambda ours: ours["mlp"]["gated"]),
    Key("relative_attention_num_buckets", "positions.buckets", default=32, kind=size(3)),
    Key("relative_attention_max_distance", "positions.farthest", default=128, kind=size(1)),
    Key("layer_norm_epsilon", "norm.eps", default=1e-6),
    Key("dropout_rate", "dropout", default=0.1),
    Key("tie_word_embeddings", "tied", default=True),
    Key(
        "scale_decoder_outputs",
        "head.scale",
        default=scale_of_tied,
        reads=lambda scaled, theirs: theirs["d_model"] ** -0.5 if scaled else 1.0,
        writes=lambda scale, ours: scale != 1.0,
    ),
    Key("decoder_start_token_id", "encoder.start", default=lambda theirs: theirs.get("pad_token_id") or 0),
)

ATTENTION = {"mask": "causal", "scale": 1.0, "bias": False, "out_bias": False}
ALWAYS = {
    "positions.kind": "relative",
    "norm.kind": "rms",
    "norm.place": "before",
    "mlp.bias": False,
    "encoder.mlp.bias": False,
    **{f"attention.{name}": value for name, value in ATTENTION.items()},
    **{f"encoder.attention.{name}": value for name, value in (ATTENTION | {"mask": "full"}).items()},
}

ENCODER = (
    ("encoder.block.{}.layer.0.SelfAttention.q.weight", "encoder.blocks.{}.attn.q.weight"),
    ("encoder.block.{}.layer.0.SelfAttention.k.weight", "encoder.blocks.{}.attn.k.weight"),
    ("encoder.block.{}.layer.0.SelfAttention.v.weight", "encoder.blocks.{}.attn.v.weight"),
    ("encoder.block.{}.layer.0.SelfAttention.o.weight", "encoder.blocks.{}.attn.out.weight"),
    ("encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight", "encoder.relative.weight"),
    ("encoder.block.{}.layer.0.layer_norm.weight", "encoder.blocks.{}.norm1.weight"),
    (
        tuple(f"encoder.block.{{}}.layer.1.DenseReluDense.{x}.weight" for x in ("wi_0", "wi_1")),
        tuple(f"encoder.blocks.{{}}.mlp.{x}.weight" for x in ("pre", "up")),
    ),
    ("encoder.block.{}.layer.1.DenseReluDense.wi.weight", "encoder.blocks.{}.mlp.pre.weight"),
    ("encoder.block.{}.layer.1.DenseReluDense.wo.weight", "encoder.blocks.{}.mlp.out.weight"),
    ("encoder.block.{}.layer.1.layer_norm.weight", "encoder.blocks.{}.norm2.weight"),
    ("encoder.final_layer_norm.weight", "encoder.final_norm.weight"),
)
DECODER = (
    ("decoder.block.{}.layer.0.SelfAttention.q.weight", "decoder.blocks.{}.attn.q.weight"),
    ("decoder.block.{}.layer.0.SelfAttention.k.weight", "decoder.blocks.{}.attn.k.weight"),
    ("decoder.block.{}.layer.0.SelfAttention.v.weight", "decoder.blocks.{}.attn.v.weight"),
    ("decoder.block.{}.layer.0.SelfAttention.o.weight", "decoder.blocks.{}.attn.out.weight"),
    ("decoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight", "decoder.relative.weight"),
    ("decoder.block.{}.layer.0.layer_norm.weight", "decoder.blocks.{}.norm1.weight"),
    ("decoder.block.{}.layer.1.EncDecAttention.q.weight", "decoder.blocks.{}.cross_attn.q.weight"),
    ("decoder.block.{}.layer.1.EncDecAttention.k.weight", "decoder.blocks.{}.cross_attn.k.weight"),
    ("decoder.block.{}.layer.1.EncDecAttention.v.weight", "decoder.blocks.{}.cross_attn.v.weight"),
    ("decoder.block.{}.layer.1.EncDecAttention.o.weight", "decoder.blocks.{}.cross_attn.out.weight"),
    ("decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight", DROPPED),  # never used
    ("decoder.block.{}.layer.1.layer_norm.weight", "decoder.blocks.{}.norm_cross.weight"),
    (
        tuple(f"decoder.block.{{}}.layer.2.DenseReluDense.{x}.weight" for x in ("wi_0", "wi_1")),
        tuple(f"decoder.blocks.{{}}.mlp.{x}.weight" for x in ("pre", "up")),
    ),
    ("decoder.block.{}.layer.2.DenseReluDense.wi.weight", "decoder.blocks.{}.mlp.pre.weight"),
    ("decoder.block.{}.layer.2.DenseReluDense.wo.weight", "decoder.blocks.{}.mlp.out.weight"),
    ("decoder.block.{}.layer.2.layer_norm.weight", "decoder.blocks.{}.norm2.weight"),
    ("decoder.final_layer_norm.weight", "decoder.final_norm.weight"),
)

COMMON = {
    "hidden_size": "d_model",
    "num_attention_heads": "num_heads",
    "num_hidden_layers": "num_layers",
    "head_dim": "d_kv",
}
DEFAULTS = {
    "vocab_size": 32128, "d_model": 512, "d_kv": 64, "d_ff": 2048, "num_layers": 6, "num_heads": 8,
    "feed_forward_proj": "relu", "num_decoder_layers": lambda theirs: theirs["num_layers"],
}  # fmt: skip

LANGUAGE = Family(
    name="t5",
    architecture="T5ForConditionalGeneration",
    keys=KEYS,
    always=ALWAYS,
    only={"is_encoder_decoder": True, "is_decoder": False},
    rows=(
        ("shared.weight", "encoder.embed.tokens.weight"),
        *ENCODER,
        *DECODER,
        ("lm_head.weight", "head.weight"),
    ),
    tied={"lm_head.weight": "shared.weight"},
    twins={"encoder.embed_tokens.weight": "shared.weight", "decoder.embed_tokens.weight": "shared.weight"},
    also=("T5WithLMHeadModel", "T5Model"),
    common=COMMON,
    defaults=DEFAULTS,
)

ENCODER_KEYS = tuple(
    key
    for key in KEYS
    if key.theirs not in ("num_decoder_layers", "num_layers", "decoder_start_token_id", "scale_decoder_outputs")
    and not any(path.startswith("encoder.") or path == "tied" for path in key.paths)
)
ENCODER_ALONE = replace(
    body_of(LANGUAGE, "T5EncoderModel"),
    keys=(*ENCODER_KEYS, Key("num_layers", "layers")),
    always={name: value for name, value in ALWAYS.items() if not name.startswith("encoder.")}
    | {"attention.mask": "full", "head.kind": "none"},
    only={"is_decoder": False},
    rows=(
        ("shared.weight", "embed.tokens.weight"),
        *((theirs, without_stack(ours)) for theirs, ours in ENCODER),
        *((name, DROPPED) for theirs, _ in DECODER for name in ((theirs,) if isinstance(theirs, str) else theirs)),
        ("lm_head.weight", DROPPED),
    ),
    twins={"encoder.embed_tokens.weight": "shared.weight"},
)
TAGGER = classifier(rename_prefix(ENCODER_ALONE, "", "transformer."), "T5ForTokenClassification", "classifier", TOKEN)
FAMILIES = (*pair_with_tasks(LANGUAGE, "transformer."), TAGGER, LANGUAGE, ENCODER_ALONE)
