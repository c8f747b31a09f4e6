"""GLM-4.7-Flash (Z.ai 2026), as transformers names it: DeepSeek-V3's attention and experts, dense layers by name."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from engine.checkpoints.families import deepseek_v3
from engine.checkpoints.keys import Key, Table
from engine.checkpoints.tasks import with_tasks
from engine.plurals import count_words

DENSE, ROUTED = "dense", "sparse"


def read_types(kinds: Any, theirs: Table) -> tuple[int, ...]:
    layers = theirs["num_hidden_layers"]
    if len(kinds) != layers or any(kind not in (DENSE, ROUTED) for kind in kinds):
        expected = f"config.json's mlp_layer_types must be {count_words(layers, 'word')}, each {DENSE} or {ROUTED}"
        raise ValueError(f"{expected}, got {kinds!r:.80}.")
    return tuple(layer for layer, kind in enumerate(kinds) if kind == DENSE)


KEYS = (
    *(key for key in deepseek_v3.KEYS if key.theirs not in ("rms_norm_eps", "first_k_dense_replace", "head_dim")),
    Key("rms_norm_eps", "norm.eps", default=1e-5),
    Key(
        "mlp_layer_types",
        "mlp.experts.dense",
        default=lambda theirs: (0,) if theirs["num_hidden_layers"] else (),
        reads=read_types,
        writes=lambda dense, ours: [DENSE if layer in dense else ROUTED for layer in range(ours["layers"])],
    ),
)

DEFAULTS = {
    "vocab_size": 154880, "hidden_size": 2048, "intermediate_size": 10240, "moe_intermediate_size": 1536,
    "num_hidden_layers": 47, "num_attention_heads": 20, "num_key_value_heads": 20, "n_shared_experts": 1,
    "n_routed_experts": 64, "routed_scaling_factor": 1.8, "kv_lora_rank": 512, "q_lora_rank": 768,
    "qk_rope_head_dim": 64, "v_head_dim": 256, "qk_nope_head_dim": 192, "n_group": 1, "topk_group": 1,
    "num_experts_per_tok": 4, "max_position_embeddings": 202752,
}  # fmt: skip

LANGUAGE = replace(
    deepseek_v3.LANGUAGE,
    name="glm4_moe_lite",
    architecture="Glm4MoeLiteForCausalLM",
    keys=KEYS,
    common={"num_local_experts": "n_routed_experts", "head_dim": "qk_rope_head_dim"},
    defaults=DEFAULTS,
)
FAMILIES = with_tasks(LANGUAGE, token=None, span=None)[1:]
