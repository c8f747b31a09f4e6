"""Llama (Touvron et al. 2023), as transformers names it; its rows and keys are those of most decoders since."""

from __future__ import annotations

from typing import Any

from engine.checkpoints.families.gpt2 import CAUSAL
from engine.checkpoints.family import DROPPED, Family
from engine.checkpoints.keys import ACTIVATIONS, Key, Table, shared_key
from engine.checkpoints.kinds import FLAG
from engine.checkpoints.recomputed import FREQUENCIES
from engine.checkpoints.rotary import KEYS as ROTARY
from engine.checkpoints.tasks import with_tasks


def divides(heads: Any, theirs: Table) -> Any:
    """Raises ValueError where transformers, too, would build no model."""
    if theirs["hidden_size"] % heads:
        raise ValueError(f"config.json's num_attention_heads must divide {theirs['hidden_size']}, got {heads}.")
    return heads


SIZES = (
    Key("vocab_size", "vocab_size"),
    Key("hidden_size", "d_model"),
    Key("num_hidden_layers", "layers"),
    Key("num_key_value_heads", "attention.kv_heads", default=None),
    Key("intermediate_size", "mlp.d_mlp"),
    Key("rms_norm_eps", "norm.eps", default=1e-6),
    Key("attention_dropout", "dropout", default=0.0),
    Key("hidden_act", "mlp.activation", default="silu", values=ACTIVATIONS),
    Key("tie_word_embeddings", "tied", default=False),
    *ROTARY,
)


def attention_bias_key(default: bool) -> Key:
    """Key of the bias, which all four projections of attention have, or none."""
    return shared_key("attention_bias", ("attention.bias", "attention.out_bias"), default)


def each_head_key(theirs: str) -> Key:
    """Key of norms of queries and keys, whose weights each head has for itself, or of none."""
    return Key(
        theirs,
        "attention.qk_norm",
        default=None,
        reads=lambda normed, _: "each" if normed else None,
        writes=lambda norm, _: norm == "each",
        kind=FLAG,
    )


HEADS = Key("num_attention_heads", "attention.heads", reads=divides)

KEYS = (
    *SIZES,
    HEADS,
    Key("head_dim", "attention.d_head", default=None),
    attention_bias_key(False),
    Key("mlp_bias", "mlp.bias", default=False),
)

ALWAYS = {
    "positions.kind": "rotary",
    "norm.kind": "rms",
    "norm.place": "before",
    "attention.mask": "causal",
    "mlp.gated": True,
}

ROWS = (
    ("model.embed_tokens.weight", "embed.tokens.weight"),
    ("model.layers.{}.input_layernorm.weight", "blocks.{}.norm1.weight"),
    ("model.layers.{}.self_attn.q_proj.weight", "blocks.{}.attn.q.weight"),
    ("model.layers.{}.self_attn.q_proj.bias", "blocks.{}.attn.q.bias"),
    ("model.layers.{}.self_attn.k_proj.weight", "blocks.{}.attn.k.weight"),
    ("model.layers.{}.self_attn.k_proj.bias", "blocks.{}.attn.k.bias"),
    ("model.layers.{}.self_attn.v_proj.weight", "blocks.{}.attn.v.weight"),
    ("model.layers.{}.self_attn.v_proj.bias", "blocks.{}.attn.v.bias"),
    ("model.layers.{}.self_attn.o_proj.weight", "blocks.{}.attn.out.weight"),
    ("model.layers.{}.self_attn.o_proj.bias", "blocks.{}.attn.out.bias"),
    ("model.layers.{}.self_attn.rotary_emb.inv_freq", DROPPED, FREQUENCIES),
    ("model.layers.{}.post_attention_layernorm.weight", "blocks.{}.norm2.weight"),
    ("model.layers.{}.mlp.gate_proj.weight", "blocks.{}.mlp.pre.weight"),
    ("model.layers.{}.mlp.gate_proj.bias", "blocks.{}.mlp.pre.bias"),
    ("model.layers.{}.mlp.up_proj.weight", "blocks.{}.mlp.up.weight"),
    ("model.layers.{}.mlp.up_proj.bias", "blocks.{}.mlp.up.bias"),
    ("model.layers.{}.mlp.down_proj.weight", "blocks.{}.mlp.out.weight"),
    ("model.layers.{}.mlp.down_proj.bias", "blocks.{}.mlp.out.bias"),
    ("model.norm.weight", "final_norm.weight"),
    ("lm_head.weight", "head.weight"),
)

TIED = {"lm_head.weight": "model.embed_tokens.weight"}

DEFAULTS = {
    "vocab_size": 32000,
    "hidden_size": 4096,
    "intermediate_size": 11008,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "max_position_embeddings": 2048,
}

LANGUAGE = Family(
    name="llama",
    architecture="LlamaForCausalLM",
    keys=KEYS,
    always=ALWAYS,
    only=CAUSAL,
    rows=ROWS,
    tied=TIED,
    optional_prefix="model.",
    also=("LLaMAForCausalLM",),
    defaults=DEFAULTS,
)
FAMILIES = with_tasks(LANGUAGE, span_prefix="transformer.")
