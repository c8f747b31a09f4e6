"""Phi-1, 1.5 (Li et al. 2023) and 2, as transformers names them.

Attention and MLP read the same norm of the stream, every layer has a bias, and a part of each head turns.
"""

from __future__ import annotations

from engine.checkpoints.families.gpt2 import CAUSAL
from engine.checkpoints.families.gpt_neox import partial_rotary_keys
from engine.checkpoints.families.llama import HEADS, TIED
from engine.checkpoints.family import DROPPED, Family
from engine.checkpoints.keys import ACTIVATIONS, Key
from engine.checkpoints.kinds import FLAG
from engine.checkpoints.recomputed import FREQUENCIES
from engine.checkpoints.rotary import CONTEXT_KEY, OLD_SCALING
from engine.checkpoints.tasks import with_tasks

KEYS = (
    Key("vocab_size", "vocab_size"),
    Key("hidden_size", "d_model"),
    Key("num_hidden_layers", "layers"),
    HEADS,
    Key("num_key_value_heads", "attention.kv_heads", default=None),
    CONTEXT_KEY,
    Key("intermediate_size", "mlp.d_mlp"),
    Key("hidden_act", "mlp.activation", default="gelu_tanh", values=ACTIVATIONS),
    Key("layer_norm_eps", "norm.eps", default=1e-5),
    Key("resid_pdrop", "dropout", default=0.0, also=("embd_pdrop", "attention_dropout")),
    Key("tie_word_embeddings", "tied", default=False),
    Key(
        "qk_layernorm",
        "attention.qk_norm",
        default=None,
        reads=lambda normed, _: "head" if normed else None,
        writes=lambda normed, _: normed == "head",
        kind=FLAG,
    ),
    *partial_rotary_keys("partial_rotary_factor", 0.5),
    OLD_SCALING,
)

ALWAYS = {
    "positions.kind": "rotary",
    "norm.kind": "layer",
    "norm.place": "before",
    "sublayers": "parallel_one_norm",
    "attention.mask": "causal",
    "head.bias": True,
}

LINEAR = {
    "input_layernorm": "norm1",
    "self_attn.q_proj": "attn.q",
    "self_attn.k_proj": "attn.k",
    "self_attn.v_proj": "attn.v",
    "self_attn.dense": "attn.out",
    "self_attn.q_layernorm": "attn.q_norm",
    "self_attn.k_layernorm": "attn.k_norm",
    "mlp.fc1": "mlp.pre",
    "mlp.fc2": "mlp.out",
}
ROWS = (
    ("model.embed_tokens.weight", "embed.tokens.weight"),
    *(
        (f"model.layers.{{}}.{theirs}.{part}", f"blocks.{{}}.{ours}.{part}")
        for theirs, ours in LINEAR.items()
        for part in ("weight", "bias")
    ),
    ("model.layers.{}.self_attn.rotary_emb.inv_freq", DROPPED, FREQUENCIES),
    ("model.final_layernorm.weight", "final_norm.weight"),
    ("model.final_layernorm.bias", "final_norm.bias"),
    ("lm_head.weight", "head.weight"),
    ("lm_head.bias", "head.bias"),
)

DEFAULTS = {
    "vocab_size": 51200,
    "hidden_size": 2048,
    "intermediate_size": 8192,
    "num_hidden_layers": 24,
    "num_attention_heads": 32,
    "max_position_embeddings": 2048,
}

LANGUAGE = Family(
    name="phi",
    architecture="PhiForCausalLM",
    keys=KEYS,
    always=ALWAYS,
    only=CAUSAL,
    rows=ROWS,
    tied=TIED,
    optional_prefix="model.",
    defaults=DEFAULTS,
)
FAMILIES = with_tasks(LANGUAGE, span=None)
