"""GPT-2 (Radford et al. 2019), as transformers names it.

Its linear layers are stored input first, and q, k and v side by side in one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import Tensor

from engine.checkpoints.family import DROPPED, TRANSPOSED, Family, Transform, concatenate
from engine.checkpoints.keys import ACTIVATIONS, Key
from engine.checkpoints.recomputed import CAUSAL_MASK, MASK_VALUE
from engine.checkpoints.tasks import with_tasks
from engine.model.config import ModelConfig


def four_times_the_width(theirs: Mapping[str, Any]) -> Any:
    width = theirs["n_embd"]
    return 4 * width if isinstance(width, int) else width  # what is no number is refused as such later


KEYS = (
    Key("vocab_size", "vocab_size"),
    Key("n_positions", "context", also=("n_ctx",)),
    Key("n_embd", "d_model"),
    Key("n_layer", "layers"),
    Key("n_head", "attention.heads"),
    Key("n_inner", "mlp.d_mlp", default=four_times_the_width),
    Key("activation_function", "mlp.activation", default="gelu_tanh", values=ACTIVATIONS),
    Key("layer_norm_epsilon", "norm.eps", default=1e-5),
    Key("tie_word_embeddings", "tied", default=True),
    Key("resid_pdrop", "dropout", default=0.1, also=("embd_pdrop", "attn_pdrop")),
)

ALWAYS = {
    "positions.kind": "learned",
    "norm.kind": "layer",
    "norm.place": "before",
    "attention.mask": "causal",
}

CAUSAL = {"is_causal": True}
ONLY = CAUSAL | {
    "scale_attn_weights": True,
    "scale_attn_by_inverse_layer_idx": False,
    "add_cross_attention": False,
}


def split(tensors: list[Tensor], config: ModelConfig) -> list[Tensor]:
    return list(tensors[0].chunk(3, dim=-1))


def join(tensors: list[Tensor], config: ModelConfig) -> list[Tensor]:
    return [concatenate(tensors, dim=-1)]


def split_transposed(tensors: list[Tensor], config: ModelConfig) -> list[Tensor]:
    return [third.mT for third in split(tensors, config)]


def join_transposed(tensors: list[Tensor], config: ModelConfig) -> list[Tensor]:
    return join([third.mT for third in tensors], config)


THIRDS = Transform(split, join)
THIRDS_TRANSPOSED = Transform(split_transposed, join_transposed)
QKV = tuple(f"blocks.{{}}.attn.{x}.weight" for x in "qkv")
QKV_BIAS = tuple(f"blocks.{{}}.attn.{x}.bias" for x in "qkv")

ROWS = (
    ("transformer.wte.weight", "embed.tokens.weight"),
    ("transformer.wpe.weight", "embed.positions.weight"),
    ("transformer.h.{}.ln_1.weight", "blocks.{}.norm1.weight"),
    ("transformer.h.{}.ln_1.bias", "blocks.{}.norm1.bias"),
    ("transformer.h.{}.attn.c_attn.weight", QKV, THIRDS_TRANSPOSED),
    ("transformer.h.{}.attn.c_attn.bias", QKV_BIAS, THIRDS),
    ("transformer.h.{}.attn.c_proj.weight", "blocks.{}.attn.out.weight", TRANSPOSED),
    ("transformer.h.{}.attn.c_proj.bias", "blocks.{}.attn.out.bias"),
    ("transformer.h.{}.attn.bias", DROPPED, CAUSAL_MASK),
    ("transformer.h.{}.attn.masked_bias", DROPPED, MASK_VALUE),
    ("transformer.h.{}.ln_2.weight", "blocks.{}.norm2.weight"),
    ("transformer.h.{}.ln_2.bias", "blocks.{}.norm2.bias"),
    ("transformer.h.{}.mlp.c_fc.weight", "blocks.{}.mlp.pre.weight", TRANSPOSED),
    ("transformer.h.{}.mlp.c_fc.bias", "blocks.{}.mlp.pre.bias"),
    ("transformer.h.{}.mlp.c_proj.weight", "blocks.{}.mlp.out.weight", TRANSPOSED),
    ("transformer.h.{}.mlp.c_proj.bias", "blocks.{}.mlp.out.bias"),
    ("transformer.ln_f.weight", "final_norm.weight"),
    ("transformer.ln_f.bias", "final_norm.bias"),
    ("lm_head.weight", "head.weight"),
    ("multiple_choice_head.summary.weight", DROPPED),  # GPT2DoubleHeadsModel's second head
    ("multiple_choice_head.summary.bias", DROPPED),
)

COMMON = {
    "hidden_size": "n_embd",
    "max_position_embeddings": "n_positions",
    "num_attention_heads": "n_head",
    "num_hidden_layers": "n_layer",
}
DEFAULTS = {"vocab_size": 50257, "n_positions": 1024, "n_embd": 768, "n_layer": 12, "n_head": 12}

LANGUAGE = Family(
    name="gpt2",
    architecture="GPT2LMHeadModel",
    keys=KEYS,
    always=ALWAYS,
    only=ONLY,
    rows=ROWS,
    tied={"lm_head.weight": "transformer.wte.weight"},
    optional_prefix="transformer.",
    also=("GPT2DoubleHeadsModel",),
    common=COMMON,
    defaults=DEFAULTS,
)
FAMILIES = with_tasks(LANGUAGE, token="classifier")
