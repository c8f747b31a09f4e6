"""ModernBERT (Warner et al. 2024), as transformers names it: an encoder with rotary positions, a gated MLP, norms
before the sublayers but for layer 0, and a window on both sides in two of three layers, which turn by an own angle.

Each of its heads is a dense layer, an activation and a norm before the last map.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from engine.checkpoints.families.bert import CLASSES
from engine.checkpoints.family import Family, Transform, concatenate
from engine.checkpoints.keys import ACTIVATIONS, Key, Table, shared_key, write_only_key
from engine.checkpoints.kinds import FLAG, NOT_NEGATIVE, PORTION, WORD, size
from engine.checkpoints.rotary_by_window import keys_by_window
from engine.checkpoints.windows import choose_types, layer_types

EVERY = 3  # of so many layers one has no window


def read_window(theirs: Table) -> int:
    """Keys that a query sees in each direction: half of what config.json says, and itself."""
    both: int = theirs.get("local_attention", 128)
    return both // 2 + 1


WINDOW = layer_types(
    read_window, choose_types(lambda layer, theirs: layer % (theirs.get("global_attn_every_n_layers") or EVERY) != 0)
)
KEYS = (
    Key("vocab_size", "vocab_size"),
    Key("hidden_size", "d_model"),
    Key("num_hidden_layers", "layers"),
    Key("num_attention_heads", "attention.heads"),
    Key("intermediate_size", "mlp.d_mlp"),
    Key("hidden_activation", "mlp.activation", default="gelu", values=ACTIVATIONS),
    shared_key("attention_bias", ("attention.bias", "attention.out_bias"), False),
    Key("mlp_bias", "mlp.bias", default=False),
    Key("norm_eps", "norm.eps", default=1e-5, kind=NOT_NEGATIVE),
    Key(
        "norm_bias",
        "norm.learned",
        default="weight",
        reads=lambda biased, _: "all" if biased else "weight",
        writes=lambda learned, _: learned == "all",
        kind=FLAG,
    ),
    Key("mlp_dropout", "dropout", default=0.0, also=("attention_dropout", "embedding_dropout"), kind=PORTION),
    *(
        key
        for key in keys_by_window(WINDOW, 160_000.0, 10_000.0, "local_rope_theta", "global_rope_theta")
        if key.theirs != "rope_scaling"  # which is of all layers
    ),
    WINDOW,
    write_only_key("local_attention", lambda ours: 2 * ((ours["attention"]["window"] or 65) - 1), kind=size(0)),
    write_only_key("global_attn_every_n_layers", lambda _: EVERY, kind=size(1)),
    write_only_key("layer_norm_eps", lambda ours: ours["norm"]["eps"]),
)
OF_HEAD = (
    Key("classifier_bias", "head.dense_bias", default=False, kind=FLAG),
    Key("classifier_activation", "head.activation", default="gelu", values=ACTIVATIONS, kind=WORD),
)
OF_WORDS = (
    *OF_HEAD,
    Key("decoder_bias", "head.bias", default=True, kind=FLAG),
    Key("tie_word_embeddings", "tied", default=True),
)
POOLING = Key("classifier_pooling", "head.read", default="first", values={"cls": "first", "mean": "mean"}, kind=WORD)

ALWAYS = {
    "positions.kind": "rotary",
    "attention.mask": "full",
    "mlp.gated": True,
    "norm.kind": "layer",
    "norm.place": "before",
    "norm.first": False,
    "embedding.norm": True,
}
DENSE = {"head.dense": True, "head.norm": True}

LAYER = "model.layers.{}."
NAMES = {"attn_norm": "norm1", "attn.Wo": "attn.out", "mlp_norm": "norm2", "mlp.Wo": "mlp.out"}


def split_rows(count: int) -> Transform:
    """A matrix, or a bias, in `count` equal parts."""
    return Transform(lambda tensors, _: list(tensors[0].chunk(count)), lambda parts, _: [concatenate(parts, dim=0)])


def rows_of(part: str) -> tuple[tuple[Any, ...], ...]:
    return (
        (f"{LAYER}attn.Wqkv.{part}", tuple(f"blocks.{{}}.attn.{x}.{part}" for x in "qkv"), split_rows(3)),
        (f"{LAYER}mlp.Wi.{part}", tuple(f"blocks.{{}}.mlp.{x}.{part}" for x in ("pre", "up")), split_rows(2)),
        *((f"{LAYER}{theirs}.{part}", f"blocks.{{}}.{ours}.{part}") for theirs, ours in NAMES.items()),
        (f"model.embeddings.norm.{part}", f"embed.norm.{part}"),
        (f"model.final_norm.{part}", f"final_norm.{part}"),
    )


ROWS = (("model.embeddings.tok_embeddings.weight", "embed.tokens.weight"), *rows_of("weight"), *rows_of("bias"))
HEAD = (
    ("head.dense.weight", "head.dense.weight"),
    ("head.dense.bias", "head.dense.bias"),
    ("head.norm.weight", "head.norm.weight"),
    ("head.norm.bias", "head.norm.bias"),
)
WORDS = (*HEAD, ("decoder.weight", "head.weight"), ("decoder.bias", "head.bias"))
CLASSIFIER = (*HEAD, ("classifier.weight", "head.weight"), ("classifier.bias", "head.bias"))

BODY = Family(
    name="modernbert",
    architecture="ModernBertModel",
    keys=KEYS,
    always=ALWAYS | {"head.kind": "none"},
    rows=ROWS,
    optional_prefix="model.",
    extra={"position_embedding_type": "absolute"},  # as published, and read by nobody
    defaults={
        "vocab_size": 50368,
        "hidden_size": 768,
        "intermediate_size": 1152,
        "num_hidden_layers": 22,
        "num_attention_heads": 12,
        "max_position_embeddings": 8192,
    },
)


def judge(task: str, kind: str, *keys: Key) -> Family:
    return replace(
        BODY,
        architecture=f"ModernBertFor{task}",
        keys=(*KEYS, *OF_HEAD, *keys),
        always=ALWAYS | DENSE | {"head.kind": kind},
        rows=(*ROWS, *CLASSIFIER),
        signs=("classifier.weight", "head.dense.weight"),
    )


FAMILIES = (
    replace(
        BODY,
        architecture="ModernBertForMaskedLM",
        keys=(*KEYS, *OF_WORDS),
        always=ALWAYS | {"head.kind": "masked"},
        rows=(*ROWS, *WORDS),
        tied={"decoder.weight": "model.embeddings.tok_embeddings.weight"},
        signs=("head.dense.weight", "decoder.bias"),
    ),
    judge("SequenceClassification", "sequence", CLASSES, POOLING),
    judge("TokenClassification", "token", CLASSES),
    judge("QuestionAnswering", "span"),
    BODY,
)
