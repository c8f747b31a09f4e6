"""Nomic BERT (Nussbaum et al. 2024), as transformers saves it: BERT with rotary positions, a gated MLP and no biases
but those of norms and heads."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from engine.checkpoints.families import bert
from engine.checkpoints.families.bert import ACTIVATION, CLASSES, POOLED, at_each_position, under
from engine.checkpoints.families.modernbert import split_rows
from engine.checkpoints.family import Family
from engine.checkpoints.keys import Key, Table, check_word, write_only_key
from engine.checkpoints.rotary import CONTEXT, whole_heads_keys

PUBLISHED = {
    "hidden_size": ("n_embd", 768),
    "num_attention_heads": ("n_head", 12),
    "num_hidden_layers": ("n_layer", 12),
    "intermediate_size": ("n_inner", 3072),
    "max_position_embeddings": ("n_positions", 2048),
    "layer_norm_eps": ("layer_norm_epsilon", 1e-12),
    "hidden_dropout_prob": ("resid_pdrop", 0.0),
}  # what the program that trained it calls them, and what transformers' class takes where nothing is said
GATED = {"swiglu": "silu", "geglu": "gelu"}  # that program's words for an activation


def read_published(key: Key) -> Key:
    name, usual = PUBLISHED.get(key.theirs, ("", None))
    return replace(key, default=lambda theirs: theirs.get(name, usual)) if name else key


def read_activation(theirs: Table) -> Any:
    return check_word("activation_function", theirs.get("activation_function", "swiglu"), GATED)


OF_BERT = (key for key in bert.KEYS if key.theirs not in ("max_position_embeddings", "hidden_act"))
KEYS = (
    *map(read_published, (*OF_BERT, *whole_heads_keys(1000.0))),
    Key("hidden_act", "mlp.activation", default=read_activation, values=bert.ACTIVATIONS),
    Key("head_dim", "attention.d_head", default=None),
    write_only_key("rotary_emb_base", lambda ours: ours["positions"]["theta"]),  # which transformers does not read
)
WITH_WORDS = (*KEYS, replace(ACTIVATION, default=read_activation))
ALWAYS = bert.ALWAYS | {
    "positions.kind": "rotary",
    "attention.bias": False,
    "attention.out_bias": False,
    "mlp.gated": True,
    "mlp.bias": False,
}
NO_HEAD = ALWAYS | {"head.kind": "none"}

LAYER = "nomic_bert.encoder.layers.{}."
NAMES = {"attn.out_proj": "attn.out", "mlp.fc12": "mlp.pre", "mlp.fc11": "mlp.up", "mlp.fc2": "mlp.out"}
PARTS = ("weight", "bias")
ROWS = (
    ("nomic_bert.embeddings.word_embeddings.weight", "embed.tokens.weight"),
    ("nomic_bert.embeddings.token_type_embeddings.weight", "embed.segments.weight"),
    *((f"nomic_bert.emb_ln.{part}", f"embed.norm.{part}") for part in PARTS),
    (f"{LAYER}attn.Wqkv.weight", tuple(f"blocks.{{}}.attn.{x}.weight" for x in "qkv"), split_rows(3)),
    *((f"{LAYER}{theirs}.weight", f"blocks.{{}}.{ours}.weight") for theirs, ours in NAMES.items()),
    *((f"{LAYER}{norm}.{part}", f"blocks.{{}}.{norm}.{part}") for norm in ("norm1", "norm2") for part in PARTS),
)
POOLER = under("nomic_bert.", bert.POOLER)
WORDS = tuple(
    (row[0].replace("LayerNorm", "layer_norm"), *row[1:]) if isinstance(row[0], str) else row for row in bert.WORDS
)

MODULES = {
    "nomic_bert.encoder.layers.": "nomic_bert.layers.",
    "emb_ln": "embeddings.LayerNorm",
    "attn.out_proj": "self_attn.o_proj",
    "mlp.fc11": "mlp.up_proj",
    "mlp.fc12": "mlp.gate_proj",
    "mlp.fc2": "mlp.down_proj",
    "norm1": "post_attention_layernorm",
    "norm2": "post_mlp_layernorm",
}
ONLY = {
    **dict.fromkeys(("causal", "mlp_fc1_bias", "mlp_fc2_bias", "parallel_block", "prenorm", "qkv_proj_bias"), False),
    **dict.fromkeys(("rotary_emb_interleaved", "use_rms_norm"), False),
    "rotary_emb_fraction": 1.0,
}

BODY = Family(
    name="nomic_bert",
    architecture="NomicBertModel",
    keys=KEYS,
    always=NO_HEAD,
    rows=ROWS,
    optional_prefix="nomic_bert.",
    module_spelling=MODULES,
    only=ONLY,
    extra={"pad_token_id": 0},
    defaults={"vocab_size": 30528, CONTEXT: lambda theirs: theirs.get("n_positions", 2048)},
)
FAMILIES = (
    replace(
        BODY,
        architecture="NomicBertForMaskedLM",
        keys=WITH_WORDS,
        always=ALWAYS | {"head.kind": "masked", "head.bias": True},
        rows=(*ROWS, *WORDS),
        tied={"cls.predictions.decoder.weight": "nomic_bert.embeddings.word_embeddings.weight"},
        twins={"cls.predictions.decoder.bias": "cls.predictions.bias"},
        signs=("cls.predictions.transform.dense.weight",),
    ),
    replace(
        BODY,
        architecture="NomicBertForSequenceClassification",
        keys=(*KEYS, CLASSES),
        always=ALWAYS | POOLED | {"head.kind": "sequence"},
        rows=(*ROWS, *POOLER, *bert.CLASSIFIER),
        signs=("classifier.weight", "nomic_bert.pooler.dense.weight"),
    ),
    at_each_position(BODY, "NomicBert")[0],
    replace(BODY, always=NO_HEAD | POOLED, rows=(*ROWS, *POOLER), signs=("nomic_bert.pooler.dense.weight",)),
    BODY,
)
