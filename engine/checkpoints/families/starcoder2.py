"""StarCoder2 (Lozhkov et al. 2024): layer norms, a bias everywhere or nowhere, grouped queries, a plain MLP."""

from __future__ import annotations

from engine.checkpoints.families.gpt2 import CAUSAL
from engine.checkpoints.families.llama import ALWAYS, HEADS, SIZES, TIED
from engine.checkpoints.families.llama import ROWS as OF_LLAMA
from engine.checkpoints.family import Family
from engine.checkpoints.keys import ACTIVATIONS, Key, shared_key
from engine.checkpoints.kinds import FLAG, NOT_NEGATIVE, PORTION
from engine.checkpoints.tasks import with_tasks

OWN = ("num_key_value_heads", "rms_norm_eps", "attention_dropout", "hidden_act", "tie_word_embeddings")
KEYS = (
    *(key for key in SIZES if key.theirs not in OWN),
    HEADS,
    Key("num_key_value_heads", "attention.kv_heads", default=2),
    Key("head_dim", "attention.d_head", default=None),
    Key("norm_epsilon", "norm.eps", default=1e-5, kind=NOT_NEGATIVE),
    Key("hidden_act", "mlp.activation", default="gelu_tanh", values=ACTIVATIONS),
    Key("tie_word_embeddings", "tied", default=True),
    Key("sliding_window", "attention.window", default=None),
    Key("residual_dropout", "dropout", default=0.0, also=("embedding_dropout", "attention_dropout"), kind=PORTION),
    shared_key("use_bias", ("attention.bias", "attention.out_bias", "mlp.bias"), True, FLAG),
)

GATED = ("gate_proj", "up_proj", "down_proj", "inv_freq")
NORMS = {
    "model.layers.{}.input_layernorm": "blocks.{}.norm1",
    "model.layers.{}.post_attention_layernorm": "blocks.{}.norm2",
    "model.norm": "final_norm",
}
ROWS = (
    *(row for row in OF_LLAMA if not any(part in row[0] for part in GATED)),
    *((f"{theirs}.bias", f"{ours}.bias") for theirs, ours in NORMS.items()),
    *(
        (f"model.layers.{{}}.mlp.{theirs}.{part}", f"blocks.{{}}.mlp.{ours}.{part}")
        for theirs, ours in (("c_fc", "pre"), ("c_proj", "out"))
        for part in ("weight", "bias")
    ),
)

DEFAULTS = {
    "vocab_size": 49152, "hidden_size": 3072, "intermediate_size": 12288, "num_hidden_layers": 30,
    "num_attention_heads": 24, "max_position_embeddings": 4096, "num_key_value_heads": 2,
}  # fmt: skip

LANGUAGE = Family(
    name="starcoder2",
    architecture="Starcoder2ForCausalLM",
    keys=KEYS,
    always={**ALWAYS, "norm.kind": "layer", "mlp.gated": False},
    only=CAUSAL,
    rows=ROWS,
    tied=TIED,
    optional_prefix="model.",
    defaults=DEFAULTS,
)
FAMILIES = with_tasks(LANGUAGE, span=None)
