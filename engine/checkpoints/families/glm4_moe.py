"""GLM-4.5 to 4.7 (GLM-4.5 Team 2025): grouped queries, of which a part turns, and DeepSeek-V3's experts."""

from __future__ import annotations

from dataclasses import replace

from engine.checkpoints.families import deepseek_v3, llama, qwen3
from engine.checkpoints.families.gpt_neox import partial_rotary_keys
from engine.checkpoints.keys import Key, Table
from engine.checkpoints.rotary import CONTEXT
from engine.checkpoints.tasks import with_tasks


def head_width(theirs: Table) -> int:
    """Width of a head where none is said; of the published 96 heads it does not come out, and is 128."""
    wide, rest = divmod(theirs["hidden_size"], theirs["num_attention_heads"])
    return 128 if rest else int(wide)


NOT_OURS = frozenset((
    *("rope_interleave", "num_attention_heads", "num_key_value_heads", "kv_lora_rank", "q_lora_rank", "v_head_dim"),
    *("attention_bias", "head_dim", "qk_head_dim", "rms_norm_eps"),
))  # fmt: skip
KEYS = (
    *(
        key
        for key in deepseek_v3.KEYS
        if key.theirs not in NOT_OURS and "rope" not in key.theirs and "qk_" not in key.theirs and key.theirs != CONTEXT
    ),
    Key("rms_norm_eps", "norm.eps", default=1e-5),
    Key(CONTEXT, "context"),
    Key("num_attention_heads", "attention.heads"),
    Key("num_key_value_heads", "attention.kv_heads", default=None),
    Key("head_dim", "attention.d_head", default=head_width),
    Key("attention_bias", "attention.bias", default=False),
    Key(
        "use_qk_norm",
        "attention.qk_norm",
        default=None,
        reads=lambda normed, _: "head" if normed else None,
        writes=lambda norm, _: norm == "head",
    ),
    *partial_rotary_keys(
        "partial_rotary_factor",
        0.5,
        width=lambda theirs: theirs.get("head_dim") or head_width(theirs),
    ),
)

DEFAULTS = {
    "vocab_size": 151552, "hidden_size": 4096, "intermediate_size": 10944, "moe_intermediate_size": 1408,
    "num_hidden_layers": 46, "num_attention_heads": 96, "num_key_value_heads": 8, "n_shared_experts": 1,
    "n_routed_experts": 128, "routed_scaling_factor": 1.0, "n_group": 1, "topk_group": 1, "num_experts_per_tok": 8,
    "first_k_dense_replace": 1, "max_position_embeddings": 131072,
}  # fmt: skip

LANGUAGE = replace(
    deepseek_v3.LANGUAGE,
    name="glm4_moe",
    architecture="Glm4MoeForCausalLM",
    keys=KEYS,
    always={
        **{path: value for path, value in deepseek_v3.LANGUAGE.always.items() if path != "attention.bias"},
        "attention.out_bias": False,
        "positions.pairs": "halves",
    },
    rows=(
        *(row for row in llama.ROWS if "inv_freq" not in row[0] and "mlp" not in row[0].partition(".bias")[0]),
        *(row for row in llama.ROWS if "mlp" in row[0] and row[0].endswith("weight")),
        *qwen3.NORMS,
        *(row for row in deepseek_v3.LANGUAGE.rows if "experts" in str(row[0]) or "mlp.gate." in str(row[0])),
    ),
    defaults=DEFAULTS,
)
FAMILIES = with_tasks(LANGUAGE, token=None, span=None)[1:]
