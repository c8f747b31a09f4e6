"""Falcon (Almazrouei et al. 2023), as transformers names it: queries stand beside the key and value that they share.

Its first models have one norm for both sublayers, or one after the other, the larger ones two norms, which are called
otherwise and so are families of their own here. ALiBi is refused: Falcon divides it by the root of a head's width.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from torch import Tensor

from engine.checkpoints.families.gpt2 import CAUSAL
from engine.checkpoints.families.llama import HEADS
from engine.checkpoints.family import DROPPED, Family, Transform, concatenate
from engine.checkpoints.keys import ACTIVATIONS, Key, Table, shared_key, write_only_key
from engine.checkpoints.kinds import FLAG, size
from engine.checkpoints.recomputed import FREQUENCIES
from engine.checkpoints.rotary import KEYS as ROTARY
from engine.checkpoints.tasks import with_tasks
from engine.model.config import ModelConfig


def read_layout(theirs: Table) -> tuple[str, int]:
    """`sublayers` and `kv_heads`. Raises ValueError where transformers, too, has no such model."""
    new, beside = theirs.get("new_decoder_architecture") or False, theirs.get("parallel_attn", True)
    heads, norms = theirs["num_attention_heads"], theirs.get("num_ln_in_parallel_attn")
    norms = (2 if new else 1) if norms is None else norms
    keys = theirs.get("num_kv_heads") or heads
    keys = 1 if not new and theirs.get("multi_query", True) else keys
    if norms > (2 if new else 1) or (new and not beside) or (not new and keys not in (1, heads)):
        raise ValueError(
            f"config.json's num_ln_in_parallel_attn {norms}, parallel_attn {beside} and num_kv_heads {keys} must fit "
            f"new_decoder_architecture {new}, for which transformers has no such model; correct them there."
        )
    return ("sequential" if not beside else "parallel" if norms == 2 else "parallel_one_norm"), keys


def is_new(ours: Table) -> bool:
    return ours["sublayers"] != "sequential" and (ours["sublayers"] == "parallel" or ours["attention"]["kv_heads"] > 1)


def count_norms(ours: Table) -> int | None:
    return 1 + (ours["sublayers"] == "parallel") if is_new(ours) else None


KEYS = (
    Key("vocab_size", "vocab_size"),
    Key("hidden_size", "d_model"),
    Key("num_hidden_layers", "layers"),
    HEADS,
    Key("ffn_hidden_size", "mlp.d_mlp", default=lambda theirs: 4 * theirs["hidden_size"], kind=size(1)),
    Key("activation", "mlp.activation", default="gelu", values=ACTIVATIONS),
    Key("layer_norm_epsilon", "norm.eps", default=1e-5),
    Key("hidden_dropout", "dropout", default=0.0, also=("attention_dropout",)),
    Key("tie_word_embeddings", "tied", default=True),
    shared_key("bias", ("attention.bias", "attention.out_bias", "mlp.bias"), False),
    Key(
        "new_decoder_architecture",
        ("sublayers", "attention.kv_heads"),
        default=read_layout,
        reads=lambda _, theirs: read_layout(theirs),
        writes=lambda _, ours: is_new(ours),
        kind=FLAG,
    ),
    write_only_key("multi_query", lambda ours: ours["attention"]["kv_heads"] == 1, FLAG),
    write_only_key("parallel_attn", lambda ours: ours["sublayers"] != "sequential", FLAG),
    write_only_key("num_kv_heads", lambda ours: ours["attention"]["kv_heads"], size(1)),
    write_only_key("num_ln_in_parallel_attn", count_norms, size(1)),
    *ROTARY,
)

ALWAYS = {"positions.kind": "rotary", "norm.kind": "layer", "norm.place": "before", "attention.mask": "causal"}


def split_groups(tensors: list[Tensor], config: ModelConfig) -> list[Tensor]:
    """(group queries-key-value d_head) ... to three of (head d_head) ..."""
    shared = config.attention.heads // config.kv_heads
    groups = tensors[0].unflatten(0, (config.kv_heads, shared + 2, config.d_head))
    return [groups[:, :shared].flatten(0, 2), groups[:, shared].flatten(0, 1), groups[:, shared + 1].flatten(0, 1)]


def join_groups(tensors: list[Tensor], config: ModelConfig) -> list[Tensor]:
    groups = [tensor.unflatten(0, (config.kv_heads, -1, config.d_head)) for tensor in tensors]
    return [concatenate(groups, dim=1).flatten(0, 2)]


def two_norms(stand: bool) -> Transform:
    """The two norms of a block, whose names say whether they stand side by side."""

    def keep(tensors: list[Tensor], config: ModelConfig) -> list[Tensor]:
        if (config.sublayers == "parallel") != stand:
            raise ValueError("the norms of a Falcon must be called as its config.json says: ln_attn where it has two.")
        return tensors

    return Transform(keep, keep)


PARTS = ("weight", "bias")
LAYER = "transformer.h.{}."
LINEAR = {"self_attention.dense": "attn.out", "mlp.dense_h_to_4h": "mlp.pre", "mlp.dense_4h_to_h": "mlp.out"}
FUSED = f"{LAYER}self_attention.query_key_value"
GROUPS = Transform(split_groups, join_groups)


def norm_rows(names: tuple[str, str], stand: bool) -> tuple[tuple[Any, ...], ...]:
    def both(part: str) -> tuple[Any, ...]:
        theirs = tuple(f"{LAYER}{name}.{part}" for name in names)
        return theirs, (f"blocks.{{}}.norm1.{part}", f"blocks.{{}}.norm2.{part}"), two_norms(stand)

    return tuple(map(both, PARTS))


ROWS = (
    ("transformer.word_embeddings.weight", "embed.tokens.weight"),
    *((f"{FUSED}.{part}", tuple(f"blocks.{{}}.attn.{x}.{part}" for x in "qkv"), GROUPS) for part in PARTS),
    *((f"{LAYER}{theirs}.{part}", f"blocks.{{}}.{ours}.{part}") for theirs, ours in LINEAR.items() for part in PARTS),
    (f"{LAYER}self_attention.rotary_emb.inv_freq", DROPPED, FREQUENCIES),
    *((f"transformer.ln_f.{part}", f"final_norm.{part}") for part in PARTS),
    ("lm_head.weight", "head.weight"),
)
ONE_NORM = tuple((f"{LAYER}input_layernorm.{part}", f"blocks.{{}}.norm1.{part}") for part in PARTS)
OLD = (*ROWS, *norm_rows(("input_layernorm", "post_attention_layernorm"), False), *ONE_NORM)

DEFAULTS = {
    "vocab_size": 65024, "hidden_size": 4544, "num_hidden_layers": 32, "num_attention_heads": 71,
    "max_position_embeddings": 2048,
}  # fmt: skip

LANGUAGE = Family(
    name="falcon",
    architecture="FalconForCausalLM",
    keys=KEYS,
    always=ALWAYS,
    only=CAUSAL | {"alibi": False, "apply_residual_connection_post_layernorm": False},
    rows=OLD,
    tied={"lm_head.weight": "transformer.word_embeddings.weight"},
    optional_prefix="transformer.",
    common={"n_embed": "hidden_size"},
    defaults=DEFAULTS,
)
NEW = replace(LANGUAGE, rows=(*ROWS, *norm_rows(("ln_attn", "ln_mlp"), True)))
SIGN = f"{LAYER}ln_attn.weight".format(0)
FAMILIES = (
    *(replace(family, signs=(*family.signs, SIGN)) for family in with_tasks(NEW, token="classifier")),
    *with_tasks(LANGUAGE, token="classifier"),
)
PLACE = 1  # behind GPT-NeoX, which says some of the same and is better known
