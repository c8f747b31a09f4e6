"""OLMoE (Muennighoff et al. 2024): many small experts in every layer; queries and keys are normed all together."""

from __future__ import annotations

from dataclasses import replace

from engine.checkpoints.experts import expert_rows, used_key
from engine.checkpoints.families import llama, qwen3
from engine.checkpoints.families.gpt2 import CAUSAL
from engine.checkpoints.keys import Key
from engine.checkpoints.tasks import body_of

OWN = ("rms_norm_eps", "head_dim", "mlp_bias")
KEYS = (
    *(key for key in llama.KEYS if key.theirs not in OWN),
    Key("rms_norm_eps", "norm.eps", default=1e-5),
    Key("num_experts", "mlp.experts.count"),
    used_key(8),
    Key("norm_topk_prob", "mlp.experts.renormalised", default=False),
)

DEFAULTS = {
    "vocab_size": 50304, "hidden_size": 2048, "intermediate_size": 2048, "num_hidden_layers": 16,
    "num_attention_heads": 16, "max_position_embeddings": 4096, "num_experts": 64, "num_experts_per_tok": 8,
}  # fmt: skip

LANGUAGE = replace(
    llama.LANGUAGE,
    name="olmoe",
    architecture="OlmoeForCausalLM",
    also=(),
    keys=KEYS,
    always={**llama.ALWAYS, "attention.qk_norm": "all", "mlp.bias": False},
    only={**CAUSAL, "clip_qkv": None},
    common={"num_local_experts": "num_experts"},
    rows=(
        *(row for row in llama.ROWS if "mlp" not in row[0]),
        *qwen3.NORMS,
        *expert_rows("model.layers.{}.mlp"),
    ),
    defaults=DEFAULTS,
)
FAMILIES = (LANGUAGE, body_of(LANGUAGE, "OlmoeModel"))
