"""The two towers of CLIP (Radford et al. 2021), of pictures and of texts, as transformers names them.

A tower ends in one vector, which the other tower's is compared with by their cosine.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from engine.checkpoints.families import vit
from engine.checkpoints.families.vit import CONVOLUTION
from engine.checkpoints.family import DROPPED, Family
from engine.checkpoints.keys import ACTIVATIONS, Key, Table
from engine.checkpoints.kinds import size
from engine.checkpoints.recomputed import POSITION_IDS

OLD_END = 2  # that configs say of a text's last token, which is the highest of the vocabulary


def read_mark(end: Any, theirs: Table) -> int:
    """The token behind a text, whose position stands for it: the highest of the vocabulary in older configs."""
    (found,) = end if isinstance(end, list | tuple) else (end,)
    return theirs["vocab_size"] - 1 if found == OLD_END else found


def read_projection(width: Any, theirs: Table) -> list[dict[str, Any]]:
    return [{"width": width, "bias": False}]


def write_projection(maps: Any, ours: Table) -> int:
    (made,) = maps
    width: int = made["width"]
    return width


BLOCKS = {
    "self_attn.q_proj": "attn.q",
    "self_attn.k_proj": "attn.k",
    "self_attn.v_proj": "attn.v",
    "self_attn.out_proj": "attn.out",
    "layer_norm1": "norm1",
    "layer_norm2": "norm2",
    "mlp.fc1": "mlp.pre",
    "mlp.fc2": "mlp.out",
}


def in_blocks(prefix: str) -> tuple[tuple[Any, ...], ...]:
    return tuple(
        (f"{prefix}encoder.layers.{{}}.{theirs}.{part}", f"blocks.{{}}.{ours}.{part}")
        for theirs, ours in BLOCKS.items()
        for part in ("weight", "bias")
    )


KEYS = (
    Key("hidden_size", "d_model"),
    Key("num_hidden_layers", "layers"),
    Key("attention_dropout", "dropout", default=0.0),
    Key("num_attention_heads", "attention.heads"),
    Key("intermediate_size", "mlp.d_mlp"),
    Key("hidden_act", "mlp.activation", default="quick_gelu", values=ACTIVATIONS),
    Key("layer_norm_eps", "norm.eps", default=1e-5),
)
PROJECTION = Key(
    "projection_dim", "vector.maps", reads=read_projection, writes=write_projection, kind=size(1),
)  # fmt: skip
OF_PICTURES = (
    Key("image_size", "embedding.patches.image"),
    Key("patch_size", "embedding.patches.size"),
    Key("num_channels", "embedding.patches.channels", default=3),
)
OF_TEXTS = (
    Key("vocab_size", "vocab_size"),
    Key("max_position_embeddings", "context"),
    Key("eos_token_id", "vector.mark", default=49407, reads=read_mark),
)
ALWAYS: Mapping[str, Any] = {
    "positions.kind": "learned",
    "norm.kind": "layer",
    "norm.place": "before",
    "head.kind": "none",
    "vector.pooled": ("first",),
}
PICTURES: Mapping[str, Any] = {
    **ALWAYS,
    "vocab_size": 1,
    "context": vit.patches_and_cls,
    "attention.mask": "full",
    "embedding.norm": True,
    "embedding.patches.bias": False,
    "norm.final": False,
    "vector.norm": True,
}
TEXTS: Mapping[str, Any] = {**ALWAYS, "attention.mask": "causal"}

PICTURE_ROWS = (
    ("vision_model.embeddings.class_embedding", "embed.patches.cls"),
    ("vision_model.embeddings.position_ids", DROPPED, POSITION_IDS),
    ("vision_model.embeddings.position_embedding.weight", "embed.positions.weight"),
    ("vision_model.embeddings.patch_embedding.weight", "embed.patches.project.weight", CONVOLUTION),
    ("vision_model.pre_layrnorm.weight", "embed.norm.weight"),
    ("vision_model.pre_layrnorm.bias", "embed.norm.bias"),
    *in_blocks("vision_model."),
    ("vision_model.post_layernorm.weight", "vector.norm.weight"),
    ("vision_model.post_layernorm.bias", "vector.norm.bias"),
    ("visual_projection.weight", "vector.maps.0.dense.weight"),
)
TEXT_ROWS = (
    ("text_model.embeddings.token_embedding.weight", "embed.tokens.weight"),
    ("text_model.embeddings.position_ids", DROPPED, POSITION_IDS),
    ("text_model.embeddings.position_embedding.weight", "embed.positions.weight"),
    *in_blocks("text_model."),
    ("text_model.final_layer_norm.weight", "final_norm.weight"),
    ("text_model.final_layer_norm.bias", "final_norm.bias"),
    ("text_projection.weight", "vector.maps.0.dense.weight"),
)
PICTURE = Family(
    name="clip_vision_model",
    architecture="CLIPVisionModelWithProjection",
    keys=(*KEYS, *OF_PICTURES, PROJECTION),
    always=PICTURES,
    rows=PICTURE_ROWS,
    signs=("visual_projection.weight",),
    optional_prefix="vision_model.",
    half_of=("clip", "vision_config"),
    defaults={
        "hidden_size": 768, "intermediate_size": 3072, "num_hidden_layers": 12, "num_attention_heads": 12,
        "image_size": 224, "patch_size": 32, "projection_dim": 512,
    },
)  # fmt: skip
TEXT = Family(
    name="clip_text_model",
    architecture="CLIPTextModelWithProjection",
    keys=(*KEYS, *OF_TEXTS, PROJECTION),
    always=TEXTS,
    rows=TEXT_ROWS,
    signs=("text_projection.weight",),
    optional_prefix="text_model.",
    half_of=("clip", "text_config"),
    defaults={
        "vocab_size": 49408, "hidden_size": 512, "intermediate_size": 2048, "num_hidden_layers": 12,
        "num_attention_heads": 8, "max_position_embeddings": 77, "projection_dim": 512, "eos_token_id": 49407,
    },
)  # fmt: skip


def without_projection(family: Family, architecture: str) -> Family:
    return replace(
        family, architecture=architecture, keys=tuple(key for key in family.keys if key is not PROJECTION),
        rows=tuple(row for row in family.rows if row[1] != "vector.maps.0.dense.weight"), signs=(), half_of=None,
    )  # fmt: skip


FAMILIES = (
    PICTURE,
    without_projection(PICTURE, "CLIPVisionModel"),
    TEXT,
    without_projection(TEXT, "CLIPTextModel"),
)
