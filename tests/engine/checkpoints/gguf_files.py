"""Models of transformers written as GGUF, as llama.cpp's converter writes them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import gguf
import numpy as np
import torch
from gguf.quants import dequantize, quantize
from safetensors.torch import load_file
from torch import Tensor

Arch = gguf.MODEL_ARCH
# model_type -> ggml's architecture, and how its converter changes a tensor of a name.
Change = Callable[[str, Tensor, Any], Tensor]


def permute(heads: int, tensor: Tensor) -> Tensor:
    """LlamaModel.permute: the halves of each head become neighbours."""
    return (
        tensor.reshape(heads, 2, tensor.shape[0] // heads // 2, *tensor.shape[1:]).swapaxes(1, 2).reshape(tensor.shape)
    )


def of_llama(name: str, tensor: Tensor, config: Any) -> Tensor:
    if name.endswith(("q_proj.weight", "q_proj.bias")):
        return permute(config.num_attention_heads, tensor)
    if name.endswith(("k_proj.weight", "k_proj.bias")):
        return permute(config.num_key_value_heads or config.num_attention_heads, tensor)
    return tensor


def one_added(name: str, tensor: Tensor, config: Any) -> Tensor:
    return tensor + 1 if name.endswith("norm.weight") else tensor


def of_gpt2(name: str, tensor: Tensor, config: Any) -> Tensor:
    turned = (".c_attn.weight", ".c_proj.weight", ".c_fc.weight")
    return tensor.T if name.endswith(turned) else tensor


def apart(name: str, tensor: Tensor, config: Any) -> Tensor:
    """GPT-NeoX and BLOOM: of each head's query, key and value all queries, all keys, all values."""
    if "query_key_value" not in name:
        return tensor
    heads = getattr(config, "num_attention_heads", None) or config.n_head
    return tensor.view(heads, 3, -1, *tensor.shape[1:]).transpose(0, 1).reshape(tensor.shape)


def of_falcon(name: str, tensor: Tensor, config: Any) -> Tensor:
    if "query_key_value" not in name:
        return tensor
    heads = config.num_attention_heads
    groups = config.num_kv_heads if config.new_decoder_architecture else 1 if config.multi_query else heads
    each = tensor.view(groups, heads // groups + 2, -1, *tensor.shape[1:])
    parts = each[:, :-2], each[:, -2:-1], each[:, -1:]
    return torch.cat([part.reshape(-1, *tensor.shape[1:]) for part in parts])


ARCHITECTURES: Mapping[str, tuple[Any, Change | None]] = {
    "llama": (Arch.LLAMA, of_llama),
    "mistral": (Arch.LLAMA, of_llama),
    "mixtral": (Arch.LLAMA, of_llama),
    "qwen2": (Arch.QWEN2, None),
    "qwen2_moe": (Arch.QWEN2MOE, None),
    "qwen3": (Arch.QWEN3, None),
    "qwen3_moe": (Arch.QWEN3MOE, None),
    "gemma": (Arch.GEMMA, one_added),
    "gemma2": (Arch.GEMMA2, one_added),
    "gemma3_text": (Arch.GEMMA3, one_added),
    "phi": (Arch.PHI2, None),
    "phi3": (Arch.PHI3, None),
    "gpt2": (Arch.GPT2, of_gpt2),
    "gpt_neox": (Arch.GPTNEOX, apart),
    "falcon": (Arch.FALCON, of_falcon),
    "bloom": (Arch.BLOOM, apart),
    "mpt": (Arch.MPT, None),
    "starcoder2": (Arch.STARCODER2, None),
    "stablelm": (Arch.STABLELM, None),
    "olmo": (Arch.OLMO, of_llama),
    "olmo2": (Arch.OLMO2, None),
    "olmoe": (Arch.OLMOE, None),
    "cohere": (Arch.COMMAND_R, None),
    "granite": (Arch.GRANITE, of_llama),
    "smollm3": (Arch.SMOLLM3, of_llama),
    "olmo3": (Arch.OLMO2, None),
    "cohere2": (Arch.COHERE2, None),
    "glm4": (Arch.GLM4, None),
    "exaone4": (Arch.EXAONE4, None),
    "gpt_oss": (Arch.GPT_OSS, None),
    "deepseek_v2": (Arch.DEEPSEEK2, None),
    "deepseek_v3": (Arch.DEEPSEEK2, None),
    "t5": (Arch.T5, None),
    "glm4_moe": (Arch.GLM4_MOE, None),
    "granitemoe": (Arch.GRANITE_MOE, of_llama),
    "granitemoeshared": (Arch.GRANITE_MOE, of_llama),
}
ENCODERS: Mapping[str, Any] = {
    "BertModel": Arch.BERT, "DistilBertModel": Arch.BERT, "RobertaModel": Arch.BERT,
    "NomicBertModel": Arch.NOMIC_BERT, "ModernBertModel": Arch.MODERN_BERT,
    "T5EncoderModel": Arch.T5ENCODER,
}  # fmt: skip


def write_gguf(
    model: Any, path: Path, quantised: str = "F32", tokenizer: Mapping[str, Any] = {}, whole_keys: bool = False
) -> None:
    """A model as one file; its matrices of `quantised`, where their rows are whole blocks. DeepSeek's keys and values
    stand in one tensor with `whole_keys`, as in older files."""
    config, kind = model.config, model.config.model_type
    encoder = ENCODERS.get(type(model).__name__)
    arch, change = (encoder, None) if encoder is not None else ARCHITECTURES[kind]
    writer = gguf.GGUFWriter(path, gguf.MODEL_ARCH_NAMES[arch])
    write_settings(writer, config)
    write_more_settings(writer, config, whole_keys)
    for name, value in tokenizer.items():
        add(writer, name, value)
    names = gguf.get_tensor_name_map(arch, model.config.num_hidden_layers)
    for name, tensor in as_saved(model) if encoder or kind.startswith("granitemoe") else without_doubles(model):
        layer = name.split(".")[2] if name.startswith("model.layers.") else ""
        if kind == "gpt_oss" and ".experts." in name:
            write_gpt_oss_experts(writer, layer, name, tensor, quantised)
            continue
        if name.endswith("kv_b_proj.weight") and not whole_keys:
            both = tensor.view(config.num_attention_heads, -1, tensor.shape[-1])
            keys, values = both.split([config.qk_nope_head_dim, config.v_head_dim], dim=1)
            write_tensor(writer, f"blk.{layer}.attn_k_b.weight", keys.transpose(1, 2), quantised)
            write_tensor(writer, f"blk.{layer}.attn_v_b.weight", values, quantised)
            continue
        if name.endswith(("e_score_correction_bias", "self_attn.sinks")):
            end = "attn_sinks.weight" if name.endswith("sinks") else "exp_probs_b.bias"
            write_tensor(writer, f"blk.{layer}.{end}", tensor, quantised)
            continue
        changed = (change(name, tensor, config) if change else tensor).float()
        if name.endswith("input_linear.weight"):  # Granite's
            end = "shexp" if "shared" in name else "exps"
            for part, one in zip(("gate", "up"), changed.chunk(2, dim=changed.dim() - 2), strict=True):
                write_tensor(writer, f"blk.{layer}.ffn_{part}_{end}.weight", one, quantised)
            continue
        if name.endswith((".experts.gate_up_proj", ".experts.down_proj")):  # transformers 5 has them stacked
            parts = [changed] if name.endswith("down_proj") else changed.chunk(2, dim=1)
            ends = ["ffn_down_exps"] if name.endswith("down_proj") else ["ffn_gate_exps", "ffn_up_exps"]
            for end, part in zip(ends, parts, strict=True):
                write_tensor(writer, f"blk.{layer}.{end}.weight", part, quantised)
            continue
        named = names.get_name(name.removeprefix("transformer.") if kind == "bloom" else name, (".weight", ".bias"))
        assert named is not None, name
        write_tensor(writer, named, changed.squeeze(), quantised)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def write_gpt_oss_experts(writer: Any, layer: str, name: str, tensor: Tensor, quantised: str) -> None:
    """GptOssModel: gate and up stand in turn, of matrices in the last axis."""
    end = "bias" if name.endswith("bias") else "weight"
    turned = tensor if end == "bias" else tensor.transpose(1, 2)
    parts = {"down": turned}
    if "gate_up" in name:
        parts = {"gate": turned[:, ::2], "up": turned[:, 1::2]}
    for part, one in parts.items():
        write_tensor(writer, f"blk.{layer}.ffn_{part}_exps.{end}", one, quantised if end == "weight" else "F32")


def as_saved(model: Any) -> list[tuple[str, Tensor]]:
    """The tensors of an encoder by the names of its file, without a pooler, which the converter leaves out."""
    with TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        saved = load_file(Path(folder) / "model.safetensors")
    named = {re.sub(r"^(nomic_|distil|ro)?bert(a)?\.", "", name): tensor for name, tensor in saved.items()}
    if model.config.model_type == "roberta":  # whose first rows of positions are not used
        table = "embeddings.position_embeddings.weight"
        named[table] = named[table][model.config.pad_token_id + 1 :].contiguous()
    return [pair for pair in named.items() if not pair[0].startswith(("pooler.", "embeddings.position_ids"))]


def without_doubles(model: Any) -> list[tuple[str, Tensor]]:
    """The tensors that a file holds: a tied head is none of them."""
    tied = model.config.tie_word_embeddings
    heads = ("lm_head.weight", "embed_out.weight", "output.weight")
    doubles = ("encoder.embed_tokens.weight", "decoder.embed_tokens.weight") if model.config.model_type == "t5" else ()
    skipped = (*doubles, ".attn.bias", ".attn.masked_bias", "rotary_emb.inv_freq", *(heads if tied else ()))
    return [(name, tensor) for name, tensor in model.state_dict().items() if not name.endswith(skipped)]


def write_tensor(writer: Any, name: str, tensor: Tensor, quantised: str) -> None:
    data = np.ascontiguousarray(tensor.numpy())
    kind = gguf.GGMLQuantizationType[quantised]
    block = gguf.GGML_QUANT_SIZES[kind][0]
    if quantised == "F32" or data.ndim < 2 or data.shape[-1] % block:
        writer.add_tensor(name, data)
        return
    writer.add_tensor(name, quantize(data, kind), raw_dtype=kind)


def add(writer: Any, name: str, value: Any) -> None:
    """A value of the metadata, of the type that it has."""
    of_type = {str: writer.add_string, bool: writer.add_bool, int: writer.add_uint32, float: writer.add_float32}
    if isinstance(value, list):
        writer.add_array(name, value)
    else:
        of_type[type(value)](name, value)


def llama3_factors(rotary: Mapping[str, Any], size: int) -> np.ndarray:
    """What each frequency is divided by, as LlamaModel.generate_extra_tensors writes it."""
    original, factor = rotary["original_max_position_embeddings"], rotary["factor"]
    low, high = rotary["low_freq_factor"], rotary["high_freq_factor"]
    found = []
    for at in range(0, size, 2):
        wave = 2 * np.pi * rotary["rope_theta"] ** (at / size)
        smooth = (original / wave - low) / (high - low)
        within = 1 / ((1 - smooth) / factor + smooth)
        found.append(1.0 if wave < original / high else factor if wave > original / low else within)
    return np.array(found, np.float32)


def write_layer_ahead(writer: Any, config: Any) -> None:
    """A layer behind the others that guesses a second token ahead, of which two tensors do here."""
    writer.add_block_count(config.num_hidden_layers + 1)
    writer.add_nextn_predict_layers(1)
    for name in ("attn_q", "nextn.eh_proj"):
        writer.add_tensor(f"blk.{config.num_hidden_layers}.{name}.weight", np.zeros((4, 4), np.float32))


def write_routed(writer: Any, config: Any) -> None:
    writer.add_leading_dense_block_count(config.first_k_dense_replace)
    writer.add_expert_count(config.n_routed_experts)
    writer.add_expert_shared_count(config.n_shared_experts)
    writer.add_expert_weights_scale(config.routed_scaling_factor)
    sigmoid = config.model_type != "deepseek_v2"
    kinds = gguf.ExpertGatingFuncType
    writer.add_expert_gating_func(kinds.SIGMOID if sigmoid else kinds.SOFTMAX)
    if sigmoid:
        writer.add_expert_weights_norm(config.norm_topk_prob)
        writer.add_expert_group_count(config.n_group)
        writer.add_expert_group_used_count(config.topk_group)


def write_more_settings(writer: Any, config: Any, whole_keys: bool) -> None:
    """What the converters of single families write."""
    kind, types = config.model_type, getattr(config, "layer_types", None)
    if kind in ("exaone4", "olmo3"):
        writer.add_sliding_window_pattern([one == "sliding_attention" for one in types])
    if kind == "gpt_oss":
        writer.add_expert_feed_forward_length(config.intermediate_size)
    if kind == "modernbert":
        writer.add_sliding_window_pattern(3)
        writer.add_sliding_window(config.local_attention)
        writer.add_rope_freq_base(config.rope_parameters["full_attention"]["rope_theta"])
        writer.add_rope_freq_base_swa(config.rope_parameters["sliding_attention"]["rope_theta"])
    if kind in ("bert", "distilbert", "roberta", "nomic_bert", "modernbert"):
        writer.add_causal_attention(False)
        writer.add_pooling_type(gguf.PoolingType.MEAN)
    if kind == "t5":
        writer.add_feed_forward_length(config.d_ff)
        writer.add_decoder_block_count(config.num_decoder_layers)
        writer.add_decoder_start_token_id(config.decoder_start_token_id)
        writer.add_relative_attn_buckets_count(config.relative_attention_num_buckets)
        writer.add_layer_norm_rms_eps(config.layer_norm_epsilon)
    if kind == "granitemoeshared":
        writer.add_expert_shared_feed_forward_length(config.shared_intermediate_size)
    if kind == "glm4_moe":
        write_layer_ahead(writer, config)
    if kind in ("deepseek_v2", "deepseek_v3", "glm4_moe"):
        write_routed(writer, config)
    if kind not in ("deepseek_v2", "deepseek_v3"):
        return
    writer.add_rope_dimension_count(config.qk_rope_head_dim)
    width = config.qk_nope_head_dim + config.qk_rope_head_dim
    if whole_keys:
        writer.add_key_length(width)
        writer.add_value_length(config.v_head_dim)
    else:
        writer.add_head_count_kv(1)
        writer.add_key_length(config.kv_lora_rank + config.qk_rope_head_dim)
        writer.add_value_length(config.kv_lora_rank)
        writer.add_key_length_mla(width)
        writer.add_value_length_mla(config.v_head_dim)
    writer.add_kv_lora_rank(config.kv_lora_rank)
    if config.q_lora_rank is not None:
        writer.add_q_lora_rank(config.q_lora_rank)
    if (all_dim := config.rope_parameters.get("mscale_all_dim")) is not None:
        writer.add_rope_scaling_yarn_log_mul(0.1 * all_dim)


def write_settings(writer: Any, config: Any) -> None:
    get = lambda *names: next((v for one in names if (v := getattr(config, one, None)) is not None), None)  # noqa: E731
    heads, width = get("num_attention_heads", "n_head"), get("hidden_size", "n_embd", "d_model")
    unused = config.pad_token_id + 1 if config.model_type == "roberta" else 0
    writer.add_context_length((get("max_position_embeddings", "seq_length", "max_seq_len") or 32) - unused)
    writer.add_embedding_length(width)
    writer.add_block_count(get("num_hidden_layers", "n_layer"))
    writer.add_feed_forward_length(get("ffn_hidden_size", "n_inner", "intermediate_size", "hidden_dim") or 4 * width)
    writer.add_head_count(heads)
    groups = get("num_key_value_heads")
    if config.model_type == "falcon":
        groups = config.num_kv_heads if config.new_decoder_architecture else 1 if config.multi_query else heads
    if groups is not None:
        writer.add_head_count_kv(groups)
    if (eps := get("rms_norm_eps")) is not None:
        writer.add_layer_norm_rms_eps(eps)
    if (eps := get("layer_norm_eps", "layer_norm_epsilon", "norm_epsilon", "norm_eps")) is not None:
        writer.add_layer_norm_eps(eps)
    size = get("head_dim") or width // heads
    writer.add_key_length(size)
    writer.add_value_length(size)
    rotary = get("rope_parameters") or {}
    rotary = rotary.get("full_attention", rotary)
    if (theta := rotary.get("rope_theta")) is not None:
        writer.add_rope_freq_base(theta)
    writer.add_rope_dimension_count(int(size * (rotary.get("partial_rotary_factor") or 1)))
    if rotary.get("rope_type") == "llama3":
        writer.add_tensor("rope_freqs.weight", llama3_factors(rotary, size))
    if rotary.get("rope_type") == "longrope":
        for name in ("long", "short"):
            writer.add_tensor(f"rope_factors_{name}.weight", np.array(rotary[f"{name}_factor"], np.float32))
        writer.add_rope_scaling_orig_ctx_len(config.original_max_position_embeddings)
    if rotary.get("rope_type") in ("linear", "yarn"):
        writer.add_rope_scaling_type(gguf.RopeScalingType(rotary["rope_type"]))
        writer.add_rope_scaling_factor(rotary["factor"])
        if "original_max_position_embeddings" in rotary:
            writer.add_rope_scaling_orig_ctx_len(rotary["original_max_position_embeddings"])
    for name, add_value in (
        ("sliding_window", writer.add_sliding_window), ("attn_logit_softcapping", writer.add_attn_logit_softcapping),
        ("final_logit_softcapping", writer.add_final_logit_softcapping), ("logit_scale", writer.add_logit_scale),
        ("moe_intermediate_size", writer.add_expert_feed_forward_length), ("clip_qkv", writer.add_clamp_kqv),
        ("shared_expert_intermediate_size", writer.add_expert_shared_feed_forward_length),
        ("num_experts_per_tok", writer.add_expert_used_count), ("embedding_multiplier", writer.add_embedding_scale),
        ("residual_multiplier", writer.add_residual_scale), ("attention_multiplier", writer.add_attention_scale),
        ("logits_scaling", writer.add_logit_scale),
        ("use_parallel_residual", writer.add_parallel_residual),
    ):  # fmt: skip
        if (value := get(name)) is not None:
            add_value(value)
    if (experts := get("num_local_experts", "num_experts")) is not None:
        writer.add_expert_count(experts)
    if config.model_type == "mpt":
        writer.add_max_alibi_bias(config.attn_config.alibi_bias_max)


__all__ = ["ARCHITECTURES", "dequantize", "write_gguf"]
