"""ViT (Dosovitskiy et al. 2021), as transformers names it.

The linear map of the patches is stored as a convolution: d_model channel height width.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from torch import Tensor

from engine.checkpoints.families.bert import CLASSES, CLASSIFIER
from engine.checkpoints.family import DROPPED, Family, Transform
from engine.checkpoints.keys import ACTIVATIONS, Key
from engine.model.config import ModelConfig


def patches_and_cls(theirs: Mapping[str, Any]) -> int:
    count: int = (theirs["image_size"] // theirs["patch_size"]) ** 2
    return count + 1


def same_width(width: Any, theirs: Mapping[str, Any]) -> Any:
    if width != theirs["hidden_size"]:
        raise ValueError(f"config.json's pooler_output_size must be its hidden_size, got {width}: Loupe has no other.")
    return width


KEYS = (
    Key("image_size", "embedding.patches.image"),
    Key("patch_size", "embedding.patches.size"),
    Key("num_channels", "embedding.patches.channels", default=3),
    Key("hidden_size", "d_model"),
    Key("num_hidden_layers", "layers"),
    Key("num_attention_heads", "attention.heads"),
    Key("intermediate_size", "mlp.d_mlp"),
    Key("hidden_act", "mlp.activation", default="gelu", values=ACTIVATIONS),
    Key("layer_norm_eps", "norm.eps", default=1e-12),
    Key("qkv_bias", "attention.bias", default=True),
    Key("hidden_dropout_prob", "dropout", default=0.0, also=("attention_probs_dropout_prob",)),
)

POOLER_WIDTH = Key("pooler_output_size", "d_model", lambda theirs: theirs["hidden_size"], reads=same_width)

ALWAYS = {
    "vocab_size": 1,
    "context": patches_and_cls,
    "positions.kind": "learned",
    "norm.kind": "layer",
    "norm.place": "before",
    "attention.mask": "full",
    "head.kind": "none",
}


def flatten(tensors: list[Tensor], config: ModelConfig) -> list[Tensor]:
    return [tensors[0].flatten(1)]


def unflatten(tensors: list[Tensor], config: ModelConfig) -> list[Tensor]:
    patches = config.embedding.patches
    assert patches is not None
    return [tensors[0].unflatten(1, (patches.channels, patches.size, patches.size))]


CONVOLUTION = Transform(flatten, unflatten)
ONE_TEXT = Transform(lambda tensors, _: [tensors[0][0]], lambda tensors, _: [tensors[0][None]])
ONE_TOKEN = Transform(lambda tensors, _: [tensors[0][0, 0]], lambda tensors, _: [tensors[0][None, None]])

LINEAR = {
    "attention.attention.query": "attn.q",
    "attention.attention.key": "attn.k",
    "attention.attention.value": "attn.v",
    "attention.output.dense": "attn.out",
    "layernorm_before": "norm1",
    "layernorm_after": "norm2",
    "intermediate.dense": "mlp.pre",
    "output.dense": "mlp.out",
}
MODULES = {
    "encoder.layer.": "layers.",
    ".attention.attention.query": ".attention.q_proj",
    ".attention.attention.key": ".attention.k_proj",
    ".attention.attention.value": ".attention.v_proj",
    ".attention.output.dense": ".attention.o_proj",
    ".intermediate.dense": ".mlp.fc1",
    ".output.dense": ".mlp.fc2",
}
ROWS = (
    ("vit.embeddings.cls_token", "embed.patches.cls", ONE_TOKEN),
    ("vit.embeddings.position_embeddings", "embed.positions.weight", ONE_TEXT),
    ("vit.embeddings.patch_embeddings.projection.weight", "embed.patches.project.weight", CONVOLUTION),
    ("vit.embeddings.patch_embeddings.projection.bias", "embed.patches.project.bias"),
    *(
        (f"vit.encoder.layer.{{}}.{theirs}.{part}", f"blocks.{{}}.{ours}.{part}")
        for theirs, ours in LINEAR.items()
        for part in ("weight", "bias")
    ),
    ("vit.layernorm.weight", "final_norm.weight"),
    ("vit.layernorm.bias", "final_norm.bias"),
)
POOLER = (
    ("vit.pooler.dense.weight", "pooler.dense.weight"),
    ("vit.pooler.dense.bias", "pooler.dense.bias"),
)
NO_POOLER = (
    ("vit.pooler.dense.weight", DROPPED),
    ("vit.pooler.dense.bias", DROPPED),
)

DEFAULTS = {
    "hidden_size": 768,
    "num_hidden_layers": 12,
    "num_attention_heads": 12,
    "intermediate_size": 3072,
    "image_size": 224,
    "patch_size": 16,
}

BODY = Family(
    name="vit",
    architecture="ViTModel",
    keys=KEYS,
    always=ALWAYS,
    rows=ROWS,
    optional_prefix="vit.",
    module_spelling=MODULES,
    defaults=DEFAULTS,
)
FAMILIES = (
    replace(
        BODY,
        architecture="ViTForImageClassification",
        keys=(*KEYS, CLASSES),
        always=ALWAYS | {"head.kind": "sequence"},
        rows=(*ROWS, *CLASSIFIER, *NO_POOLER),
        signs=("classifier.weight",),
    ),
    replace(
        BODY,
        keys=(*KEYS, POOLER_WIDTH),
        always=ALWAYS | {"head.pooler": True},
        only={"pooler_act": "tanh"},
        rows=(*ROWS, *POOLER),
        signs=("vit.pooler.dense.weight",),
    ),
    BODY,
)
