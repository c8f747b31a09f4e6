"""ELECTRA (Clark et al. 2020), as transformers names it: a generator, which is a BERT with narrower token vectors, and
a discriminator, which says of each token whether the generator put it there.

The head over classes reads [CLS] through a dense layer and gelu.
"""

from __future__ import annotations

from dataclasses import replace

from engine.checkpoints.families import bert
from engine.checkpoints.families.bert import (
    ACTIVATION,
    ALWAYS,
    CLASSES,
    GUESSES,
    NO_HEAD,
    POOLED,
    at_each_position,
    under,
)
from engine.checkpoints.families.roberta import DENSE_CLASSIFIER
from engine.checkpoints.family import Family
from engine.checkpoints.keys import Key, Table


def unless_as_wide(width: int, theirs: Table) -> int | None:
    return None if width == theirs["hidden_size"] else width


WIDTH = Key(
    "embedding_size",
    "embedding.width",
    default=lambda theirs: unless_as_wide(128, theirs),
    reads=unless_as_wide,
    writes=lambda width, ours: ours["d_model"] if width is None else width,
)
KEYS = (*bert.KEYS, WIDTH)
ROWS = (
    *under("electra.", bert.ROWS),
    ("electra.embeddings_project.weight", "embed.mapped.weight"),
    ("electra.embeddings_project.bias", "embed.mapped.bias"),
)
WORDS = (
    ("generator_predictions.dense.weight", "head.dense.weight"),
    ("generator_predictions.dense.bias", "head.dense.bias"),
    ("generator_predictions.LayerNorm.weight", "head.norm.weight"),
    ("generator_predictions.LayerNorm.bias", "head.norm.bias"),
    ("generator_lm_head.weight", "head.weight"),
    ("generator_lm_head.bias", "head.bias"),
)
REPLACED = (
    ("discriminator_predictions.dense.weight", "head.dense.weight"),
    ("discriminator_predictions.dense.bias", "head.dense.bias"),
    ("discriminator_predictions.dense_prediction.weight", "head.weight"),
    ("discriminator_predictions.dense_prediction.bias", "head.bias"),
)

DEFAULTS = {
    "vocab_size": 30522,
    "hidden_size": 256,
    "num_hidden_layers": 12,
    "num_attention_heads": 4,
    "intermediate_size": 1024,
    "max_position_embeddings": 512,
}

BODY = Family(
    name="electra",
    architecture="ElectraModel",
    keys=KEYS,
    always=NO_HEAD,
    only=bert.ONLY,
    rows=ROWS,
    optional_prefix="electra.",
    old_spelling=bert.OLD_SPELLING,
    defaults=DEFAULTS,
)
FAMILIES = (
    replace(
        BODY,
        architecture="ElectraForPreTraining",
        keys=(*KEYS, ACTIVATION),
        always=ALWAYS | {"head.kind": "token", "head.classes": 1, "head.dense": True},
        rows=(*ROWS, *REPLACED),
        signs=("discriminator_predictions.dense.weight",),
    ),
    replace(
        BODY,
        architecture="ElectraForMaskedLM",
        always=GUESSES,
        rows=(*ROWS, *WORDS),
        tied={"generator_lm_head.weight": "electra.embeddings.word_embeddings.weight"},
        signs=("generator_predictions.dense.weight",),
    ),
    replace(
        BODY,
        architecture="ElectraForSequenceClassification",
        keys=(*KEYS, CLASSES),
        always=ALWAYS | POOLED | {"head.kind": "sequence", "head.pooler_activation": "gelu"},
        rows=(*ROWS, *DENSE_CLASSIFIER),
        signs=("classifier.dense.weight",),
    ),
    *at_each_position(BODY, "Electra"),
    BODY,
)
