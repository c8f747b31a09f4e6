"""RoBERTa (Liu et al. 2019), as transformers names it, with XLM-R (Conneau et al. 2020) and CamemBERT (Martin et al.
2020), which are the same code with other vocabularies.

Its table of positions begins with two rows, of which padding, wherever it stands, reads the second. The head over
classes reads <s> through a dense layer and tanh.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from engine.checkpoints.families import bart, bert
from engine.checkpoints.families.bert import ALWAYS, CLASSES, GUESSES, NO_HEAD, POOLED, at_each_position, under
from engine.checkpoints.family import Family, Transform, concatenate
from engine.checkpoints.keys import Key
from engine.model.config import ModelConfig

PADDING = 1  # the id of its token; positions are counted from the next number
COUNTED = {"positions.counted": "tokens", "positions.padding": PADDING}


CONTEXT = Key(
    "max_position_embeddings",
    "context",
    reads=lambda rows, theirs: rows - bart.OFFSET,
    writes=lambda context, ours: context + bart.OFFSET,
)
KEYS = tuple(CONTEXT if key.theirs == CONTEXT.theirs else key for key in bert.KEYS)


def split_padding(tensors: list[Tensor], config: ModelConfig) -> list[Tensor]:
    return [tensors[0][bart.OFFSET :], tensors[0][PADDING]]


def join_padding(tensors: list[Tensor], config: ModelConfig) -> list[Tensor]:
    table, padded = tensors
    return [concatenate([torch.zeros_like(table[:PADDING]), padded[None], table], dim=0)]


WITH_PADDING = Transform(split_padding, join_padding, loses=True)  # its first row, which is never read
POSITIONS = "roberta.embeddings.position_embeddings.weight"
ROWS = tuple(
    (POSITIONS, (row[1], "embed.padded"), WITH_PADDING) if row[0] == POSITIONS else row
    for row in under("roberta.", bert.ROWS)
)
POOLER, NO_POOLER = under("roberta.", bert.POOLER), under("roberta.", bert.NO_POOLER)
UNTIED = ("lm_head.decoder.weight", "lm_head.bias", "lm_head.decoder.bias")
WORDS = (
    ("lm_head.dense.weight", "head.dense.weight"),
    ("lm_head.dense.bias", "head.dense.bias"),
    ("lm_head.layer_norm.weight", "head.norm.weight"),
    ("lm_head.layer_norm.bias", "head.norm.bias"),
    (UNTIED, ("head.weight", "head.bias"), Transform(bert.untie, bert.with_bias_twice)),
    ("lm_head.bias", "head.bias"),
)
DENSE_CLASSIFIER = (
    ("classifier.dense.weight", "pooler.dense.weight"),
    ("classifier.dense.bias", "pooler.dense.bias"),
    ("classifier.out_proj.weight", "head.weight"),
    ("classifier.out_proj.bias", "head.bias"),
)

DEFAULTS = {
    "vocab_size": 50265,
    "hidden_size": 768,
    "num_hidden_layers": 12,
    "num_attention_heads": 12,
    "intermediate_size": 3072,
    "max_position_embeddings": 512,
}

BODY = Family(
    name="roberta",
    architecture="RobertaModel",
    keys=KEYS,
    always=NO_HEAD | COUNTED,
    only={**bert.ONLY, "pad_token_id": PADDING},
    rows=ROWS,
    optional_prefix="roberta.",
    old_spelling=bert.OLD_SPELLING,
    defaults=DEFAULTS,
)
ROBERTA = (
    replace(
        BODY,
        architecture="RobertaForMaskedLM",
        always=GUESSES | COUNTED,
        rows=(*ROWS, *WORDS, *NO_POOLER),
        tied={"lm_head.decoder.weight": "roberta.embeddings.word_embeddings.weight"},
        twins={"lm_head.decoder.bias": "lm_head.bias"},
        signs=("lm_head.dense.weight",),
    ),
    replace(
        BODY,
        architecture="RobertaForSequenceClassification",
        keys=(*KEYS, CLASSES),
        always=ALWAYS | COUNTED | POOLED | {"head.kind": "sequence"},
        rows=(*ROWS, *DENSE_CLASSIFIER, *NO_POOLER),
        signs=("classifier.dense.weight",),
    ),
    *at_each_position(BODY, "Roberta", NO_POOLER),
    replace(
        BODY,
        always=NO_HEAD | COUNTED | POOLED,
        rows=(*ROWS, *POOLER),
        signs=("roberta.pooler.dense.weight",),
    ),
    BODY,
)


def rename_families(name: str, spelling: str) -> tuple[Family, ...]:
    """The same families under another `model_type` and spelling of their architectures."""
    return tuple(
        replace(
            family,
            name=name,
            architecture=(family.architecture or "").replace("Roberta", spelling),
            defaults=DEFAULTS | {"vocab_size": 30522},
        )
        for family in ROBERTA
    )


FAMILIES = (*ROBERTA, *rename_families("xlm-roberta", "XLMRoberta"), *rename_families("camembert", "Camembert"))
