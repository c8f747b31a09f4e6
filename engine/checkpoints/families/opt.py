"""OPT (Zhang et al. 2022) and Galactica, as transformers names them.

The table of positions begins with two rows that nothing reads; the 350m alone has its norms behind its sublayers, and
token vectors narrower than its stream.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from engine.checkpoints.families.bart import LINEAR, POSITIONS
from engine.checkpoints.families.gpt2 import CAUSAL
from engine.checkpoints.family import DROPPED, Family
from engine.checkpoints.keys import ACTIVATIONS, Key, Table
from engine.checkpoints.tasks import with_tasks


def norms_before(theirs: Table) -> Any:
    return theirs.get("do_layer_norm_before", True)


def width_of(width: Any, theirs: Table) -> tuple[Any, str]:
    return (None, "all") if width == theirs["hidden_size"] else (width, "tokens")


def narrow(theirs: Table) -> bool:
    return theirs.get("word_embed_proj_dim") not in (None, theirs["hidden_size"])


KEYS = (
    Key("vocab_size", "vocab_size"),
    Key("max_position_embeddings", "context"),
    Key("hidden_size", "d_model"),
    Key("num_hidden_layers", "layers"),
    Key("num_attention_heads", "attention.heads"),
    Key("ffn_dim", "mlp.d_mlp"),
    Key("activation_function", "mlp.activation", default="relu", values=ACTIVATIONS),
    Key("dropout", "dropout", default=0.1, also=("attention_dropout",)),
    Key("tie_word_embeddings", "tied", default=True),
    Key(
        "enable_bias",
        ("attention.bias", "attention.out_bias", "mlp.bias"),
        default=(True, True, True),
        reads=lambda biased, _: (biased, biased, biased),
        writes=lambda three, _: three[0],
    ),
    Key(
        "do_layer_norm_before",
        "norm.place",
        default="before",
        reads=lambda before, _: "before" if before else "after",
        writes=lambda place, _: place == "before",
    ),
    Key(
        "_remove_final_layer_norm",
        "norm.final",
        default=norms_before,
        reads=lambda removed, theirs: norms_before(theirs) and not removed,
        writes=lambda final, ours: ours["norm"]["place"] == "before" and not final,
    ),
)
WIDTH = Key(
    "word_embed_proj_dim",
    ("embedding.width", "embedding.mapped"),
    default=(None, "all"),
    reads=width_of,
    writes=lambda both, ours: both[0] or ours["d_model"],
)

ALWAYS = {
    "positions.kind": "learned",
    "positions.counted": "real",
    "norm.kind": "layer",
    "norm.eps": 1e-5,
    "attention.mask": "causal",
}

MAPPED_BACK = ("model.decoder.project_out.weight", "head.narrow.weight")
ROWS = (
    ("model.decoder.embed_tokens.weight", "embed.tokens.weight"),
    ("model.decoder.embed_positions.weight", "embed.positions.weight", POSITIONS),
    *(
        (f"model.decoder.layers.{{}}.{theirs}.{part}", f"blocks.{{}}.{ours}.{part}")
        for theirs, ours in LINEAR.items()
        for part in ("weight", "bias")
    ),
    ("model.decoder.final_layer_norm.weight", "final_norm.weight"),
    ("model.decoder.final_layer_norm.bias", "final_norm.bias"),
    ("model.decoder.project_in.weight", "embed.mapped.weight"),
    MAPPED_BACK,
    ("model.decoder.version", DROPPED),  # of fairseq's code
    ("lm_head.weight", "head.weight"),
)

DEFAULTS = {
    "vocab_size": 50272,
    "hidden_size": 768,
    "num_hidden_layers": 12,
    "ffn_dim": 3072,
    "max_position_embeddings": 2048,
    "num_attention_heads": 12,
}

LANGUAGE = Family(
    name="opt",
    architecture="OPTForCausalLM",
    keys=(*KEYS, WIDTH),
    always=ALWAYS,
    only=CAUSAL | {"layer_norm_elementwise_affine": True},
    rows=ROWS,
    tied={"lm_head.weight": "model.decoder.embed_tokens.weight"},
    optional_prefix="model.",
    defaults=DEFAULTS,
)


def mapped_back(task: Family) -> Family:
    """A body hands on its stream as narrow as its token vectors, whatever reads it."""
    rows = tuple(MAPPED_BACK if row[0] == MAPPED_BACK[0] else row for row in task.rows)
    return replace(task, always={**task.always, "head.narrow": narrow}, rows=rows)


FAMILIES = tuple(each if each is LANGUAGE else mapped_back(each) for each in with_tasks(LANGUAGE, token=None))
