"""Keys of config.json that no family reads: those without effect here, and a sentence for any other."""

from __future__ import annotations

from typing import Any

from engine.checkpoints.families import FAMILIES
from engine.checkpoints.family import Family
from engine.checkpoints.generation_config import ELSEWHERE, NEUTRAL, READ
from engine.checkpoints.generation_config import WITHOUT_EFFECT as OF_WRITING

WITHOUT_EFFECT = (
    "_name_or_path", "model_type", "architectures", "dtype", "torch_dtype", "auto_map", "custom_pipelines", "name",
    "is_encoder_decoder", "tokenizer_class", "prefix", "finetuning_task", "language", "task_specific_params",
    "id2label", "label2id", "num_labels", "_num_labels", "problem_type", "sep_token_id",  # of no head that is not asked
    "return_dict", "torchscript", "output_past", "use_bfloat16", "xla_device", "gradient_checkpointing",
    "_attn_implementation", "attn_implementation", "_attn_implementation_autoset", "chunk_size_feed_forward",
    "reorder_and_upcast_attn", "pretraining_tp",  # the same numbers in another way
    "initializer_range", "initializer_factor", "init_std", "encoder_layerdrop", "decoder_layerdrop", "layerdrop",
    "classifier_dropout", "classif_dropout", "classifier_dropout_prob", "qa_dropout", "seq_classif_dropout",
    "sinusoidal_pos_embds", "router_aux_loss_coef", "label_smoothing",  # only of training
    "summary_activation", "summary_first_dropout", "summary_last_dropout", "summary_proj_to_labels", "summary_type",
    "summary_use_proj", "encoder_stride",  # of heads that Loupe does not open
    "dense_act_fn", "is_gated_act", "is_decoder", "max_window_layers", "num_hidden_layers", "d_head",  # said elsewhere
    "n_special", "predict_special_tokens", "directionality", "pooler_fc_size", "pooler_num_attention_heads",
    "pooler_num_fc_layers", "pooler_size_per_head", "pooler_type", "net_structure_type", "gap_size",
    "num_memory_blocks", "inner_group_num", "down_scale_factor", "extra_pos_embeddings", "add_bias_logits",
    "tokenizer_file", "transformers.js_config", "unsloth_version", "unsloth_fixed",  # read by no class of transformers
)  # fmt: skip
KNOWN = frozenset({*WITHOUT_EFFECT, *OF_WRITING, *READ, *NEUTRAL, *ELSEWHERE})


class ConfigTable(dict[str, Any]):
    """config.json; `read` are the keys that somebody asked for."""

    def __init__(self, table: dict[str, Any]) -> None:
        super().__init__(table)
        self.read: set[str] = set()

    def get(self, key: str, default: Any = None) -> Any:
        self.read.add(key)
        return super().get(key, default)

    def __getitem__(self, key: str) -> Any:
        self.read.add(key)
        return super().__getitem__(key)


def describe_unread(theirs: ConfigTable, family: Family) -> tuple[str, ...]:
    """Sentence about keys that ask for something which neither the family, nor a sister under another head, reads."""
    sisters = FAMILIES.get(family.name, ())
    declared = {name for one in sisters for key in one.all_keys for name in (key.theirs, *key.also)}
    known = KNOWN | theirs.read | declared | {name for one in sisters for name in (*one.only, *one.extra)}
    unread = sorted(name for name, value in theirs.items() if name not in known and value not in (None, [], {}))
    if not unread:
        return ()
    named = ", ".join(name[:80] for name in unread[:10]) + (f" and {len(unread) - 10} more" if len(unread) > 10 else "")
    return (f"config.json has keys that Loupe does not read in a {family.name} model, so not obeyed: {named}.",)
