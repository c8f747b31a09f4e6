"""What the metadata of a GGUF file say of the model, in the words of config.json.

An architecture is a line: the family of transformers' that it is, and what it says besides what all say. The names are
those of llama.cpp.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import prod
from typing import Any

import torch

from engine.checkpoints.weights import Weights
from engine.model.config import Pooling, TextVector
from engine.plurals import count_words

Table = dict[str, Any]
TOKENS = "tokenizer.ggml.tokens"
COMMON = {
    "block_count": "num_hidden_layers",
    "context_length": "max_position_embeddings",
    "embedding_length": "hidden_size",
    "feed_forward_length": "intermediate_size",
    "attention.head_count": "num_attention_heads",
    "attention.head_count_kv": "num_key_value_heads",
}
RMS, LAYER = "attention.layer_norm_rms_epsilon", "attention.layer_norm_epsilon"
THETA = 10_000.0  # where a file says nothing (llama.cpp's default)
SIGMOID = 2  # of expert_gating_func, where 1 is softmax
POOLED: Mapping[int, Pooling] = {1: "mean", 2: "first", 3: "last"}  # pooling_type, where 0 is none
SHARED = "expert_shared_feed_forward_length"
LOG_MULTIPLIER = "rope.scaling.yarn_log_multiplier"


@dataclass(frozen=True)
class Said:
    """Metadata of a file, by names without its architecture's."""

    table: Table
    weights: Weights

    def __getitem__(self, name: str) -> Any:
        return self.table.get(name)

    def has(self, *names: str) -> bool:
        return any(name in self.weights for name in names)

    def size(self, *names: str) -> int:
        """The first of these that the file says. Raises ValueError where it says none."""
        name = next((one for one in names if self[one] is not None), names[-1])
        return one_number(name, self[name])

    @property
    def head_size(self) -> int:
        if self["attention.key_length"]:
            return self.size("attention.key_length")
        return self.size("embedding_length") // self.size("attention.head_count")


@dataclass(frozen=True)
class Architecture:
    """`family` is transformers' model_type, or a function of what is said, `keys` are names of the file by those of
    config.json, and `more` are other keys of config.json. What is an encoder is read as
    transformers' class that `encoder` has for its family."""

    family: str | Callable[[Said], str]
    keys: Mapping[str, str] = field(default_factory=dict)
    more: Callable[[Said], Table] = lambda said: {}
    encoder: Mapping[str, str] = field(default_factory=dict)


def of_heads(said: Said) -> Table:
    return {"head_dim": said.head_size}


def of_llama(said: Said) -> Table:
    biased = said.has("blk.0.attn_q.bias")
    return of_heads(said) | {"attention_bias": biased, "mlp_bias": said.has("blk.0.ffn_up.bias")}


def of_experts(said: Said) -> Table:
    return {"moe_intermediate_size": said["expert_feed_forward_length"] or said["feed_forward_length"]}


def of_qwen3(said: Said) -> Table:
    return of_heads(said) | {"attention_bias": said.has("blk.0.attn_q.bias")}


def of_qwen3_experts(said: Said) -> Table:
    return of_qwen3(said) | of_experts(said) | {"norm_topk_prob": True, "decoder_sparse_step": 1, "mlp_only_layers": []}


def of_qwen2_experts(said: Said) -> Table:
    return of_experts(said) | {"norm_topk_prob": False, "decoder_sparse_step": 1, "mlp_only_layers": []}


def of_gemma(said: Said, wide_layers: int = 0) -> Table:
    """The larger Gemmas divide scores by the size of a head as if all heads made the width, and no file says so."""
    apart = said["block_count"] == wide_layers
    scale = said.size("embedding_length") // said.size("attention.head_count") if apart else said.head_size
    return of_heads(said) | {"query_pre_attn_scalar": scale, "hidden_activation": "gelu_pytorch_tanh"}


def of_gemma3(said: Said) -> Table:
    own = of_gemma(said, 62) | {"final_logit_softcapping": None, "attn_logit_softcapping": None}
    return own | {"rope_local_base_freq": THETA}


def of_parts_of_heads(name: str) -> Callable[[Said], Table]:
    """Tells which share of a head is turned, as `name`."""
    turned = "rope.dimension_count"
    return lambda said: {name: (said.size(turned) if said[turned] else said.head_size) / said.head_size}


def of_neox(said: Said) -> Table:
    turned = of_parts_of_heads("rotary_pct")(said)
    theta = said["rope.freq_base"] or THETA
    return {**turned, "rotary_emb_base": theta, "use_parallel_residual": said["use_parallel_residual"] is not False}


def of_falcon(said: Said) -> Table:
    """Falcon's second architecture has norms of its own for attention and MLP."""
    heads, keys = said["attention.head_count"], said["attention.head_count_kv"] or 1
    new = said.has("blk.0.attn_norm_2.weight") or keys not in (1, heads)
    return {
        "new_decoder_architecture": new, "multi_query": keys == 1, "num_kv_heads": keys, "alibi": False,
        "parallel_attn": True, "bias": said.has("blk.0.attn_qkv.bias"), "ffn_hidden_size": said["feed_forward_length"],
        "num_ln_in_parallel_attn": 2 if said.has("blk.0.attn_norm_2.weight") else 1,
    }  # fmt: skip


def of_stablelm(said: Said) -> Table:
    return of_parts_of_heads("partial_rotary_factor")(said) | {
        "use_qkv_bias": said.has("blk.0.attn_q.bias"), "use_parallel_residual": not said.has("blk.0.ffn_norm.weight"),
        "qk_layernorm": said.has("blk.0.attn_q_norm.weight"), "layer_norm_eps": said[LAYER],
    }  # fmt: skip


def of_mpt(said: Said) -> Table:
    own = {
        "alibi": True,
        "alibi_bias_max": said["attention.max_alibi_bias"] or 8,
        "clip_qkv": said["attention.clamp_kqv"],
    }
    return {"attn_config": own, "no_bias": True, "d_model": said["embedding_length"], "expansion_ratio": 4}


def of_phi3(said: Said) -> Table:
    found: dict[str, Any] = {"resid_pdrop": 0.0}
    original = said["rope.scaling.original_context_length"]
    if said.has("rope_factors_long.weight"):
        long, short = (said.weights[f"rope_factors_{one}.weight"].tolist() for one in ("long", "short"))
        found["rope_scaling"] = {"type": "longrope", "long_factor": long, "short_factor": short}
        found["original_max_position_embeddings"] = original
    return found | of_parts_of_heads("partial_rotary_factor")(said)


def of_granite(said: Said) -> Table:
    return of_llama(said) | {
        "embedding_multiplier": said["embedding_scale"] or 1.0, "residual_multiplier": said["residual_scale"] or 1.0,
        "attention_multiplier": said["attention.scale"] or said.head_size**-0.5,
        "logits_scaling": said["logit_scale"] or 1.0,
    }  # fmt: skip


def of_starcoder2(said: Said) -> Table:
    return {"norm_epsilon": said[LAYER], "use_bias": said.has("blk.0.attn_q.bias"), "hidden_act": "gelu_pytorch_tanh"}


def of_smollm3(said: Said) -> Table:
    every = 4  # of whose layers the last is not turned, which no file says
    layers = said.size("block_count")
    turned = [int((layer + 1) % every != 0) for layer in range(layers)]
    return of_llama(said) | {"no_rope_layers": turned, "layer_types": ["full_attention"] * layers}


def read_layer_types(said: Said) -> Table:
    """Which layers have a window, which a file says of each layer."""
    slides = said["attention.sliding_window_pattern"]
    if not isinstance(slides, list):
        return {}
    return {"layer_types": ["sliding_attention" if one else "full_attention" for one in slides]}


def of_exaone4(said: Said) -> Table:
    return of_heads(said) | read_layer_types(said) | {"sliding_window": said["attention.sliding_window"]}


def of_gpt_oss(said: Said) -> Table:
    """The ramp of its YaRN is not rounded to whole components, which no file says."""
    scaling = read_rotary(said).get("rope_scaling")
    rotary = (
        {"rope_scaling": {**scaling, "truncate": False}} if scaling else {"rope_parameters": {"rope_type": "default"}}
    )
    return of_heads(said) | read_layer_types(said) | rotary


def of_routed(said: Said) -> Table:
    """Experts with shared ones beside them, behind layers that have none."""
    groups, first = said["expert_group_count"] or 1, said["leading_dense_block_count"] or 0
    return {
        "n_routed_experts": said["expert_count"], "num_experts_per_tok": said["expert_used_count"],
        "moe_intermediate_size": said["expert_feed_forward_length"], "first_k_dense_replace": first,
        "n_shared_experts": said["expert_shared_count"], "norm_topk_prob": bool(said["expert_weights_norm"]),
        "routed_scaling_factor": said["expert_weights_scale"] or 1.0, "n_group": groups,
        "topk_group": said["expert_group_used_count"] or 1,
        "topk_method": "greedy" if groups == 1 else "group_limited_greedy",
    }  # fmt: skip


def of_glm4_moe(said: Said) -> Table:
    """The last of a file's layers may be one that guesses a second token ahead, which is not read."""
    ahead = said.size("nextn_predict_layers") if said["nextn_predict_layers"] else 0
    layers = one_number("block_count without those that guess ahead", said.size("block_count") - ahead)
    own = {"num_hidden_layers": layers, "use_qk_norm": said.has("blk.0.attn_q_norm.weight")}
    biased = {"attention_bias": said.has("blk.0.attn_q.bias")}
    return of_routed(said) | of_heads(said) | of_parts_of_heads("partial_rotary_factor")(said) | own | biased


def of_deepseek2(said: Said) -> Table:
    """Sizes of heads are those of keys and values as they are multiplied, which newer files call `_mla`: without it
    they say there what is cached."""
    turned = said.size("rope.dimension_count")
    width = said.size("attention.key_length_mla", "attention.key_length")
    found = of_routed(said) | {
        "num_key_value_heads": said["attention.head_count"], "kv_lora_rank": said["attention.kv_lora_rank"],
        "q_lora_rank": said["attention.q_lora_rank"], "qk_rope_head_dim": turned, "qk_nope_head_dim": width - turned,
        "v_head_dim": said.size("attention.value_length_mla", "attention.value_length"),
    }  # fmt: skip
    scaling, more = read_rotary(said).get("rope_scaling"), said[LOG_MULTIPLIER]
    if scaling and isinstance(more, float) and more:
        scale = round(10 * more, 6)
        found["rope_scaling"] = {**scaling, "mscale": scale, "mscale_all_dim": scale}
    return found


def count_segments(said: Said) -> Table:
    return {"type_vocab_size": said.weights.shapes.get("token_types.weight", (0,))[0]}


def of_modern_bert(said: Said) -> Table:
    every = said["attention.sliding_window_pattern"]
    return read_layer_types(said) | {
        "global_rope_theta": said["rope.freq_base"] or THETA, "local_rope_theta": said["rope.freq_base_swa"] or THETA,
        "norm_bias": said.has("output_norm.bias"), "attention_bias": said.has("blk.0.attn_qkv.bias"),
        "mlp_bias": said.has("blk.0.ffn_up.bias"),
    } | ({"global_attn_every_n_layers": every} if isinstance(every, int) else {})  # fmt: skip


def of_t5(said: Said) -> Table:
    """What an MLP activates by is not said: those with a gate have GELU, those without ReLU, as in llama.cpp."""
    mlp = "gated-gelu" if said.has("enc.blk.0.ffn_gate.weight") else "relu"
    return of_heads(said) | {"layer_norm_epsilon": said[RMS] or said[LAYER], "feed_forward_proj": mlp}


EXPERTS = {"num_experts": "expert_count", "num_experts_per_tok": "expert_used_count"}
OF_RMS = {"rms_norm_eps": RMS}
WINDOW = {"sliding_window": "attention.sliding_window"}
OF_T5 = {
    "n_positions": "context_length", "d_ff": "feed_forward_length", "num_decoder_layers": "decoder_block_count",
    "relative_attention_num_buckets": "attention.relative_buckets_count",
    "decoder_start_token_id": "decoder_start_token_id",
}  # fmt: skip
ARCHITECTURES: Mapping[str, Architecture] = {
    "llama": Architecture(
        lambda said: "mixtral" if said["expert_count"] else "llama",
        {**OF_RMS, "num_local_experts": "expert_count", "num_experts_per_tok": "expert_used_count"},
        of_llama,
    ),
    "qwen2": Architecture("qwen2", OF_RMS),
    "qwen2moe": Architecture(
        "qwen2_moe",
        {**OF_RMS, **EXPERTS, "shared_expert_intermediate_size": SHARED},
        of_qwen2_experts,
    ),
    "qwen3": Architecture("qwen3", OF_RMS, of_qwen3),
    "qwen3moe": Architecture("qwen3_moe", {**OF_RMS, **EXPERTS}, of_qwen3_experts),
    "gemma": Architecture("gemma", OF_RMS, of_gemma),
    "gemma2": Architecture(
        "gemma2",
        {**OF_RMS, **WINDOW, "attn_logit_softcapping": "attn_logit_softcapping",
         "final_logit_softcapping": "final_logit_softcapping"},
        lambda said: of_gemma(said, 46),
    ),
    "gemma3": Architecture("gemma3_text", {**OF_RMS, **WINDOW}, of_gemma3),
    "phi2": Architecture("phi", {"layer_norm_eps": LAYER}, of_parts_of_heads("partial_rotary_factor")),
    "phi3": Architecture("phi3", {**OF_RMS, **WINDOW}, of_phi3),
    "gpt2": Architecture("gpt2", {"layer_norm_epsilon": LAYER, "n_inner": "feed_forward_length"}),
    "gptneox": Architecture("gpt_neox", {"layer_norm_eps": LAYER}, of_neox),
    "falcon": Architecture("falcon", {"layer_norm_epsilon": LAYER}, of_falcon),
    "bloom": Architecture("bloom", {"layer_norm_epsilon": LAYER, "seq_length": "context_length"}),
    "mpt": Architecture("mpt", {"layer_norm_epsilon": LAYER}, of_mpt),
    "starcoder2": Architecture("starcoder2", WINDOW, of_starcoder2),
    "stablelm": Architecture("stablelm", {}, of_stablelm),
    "olmo": Architecture("olmo", {"clip_qkv": "attention.clamp_kqv"}),
    "olmo2": Architecture(
        lambda said: "olmo3" if said["attention.sliding_window"] else "olmo2", {**OF_RMS, **WINDOW}, read_layer_types
    ),
    "olmoe": Architecture("olmoe", {**OF_RMS, **EXPERTS}, lambda said: {"norm_topk_prob": False}),
    "command-r": Architecture("cohere", {"layer_norm_eps": LAYER, "logit_scale": "logit_scale"}),
    "granite": Architecture("granite", OF_RMS, of_granite),
    "granitemoe": Architecture(
        lambda said: "granitemoeshared" if said[SHARED] else "granitemoe",
        {**OF_RMS, "shared_intermediate_size": SHARED,
         "num_local_experts": "expert_count", "num_experts_per_tok": "expert_used_count"},
        of_granite,
    ),
    "smollm3": Architecture("smollm3", OF_RMS, of_smollm3),
    "cohere2": Architecture("cohere2", {"layer_norm_eps": LAYER, "logit_scale": "logit_scale", **WINDOW}, of_heads),
    "glm4": Architecture(
        "glm4", OF_RMS, lambda said: of_parts_of_heads("partial_rotary_factor")(said) | of_heads(said)
        | {"attention_bias": said.has("blk.0.attn_q.bias")},
    ),
    "exaone4": Architecture("exaone4", OF_RMS, of_exaone4),
    "gpt-oss": Architecture(
        "gpt_oss",
        {**OF_RMS, **WINDOW, "num_local_experts": "expert_count", "num_experts_per_tok": "expert_used_count",
         "intermediate_size": "expert_feed_forward_length"},
        of_gpt_oss,
    ),
    "deepseek2": Architecture(
        lambda said: "deepseek_v3" if said["expert_gating_func"] == SIGMOID else "deepseek_v2",
        OF_RMS,
        of_deepseek2,
    ),
    "glm4moe": Architecture("glm4_moe", OF_RMS, of_glm4_moe),
    "bert": Architecture(
        lambda said: "bert" if said.has("token_types.weight") else "distilbert", {"layer_norm_eps": LAYER},
        lambda said: count_segments(said) | {"hidden_dim": said["feed_forward_length"]},
        {"bert": "BertModel", "distilbert": "DistilBertModel"},
    ),
    "nomic-bert": Architecture(
        "nomic_bert", {"layer_norm_eps": LAYER}, count_segments, {"nomic_bert": "NomicBertModel"}
    ),
    "modern-bert": Architecture(
        "modernbert", {"norm_eps": LAYER, "local_attention": "attention.sliding_window"}, of_modern_bert,
        {"modernbert": "ModernBertModel"},
    ),
    "t5": Architecture("t5", OF_T5, of_t5),
    "t5encoder": Architecture("t5", OF_T5, of_t5, {"t5": "T5EncoderModel"}),
}  # fmt: skip


def read_settings(weights: Weights) -> dict[str, Any]:
    """config.json of what the file says. Raises ValueError, in one sentence, for an architecture that Loupe does not
    open and for sizes that are absent or none."""
    metadata = weights.settings or {}
    name = metadata.get("general.architecture")
    if not isinstance(name, str) or name not in ARCHITECTURES:
        known = ", ".join(ARCHITECTURES)
        raise ValueError(f"general.architecture must be one that Loupe opens ({known}), got {name!r:.80}.")
    said = Said({key.removeprefix(f"{name}."): value for key, value in metadata.items()}, weights)
    found: dict[str, Any] = {}
    for key, theirs in COMMON.items():
        found[key] = one_number(f"{name}.{key}", said[key]) if said[key] is not None else None
        found[theirs] = found.pop(key)
    lacking = [key for key, theirs in COMMON.items() if found[theirs] is None and key != "attention.head_count_kv"]
    if lacking:
        raise ValueError(f"the file must say {name}.{lacking[0]}, and does not; convert the model again.")
    chosen = ARCHITECTURES[name]
    family = chosen.family if isinstance(chosen.family, str) else chosen.family(said)
    found = {key: value for key, value in found.items() if value is not None}
    found |= {
        "model_type": family,
        "vocab_size": count_tokens(said),
        "tie_word_embeddings": "output.weight" not in weights,
    }
    found |= {"architectures": [chosen.encoder[family]]} if chosen.encoder else {}
    found |= read_rotary(said)
    found |= {key: said[theirs] for key, theirs in chosen.keys.items() if said[theirs] is not None}
    found |= chosen.more(said)
    for role in ("bos", "eos"):
        id = metadata.get(f"tokenizer.ggml.{role}_token_id")
        found |= {} if id is None else {f"{role}_token_id": id}
    return found


def read_vector(weights: Weights) -> TextVector | None:
    """The vector that an embedding model makes of a text, which llama.cpp divides by its length."""
    metadata = weights.settings or {}
    kind = metadata.get(f"{metadata.get('general.architecture')}.pooling_type")
    return TextVector((POOLED[kind],), unit=True) if isinstance(kind, int) and kind in POOLED else None


def one_number(name: str, value: Any) -> int:
    """A size that may stand for each layer by itself. Raises ValueError for layers of several sizes."""
    values = value if isinstance(value, list) else [value]
    if not values or not all(isinstance(one, int) and not isinstance(one, bool) and one > 0 for one in values):
        raise ValueError(f"{name} must be a whole number above 0, got {value!r:.60}.")
    if len(set(values)) > 1:
        raise ValueError(f"{name} must be the same in every layer, got {count_words(len(set(values)), 'size')}.")
    return int(values[0])


def count_tokens(said: Said) -> int:
    """Rows of the table of tokens."""
    shape = said.weights.shapes.get("token_embd.weight")
    if shape is None or len(shape) != 2:
        raise ValueError("the file must hold token_embd.weight, a table with a row for each token, and does not.")
    return shape[0]


def read_rotary(said: Said) -> dict[str, Any]:
    found: dict[str, Any] = {"rope_theta": said["rope.freq_base"] or THETA}
    kind, factor = said["rope.scaling.type"], said["rope.scaling.factor"]
    original = said["rope.scaling.original_context_length"]
    if "rope_freqs.weight" in said.weights:
        found["rope_scaling"] = read_llama3(said)
    elif kind in ("linear", "yarn") and factor:
        found["rope_scaling"] = {"type": kind, "factor": factor}
        found["rope_scaling"] |= {"original_max_position_embeddings": original} if original else {}
    return found


def read_llama3(said: Said) -> dict[str, Any]:
    """Llama 3's scaling, of which a file holds only what each frequency is divided by. Raises ValueError where no usual
    setting makes these."""
    factors = said.weights["rope_freqs.weight"].double()
    base = said["rope.freq_base"] or THETA
    size = 2 * len(factors)
    waves = 2 * torch.pi * base ** (torch.arange(0, size, 2, dtype=torch.float64) / size)
    most = round(float(factors.max()), 4)
    for original in (8192, 4096, 16384, 32768):
        smooth = ((original / waves) - 1) / 3
        made = torch.where(waves > original, most, 1 / ((1 - smooth) / most + smooth))
        made = torch.where(waves < original / 4, 1.0, made)
        if torch.allclose(made, factors, rtol=1e-4):
            own = {"factor": most, "low_freq_factor": 1.0, "high_freq_factor": 4.0}
            return {"rope_type": "llama3", **own, "original_max_position_embeddings": original}
    raise ValueError("rope_freqs.weight holds factors that no setting of Llama 3's scaling makes; convert it again.")


def describe_types(weights: Weights) -> tuple[str, ...]:
    """Sentence for a file of quantised weights: how many bits a weight takes, and of which types they are."""
    if not weights.schemes:
        return ()
    numbers, bits = Counter[str](), 0.0
    for name, shape in weights.shapes.items():
        scheme = weights.schemes.get(name)
        numbers[weights.dtypes[name]] += prod(shape)
        bits += prod(shape) * (scheme.bits if scheme else 8 * getattr(torch, weights.dtypes[name]).itemsize)
    total = numbers.total()
    shares = ", ".join(f"{100 * count / total:.1f} % {kind}" for kind, count in numbers.most_common())
    return (f"Its weights are quantised, {bits / total:.2f} bits each: {shares}.",)
