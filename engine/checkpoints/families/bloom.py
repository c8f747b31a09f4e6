"""BLOOM (Le Scao et al. 2022), as transformers names it: ALiBi behind a normed embedding.

Queries, keys and values are stored head by head, as in GPT-NeoX, and the MLP is four times as wide as the stream.
"""

from __future__ import annotations

from engine.checkpoints.families.gpt2 import CAUSAL
from engine.checkpoints.families.gpt_neox import HEAD_BY_HEAD
from engine.checkpoints.family import Family
from engine.checkpoints.keys import Key
from engine.checkpoints.kinds import size
from engine.checkpoints.tasks import with_tasks

KEYS = (
    Key("vocab_size", "vocab_size"),
    Key("seq_length", "context", default=2048, kind=size(1)),
    Key("hidden_size", "d_model"),
    Key("n_layer", "layers"),
    Key("n_head", "attention.heads"),
    Key("layer_norm_epsilon", "norm.eps", default=1e-5),
    Key("hidden_dropout", "dropout", default=0.0, also=("attention_dropout",)),
    Key("tie_word_embeddings", "tied", default=True),
)

ALWAYS = {
    "positions.kind": "alibi",
    "embedding.norm": True,
    "norm.kind": "layer",
    "norm.place": "before",
    "attention.mask": "causal",
    "mlp.activation": "gelu_tanh",
    "mlp.d_mlp": lambda theirs: 4 * theirs["hidden_size"],
}

LINEAR = {
    "input_layernorm": "norm1",
    "self_attention.dense": "attn.out",
    "post_attention_layernorm": "norm2",
    "mlp.dense_h_to_4h": "mlp.pre",
    "mlp.dense_4h_to_h": "mlp.out",
}
PARTS = ("weight", "bias")
LAYER = "transformer.h.{}."
FUSED = f"{LAYER}self_attention.query_key_value"
ROWS = (
    ("transformer.word_embeddings.weight", "embed.tokens.weight"),
    *((f"transformer.word_embeddings_layernorm.{part}", f"embed.norm.{part}") for part in PARTS),
    *((f"{FUSED}.{part}", tuple(f"blocks.{{}}.attn.{x}.{part}" for x in "qkv"), HEAD_BY_HEAD) for part in PARTS),
    *((f"{LAYER}{theirs}.{part}", f"blocks.{{}}.{ours}.{part}") for theirs, ours in LINEAR.items() for part in PARTS),
    *((f"transformer.ln_f.{part}", f"final_norm.{part}") for part in PARTS),
    ("lm_head.weight", "head.weight"),
)

LANGUAGE = Family(
    name="bloom",
    architecture="BloomForCausalLM",
    keys=KEYS,
    always=ALWAYS,
    only=CAUSAL | {"apply_residual_connection_post_layernorm": False},
    rows=ROWS,
    tied={"lm_head.weight": "transformer.word_embeddings.weight"},
    optional_prefix="transformer.",
    common={"n_embed": "hidden_size", "num_hidden_layers": "n_layer", "num_attention_heads": "n_head"},
    defaults={"vocab_size": 250880, "hidden_size": 64, "n_layer": 2, "n_head": 8},
)
FAMILIES = with_tasks(LANGUAGE, token="classifier")
