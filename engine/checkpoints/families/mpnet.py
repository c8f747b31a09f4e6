"""MPNet (Song et al. 2020), as transformers names it: RoBERTa's positions, and T5's bias for each distance besides."""

from __future__ import annotations

from dataclasses import replace

from engine.checkpoints.families import bert, roberta
from engine.checkpoints.families.bert import CLASSES, POOLED, at_each_position, under
from engine.checkpoints.families.roberta import COUNTED, DENSE_CLASSIFIER, WORDS
from engine.checkpoints.family import Family

SPELLING = {
    "attention.self.query": "attention.attn.q",
    "attention.self.key": "attention.attn.k",
    "attention.self.value": "attention.attn.v",
    "attention.output.dense": "attention.attn.o",
    "attention.output.LayerNorm": "attention.LayerNorm",
    "roberta.": "mpnet.",
}


def respell(name: str) -> str:
    """MPNet's name of a tensor of RoBERTa's."""
    for theirs, own in SPELLING.items():
        name = name.replace(theirs, own)
    return name


BUCKETS = 32  # of the 32 nearest distances and beyond, to 128: transformers' class reads no other number of them
KEYS = tuple(key for key in roberta.KEYS if key.theirs != "type_vocab_size")
ALWAYS = bert.ALWAYS | COUNTED | {"positions.relative_bias": True, "positions.buckets": BUCKETS}
NO_HEAD = ALWAYS | {"head.kind": "none"}
ROWS = (
    *((respell(theirs), *ours) for theirs, *ours in roberta.ROWS if "token_type" not in theirs),
    ("mpnet.encoder.relative_attention_bias.weight", "relative.weight"),
)
POOLER, NO_POOLER = under("mpnet.", bert.POOLER), under("mpnet.", bert.NO_POOLER)

BODY = Family(
    name="mpnet",
    architecture="MPNetModel",
    keys=KEYS,
    always=NO_HEAD,
    only={"relative_attention_num_buckets": BUCKETS},
    rows=ROWS,
    optional_prefix="mpnet.",
    old_spelling=bert.OLD_SPELLING,
    defaults=bert.DEFAULTS | {"vocab_size": 30527},
)
FAMILIES = (
    replace(
        BODY,
        architecture="MPNetForMaskedLM",
        always=bert.GUESSES | ALWAYS,
        rows=(*ROWS, *WORDS, *NO_POOLER),
        tied={"lm_head.decoder.weight": "mpnet.embeddings.word_embeddings.weight"},
        twins={"lm_head.decoder.bias": "lm_head.bias"},
        signs=("lm_head.dense.weight",),
    ),
    replace(
        BODY,
        architecture="MPNetForSequenceClassification",
        keys=(*KEYS, CLASSES),
        always=ALWAYS | POOLED | {"head.kind": "sequence"},
        rows=(*ROWS, *DENSE_CLASSIFIER, *NO_POOLER),
        signs=("classifier.dense.weight",),
    ),
    *at_each_position(BODY, "MPNet", NO_POOLER),
    replace(BODY, always=NO_HEAD | POOLED, rows=(*ROWS, *POOLER), signs=("mpnet.pooler.dense.weight",)),
    BODY,
)
