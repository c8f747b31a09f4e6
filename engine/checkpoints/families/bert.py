"""BERT (Devlin et al. 2019), as transformers names it, with each of its heads."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from torch import Tensor

from engine.checkpoints.family import DROPPED, Family, Transform
from engine.checkpoints.keys import ACTIVATIONS, Key, Table, count_classes
from engine.checkpoints.recomputed import POSITION_IDS
from engine.model.config import ModelConfig


def at_least_one(segments: int, ours: Table) -> int:
    if segments < 1:
        raise ValueError("BERT adds the vector of a segment to every token; a model without segments is no BERT.")
    return segments


KEYS = (
    Key("vocab_size", "vocab_size"),
    Key("max_position_embeddings", "context"),
    Key("hidden_size", "d_model"),
    Key("num_hidden_layers", "layers"),
    Key("num_attention_heads", "attention.heads"),
    Key("intermediate_size", "mlp.d_mlp"),
    Key("hidden_act", "mlp.activation", default="gelu", values=ACTIVATIONS),
    Key("type_vocab_size", "embedding.segments", default=2, writes=at_least_one),
    Key("layer_norm_eps", "norm.eps", default=1e-12),
    Key("tie_word_embeddings", "tied", default=True),
    Key("hidden_dropout_prob", "dropout", default=0.1, also=("attention_probs_dropout_prob",)),
)
ACTIVATION = Key("hidden_act", "head.activation", default="gelu", values=ACTIVATIONS)
CLASSES = Key(
    "id2label",
    "head.classes",
    default=count_classes,
    reads=lambda _, theirs: count_classes(theirs),
    writes=lambda classes, ours: {str(i): f"LABEL_{i}" for i in range(classes)},
)

ALWAYS = {
    "positions.kind": "learned",
    "norm.kind": "layer",
    "norm.place": "after",
    "attention.mask": "full",
    "embedding.norm": True,
}

ONLY = {"is_decoder": False, "add_cross_attention": False, "position_embedding_type": "absolute"}


def untie(tensors: list[Tensor], config: ModelConfig) -> list[Tensor]:
    weight, _, bias = tensors
    return [weight, bias]


def with_bias_twice(tensors: list[Tensor], config: ModelConfig) -> list[Tensor]:
    weight, bias = tensors
    return [weight, bias.clone(), bias]


UNTIED = ("cls.predictions.decoder.weight", "cls.predictions.bias", "cls.predictions.decoder.bias")

ROWS = (
    ("bert.embeddings.word_embeddings.weight", "embed.tokens.weight"),
    ("bert.embeddings.position_embeddings.weight", "embed.positions.weight"),
    ("bert.embeddings.token_type_embeddings.weight", "embed.segments.weight"),
    ("bert.embeddings.LayerNorm.weight", "embed.norm.weight"),
    ("bert.embeddings.LayerNorm.bias", "embed.norm.bias"),
    ("bert.embeddings.position_ids", DROPPED, POSITION_IDS),
    ("bert.encoder.layer.{}.attention.self.query.weight", "blocks.{}.attn.q.weight"),
    ("bert.encoder.layer.{}.attention.self.query.bias", "blocks.{}.attn.q.bias"),
    ("bert.encoder.layer.{}.attention.self.key.weight", "blocks.{}.attn.k.weight"),
    ("bert.encoder.layer.{}.attention.self.key.bias", "blocks.{}.attn.k.bias"),
    ("bert.encoder.layer.{}.attention.self.value.weight", "blocks.{}.attn.v.weight"),
    ("bert.encoder.layer.{}.attention.self.value.bias", "blocks.{}.attn.v.bias"),
    ("bert.encoder.layer.{}.attention.output.dense.weight", "blocks.{}.attn.out.weight"),
    ("bert.encoder.layer.{}.attention.output.dense.bias", "blocks.{}.attn.out.bias"),
    ("bert.encoder.layer.{}.attention.output.LayerNorm.weight", "blocks.{}.norm1.weight"),
    ("bert.encoder.layer.{}.attention.output.LayerNorm.bias", "blocks.{}.norm1.bias"),
    ("bert.encoder.layer.{}.intermediate.dense.weight", "blocks.{}.mlp.pre.weight"),
    ("bert.encoder.layer.{}.intermediate.dense.bias", "blocks.{}.mlp.pre.bias"),
    ("bert.encoder.layer.{}.output.dense.weight", "blocks.{}.mlp.out.weight"),
    ("bert.encoder.layer.{}.output.dense.bias", "blocks.{}.mlp.out.bias"),
    ("bert.encoder.layer.{}.output.LayerNorm.weight", "blocks.{}.norm2.weight"),
    ("bert.encoder.layer.{}.output.LayerNorm.bias", "blocks.{}.norm2.bias"),
)
POOLER = (
    ("bert.pooler.dense.weight", "pooler.dense.weight"),
    ("bert.pooler.dense.bias", "pooler.dense.bias"),
)
NO_POOLER = (
    ("bert.pooler.dense.weight", DROPPED),
    ("bert.pooler.dense.bias", DROPPED),
)
WORDS = (
    ("cls.predictions.transform.dense.weight", "head.dense.weight"),
    ("cls.predictions.transform.dense.bias", "head.dense.bias"),
    ("cls.predictions.transform.LayerNorm.weight", "head.norm.weight"),
    ("cls.predictions.transform.LayerNorm.bias", "head.norm.bias"),
    (UNTIED, ("head.weight", "head.bias"), Transform(untie, with_bias_twice)),
    ("cls.predictions.bias", "head.bias"),
)
NEXT = (
    ("cls.seq_relationship.weight", "next_sentence.weight"),
    ("cls.seq_relationship.bias", "next_sentence.bias"),
)
CLASSIFIER = (
    ("classifier.weight", "head.weight"),
    ("classifier.bias", "head.bias"),
)
ANSWERS = (
    ("qa_outputs.weight", "head.weight"),
    ("qa_outputs.bias", "head.bias"),
)


def under(prefix: str, rows: Iterable[tuple[Any, ...]]) -> tuple[tuple[Any, ...], ...]:
    """`rows` of a family whose body is called `prefix` and not "bert."."""
    return tuple((theirs.replace("bert.", prefix, 1), *ours) for theirs, *ours in rows)


def at_each_position(body: Family, spelling: str, unread: tuple[Any, ...] = ()) -> tuple[Family, ...]:
    """A class of each token, and where an answer starts and ends; `unread` are rows of what neither of them reads."""
    return (
        replace(
            body,
            architecture=f"{spelling}ForTokenClassification",
            keys=(*body.keys, CLASSES),
            always={**body.always, "head.kind": "token"},
            rows=(*body.rows, *CLASSIFIER, *unread),
            signs=("classifier.weight",),
        ),
        replace(
            body,
            architecture=f"{spelling}ForQuestionAnswering",
            always={**body.always, "head.kind": "span"},
            rows=(*body.rows, *ANSWERS, *unread),
            signs=("qa_outputs.weight",),
        ),
    )


OLD_SPELLING = {".gamma": ".weight", ".beta": ".bias"}  # of the first files, converted from TensorFlow
NO_HEAD = ALWAYS | {"head.kind": "none"}
GUESSES = ALWAYS | {"head.kind": "masked", "head.bias": True}
POOLED = {"head.pooler": True}
JUDGED = POOLED | {"head.next_sentence": True}

DEFAULTS = {
    "vocab_size": 30522,
    "hidden_size": 768,
    "num_hidden_layers": 12,
    "num_attention_heads": 12,
    "intermediate_size": 3072,
    "max_position_embeddings": 512,
}

BODY = Family(
    name="bert",
    architecture="BertModel",
    keys=KEYS,
    always=NO_HEAD,
    only=ONLY,
    rows=ROWS,
    optional_prefix="bert.",
    old_spelling=OLD_SPELLING,
    defaults=DEFAULTS,
)
MASKED = replace(
    BODY,
    architecture="BertForMaskedLM",
    keys=(*KEYS, ACTIVATION),
    always=GUESSES,
    rows=(*ROWS, *WORDS, *NO_POOLER),
    tied={"cls.predictions.decoder.weight": "bert.embeddings.word_embeddings.weight"},
    twins={"cls.predictions.decoder.bias": "cls.predictions.bias"},
    signs=("cls.predictions.transform.dense.weight",),
)

FAMILIES = (
    replace(
        MASKED,
        architecture="BertForPreTraining",
        always=GUESSES | JUDGED,
        rows=(*ROWS, *POOLER, *WORDS, *NEXT),
        signs=(*MASKED.signs, "cls.seq_relationship.weight", "bert.pooler.dense.weight"),
    ),
    MASKED,
    replace(
        BODY,
        architecture="BertForSequenceClassification",
        keys=(*KEYS, CLASSES),
        always=ALWAYS | POOLED | {"head.kind": "sequence"},
        rows=(*ROWS, *POOLER, *CLASSIFIER),
        signs=("classifier.weight", "bert.pooler.dense.weight"),
    ),
    *at_each_position(BODY, "Bert", NO_POOLER),
    replace(
        BODY,
        architecture="BertForNextSentencePrediction",
        always=NO_HEAD | JUDGED,
        rows=(*ROWS, *POOLER, *NEXT),
        signs=("cls.seq_relationship.weight", "bert.pooler.dense.weight"),
    ),
    replace(
        BODY,
        always=NO_HEAD | POOLED,
        rows=(*ROWS, *POOLER),
        signs=("bert.pooler.dense.weight",),
    ),
    BODY,
)
