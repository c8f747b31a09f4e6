"""Models of transformers written as GGUF, as llama.cpp's converter writes them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import torch
from gguf.quants import dequantize, quantize
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
    "llama": (Arch.LLAMA, of_llama), "mistral": (Arch.LLAMA, of_llama), "mixtral": (Arch.LLAMA, of_llama),
    "qwen2": (Arch.QWEN2, None), "qwen2_moe": (Arch.QWEN2MOE, None), "qwen3": (Arch.QWEN3, None),
    "qwen3_moe": (Arch.QWEN3MOE, None), "gemma": (Arch.GEMMA, one_added), "gemma2": (Arch.GEMMA2, one_added),
    "gemma3_text": (Arch.GEMMA3, one_added), "phi": (Arch.PHI2, None), "phi3": (Arch.PHI3, None),
    "gpt2": (Arch.GPT2, of_gpt2), "gpt_neox": (Arch.GPTNEOX, apart), "falcon": (Arch.FALCON, of_falcon),
    "bloom": (Arch.BLOOM, apart), "mpt": (Arch.MPT, None), "starcoder2": (Arch.STARCODER2, None),
    "stablelm": (Arch.STABLELM, None), "olmo": (Arch.OLMO, of_llama), "olmo2": (Arch.OLMO2, None),
    "olmoe": (Arch.OLMOE, None), "cohere": (Arch.COMMAND_R, None), "granite": (Arch.GRANITE, of_llama),
    "smollm3": (Arch.SMOLLM3, of_llama),
}  # fmt: skip


def write_gguf(model: Any, path: Path, quantised: str = "F32", tokenizer: Mapping[str, Any] = {}) -> None:
    """A model as one file; its matrices of `quantised`, where their rows are whole blocks."""
    config, kind = model.config, model.config.model_type
    arch, change = ARCHITECTURES[kind]
    writer = gguf.GGUFWriter(path, gguf.MODEL_ARCH_NAMES[arch])
    write_settings(writer, config)
    for name, value in tokenizer.items():
        add(writer, name, value)
    names = gguf.get_tensor_name_map(arch, model.config.num_hidden_layers)
    for name, tensor in without_doubles(model):
        changed = (change(name, tensor, config) if change else tensor).float()
        if name.endswith((".experts.gate_up_proj", ".experts.down_proj")):  # transformers 5 has them stacked
            parts = [changed] if name.endswith("down_proj") else changed.chunk(2, dim=1)
            ends = ["ffn_down_exps"] if name.endswith("down_proj") else ["ffn_gate_exps", "ffn_up_exps"]
            layer = name.split(".")[2]
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


def without_doubles(model: Any) -> list[tuple[str, Tensor]]:
    """The tensors that a file holds: a tied head is none of them."""
    tied = model.config.tie_word_embeddings
    heads = ("lm_head.weight", "embed_out.weight", "output.weight")
    skipped = (".attn.bias", ".attn.masked_bias", "rotary_emb.inv_freq", *(heads if tied else ()))
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


def write_settings(writer: Any, config: Any) -> None:
    get = lambda *names: next((v for one in names if (v := getattr(config, one, None)) is not None), None)  # noqa: E731
    heads, width = get("num_attention_heads", "n_head"), get("hidden_size", "n_embd", "d_model")
    writer.add_context_length(get("max_position_embeddings", "seq_length", "max_seq_len") or 32)
    writer.add_embedding_length(width)
    writer.add_block_count(get("num_hidden_layers", "n_layer"))
    writer.add_feed_forward_length(get("ffn_hidden_size", "n_inner", "intermediate_size") or 4 * width)
    writer.add_head_count(heads)
    groups = get("num_key_value_heads")
    if config.model_type == "falcon":
        groups = config.num_kv_heads if config.new_decoder_architecture else 1 if config.multi_query else heads
    if groups is not None:
        writer.add_head_count_kv(groups)
    if (eps := get("rms_norm_eps")) is not None:
        writer.add_layer_norm_rms_eps(eps)
    if (eps := get("layer_norm_eps", "layer_norm_epsilon", "norm_epsilon")) is not None:
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
