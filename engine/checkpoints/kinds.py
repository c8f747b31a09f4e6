"""Kinds of values that the settings beside weights may have, and which of them each key of config.json has."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from engine.model.config_check import LARGEST_SIZE


class Kind(NamedTuple):
    """Allowed values of a key, in `words`; `read` converts a value, given the size of the vocabulary, or raises
    ValueError, TypeError, LookupError or OverflowError."""

    words: str
    read: Callable[[Any, int], Any]

    def admits(self, value: Any) -> bool:
        """True for a value of this kind in a vocabulary of any size."""
        try:
            self.read(value, LARGEST_SIZE)
        except (ValueError, TypeError, LookupError, OverflowError):
            return False
        return True


def is_whole(value: Any) -> bool:
    return type(value) is int


def demand(met: bool, value: Any) -> Any:
    if not met:
        raise ValueError
    return value


def read_id(value: Any, size: int) -> int:
    return int(demand(is_whole(value) and 0 <= value < size, value))


def read_ids(value: Any, size: int) -> tuple[int, ...]:
    demand(isinstance(value, list), value)
    return tuple(read_id(one, size) for one in value)


def read_id_or_ids(value: Any, size: int) -> tuple[int, ...]:
    return read_ids(value if isinstance(value, list) and value else [value], size)


def number(words: str, fits: Callable[[float], bool]) -> Kind:
    def read(value: Any, size: int) -> float:
        demand(type(value) in (int, float) and math.isfinite(value) and fits(value), value)
        return float(value)

    return Kind(words, read)


def integer(least: int) -> Kind:
    words = f"a whole number, {least} or more"
    return Kind(words, lambda value, size: demand(is_whole(value) and value >= least, value))


def size(least: int) -> Kind:
    words = f"a whole number from {least} to {LARGEST_SIZE:,}"
    return Kind(words, lambda value, _: demand(is_whole(value) and least <= value <= LARGEST_SIZE, value))


def instance(words: str, *kinds: type) -> Kind:
    return Kind(words, lambda value, size: demand(isinstance(value, kinds), value))


FLAG = Kind("true or false", lambda value, size: demand(isinstance(value, bool), value))
POSITIVE = number("a number above 0", lambda value: value > 0)
SHARE = number("a number above 0 and at most 1", lambda value: 0 < value <= 1)
PORTION = number("a number from 0 to below 1", lambda value: 0 <= value < 1)
NOT_NEGATIVE = number("a number, 0 or more", lambda value: value >= 0)
ID = Kind("the id of a token", read_id)
IDS = Kind("the id of a token, or a list of them", read_id_or_ids)
ID_OR_NONE = Kind("the id of a token, or -1 for none", lambda value, _: demand(is_whole(value) and value >= -1, value))
TABLE = instance("a table", Mapping)
LIST = instance("a list", list, tuple)
WORD = instance("a word", str)
NUMBERS = Kind("a list of numbers above 0", lambda value, _: [POSITIVE.read(one, 0) for one in LIST.read(value, 0)])
ANY = instance("anything", object)  # of a key whose reader names what it knows


def name_each(kind: Kind, names: str) -> dict[str, Kind]:
    return dict.fromkeys(names.split(), kind)


KINDS: Mapping[str, Kind] = {
    **name_each(
        FLAG,
        "tie_word_embeddings is_gated_act scale_decoder_outputs scale_embedding attention_bias mlp_bias "
        "qkv_bias value_bias enable_bias do_layer_norm_before _remove_final_layer_norm use_sliding_window "
        "use_bidirectional_attention bias norm_topk_prob truncate rope_interleave use_qk_norm",
    ),
    **name_each(
        size(1),
        "vocab_size max_position_embeddings n_positions block_size hidden_size n_embd n_embed d_model dim "
        "embedding_size word_embed_proj_dim pooler_output_size num_attention_heads n_head n_heads num_heads "
        "encoder_attention_heads decoder_attention_heads num_key_value_heads head_dim d_kv intermediate_size n_inner "
        "hidden_dim ffn_dim d_ff encoder_ffn_dim decoder_ffn_dim type_vocab_size num_labels image_size patch_size "
        "num_channels window_size sliding_window_pattern no_rope_layer_interval "
        "original_max_position_embeddings num_local_experts num_experts num_experts_per_tok moe_intermediate_size "
        "shared_expert_intermediate_size decoder_sparse_step "
        "kv_lora_rank q_lora_rank v_head_dim qk_nope_head_dim qk_rope_head_dim qk_head_dim n_routed_experts "
        "n_group topk_group",
    ),
    **name_each(
        size(0),
        "num_hidden_layers n_layer n_layers num_layers encoder_layers decoder_layers num_decoder_layers "
        "max_window_layers sliding_window first_k_dense_replace n_shared_experts",
    ),
    **name_each(NOT_NEGATIVE, "layer_norm_eps layer_norm_epsilon rms_norm_eps"),
    **name_each(
        PORTION,
        "dropout dropout_rate hidden_dropout hidden_dropout_prob attention_dropout resid_dropout resid_pdrop",
    ),
    **name_each(
        POSITIVE,
        "attn_logit_softcapping final_logit_softcapping rope_theta rope_local_base_freq rotary_emb_base factor "
        "local_rope_theta global_rope_theta "
        "routed_scaling_factor "
        "swiglu_alpha swiglu_limit low_freq_factor high_freq_factor attention_factor beta_slow beta_fast",
    ),
    **name_each(NOT_NEGATIVE, "mscale mscale_all_dim"),
    **name_each(SHARE, "partial_rotary_factor rotary_pct"),
    **name_each(NUMBERS, "short_factor long_factor"),
    **name_each(ID, "decoder_start_token_id"),
    **name_each(IDS, "eos_token_id"),
    **name_each(ID_OR_NONE, "pad_token_id"),
    **name_each(TABLE, "id2label rope_parameters rope_scaling text_config sentence_transformers"),
    **name_each(LIST, "layer_types mlp_layer_types attention_layers no_rope_layers mlp_only_layers"),
    **name_each(WORD, "rope_type type sbert_ce_default_activation_function"),
    **name_each(
        ANY,
        "topk_method "
        "activation activation_function dense_act_fn feed_forward_proj hidden_act hidden_activation problem_type "
        "model_type architectures quantization_config quantization compression_config",
    ),
}  # of each key of config.json that anybody reads; null stands for a key that is left out
