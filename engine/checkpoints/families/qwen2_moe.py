"""Qwen's first mixtures of experts (Qwen team 2024, Qwen1.5-MoE; Yang et al. 2024, Qwen2): beside the experts that a
token is sent to stands one that all tokens see, weighed by a gate of its own."""

from __future__ import annotations

from dataclasses import replace

from engine.checkpoints import experts
from engine.checkpoints.families import qwen2
from engine.checkpoints.keys import Key
from engine.checkpoints.tasks import with_tasks

MODULE = "model.layers.{}.mlp"
KEYS = (
    *(key for key in qwen2.KEYS if key.theirs not in ("intermediate_size", "head_dim")),
    Key("qkv_bias", "attention.bias", default=True),
    Key("num_experts", "mlp.experts.count"),
    Key("shared_expert_intermediate_size", "mlp.experts.shared"),
    experts.used_key(4),
    *experts.QWEN,
)

DEFAULTS = {
    "vocab_size": 151936, "hidden_size": 2048, "intermediate_size": 5632, "num_hidden_layers": 24,
    "num_attention_heads": 16, "max_position_embeddings": 32768, "num_key_value_heads": 16,
    "moe_intermediate_size": 1408, "shared_expert_intermediate_size": 5632, "num_experts_per_tok": 4, "num_experts": 60,
}  # fmt: skip

LANGUAGE = replace(
    qwen2.LANGUAGE,
    name="qwen2_moe",
    architecture="Qwen2MoeForCausalLM",
    keys=KEYS,
    always={
        **{path: value for path, value in qwen2.LANGUAGE.always.items() if path != "attention.bias"},
        "mlp.experts.shared_gate": True,
    },
    rows=(
        *qwen2.LANGUAGE.rows,
        *experts.expert_rows(MODULE),
        *experts.shared_rows(f"{MODULE}.shared_expert"),
        (f"{MODULE}.shared_expert_gate.weight", "blocks.{}.mlp.shared_gate.weight"),
    ),
    defaults=DEFAULTS,
)
FAMILIES = with_tasks(LANGUAGE)
