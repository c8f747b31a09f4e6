"""BEiT (Bao et al. 2022), as transformers names it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from torch import Tensor

from engine.checkpoints.families import vit
from engine.checkpoints.families.bert import CLASSES, CLASSIFIER
from engine.checkpoints.families.dinov2 import in_blocks, within
from engine.checkpoints.families.vit import CONVOLUTION, ONE_TEXT, ONE_TOKEN
from engine.checkpoints.family import DROPPED, Family
from engine.checkpoints.keys import Key, Table
from engine.checkpoints.kinds import FLAG, NOT_NEGATIVE
from engine.checkpoints.recomputed import RecomputedTensor
from engine.model.config import ModelConfig
from engine.model.layers.grid_bias import grid_rows

USUAL_SCALE = 0.1  # with which a layer's scale begins, which says that it has one


def read_bias(theirs: Table) -> Any:
    each, shared = theirs.get("use_relative_position_bias"), theirs.get("use_shared_relative_position_bias")
    if each and shared:
        raise ValueError("config.json's use_relative_position_bias and its shared one cannot both be true: choose one.")
    return "each" if each else "shared" if shared else None


def patches_pooled(mean: Any, theirs: Table) -> Any:
    return ("mean",) if mean else ("first",)


def rows_of_distances(stored: Tensor, config: ModelConfig, layer: int) -> Tensor:
    patches = config.embedding.patches
    assert patches is not None
    return grid_rows(patches.side)


DISTANCES = RecomputedTensor("the rows of distances of its patches", rows_of_distances)
KEYS = (
    *(key for key in vit.KEYS if key.theirs != "qkv_bias"),
    Key("use_absolute_position_embeddings", "positions.kind", default="none", kind=FLAG,
        reads=lambda told, _: "learned" if told else "none", writes=lambda kind, _: kind == "learned"),
    Key("use_relative_position_bias", "positions.picture_bias", default=read_bias, kind=FLAG,
        reads=lambda _, theirs: read_bias(theirs), writes=lambda bias, _: bias == "each"),
    Key("use_shared_relative_position_bias", "positions.picture_bias", default=read_bias, kind=FLAG,
        reads=lambda _, theirs: read_bias(theirs), writes=lambda bias, _: bias == "shared"),
    Key("layer_scale_init_value", "layer_scale", default=True, kind=NOT_NEGATIVE, reads=lambda value, _: value > 0,
        writes=lambda scaled, _: USUAL_SCALE if scaled else 0.0),
    Key("use_mask_token", "embedding.patches.mask", default=False, kind=FLAG),
    Key("use_mean_pooling", "vector.pooled", default=("mean",), kind=FLAG, reads=patches_pooled,
        writes=lambda pooled, _: list(pooled) == ["mean"]),
)  # fmt: skip
IS_MEAN: Mapping[str, Any] = {
    "vector.patches": lambda theirs: theirs.get("use_mean_pooling") is not False,
    "vector.norm": lambda theirs: theirs.get("use_mean_pooling") is not False,
    "norm.final": lambda theirs: theirs.get("use_mean_pooling") is False,
}
ALWAYS: Mapping[str, Any] = {
    **{name: value for name, value in vit.ALWAYS.items() if name != "positions.kind"},
    **IS_MEAN,
    "attention.key_bias": False,
}
LAYER = "encoder.layer.{}."
OWN_BIAS = f"{LAYER}attention.attention.relative_position_bias"
ROWS = (
    ("embeddings.cls_token", "embed.patches.cls", ONE_TOKEN),
    ("embeddings.mask_token", "embed.patches.mask", ONE_TOKEN),
    ("embeddings.position_embeddings", "embed.positions.weight", ONE_TEXT),
    ("embeddings.patch_embeddings.projection.weight", "embed.patches.project.weight", CONVOLUTION),
    ("embeddings.patch_embeddings.projection.bias", "embed.patches.project.bias"),
    *in_blocks(vit.LINEAR),
    ("encoder.layer.{}.lambda_1", "blocks.{}.scale1"),
    ("encoder.layer.{}.lambda_2", "blocks.{}.scale2"),
    (f"{OWN_BIAS}.relative_position_bias_table", "blocks.{}.attn.grid_bias.weight"),
    (f"{OWN_BIAS}.relative_position_index", DROPPED, DISTANCES),
    ("encoder.relative_position_bias.relative_position_bias_table", "grid_bias.weight"),
    ("encoder.relative_position_bias.relative_position_index", DROPPED, DISTANCES),
    ("pooler.layernorm.weight", "vector.norm.weight"),
    ("pooler.layernorm.bias", "vector.norm.bias"),
    ("layernorm.weight", "final_norm.weight"),
    ("layernorm.bias", "final_norm.bias"),
)
BODY = Family(
    name="beit",
    architecture="BeitModel",
    keys=KEYS,
    always=ALWAYS,
    rows=ROWS,
    old_spelling={"beit.": ""},
    defaults=vit.DEFAULTS,
)
CLASSIFIED = replace(
    BODY,
    architecture="BeitForImageClassification",
    keys=(*KEYS, CLASSES),
    always={**ALWAYS, "head.kind": "sequence", "head.read": "vector"},
    rows=(*within("beit.", ROWS), *CLASSIFIER),
    signs=("classifier.weight",),
    old_spelling={},
)
FAMILIES = (CLASSIFIED, BODY)
