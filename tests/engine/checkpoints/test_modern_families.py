"""Decoders since GPT-2 against transformers: read from and written to the same files, the same numbers."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from torch import nn
from transformers import (
    AutoModelForCausalLM,
    BloomConfig,
    BloomForCausalLM,
    CodeGenConfig,
    CodeGenForCausalLM,
    Cohere2Config,
    Cohere2ForCausalLM,
    CohereConfig,
    CohereForCausalLM,
    DeepseekV2Config,
    DeepseekV2ForCausalLM,
    DeepseekV3Config,
    DeepseekV3ForCausalLM,
    Exaone4Config,
    Exaone4ForCausalLM,
    FalconConfig,
    FalconForCausalLM,
    Gemma2Config,
    Gemma2ForCausalLM,
    Gemma3ForCausalLM,
    Gemma3TextConfig,
    Glm4Config,
    Glm4ForCausalLM,
    Glm4MoeConfig,
    Glm4MoeForCausalLM,
    Glm4MoeLiteConfig,
    Glm4MoeLiteForCausalLM,
    GlmConfig,
    GlmForCausalLM,
    GPTJConfig,
    GPTJForCausalLM,
    GPTNeoXConfig,
    GPTNeoXForCausalLM,
    GptOssConfig,
    GptOssForCausalLM,
    GraniteConfig,
    GraniteForCausalLM,
    GraniteMoeConfig,
    GraniteMoeForCausalLM,
    GraniteMoeSharedConfig,
    GraniteMoeSharedForCausalLM,
    LlamaConfig,
    LlamaForCausalLM,
    MistralConfig,
    MistralForCausalLM,
    MixtralConfig,
    MixtralForCausalLM,
    MptConfig,
    MptForCausalLM,
    NanoChatConfig,
    NanoChatForCausalLM,
    Olmo2Config,
    Olmo2ForCausalLM,
    Olmo3Config,
    Olmo3ForCausalLM,
    OlmoConfig,
    OlmoeConfig,
    OlmoeForCausalLM,
    OlmoForCausalLM,
    Phi3Config,
    Phi3ForCausalLM,
    Qwen2Config,
    Qwen2ForCausalLM,
    Qwen2MoeConfig,
    Qwen2MoeForCausalLM,
    Qwen3Config,
    Qwen3ForCausalLM,
    Qwen3MoeConfig,
    Qwen3MoeForCausalLM,
    SmolLM3Config,
    SmolLM3ForCausalLM,
    StableLmConfig,
    StableLmForCausalLM,
    Starcoder2Config,
    Starcoder2ForCausalLM,
)

from engine.checkpoints import Checkpoint, load
from engine.checkpoints.canonical import canonical_config
from engine.checkpoints.families import FAMILIES
from engine.generation.generate import generate
from engine.model.config import Experts
from engine.runtime.run import run
from tests.engine import tiny

torch.set_num_threads(1)

IDS = torch.tensor([[5, 0, 30, 7, 7, 31, 12, 3, 24, 1], [8, 8, 2, 39, 6, 0, 1, 17, 25, 25]])
ENDS = {"pad_token_id": None, "bos_token_id": None, "eos_token_id": None}
MODERN = {"vocab_size": 40, "hidden_size": 24, "num_hidden_layers": 3, "intermediate_size": 36, **ENDS}
MODERN |= {"num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 32}
NEOX = {"vocab_size": 40, "hidden_size": 32, "num_hidden_layers": 2, "intermediate_size": 36, **ENDS}
NEOX |= {"num_attention_heads": 4, "max_position_embeddings": 32}
STABLE = {**NEOX, "num_key_value_heads": 2}
GPTJ = {"vocab_size": 40, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 32, "rotary_dim": 4, **ENDS}
BLOOM = {"vocab_size": 40, "hidden_size": 32, "n_layer": 2, "n_head": 4, **ENDS}

SHORT, LONG = [1.0, 1.1, 1.3], [1.0, 2.5, 4.0]
ROPE: dict[str, dict[str, Any]] = {
    "theta": {"rope_type": "default", "rope_theta": 500.0},
    "linear": {"rope_type": "linear", "factor": 2.5},
    "dynamic": {"rope_type": "dynamic", "factor": 4.0},
    "yarn": {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 8},
    "yarn, all said": {
        "rope_type": "yarn",
        "factor": 2.0,
        "original_max_position_embeddings": 16,
        "beta_fast": 2.0,
        "beta_slow": 0.5,
        "attention_factor": 1.2,
    },
    "yarn, mscale": {
        "rope_type": "yarn",
        "factor": 8.0,
        "original_max_position_embeddings": 8,
        "mscale": 0.7,
        "mscale_all_dim": 1.1,
    },
    "yarn, not rounded": {
        "rope_type": "yarn",
        "factor": 4.0,
        "original_max_position_embeddings": 8,
        "truncate": False,
    },
    "llama3": {
        "rope_type": "llama3",
        "factor": 8.0,
        "original_max_position_embeddings": 16,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
    },
    "longrope, read short": {
        "rope_type": "longrope",
        "original_max_position_embeddings": 10,
        "short_factor": SHORT,
        "long_factor": LONG,
    },
    "longrope, read long": {
        "rope_type": "longrope",
        "original_max_position_embeddings": 9,
        "short_factor": SHORT,
        "long_factor": LONG,
        "factor": 3.0,
        "attention_factor": 0.9,
    },
}
PART = {"partial_rotary_factor": 0.75, "rope_theta": 500.0, "short_factor": SHORT[:2], "long_factor": LONG[1:]}
SLIDE, WHOLE = "sliding_attention", "full_attention"


def case(model: type, config: type, sizes: dict[str, Any], **changes: Any) -> Any:
    def make() -> nn.Module:
        torch.manual_seed(0)
        return model(config(**json.loads(json.dumps({**sizes, **changes}))))

    return make


def llama(**changes: Any) -> Any:
    return case(LlamaForCausalLM, LlamaConfig, MODERN, **changes)


def neox(**changes: Any) -> Any:
    return case(GPTNeoXForCausalLM, GPTNeoXConfig, NEOX, **changes)


def phi3(**changes: Any) -> Any:
    return case(Phi3ForCausalLM, Phi3Config, MODERN, **changes)


def olmo3(**changes: Any) -> Any:
    return case(Olmo3ForCausalLM, Olmo3Config, MODERN | {"sliding_window": 4}, **changes)


def falcon(**changes: Any) -> Any:
    """Eager from the start: with another attention transformers adds a mask of true and false to the scores."""
    return case(FalconForCausalLM, FalconConfig, NEOX, attn_implementation="eager", **changes)


def gemma(**changes: Any) -> Any:
    softcaps = {"attn_logit_softcapping": 2.0, "final_logit_softcapping": 3.0, "query_pre_attn_scalar": 12}
    return case(Gemma2ForCausalLM, Gemma2Config, {**MODERN, **softcaps, "head_dim": 8, "sliding_window": 4}, **changes)


EXPERTS = {**MODERN, "num_experts": 5, "num_experts_per_tok": 2, "moe_intermediate_size": 20}
SHARED = {**EXPERTS, "shared_expert_intermediate_size": 14}


def gemma3(**changes: Any) -> Any:
    sizes = {**MODERN, "head_dim": 8, "sliding_window": 4, "layer_types": [SLIDE, WHOLE, SLIDE]}
    return case(Gemma3ForCausalLM, Gemma3TextConfig, {**sizes, "query_pre_attn_scalar": 12}, **changes)


def smollm3(**changes: Any) -> Any:
    return case(SmolLM3ForCausalLM, SmolLM3Config, MODERN, **changes)


def cohere2(**changes: Any) -> Any:
    return case(Cohere2ForCausalLM, Cohere2Config, MODERN | {"sliding_window": 4}, **changes)


def exaone4(**changes: Any) -> Any:
    sizes = {**MODERN, "sliding_window": 4, "layer_types": [SLIDE, WHOLE, SLIDE]}
    return case(Exaone4ForCausalLM, Exaone4Config, sizes, **changes)


MPT = {"vocab_size": 40, "d_model": 32, "n_layers": 2, "n_heads": 4, "max_seq_len": 32, **ENDS}
GLM = {**MODERN, "head_dim": 8}

DEEPSEEK = {
    **MODERN,
    "num_key_value_heads": 4,
    "kv_lora_rank": 8,
    "q_lora_rank": 10,
    "qk_rope_head_dim": 4,
    "qk_nope_head_dim": 8,
    "v_head_dim": 6,
    "moe_intermediate_size": 12,
    "n_routed_experts": 8,
    "num_experts_per_tok": 3,
    "first_k_dense_replace": 1,
}
GLM = {name: value for name, value in DEEPSEEK.items() if "lora" not in name and "qk" not in name}
GLM |= {"num_key_value_heads": 2, "head_dim": 8}

CASES = {
    "llama": llama(),
    "llama, biases, tied, no groups": llama(
        attention_bias=True, mlp_bias=True, tie_word_embeddings=True, num_key_value_heads=None, rms_norm_eps=0.1
    ),
    "llama, heads wider than the model": llama(head_dim=10, hidden_act="gelu"),
    **{f"llama, {name}": llama(rope_parameters=rope) for name, rope in ROPE.items()},
    "mistral": case(MistralForCausalLM, MistralConfig, MODERN, sliding_window=4),
    "mistral, no window": case(MistralForCausalLM, MistralConfig, MODERN, sliding_window=None, head_dim=8),
    "qwen2": case(Qwen2ForCausalLM, Qwen2Config, MODERN, tie_word_embeddings=True),
    "qwen2, windows at the top": case(
        Qwen2ForCausalLM, Qwen2Config, MODERN, use_sliding_window=True, sliding_window=3, max_window_layers=1
    ),
    "qwen2, yarn": case(Qwen2ForCausalLM, Qwen2Config, MODERN, rope_parameters=ROPE["yarn"]),
    "qwen3": case(Qwen3ForCausalLM, Qwen3Config, MODERN, head_dim=8),
    "qwen3, biases and windows": case(
        Qwen3ForCausalLM,
        Qwen3Config,
        MODERN,
        head_dim=8,
        attention_bias=True,
        use_sliding_window=True,
        sliding_window=3,
        layer_types=[SLIDE, WHOLE, SLIDE],
    ),
    "mixtral": case(
        MixtralForCausalLM, MixtralConfig, EXPERTS, sliding_window=4, head_dim=6, rope_parameters=ROPE["yarn"]
    ),
    "mixtral, wide heads, tied, all experts": case(
        MixtralForCausalLM,
        MixtralConfig,
        EXPERTS,
        num_experts_per_tok=5,
        head_dim=8,
        tie_word_embeddings=True,
        hidden_act="gelu",
        rms_norm_eps=0.1,
    ),
    "deepseek_v3": case(DeepseekV3ForCausalLM, DeepseekV3Config, DEEPSEEK, n_group=4, topk_group=2),
    "deepseek_v3, plain queries, biases, halves, yarn": case(
        DeepseekV3ForCausalLM,
        DeepseekV3Config,
        DEEPSEEK,
        n_group=1,
        topk_group=1,
        q_lora_rank=None,
        rope_interleave=False,
        norm_topk_prob=False,
        attention_bias=True,
        n_shared_experts=2,
        tie_word_embeddings=True,
        first_k_dense_replace=0,
        rope_parameters=ROPE["yarn, mscale"],
    ),
    "deepseek_v2": case(DeepseekV2ForCausalLM, DeepseekV2Config, DEEPSEEK),
    "deepseek_v2, groups, plain queries, yarn": case(
        DeepseekV2ForCausalLM,
        DeepseekV2Config,
        DEEPSEEK,
        topk_method="group_limited_greedy",
        n_group=4,
        topk_group=2,
        q_lora_rank=None,
        routed_scaling_factor=2.5,
        attention_bias=True,
        norm_topk_prob=True,
        n_shared_experts=1,
        rope_parameters=ROPE["yarn, mscale"],
    ),
    "glm4_moe_lite": case(Glm4MoeLiteForCausalLM, Glm4MoeLiteConfig, DEEPSEEK, n_group=4, topk_group=2),
    "glm4_moe_lite, dense in the middle": case(
        Glm4MoeLiteForCausalLM, Glm4MoeLiteConfig, DEEPSEEK, mlp_layer_types=["sparse", "dense", "sparse"]
    ),
    "glm4_moe": case(Glm4MoeForCausalLM, Glm4MoeConfig, GLM),
    "glm4_moe, norms, biases, groups": case(
        Glm4MoeForCausalLM,
        Glm4MoeConfig,
        GLM,
        use_qk_norm=True,
        attention_bias=True,
        n_group=2,
        topk_group=1,
        tie_word_embeddings=True,
        rope_parameters={"rope_type": "default", "rope_theta": 500.0, "partial_rotary_factor": 1.0},
    ),
    "gpt_oss": case(GptOssForCausalLM, GptOssConfig, EXPERTS, head_dim=8, sliding_window=3),
    "gpt_oss, no biases, tied, other bounds": case(
        GptOssForCausalLM,
        GptOssConfig,
        EXPERTS,
        head_dim=6,
        attention_bias=False,
        tie_word_embeddings=True,
        layer_types=[WHOLE, WHOLE, SLIDE],
        sliding_window=5,
        swiglu_limit=0.5,
        swiglu_alpha=1.0,
        rope_parameters=ROPE["theta"],
    ),
    "olmoe": case(OlmoeForCausalLM, OlmoeConfig, EXPERTS),
    "olmoe, biases, weights of sum 1": case(
        OlmoeForCausalLM, OlmoeConfig, EXPERTS, attention_bias=True, norm_topk_prob=True, num_key_value_heads=4
    ),
    "qwen2_moe": case(Qwen2MoeForCausalLM, Qwen2MoeConfig, SHARED, mlp_only_layers=[0]),
    "qwen2_moe, no biases, windows": case(
        Qwen2MoeForCausalLM,
        Qwen2MoeConfig,
        SHARED,
        qkv_bias=False,
        norm_topk_prob=True,
        layer_types=[SLIDE, WHOLE, SLIDE],
        use_sliding_window=True,
        sliding_window=3,
    ),
    "qwen3_moe": case(Qwen3MoeForCausalLM, Qwen3MoeConfig, EXPERTS, head_dim=8, mlp_only_layers=[1]),
    "qwen3_moe, every second layer": case(
        Qwen3MoeForCausalLM,
        Qwen3MoeConfig,
        EXPERTS,
        decoder_sparse_step=2,
        norm_topk_prob=True,
        attention_bias=True,
        use_sliding_window=True,
        sliding_window=3,
        max_window_layers=0,
    ),
    "olmo": case(OlmoForCausalLM, OlmoConfig, MODERN),
    "olmo, biases, tied, no groups, linear": case(
        OlmoForCausalLM,
        OlmoConfig,
        MODERN,
        attention_bias=True,
        tie_word_embeddings=True,
        num_key_value_heads=4,
        hidden_act="gelu_python",
        rope_parameters=ROPE["linear"],
    ),
    "cohere": case(CohereForCausalLM, CohereConfig, MODERN),
    "cohere, biases, untied, yarn": case(
        CohereForCausalLM,
        CohereConfig,
        MODERN,
        attention_bias=True,
        use_qk_norm=True,
        tie_word_embeddings=False,
        layer_norm_eps=0.1,
        logit_scale=0.3,
        hidden_act="gelu",
        rope_parameters=ROPE["yarn"],
    ),
    "cohere2": cohere2(layer_types=[SLIDE, WHOLE, SLIDE]),
    "cohere2, by a pattern, biases, untied": cohere2(
        num_hidden_layers=4, attention_bias=True, tie_word_embeddings=False, layer_norm_eps=0.1, logit_scale=2.0
    ),
    "cohere2, windows everywhere": cohere2(layer_types=[SLIDE] * 3, rope_parameters=ROPE["theta"]),
    "cohere2, windows nowhere": cohere2(layer_types=[WHOLE] * 3, num_key_value_heads=4),
    "granite": case(GraniteForCausalLM, GraniteConfig, MODERN),
    "granite, every multiplier": case(
        GraniteForCausalLM,
        GraniteConfig,
        MODERN,
        embedding_multiplier=12,
        attention_multiplier=0.15,
        residual_multiplier=0.22,
        logits_scaling=49.0,
        attention_bias=True,
        mlp_bias=True,
        tie_word_embeddings=True,
        rms_norm_eps=0.1,
        rope_parameters=ROPE["theta"],
    ),
    "granitemoe": case(GraniteMoeForCausalLM, GraniteMoeConfig, EXPERTS, num_local_experts=5),
    "granitemoeshared": case(
        GraniteMoeSharedForCausalLM,
        GraniteMoeSharedConfig,
        EXPERTS,
        num_local_experts=5,
        shared_intermediate_size=14,
        embedding_multiplier=12,
        attention_multiplier=0.15,
        residual_multiplier=0.22,
        logits_scaling=8.0,
        attention_bias=True,
        tie_word_embeddings=True,
    ),
    "granitemoeshared, none shared": case(
        GraniteMoeSharedForCausalLM, GraniteMoeSharedConfig, EXPERTS, num_local_experts=5, num_experts_per_tok=5
    ),
    "mpt": case(MptForCausalLM, MptConfig, MPT),
    "mpt, six heads, untied, scaled": case(
        MptForCausalLM,
        MptConfig,
        MPT,
        d_model=24,
        n_heads=6,
        tie_word_embeddings=False,
        layer_norm_epsilon=0.1,
        attn_config={"softmax_scale": 0.3},
    ),
    "glm": case(GlmForCausalLM, GlmConfig, GLM),
    "glm, no biases, tied, another part": case(
        GlmForCausalLM,
        GlmConfig,
        GLM,
        head_dim=12,
        attention_bias=False,
        tie_word_embeddings=True,
        hidden_act="gelu",
        rms_norm_eps=0.1,
        num_key_value_heads=4,
        rope_parameters=ROPE["linear"] | {"partial_rotary_factor": 0.34, "rope_theta": 500.0},
    ),
    "glm4": case(Glm4ForCausalLM, Glm4Config, GLM),
    "glm4, no biases, whole heads": case(
        Glm4ForCausalLM, Glm4Config, GLM, attention_bias=False, partial_rotary_factor=1.0, rms_norm_eps=0.1
    ),
    "exaone4": exaone4(),
    "exaone4, by a pattern, tied": exaone4(
        layer_types=None,
        sliding_window_pattern=2,
        tie_word_embeddings=True,
        hidden_act="gelu",
        rms_norm_eps=0.1,
        head_dim=8,
        rope_parameters=ROPE["llama3"],
    ),
    "exaone4, no window": exaone4(sliding_window=None, layer_types=[WHOLE] * 3, num_key_value_heads=4),
    "exaone4, no positions": exaone4(layer_types=[WHOLE] * 3),
    "exaone4, windows everywhere": exaone4(layer_types=[SLIDE] * 3),
    "nanochat": case(NanoChatForCausalLM, NanoChatConfig, MODERN),
    "nanochat, yarn": case(NanoChatForCausalLM, NanoChatConfig, MODERN, rope_parameters=ROPE["yarn, all said"]),
    "nanochat, biases, tied, no cap, gelu": case(
        NanoChatForCausalLM,
        NanoChatConfig,
        MODERN,
        attention_bias=True,
        tie_word_embeddings=True,
        final_logit_softcapping=None,
        hidden_act="gelu",
        rms_norm_eps=0.1,
        num_key_value_heads=4,
        head_dim=8,
        rope_parameters=ROPE["llama3"],
    ),
    "olmo2": case(Olmo2ForCausalLM, Olmo2Config, MODERN),
    "olmo2, biases, yarn, tied": case(
        Olmo2ForCausalLM,
        Olmo2Config,
        MODERN,
        attention_bias=True,
        rope_parameters=ROPE["yarn"],
        tie_word_embeddings=True,
        num_key_value_heads=None,
        head_dim=8,
        hidden_act="gelu",
    ),
    "olmo3": olmo3(layer_types=[SLIDE, WHOLE, SLIDE]),
    "olmo3, scaled": olmo3(rope_parameters=dict.fromkeys((SLIDE, WHOLE), ROPE["yarn"]), num_hidden_layers=4),
    "olmo3, two angles": olmo3(rope_scaling=ROPE["yarn"], layer_types=[SLIDE, WHOLE, SLIDE]),
    "olmo3, no window": olmo3(layer_types=[WHOLE] * 3, rope_theta=500.0),
    "gemma2": gemma(),
    "gemma2, other windows": gemma(layer_types=[WHOLE, WHOLE, SLIDE], attention_bias=True),
    "gemma2, a window everywhere": gemma(layer_types=[SLIDE] * 3),
    "gemma2, no window": gemma(layer_types=[WHOLE] * 3),
    "gemma2, no softcap, untied": gemma(
        attn_logit_softcapping=None, final_logit_softcapping=None, tie_word_embeddings=False
    ),
    "gemma3_text": gemma3(),
    "gemma3_text, both directions": gemma3(use_bidirectional_attention=True, attention_bias=True),
    "gemma3_text, by a pattern, capped, untied": gemma3(
        layer_types=None,
        sliding_window_pattern=2,
        final_logit_softcapping=3.0,
        tie_word_embeddings=False,
        rms_norm_eps=0.1,
        rope_local_base_freq=50.0,
        rope_theta=700.0,
        rope_scaling=ROPE["linear"],
    ),
    "gemma3_text, tables": gemma3(rope_parameters={SLIDE: ROPE["llama3"] | {"rope_theta": 9.0}, WHOLE: ROPE["theta"]}),
    "gemma3_text, a window everywhere": gemma3(layer_types=[SLIDE] * 3, hidden_activation="silu"),
    "gemma3_text, no window": gemma3(layer_types=[WHOLE] * 3),
    "smollm3": smollm3(num_hidden_layers=4),
    "smollm3, every other, biases, untied, yarn": smollm3(
        no_rope_layer_interval=2,
        attention_bias=True,
        mlp_bias=True,
        tie_word_embeddings=False,
        num_key_value_heads=None,
        hidden_act="gelu",
        rms_norm_eps=0.1,
        rope_parameters=ROPE["yarn"],
    ),
    "smollm3, these, windows": smollm3(no_rope_layers=[0, 1, 0, 1], use_sliding_window=True, sliding_window=3),
    "smollm3, windows elsewhere": smollm3(
        no_rope_layers=[0, 1, 1], use_sliding_window=True, sliding_window=3, layer_types=[WHOLE, SLIDE, WHOLE]
    ),
    "smollm3, positions everywhere": smollm3(no_rope_layers=[1] * 3, rope_theta=500.0),
    "smollm3, positions nowhere": smollm3(no_rope_layers=[0] * 3),
    "gpt_neox": neox(),
    "gpt_neox, one after the other": neox(use_parallel_residual=False, attention_bias=False),
    "gpt_neox, tied, another part": neox(
        tie_word_embeddings=True, rope_parameters={"rope_theta": 500.0, "partial_rotary_factor": 0.5}
    ),
    "gpt_neox, linear": neox(rope_parameters=ROPE["linear"]),
    "phi3": phi3(sliding_window=4, rms_norm_eps=0.1, rope_parameters=ROPE["theta"]),
    "phi3, tied, no groups, a part read short": phi3(
        tie_word_embeddings=True,
        num_key_value_heads=None,
        hidden_act="gelu",
        original_max_position_embeddings=10,
        rope_parameters={**ROPE["longrope, read short"], **PART},
    ),
    "phi3, a part read long": phi3(
        original_max_position_embeddings=9, rope_parameters={**ROPE["longrope, read long"], **PART}
    ),
    "stablelm": case(StableLmForCausalLM, StableLmConfig, STABLE),
    "stablelm, side by side, tied, biases, linear": case(
        StableLmForCausalLM,
        StableLmConfig,
        STABLE,
        use_parallel_residual=True,
        use_qkv_bias=True,
        qk_layernorm=True,
        tie_word_embeddings=True,
        hidden_act="gelu",
        layer_norm_eps=0.1,
        rope_parameters=ROPE["linear"] | {"rope_theta": 500.0, "partial_rotary_factor": 0.5},
    ),
    "starcoder2": case(Starcoder2ForCausalLM, Starcoder2Config, MODERN, sliding_window=4),
    "starcoder2, no biases, untied, wide heads, yarn": case(
        Starcoder2ForCausalLM,
        Starcoder2Config,
        MODERN,
        use_bias=False,
        tie_word_embeddings=False,
        num_key_value_heads=4,
        head_dim=8,
        hidden_act="relu",
        norm_epsilon=0.1,
        rope_parameters=ROPE["yarn"] | {"rope_theta": 500.0},
    ),
    "codegen": case(CodeGenForCausalLM, CodeGenConfig, GPTJ, n_head=8),
    "codegen, whole heads, tied, relu": case(
        CodeGenForCausalLM,
        CodeGenConfig,
        GPTJ,
        rotary_dim=8,
        tie_word_embeddings=True,
        activation_function="relu",
        n_inner=20,
        layer_norm_epsilon=0.1,
    ),
    "falcon": falcon(),
    "falcon, one after the other": falcon(parallel_attn=False, multi_query=False, bias=True, ffn_hidden_size=20),
    "falcon, new": falcon(new_decoder_architecture=True, num_kv_heads=2, tie_word_embeddings=False),
    "falcon, new, one norm": falcon(
        new_decoder_architecture=True, num_kv_heads=2, num_ln_in_parallel_attn=1, bias=True
    ),
    "gptj": case(GPTJForCausalLM, GPTJConfig, GPTJ),
    "gptj, whole heads, relu": case(
        GPTJForCausalLM, GPTJConfig, GPTJ, rotary_dim=8, activation_function="relu", n_inner=20
    ),
    "bloom": case(BloomForCausalLM, BloomConfig, BLOOM),
    "bloom, untied, six heads": case(
        BloomForCausalLM, BloomConfig, BLOOM, hidden_size=24, n_head=6, tie_word_embeddings=False
    ),
}


def theirs(name: str) -> nn.Module:
    """Random, and far enough from zero that attention is not uniform and biases matter."""
    model = CASES[name]()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter), alpha=0.2)
    model.set_attn_implementation("eager")
    return model.eval()


def assert_equal(checkpoint: Checkpoint, model: nn.Module) -> None:
    trace = run(checkpoint.model, IDS)
    with torch.no_grad():
        expected = model(IDS, output_attentions=True, output_hidden_states=True)
    torch.testing.assert_close(trace["logits"], expected.logits, atol=1e-4, rtol=0)
    torch.testing.assert_close(trace.stack("attn.pattern"), torch.stack(expected.attentions), atol=1e-5, rtol=0)
    hidden = [*trace.stack("resid_pre"), trace["final_norm.out"]]
    for ours, other in zip(hidden, expected.hidden_states, strict=True):
        torch.testing.assert_close(ours, other, atol=1e-4, rtol=1e-5)


@pytest.mark.parametrize("name", CASES)
def test_read_from_and_written_to_the_same_files_it_is_the_same_model(name: str, tmp_path: Path) -> None:
    model = theirs(name)
    model.save_pretrained(tmp_path / "theirs")
    ours = load(tmp_path / "theirs")
    assert ours.report.ok
    assert_equal(ours, model)

    ours.save(tmp_path / "ours")
    written = json.loads((tmp_path / "ours" / "config.json").read_text())
    assert written["model_type"] in (model.config.model_type, "llama")  # a Mistral without windows is a Llama
    again, loading = AutoModelForCausalLM.from_pretrained(tmp_path / "ours", output_loading_info=True)
    assert not any(loading.values())
    with torch.no_grad():
        torch.testing.assert_close(again.eval()(IDS).logits, model(IDS).logits, atol=1e-5, rtol=1e-5)
    assert canonical_config(load(tmp_path / "ours").config) == canonical_config(ours.config)


def test_letters_say_which_layers_of_an_exaone_have_a_window() -> None:
    """As published, where transformers' class reads layer_types alone; the last layer has none in any case."""
    sizes = {**MODERN, "num_hidden_layers": 5, "sliding_window": 4}
    lettered, listed = (
        FAMILIES["exaone4"][0].read_config({**sizes, **said})
        for said in ({"sliding_window_pattern": "LLG"}, {"layer_types": [SLIDE, SLIDE, WHOLE, SLIDE, WHOLE]})
    )
    assert lettered == listed and listed.attention.windowed == (0, 1, 3)


def rewritten(folder: Path, **changes: Any) -> None:
    """config.json as an older version wrote it: keys changed, and left out where the value is `...`."""
    path = folder / "config.json"
    config = {**json.loads(path.read_text()), **changes}
    path.write_text(json.dumps({key: value for key, value in config.items() if value is not ...}))


@pytest.mark.parametrize("name", [f"llama, {name}" for name in ROPE])
def test_what_transformers_4_wrote_is_the_same_model(name: str, tmp_path: Path) -> None:
    model = theirs(name)
    model.save_pretrained(tmp_path)
    rope = dict(model.config.rope_parameters)
    theta, kind = rope.pop("rope_theta"), rope.pop("rope_type")
    old = None if kind == "default" else {"type": kind, **rope}
    rewritten(tmp_path, rope_parameters=..., rope_scaling=old, rope_theta=theta)
    assert_equal(load(tmp_path), model)


def test_pythia_as_it_is_published(tmp_path: Path) -> None:
    """With the keys and the buffers of its time."""
    model = theirs("gpt_neox, tied, another part")
    model.save_pretrained(tmp_path)
    rewritten(tmp_path, rope_parameters=..., rotary_emb_base=500, rotary_pct=0.5, attention_bias=...)
    state = load_file(tmp_path / "model.safetensors")
    (tmp_path / "model.safetensors").unlink()
    for layer in range(2):
        name = f"gpt_neox.layers.{layer}.attention."
        state[name + "bias"] = torch.ones(1, 1, 32, 32).tril()
        state[name + "masked_bias"] = torch.tensor(-1e9)
        state[name + "rotary_emb.inv_freq"] = 500 ** -(torch.arange(0, 4, 2) / 4)
    torch.save(state, tmp_path / "pytorch_model.bin")
    checkpoint = load(tmp_path)
    assert len(checkpoint.report.rows_with("dropped")) == 6
    assert checkpoint.report.ok
    assert_equal(checkpoint, model)


def test_a_neox_head_may_have_either_of_its_names(tmp_path: Path) -> None:
    model = theirs("gpt_neox")
    model.config.save_pretrained(tmp_path)
    torch.save(model.state_dict(), tmp_path / "pytorch_model.bin")
    assert "lm_head.weight" in model.state_dict()
    assert_equal(load(tmp_path), model)


@pytest.mark.parametrize("name", ["llama, dynamic", "llama, longrope, read short"])
def test_a_scaling_that_looks_at_the_length_does_so_beyond_the_trained_positions(name: str, tmp_path: Path) -> None:
    model = theirs(name)
    model.save_pretrained(tmp_path)
    checkpoint = load(tmp_path)
    length = 70 if "dynamic" in name else 30
    ids = torch.arange(length)[None] % 40
    with torch.no_grad():
        expected = model(ids).logits
    torch.testing.assert_close(run(checkpoint.model, ids, keep="logits")["logits"], expected, atol=1e-4, rtol=0)


@pytest.mark.parametrize(
    "name",
    [
        "llama",
        "mistral",
        "starcoder2",
        "stablelm",
        "qwen3, biases and windows",
        "gemma2",
        "gpt_neox",
        "phi3",
        "codegen",
        "gptj",
        "bloom",
        "olmo",
        "cohere",
        "cohere2",
        "granite, every multiplier",
        "granitemoeshared",
        "mpt",
        "glm",
        "glm4",
        "exaone4",
        "nanochat",
        "olmo2",
        "olmo3",
        "olmo3, two angles",
        "gemma3_text",
        "smollm3",
        "smollm3, these, windows",
        "falcon, new",
        "mixtral",
        "qwen2_moe",
        "gpt_oss",
        "deepseek_v2",
        "deepseek_v3",
        "glm4_moe",
    ],
)
def test_greedy_generation_equals_transformers(name: str, tmp_path: Path) -> None:
    model = theirs(name)
    model.save_pretrained(tmp_path)
    ids = IDS[:1]
    steps = list(generate(load(tmp_path), ids, 8, greedy=True, stop_at_end=False))
    with torch.no_grad():
        other = model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=8, do_sample=False)
    assert [step.id for step in steps] == other[0, ids.shape[1] :].tolist()


@pytest.mark.parametrize(
    ("name", "changes", "message"),
    [
        ("llama", {"rope_parameters": {"rope_type": "ntk"}}, "rope_type must be one of default, linear, .*, got 'ntk'"),
        ("llama", {"rope_parameters": {"rope_type": "linear"}}, "factor must be there, without which linear"),
        ("qwen3", {"rope_parameters": {WHOLE: {"rope_theta": 500.0}}}, "rope_parameters must be one table for all"),
        ("llama", {"rope_parameters": {**ROPE["yarn"], "truncate": 1}}, "truncate must be true or false, got 1"),
        ("llama", {"rope_parameters": {"partial_rotary_factor": 0.5}}, "partial_rotary_factor must be 1 .*, got 0.5"),
        ("llama", {"rope_parameters": {**ROPE["yarn"], "factor": "x"}}, r"rope_parameters\.factor must be a number ab"),
        (
            "llama",
            {"rope_parameters": {**ROPE["longrope, read long"], "long_factor": [1.0]}},
            r"positions.scaling.long must be 3 numbers above 0, got \[1.0\]",
        ),
        ("llama", {"num_attention_heads": 5}, "num_attention_heads must divide 24, got 5"),
        ("llama", {"hidden_act": "mish"}, "hidden_act must be one of .*, got 'mish'"),
        ("qwen2", {"layer_types": [SLIDE]}, "layer_types must be 3 words, one per layer, each sliding_"),
        ("qwen3", {"layer_types": ["chunked_attention"] * 3}, "layer_types must be 3 words"),
        ("gemma2", {"use_bidirectional_attention": True}, "use_bidirectional_attention must be false"),
        ("olmo3", {"rope_parameters": {"rope_theta": 500.0}}, "rope_parameters must hold one table a kind of l"),
        ("gemma3_text", {"rope_parameters": {WHOLE: {"rope_type": "ntk"}}}, "rope_type must be one of .*, got 'ntk'"),
        ("gemma3_text", {"layer_types": [SLIDE]}, "layer_types must be 3 words"),
        ("gemma3_text", {"rope_parameters": {SLIDE: {"rope_theta": 0}}}, "rope_theta must be a number above 0, got 0"),
        ("smollm3", {"no_rope_layers": [1]}, "no_rope_layers must be 4 numbers, one per layer, each 1 or 0, got 1 num"),
        ("smollm3", {"no_rope_layers": [1, 2, 0, 1]}, "one per layer, each 1 or 0, got 4 numbers"),
        ("bloom", {"apply_residual_connection_post_layernorm": True}, "_post_layernorm must be False, got T"),
        ("phi3", {"rope_scaling": {"type": "linear", "factor": 2.0}}, "rope_type must be one of .*, got 'linear'"),
        ("codegen", {"n_head": 2}, "n_head must be a multiple of 4 in a codegen, got 2"),
        ("falcon", {"alibi": True}, "alibi must be False, got True: Loupe has"),
        ("falcon", {"new_decoder_architecture": True}, "norms of a Falcon must be called as"),
        ("falcon", {"num_ln_in_parallel_attn": 2}, "must fit new_decoder_architecture False"),
        (
            "mixtral",
            {"num_experts_per_tok": 6},
            "mlp.experts.used must be at most 5, .* got 6.* num_experts_per_tok",
        ),
        ("olmo", {"clip_qkv": 8.0}, "clip_qkv must be None, got 8.0: Loupe has no such model"),
        ("cohere", {"logit_scale": 0}, "logit_scale must be a number above 0, got 0"),
        ("cohere2", {"layer_types": [SLIDE]}, "layer_types must be 3 words, one per layer"),
        ("granite", {"residual_multiplier": 0}, "residual_multiplier must be a number above 0, got 0"),
        ("mpt", {"attn_config": {"alibi": False}}, "attn_config.alibi must be True, got False: Loupe has no such"),
        ("mpt", {"attn_config": {"softmax_scale": 0}}, "attn_config.softmax_scale must be a number above 0, got 0"),
        ("mpt", {"norm_type": "rmsnorm"}, "norm_type must be one of low_precision_layernorm, layernorm, got 'rmsnorm'"),
        ("mpt", {"expansion_ratio": 2}, "expansion_ratio must be 4, got 2"),
        ("glm4", {"partial_rotary_factor": 2}, "partial_rotary_factor must be a number above 0 and at most 1, got 2"),
        (
            "exaone4",
            {"sliding_window_pattern": "LX", "layer_types": None},
            "sliding_window_pattern must be .* L and G, got",
        ),
        ("exaone4", {"layer_types": [SLIDE]}, "layer_types must be 3 words, one per layer"),
        ("olmoe", {"clip_qkv": 8.0}, "clip_qkv must be None, got 8.0: Loupe has no such model"),
        ("gptj", {"rotary_dim": 10}, "positions.turned must be even and at most 8, got 10"),
    ],
)
def test_what_loupe_cannot_represent_is_refused_with_its_name_and_value(
    name: str, changes: dict[str, Any], message: str, tmp_path: Path
) -> None:
    theirs(name).save_pretrained(tmp_path)
    rewritten(tmp_path, **changes)
    with pytest.raises(ValueError, match=message):
        load(tmp_path)


@pytest.mark.parametrize(
    ("config", "family"),
    [
        (tiny.config("rotary", norm=tiny.Norm("rms"), mlp=tiny.MLP(20, "silu", gated=True)), "llama"),
        (
            tiny.config(
                "rotary",
                norm=tiny.Norm("rms"),
                mlp=tiny.MLP(20, "silu", gated=True, bias=False, experts=Experts(4, 2)),
                attention={"bias": False, "out_bias": False},
            ),
            "mixtral",
        ),
        (tiny.config("rotary", sublayers="parallel"), "gpt_neox"),
        (tiny.config("rotary", norm=tiny.Norm("rms")), "loupe"),
    ],
)
def test_a_model_of_our_own_is_saved_in_the_family_that_expresses_it(config, family: str, tmp_path: Path) -> None:
    model = tiny.model(config)
    Checkpoint(model).save(tmp_path)
    assert json.loads((tmp_path / "config.json").read_text())["model_type"] == family
    torch.testing.assert_close(run(load(tmp_path).model, tiny.IDS)["logits"], run(model, tiny.IDS)["logits"])
    if family != "loupe":
        with torch.no_grad():
            logits = AutoModelForCausalLM.from_pretrained(tmp_path).eval()(torch.tensor([tiny.IDS])).logits
        torch.testing.assert_close(run(model, tiny.IDS)["logits"], logits, atol=1e-4, rtol=1e-5)


def test_every_family_here_is_known() -> None:
    assert {name.partition(",")[0] for name in CASES} <= FAMILIES.keys()
