"""ALBERT (Lan et al. 2020), as transformers names it: narrow token vectors, and one block that all layers share.

Its second head says whether two texts stand in their order or were swapped.
"""

from __future__ import annotations

from dataclasses import replace

from engine.checkpoints.families import bert
from engine.checkpoints.families.bert import CLASSES, CLASSIFIER, JUDGED, POOLED, at_each_position
from engine.checkpoints.family import DROPPED, Family, Transform
from engine.checkpoints.keys import ACTIVATIONS, Key

HIDDEN_ACT = Key("hidden_act", "mlp.activation", default="gelu_tanh", values=ACTIVATIONS)
DROPOUT = Key("hidden_dropout_prob", "dropout", default=0.0, also=("attention_probs_dropout_prob",))
OWN = {key.theirs: key for key in (HIDDEN_ACT, DROPOUT)}
KEYS = (
    *(OWN.get(key.theirs, key) for key in bert.KEYS),
    Key("embedding_size", "embedding.width", default=128),
)
ACTIVATION = replace(HIDDEN_ACT, ours="head.activation")

ALWAYS = bert.ALWAYS | {"distinct": 1}
NO_HEAD = ALWAYS | {"head.kind": "none"}
GUESSES = ALWAYS | {"head.kind": "masked", "head.bias": True}

LINEAR = {
    "attention.query": "attn.q",
    "attention.key": "attn.k",
    "attention.value": "attn.v",
    "attention.dense": "attn.out",
    "attention.LayerNorm": "norm1",
    "ffn": "mlp.pre",
    "ffn_output": "mlp.out",
    "full_layer_layer_norm": "norm2",
}
ROWS = (
    *(row for row in bert.under("albert.", bert.ROWS) if ".embeddings." in row[0]),
    ("albert.encoder.embedding_hidden_mapping_in.weight", "embed.mapped.weight"),
    ("albert.encoder.embedding_hidden_mapping_in.bias", "embed.mapped.bias"),
    *(
        (f"albert.encoder.albert_layer_groups.0.albert_layers.0.{theirs}.{part}", f"blocks.0.{ours}.{part}")
        for theirs, ours in LINEAR.items()
        for part in ("weight", "bias")
    ),
)
POOLER = (
    ("albert.pooler.weight", "pooler.dense.weight"),
    ("albert.pooler.bias", "pooler.dense.bias"),
)
NO_POOLER = (
    ("albert.pooler.weight", DROPPED),
    ("albert.pooler.bias", DROPPED),
)
UNTIED = ("predictions.decoder.weight", "predictions.bias", "predictions.decoder.bias")
WORDS = (
    ("predictions.dense.weight", "head.dense.weight"),
    ("predictions.dense.bias", "head.dense.bias"),
    ("predictions.LayerNorm.weight", "head.norm.weight"),
    ("predictions.LayerNorm.bias", "head.norm.bias"),
    (UNTIED, ("head.weight", "head.bias"), Transform(bert.untie, bert.with_bias_twice)),
    ("predictions.bias", "head.bias"),
)
IN_ORDER = (
    ("sop_classifier.classifier.weight", "next_sentence.weight"),
    ("sop_classifier.classifier.bias", "next_sentence.bias"),
)

DEFAULTS = {
    "vocab_size": 30000,
    "hidden_size": 4096,
    "num_hidden_layers": 12,
    "num_attention_heads": 64,
    "intermediate_size": 16384,
    "max_position_embeddings": 512,
}

BODY = Family(
    name="albert",
    architecture="AlbertModel",
    keys=KEYS,
    always=NO_HEAD,
    only={"num_hidden_groups": 1, "inner_group_num": 1, "position_embedding_type": "absolute"},
    rows=ROWS,
    optional_prefix="albert.",
    old_spelling=bert.OLD_SPELLING,
    defaults=DEFAULTS,
)
MASKED = replace(
    BODY,
    architecture="AlbertForMaskedLM",
    keys=(*KEYS, ACTIVATION),
    always=GUESSES,
    rows=(*ROWS, *WORDS, *NO_POOLER),
    tied={"predictions.decoder.weight": "albert.embeddings.word_embeddings.weight"},
    twins={"predictions.decoder.bias": "predictions.bias"},
    signs=("predictions.dense.weight",),
)
FAMILIES = (
    replace(
        MASKED,
        architecture="AlbertForPreTraining",
        always=GUESSES | JUDGED,
        rows=(*ROWS, *POOLER, *WORDS, *IN_ORDER),
        signs=(*MASKED.signs, "sop_classifier.classifier.weight", "albert.pooler.weight"),
    ),
    MASKED,
    replace(
        BODY,
        architecture="AlbertForSequenceClassification",
        keys=(*KEYS, CLASSES),
        always=ALWAYS | POOLED | {"head.kind": "sequence"},
        rows=(*ROWS, *POOLER, *CLASSIFIER),
        signs=("classifier.weight", "albert.pooler.weight"),
    ),
    *at_each_position(BODY, "Albert", NO_POOLER),
    replace(
        BODY,
        always=NO_HEAD | POOLED,
        rows=(*ROWS, *POOLER),
        signs=("albert.pooler.weight",),
    ),
    BODY,
)
