"""What config.json says and a family does not take as it stands: keys without effect, keys that nobody reads, keys that
are left out, and settings that are said twice."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from engine.checkpoints.canonical import canonical_config
from engine.checkpoints.families import FAMILIES
from engine.checkpoints.family import Family
from engine.checkpoints.generation_config import ELSEWHERE, NEUTRAL, READ
from engine.checkpoints.generation_config import WITHOUT_EFFECT as OF_WRITING
from engine.checkpoints.keys import REQUIRED, ConfigTable, Table
from engine.checkpoints.rotary import DOUBLES as OF_ROTATION
from engine.checkpoints.weights import KEYS_OF_QUANTISATION
from engine.model.config import ModelConfig

WITHOUT_EFFECT = (
    "_name_or_path", "model_type", "architectures", "dtype", "torch_dtype", "auto_map", "custom_pipelines", "name",
    "is_encoder_decoder", "tokenizer_class", "prefix", "finetuning_task", "language", "task_specific_params",
    "id2label", "label2id", "num_labels", "_num_labels", "problem_type", "sep_token_id",
    "cls_token_id",  # of no head that is not asked
    "return_dict", "torchscript", "output_past", "use_bfloat16", "xla_device", "gradient_checkpointing",
    "_attn_implementation", "attn_implementation", "_attn_implementation_autoset", "chunk_size_feed_forward",
    "reorder_and_upcast_attn", "pretraining_tp", "slow_but_exact",  # the same numbers in another way
    "initializer_range", "initializer_factor", "init_std", "encoder_layerdrop", "decoder_layerdrop", "layerdrop",
    "classifier_dropout", "classif_dropout", "classifier_dropout_prob", "qa_dropout", "seq_classif_dropout",
    "pooler_dropout", "cls_dropout",
    "sinusoidal_pos_embds", "router_aux_loss_coef", "output_router_logits", "router_jitter_noise", "label_smoothing",
    "aux_loss_alpha", "seq_aux", "apply_spec_augment", "mask_time_prob", "mask_time_length", "mask_time_min_masks",
    "mask_feature_prob", "mask_feature_length", "mask_feature_min_masks", "drop_path_rate", "layerscale_value",
    "logit_scale_init_value", "pos_embed_shift", "pos_embed_jitter", "pos_embed_rescale",  # only of training
    "out_features", "out_indices", "reshape_hidden_states", "stage_names",  # of a backbone of another model
    "use_weighted_layer_sum", "classifier_proj_size", "median_filter_width",
    "summary_activation", "summary_first_dropout", "summary_last_dropout", "summary_proj_to_labels", "summary_type",
    "summary_use_proj", "encoder_stride", "num_nextn_predict_layers",
    "num_mtp_layers",  # of heads that Loupe does not open
    "is_decoder", "max_window_layers", "d_head", "sliding_window_pattern", "_sliding_window_pattern",
    "no_rope_layer_interval", "learned_pos_emb", "init_device", "init_config",  # said elsewhere
    "n_special", "predict_special_tokens", "directionality", "pooler_fc_size", "pooler_num_attention_heads",
    "pooler_num_fc_layers", "pooler_size_per_head", "pooler_type", "net_structure_type", "gap_size",
    "num_memory_blocks", "inner_group_num", "down_scale_factor", "extra_pos_embeddings", "add_bias_logits",
    "tokenizer_file", "transformers.js_config", "attention_softmax_in_fp32", "bias_dropout_fusion",
    "masked_softmax_fusion", "offset_alibi", "skip_bias_add", "skip_bias_add_qkv", "unk_token_id",
    "unsloth_version", "unsloth_fixed", "order_of_interleaved_layers", "use_embedding_sharing", "use_gated_activation",
    "use_parallel_block", "use_parallel_embedding", "verbose", "tokenizer_name",
    "initializer_cutoff_factor", "deterministic_flash_attn", "reference_compile", "repad_logits_with_grad",
    "dense_seq_output", "fused_bias_fc", "fused_dropout_add_ln", "max_trained_positions", "pad_vocab_size_multiple",
    "parallel_block_tied_norm", "rotary_emb_scale_base", "use_flash_attn", "use_xentropy", "sparse_prediction",
    "sparse_pred_ignore_index",  # of training, and of how the same is computed
    "add_fpn", "auxiliary_channels", "auxiliary_concat_input", "auxiliary_loss_weight", "auxiliary_num_convs",
    "pool_scales", "semantic_loss_ignore_index", "use_auxiliary_head",  # of heads that judge each pixel
    "vocab_size",  # of a head that judges each patch
    "model_max_length",  # read by no class of transformers
)  # fmt: skip
KNOWN = frozenset({*KEYS_OF_QUANTISATION, *WITHOUT_EFFECT, *OF_WRITING, *READ, *NEUTRAL, *ELSEWHERE})

DOUBLES = (
    ("dense_act_fn", "feed_forward_proj"),
    ("is_gated_act", "feed_forward_proj"),
    ("scale_decoder_outputs", "tie_word_embeddings"),
    ("attention_layers", "attention_types"),
    ("layer_types", "max_window_layers"),
    ("layer_types", "sliding_window_pattern"),
    ("layer_types", "global_attn_every_n_layers"),
    ("no_rope_layers", "no_rope_layer_interval"),
    ("num_labels", "id2label"),
    *OF_ROTATION,
)  # of two ways to say one setting, the one that transformers takes before the other; a dot leads into a table


def describe_unread(theirs: ConfigTable, family: Family) -> tuple[str, ...]:
    """Sentence about keys that ask for something which neither the family, nor a sister under another head, reads."""
    sisters = FAMILIES.get(family.name, ())
    declared = {name for one in sisters for key in one.all_keys for name in (key.theirs, *key.also)}
    known = KNOWN | theirs.read | declared | family.common.keys()
    known |= {name for one in sisters for name in (*one.only, *one.extra)}
    unread = sorted(name for name, value in theirs.items() if name not in known and value not in (None, [], {}))
    if not unread:
        return ()
    named = ", ".join(name[:80] for name in unread[:10]) + (f" and {len(unread) - 10} more" if len(unread) > 10 else "")
    return (f"config.json has keys that Loupe does not read in a {family.name} model, so not obeyed: {named}.",)


def describe_doubles(theirs: Table, family: Family) -> tuple[str, ...]:
    """Sentence for each setting that config.json says twice and not alike."""
    read, told = read_if_valid(theirs, family), dict[tuple[str, str], tuple[Any, Any]]()
    for counts, other in (*family.common.items(), *DOUBLES):
        first, second = find(theirs, counts), find(theirs, other)
        if first is not None and second is not None and read != read_if_valid(without(theirs, counts), family):
            told[counts, other] = first, second
    for key in family.all_keys:
        for name in key.also if key.ours != "dropout" else ():
            first, second = theirs.get(key.theirs), theirs.get(name)
            if first is not None and second is not None and key.translate(first) != key.translate(second):
                told[key.theirs, name] = first, second
    return tuple(
        f"config.json says one thing twice, as {counts} {first!r:.80} and as {other} {second!r:.80}; {counts} counts, "
        "as in transformers."
        for (counts, other), (first, second) in told.items()
    )


def find(table: Table, path: str) -> Any:
    value: Any = table
    for name in path.split("."):
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


def without(table: Table, path: str) -> dict[str, Any]:
    """The table without what `path` leads to."""
    name, _, rest = path.partition(".")
    return {key: without(value, rest) if key == name else value for key, value in table.items() if rest or key != name}


def read_if_valid(theirs: Table, family: Family) -> ModelConfig | None:
    try:
        return canonical_config(family.read_config(theirs))
    except (ValueError, OverflowError):
        return None


def describe_defaults(theirs: Table, family: Family) -> str:
    """Sentence about sizes that config.json leaves to transformers' class of the model; empty where it says all."""
    sizes = dict.fromkeys(key.theirs for key in family.all_keys if key.default is REQUIRED)
    said = theirs.keys() | {own for common, own in family.common.items() if theirs.get(common) is not None}
    taken = ", ".join(f"{name} {family.defaults[name]!r}" for name in sizes if name not in said)
    sentence = f"config.json leaves out sizes, so those of transformers' {family.name} class count: {taken}."
    return sentence if taken else ""
