"""DeepSeek-V2 (DeepSeek-AI 2024): V3's attention, and experts by softmax scores that no sum divides."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from engine.checkpoints.families import deepseek_v3
from engine.checkpoints.families.gpt2 import CAUSAL
from engine.checkpoints.keys import Key, Table, write_only_key
from engine.checkpoints.tasks import with_tasks

GREEDY, LIMITED = "greedy", "group_limited_greedy"


def read_groups(method: Any, theirs: Table) -> tuple[Any, Any]:
    if method not in (GREEDY, LIMITED):
        raise ValueError(f"config.json's topk_method must be {GREEDY} or {LIMITED}, got {method!r:.80}.")
    return (1, 1) if method == GREEDY else (theirs["n_group"], theirs["topk_group"])


KEYS = (
    *deepseek_v3.COMMON,
    *deepseek_v3.latent_keys(),
    *deepseek_v3.routed_keys(6),
    Key(
        "topk_method",
        ("mlp.experts.groups", "mlp.experts.groups_used"),
        default=(1, 1),
        reads=read_groups,
        writes=lambda groups, _: GREEDY if groups[0] == 1 else LIMITED,
    ),
    write_only_key("n_group", lambda ours: ours["mlp"]["experts"]["groups"]),
    write_only_key("topk_group", lambda ours: ours["mlp"]["experts"]["groups_used"]),
    write_only_key("norm_topk_prob", lambda _: False),  # which transformers' class does not heed
)

DEFAULTS = {
    "vocab_size": 102400, "hidden_size": 4096, "intermediate_size": 11008, "moe_intermediate_size": 1407,
    "num_hidden_layers": 32, "num_attention_heads": 32, "n_shared_experts": 2, "n_routed_experts": 64,
    "kv_lora_rank": 512, "q_lora_rank": 1536, "qk_rope_head_dim": 64, "v_head_dim": 128, "qk_nope_head_dim": 128,
    "max_position_embeddings": 2048,
}  # fmt: skip

LANGUAGE = replace(
    deepseek_v3.LANGUAGE,
    name="deepseek_v2",
    architecture="DeepseekV2ForCausalLM",
    keys=KEYS,
    always={
        **deepseek_v3.FIXED,
        "mlp.experts.scores": "softmax",
        "mlp.experts.renormalised": False,
        "positions.pairs": "neighbours",
    },
    only={**CAUSAL, "mlp_bias": False},
    rows=deepseek_v3.BODY,
    common={"num_experts": "n_routed_experts"},
    defaults=DEFAULTS,
)
FAMILIES = with_tasks(LANGUAGE, token=None, span=None)
