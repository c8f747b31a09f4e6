"""Gemma 2 (Riviere et al. 2024): norms around each sublayer, softcaps, and a window in every other layer.

Its norms multiply by 1 + weight, so what is stored is our weight less one.
"""

from __future__ import annotations

from typing import Any

from torch import Tensor

from engine.checkpoints.families.gpt2 import CAUSAL
from engine.checkpoints.families.llama import ALWAYS, HEADS, ROWS, SIZES, TIED, attention_bias_key
from engine.checkpoints.family import Family, Transform
from engine.checkpoints.keys import ACTIVATIONS, Key, Table, write_only_key
from engine.checkpoints.kinds import size
from engine.checkpoints.tasks import with_tasks
from engine.checkpoints.windows import choose_types, layer_types
from engine.model.config import ModelConfig


def causal(both_ways: Any, theirs: Table) -> str:
    if both_ways:
        raise ValueError("config.json's use_bidirectional_attention must be false: Loupe has no such Gemma.")
    return "causal"


def root(width: float) -> float:
    return width**0.5


BIDIRECTIONAL = Key(
    "use_bidirectional_attention", "attention.mask", default="causal", reads=causal, writes=lambda *_: False
)
SCALED = {
    **{name: value for name, value in ALWAYS.items() if name != "attention.mask"},
    "embedding.scale": lambda theirs: root(theirs["hidden_size"]),
    "mlp.bias": False,
}

KEYS = (
    *(key for key in SIZES if key.theirs not in ("hidden_act", "tie_word_embeddings")),
    HEADS,
    attention_bias_key(False),
    Key("head_dim", "attention.d_head", default=256),
    Key("hidden_activation", "mlp.activation", default="gelu_tanh", values=ACTIVATIONS),
    Key("tie_word_embeddings", "tied", default=True),
    Key(
        "query_pre_attn_scalar",
        "attention.scale",
        default=1 / root(256),
        reads=lambda width, _: 1 / root(width),
        writes=lambda scale, _: round(scale**-2),
        kind=size(1),
    ),
    Key("attn_logit_softcapping", "attention.softcap", default=lambda t: t.get("attn_logit_softcapping", 50.0)),
    Key("final_logit_softcapping", "head.softcap", default=lambda t: t.get("final_logit_softcapping", 30.0)),
    BIDIRECTIONAL,
    layer_types(lambda theirs: theirs.get("sliding_window", 4096), choose_types(lambda layer, _: layer % 2 == 0)),
    write_only_key("sliding_window", lambda ours: ours["attention"]["window"] or ours["context"]),
)


def one_more(tensors: list[Tensor], config: ModelConfig) -> list[Tensor]:
    return [tensor + 1 for tensor in tensors]


def one_less(tensors: list[Tensor], config: ModelConfig) -> list[Tensor]:
    return [tensor - 1 for tensor in tensors]


LESS_ONE = Transform(one_more, one_less, loses=True, rounds=True)
NORMS = (
    ("model.layers.{}.input_layernorm.weight", "blocks.{}.norm1.weight", LESS_ONE),
    ("model.layers.{}.post_attention_layernorm.weight", "blocks.{}.norm1_after.weight", LESS_ONE),
    ("model.layers.{}.pre_feedforward_layernorm.weight", "blocks.{}.norm2.weight", LESS_ONE),
    ("model.layers.{}.post_feedforward_layernorm.weight", "blocks.{}.norm2_after.weight", LESS_ONE),
    ("model.norm.weight", "final_norm.weight", LESS_ONE),
)

DEFAULTS = {
    "vocab_size": 256000, "hidden_size": 2304, "intermediate_size": 9216, "num_hidden_layers": 26,
    "num_attention_heads": 8, "num_key_value_heads": 4, "max_position_embeddings": 8192,
}  # fmt: skip

LANGUAGE = Family(
    name="gemma2",
    architecture="Gemma2ForCausalLM",
    keys=KEYS,
    always=SCALED | {"norm.place": "around"},
    only=CAUSAL,
    rows=(*(row for row in ROWS if "norm" not in row[0]), *NORMS),
    tied=TIED,
    optional_prefix="model.",
    defaults=DEFAULTS,
)
FAMILIES = with_tasks(LANGUAGE, span=None)
