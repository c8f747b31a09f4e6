"""GLM-4 (GLM Team 2024), as transformers names it: Llama with half of each head turned, neighbours together, biases on
queries, keys and values, and the MLP's two first maps in one tensor."""

from __future__ import annotations

from engine.checkpoints.families.gpt2 import CAUSAL
from engine.checkpoints.families.gpt_neox import partial_rotary_keys
from engine.checkpoints.families.llama import ALWAYS, SIZES, TIED
from engine.checkpoints.families.llama import ROWS as OF_LLAMA
from engine.checkpoints.families.phi3 import FUSED_MLP
from engine.checkpoints.family import Family
from engine.checkpoints.keys import Key
from engine.checkpoints.tasks import with_tasks

OWN = (
    Key("num_attention_heads", "attention.heads"),
    Key("head_dim", "attention.d_head", default=128),
    Key("num_key_value_heads", "attention.kv_heads", default=2),
    Key("rms_norm_eps", "norm.eps", default=1.5625e-07),
    Key("attention_bias", "attention.bias", default=True),
    *partial_rotary_keys("partial_rotary_factor", 0.5, width=lambda theirs: theirs.get("head_dim") or 128),
)
KEYS = (*(key for key in SIZES if key.theirs not in {key.theirs for key in OWN}), *OWN)

ROWS = (
    *(
        row
        for row in OF_LLAMA
        if not any(part in row[0] for part in ("gate_proj", "up_proj", "o_proj.bias", "inv_freq"))
    ),
    ("model.layers.{}.mlp.gate_up_proj.weight", *FUSED_MLP),
)

DEFAULTS = {
    "vocab_size": 151552, "hidden_size": 4096, "intermediate_size": 13696, "num_hidden_layers": 40,
    "num_attention_heads": 32, "max_position_embeddings": 131072,
}  # fmt: skip

LANGUAGE = Family(
    name="glm",
    architecture="GlmForCausalLM",
    keys=KEYS,
    always={**ALWAYS, "positions.pairs": "neighbours", "attention.out_bias": False, "mlp.bias": False},
    only=CAUSAL,
    rows=ROWS,
    tied=TIED,
    optional_prefix="model.",
    defaults=DEFAULTS,
)
FAMILIES = with_tasks(LANGUAGE, span=None)
