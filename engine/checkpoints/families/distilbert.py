"""DistilBERT (Sanh et al. 2019), as transformers names it: BERT without segments, in half the layers.

Its sinusoids, where a model has them, are stored as a table. The head over classes reads [CLS] through a dense layer
and relu.
"""

from __future__ import annotations

from dataclasses import replace

from engine.checkpoints.families.bert import (
    ALWAYS,
    CLASSES,
    CLASSIFIER,
    GUESSES,
    NO_HEAD,
    OLD_SPELLING,
    POOLED,
    at_each_position,
)
from engine.checkpoints.family import DROPPED, Family
from engine.checkpoints.keys import ACTIVATIONS, Key
from engine.checkpoints.recomputed import POSITION_IDS

KEYS = (
    Key("vocab_size", "vocab_size"),
    Key("max_position_embeddings", "context"),
    Key("dim", "d_model"),
    Key("n_layers", "layers"),
    Key("n_heads", "attention.heads"),
    Key("hidden_dim", "mlp.d_mlp"),
    Key("activation", "mlp.activation", default="gelu", values=ACTIVATIONS),
    Key("tie_word_embeddings", "tied", default=True),
    Key("dropout", "dropout", default=0.1, also=("attention_dropout",)),
)
ACTIVATION = Key("activation", "head.activation", default="gelu", values=ACTIVATIONS)
EPS = {"norm.eps": 1e-12}

LINEAR = {
    "attention.q_lin": "attn.q",
    "attention.k_lin": "attn.k",
    "attention.v_lin": "attn.v",
    "attention.out_lin": "attn.out",
    "sa_layer_norm": "norm1",
    "ffn.lin1": "mlp.pre",
    "ffn.lin2": "mlp.out",
    "output_layer_norm": "norm2",
}
ROWS = (
    ("distilbert.embeddings.word_embeddings.weight", "embed.tokens.weight"),
    ("distilbert.embeddings.position_embeddings.weight", "embed.positions.weight"),
    ("distilbert.embeddings.LayerNorm.weight", "embed.norm.weight"),
    ("distilbert.embeddings.LayerNorm.bias", "embed.norm.bias"),
    ("distilbert.embeddings.position_ids", DROPPED, POSITION_IDS),
    *(
        (f"distilbert.transformer.layer.{{}}.{theirs}.{part}", f"blocks.{{}}.{ours}.{part}")
        for theirs, ours in LINEAR.items()
        for part in ("weight", "bias")
    ),
)
WORDS = (
    ("vocab_transform.weight", "head.dense.weight"),
    ("vocab_transform.bias", "head.dense.bias"),
    ("vocab_layer_norm.weight", "head.norm.weight"),
    ("vocab_layer_norm.bias", "head.norm.bias"),
    ("vocab_projector.weight", "head.weight"),
    ("vocab_projector.bias", "head.bias"),
)
BEFORE_CLASSIFIER = (
    ("pre_classifier.weight", "pooler.dense.weight"),
    ("pre_classifier.bias", "pooler.dense.bias"),
)

COMMON = {"hidden_size": "dim", "num_attention_heads": "n_heads", "num_hidden_layers": "n_layers"}
DEFAULTS = {
    "vocab_size": 30522, "max_position_embeddings": 512, "n_layers": 6, "n_heads": 12, "dim": 768, "hidden_dim": 3072,
}  # fmt: skip

BODY = Family(
    name="distilbert",
    architecture="DistilBertModel",
    keys=KEYS,
    always=NO_HEAD | EPS,
    rows=ROWS,
    optional_prefix="distilbert.",
    old_spelling=OLD_SPELLING,
    common=COMMON,
    defaults=DEFAULTS,
)
FAMILIES = (
    replace(
        BODY,
        architecture="DistilBertForMaskedLM",
        keys=(*KEYS, ACTIVATION),
        always=GUESSES | EPS,
        rows=(*ROWS, *WORDS),
        tied={"vocab_projector.weight": "distilbert.embeddings.word_embeddings.weight"},
        signs=("vocab_transform.weight",),
    ),
    replace(
        BODY,
        architecture="DistilBertForSequenceClassification",
        keys=(*KEYS, CLASSES),
        always=ALWAYS | EPS | POOLED | {"head.kind": "sequence", "head.pooler_activation": "relu"},
        rows=(*ROWS, *BEFORE_CLASSIFIER, *CLASSIFIER),
        signs=("classifier.weight", "pre_classifier.weight"),
    ),
    *at_each_position(BODY, "DistilBert"),
    BODY,
)
