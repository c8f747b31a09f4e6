"""BART (Lewis et al. 2020), as transformers names it, with the tables that Marian and Pegasus share with it.

Its tables of positions begin with two rows that nothing reads.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from torch import Tensor

from engine.checkpoints.family import DROPPED, Family, Transform, concatenate
from engine.checkpoints.keys import ACTIVATIONS, Key
from engine.checkpoints.tasks import pair_with_tasks
from engine.model.config import ModelConfig

OFFSET = 2

SCALE = Key(
    "scale_embedding",
    "embedding.scale",
    default=1.0,
    reads=lambda scaled, theirs: theirs["d_model"] ** 0.5 if scaled else 1.0,
    writes=lambda scale, ours: scale != 1.0,
)


def start_key(default: Any) -> Key:
    """Key of the token that a target begins with."""
    return Key("decoder_start_token_id", "encoder.start", default=default)


SHARED = (
    Key("vocab_size", "vocab_size"),
    Key("max_position_embeddings", "context"),
    Key("d_model", "d_model"),
    Key("encoder_layers", "encoder.layers"),
    Key("decoder_layers", "layers"),
    Key("encoder_attention_heads", "encoder.attention.heads"),
    Key("decoder_attention_heads", "attention.heads"),
    Key("encoder_ffn_dim", "encoder.mlp.d_mlp"),
    Key("decoder_ffn_dim", "mlp.d_mlp"),
    Key("activation_function", "mlp.activation", default="gelu", values=ACTIVATIONS),
    Key("activation_function", "encoder.mlp.activation", default="gelu", values=ACTIVATIONS),
    Key("dropout", "dropout", default=0.1, also=("attention_dropout", "activation_dropout")),
    Key("tie_word_embeddings", "tied", default=True),
    SCALE,
)
KEYS = (*SHARED, start_key(2))

ALWAYS = {
    "positions.kind": "learned",
    "norm.kind": "layer",
    "norm.place": "after",
    "norm.eps": 1e-5,
    "embedding.norm": True,
    "attention.mask": "causal",
    "encoder.attention.mask": "full",
    "head.bias": True,
}


def without_offset(tensors: list[Tensor], config: ModelConfig) -> list[Tensor]:
    return [tensors[0][OFFSET:]]


def with_offset(tensors: list[Tensor], config: ModelConfig) -> list[Tensor]:
    (table,) = tensors
    return [concatenate([table.new_zeros(OFFSET, table.shape[1]), table], dim=0)]


POSITIONS = Transform(without_offset, with_offset, loses=True)
ONE_ROW = Transform(lambda tensors, _: [tensors[0][0]], lambda tensors, _: [tensors[0][None]])

TOKENS = ("model.shared.weight", "encoder.embed.tokens.weight")
HEAD = ("lm_head.weight", "head.weight")
HEAD_BIAS = ("final_logits_bias", "head.bias", ONE_ROW)
EMBEDDING_NORMS = (
    ("model.encoder.layernorm_embedding.weight", "encoder.embed.norm.weight"),
    ("model.encoder.layernorm_embedding.bias", "encoder.embed.norm.bias"),
    ("model.decoder.layernorm_embedding.weight", "decoder.embed.norm.weight"),
    ("model.decoder.layernorm_embedding.bias", "decoder.embed.norm.bias"),
)
LINEAR = {
    "self_attn.q_proj": "attn.q",
    "self_attn.k_proj": "attn.k",
    "self_attn.v_proj": "attn.v",
    "self_attn.out_proj": "attn.out",
    "self_attn_layer_norm": "norm1",
    "fc1": "mlp.pre",
    "fc2": "mlp.out",
    "final_layer_norm": "norm2",
}
ACROSS = {
    "encoder_attn.q_proj": "cross_attn.q",
    "encoder_attn.k_proj": "cross_attn.k",
    "encoder_attn.v_proj": "cross_attn.v",
    "encoder_attn.out_proj": "cross_attn.out",
    "encoder_attn_layer_norm": "norm_cross",
}
LAYERS = tuple(
    (f"model.{stack}.layers.{{}}.{theirs}.{part}", f"{stack}.blocks.{{}}.{ours}.{part}")
    for stack, names in (("encoder", LINEAR), ("decoder", LINEAR | ACROSS))
    for theirs, ours in names.items()
    for part in ("weight", "bias")
)
TIED = {"lm_head.weight": "model.shared.weight"}
TWINS = {
    "model.encoder.embed_tokens.weight": "model.shared.weight",
    "model.decoder.embed_tokens.weight": "model.shared.weight",
}
ROWS = (
    TOKENS,
    ("model.encoder.embed_positions.weight", "encoder.embed.positions.weight", POSITIONS),
    ("model.decoder.embed_positions.weight", "decoder.embed.positions.weight", POSITIONS),
    *EMBEDDING_NORMS,
    *LAYERS,
    HEAD,
    ("model.encoder.version", DROPPED),  # of fairseq's code
    ("model.decoder.version", DROPPED),
)

COMMON = {
    "num_attention_heads": "encoder_attention_heads",
    "hidden_size": "d_model",
    "num_hidden_layers": "encoder_layers",
}
DEFAULTS = {
    "vocab_size": 50265, "max_position_embeddings": 1024, "encoder_layers": 12, "encoder_ffn_dim": 4096,
    "encoder_attention_heads": 16, "decoder_layers": 12, "decoder_ffn_dim": 4096, "decoder_attention_heads": 16,
    "d_model": 1024, "num_labels": lambda theirs: 3 if theirs.get("id2label") is None else None,
}  # fmt: skip

WITHOUT_BIAS = Family(
    name="bart",
    architecture="BartForConditionalGeneration",
    keys=KEYS,
    always=ALWAYS | {"head.bias": False},
    only={"is_encoder_decoder": True, "is_decoder": False},
    rows=ROWS,
    tied=TIED,
    twins=TWINS,
    optional_prefix="model.",
    also=("BartModel",),
    extra={"forced_eos_token_id": None},
    common=COMMON,
    defaults=DEFAULTS,
)
ONLY = {  # what fairseq's first files say of it
    "normalize_before": False,
    "normalize_embedding": True,
    "add_final_layer_norm": False,
    "static_position_embeddings": False,
}
BART = replace(WITHOUT_BIAS, only={**WITHOUT_BIAS.only, **ONLY})
WITH_BIAS = replace(BART, always=ALWAYS, rows=(*ROWS, HEAD_BIAS), signs=("final_logits_bias",))
FAMILIES = (*pair_with_tasks(WITH_BIAS, ""), WITH_BIAS, BART)
