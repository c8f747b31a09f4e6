"""Qwen3's mixtures of experts (Yang et al. 2025): Qwen3 with experts in all layers but those that are named."""

from __future__ import annotations

from dataclasses import replace

from engine.checkpoints import experts
from engine.checkpoints.families import qwen3
from engine.checkpoints.keys import Key, write_only_key
from engine.checkpoints.tasks import with_tasks

OWN = ("intermediate_size", "head_dim")
KEYS = (
    *(key for key in qwen3.KEYS if key.theirs not in OWN),
    Key("head_dim", "attention.d_head", default=None),
    Key("num_local_experts", "mlp.experts.count"),
    write_only_key("num_experts", lambda ours: (ours["mlp"]["experts"] or {}).get("count")),
    experts.used_key(8),
    *experts.QWEN,
)

DEFAULTS = {
    **qwen3.DEFAULTS, "hidden_size": 2048, "intermediate_size": 6144, "num_hidden_layers": 24,
    "num_key_value_heads": 4, "moe_intermediate_size": 768, "num_experts_per_tok": 8, "num_local_experts": 128,
}  # fmt: skip

LANGUAGE = replace(
    qwen3.LANGUAGE,
    name="qwen3_moe",
    architecture="Qwen3MoeForCausalLM",
    keys=KEYS,
    common={"num_experts": "num_local_experts"},
    rows=(*qwen3.LANGUAGE.rows, *experts.expert_rows("model.layers.{}.mlp")),
    defaults=DEFAULTS,
)
FAMILIES = with_tasks(LANGUAGE, span_prefix="transformer.")
