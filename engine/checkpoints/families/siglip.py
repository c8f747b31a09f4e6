"""The two towers of SigLIP (Zhai et al. 2023), of pictures and of texts, as transformers names them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import Tensor

from engine.checkpoints.families.clip import OF_PICTURES, in_blocks
from engine.checkpoints.families.vit import CONVOLUTION
from engine.checkpoints.family import DROPPED, Family, Transform, concatenate
from engine.checkpoints.keys import ACTIVATIONS, Key, Table
from engine.checkpoints.kinds import size
from engine.checkpoints.recomputed import POSITION_IDS
from engine.model.config import ModelConfig


def count_patches(theirs: Mapping[str, Any]) -> int:
    count: int = (theirs["image_size"] // theirs["patch_size"]) ** 2
    return count


def read_projection(width: Any, theirs: Table) -> list[dict[str, Any]]:
    return [{"width": width}]


def write_projection(maps: Any, ours: Table) -> int:
    (made,) = maps
    width: int = made["width"]
    return width


def own_width(theirs: Mapping[str, Any]) -> list[dict[str, Any]]:
    return read_projection(theirs["hidden_size"], theirs)


def thirds(tensors: list[Tensor], config: ModelConfig) -> list[Tensor]:
    return list(tensors[0].chunk(3))


THIRDS = Transform(thirds, lambda tensors, _: [concatenate(tensors, 0)])
QUERY = Transform(lambda tensors, _: [tensors[0][0, 0]], lambda tensors, _: [tensors[0][None, None]])
KEYS = (
    Key("hidden_size", "d_model"),
    Key("num_hidden_layers", "layers"),
    Key("attention_dropout", "dropout", default=0.0),
    Key("hidden_act", "mlp.activation", default="gelu_tanh", values=ACTIVATIONS),
    Key("layer_norm_eps", "norm.eps", default=1e-6),
)
OF_A_TOWER = (Key("num_attention_heads", "attention.heads"), Key("intermediate_size", "mlp.d_mlp"))
OF_PROBE = (
    Key("num_attention_heads", "vector.probe.heads"),
    Key("intermediate_size", "vector.probe.d_mlp"),
    Key("hidden_act", "vector.probe.activation", default="gelu_tanh", values=ACTIVATIONS),
)
OF_TEXTS = (
    Key("vocab_size", "vocab_size"),
    Key("pad_token_id", "vector.filled", default=1),
    Key("max_position_embeddings", "context"),
    Key("projection_size", "vector.maps", default=own_width, reads=read_projection, writes=write_projection,
        kind=size(1)),
)  # fmt: skip
ALWAYS: Mapping[str, Any] = {
    "positions.kind": "learned",
    "norm.kind": "layer",
    "norm.place": "before",
    "attention.mask": "full",
    "head.kind": "none",
}
PICTURES: Mapping[str, Any] = {
    **ALWAYS,
    "vocab_size": 1,
    "context": count_patches,
    "embedding.patches.cls": False,
    "vector.pooled": ("mean",),
}
DEFAULTS: Mapping[str, Any] = {
    "hidden_size": 768, "intermediate_size": 3072, "num_hidden_layers": 12, "num_attention_heads": 12,
}  # fmt: skip
PROBE = {
    "head.attention.out_proj": "vector.probe.out",
    "head.layernorm": "vector.probe.norm",
    "head.mlp.fc1": "vector.probe.pre",
    "head.mlp.fc2": "vector.probe.post",
}
PICTURE = Family(
    name="siglip_vision_model",
    architecture="SiglipVisionModel",
    keys=(*KEYS, *OF_A_TOWER, *OF_PICTURES, *OF_PROBE),
    always=PICTURES,
    only={"vision_use_head": True},
    rows=(
        ("embeddings.position_ids", DROPPED, POSITION_IDS),
        ("embeddings.position_embedding.weight", "embed.positions.weight"),
        ("embeddings.patch_embedding.weight", "embed.patches.project.weight", CONVOLUTION),
        ("embeddings.patch_embedding.bias", "embed.patches.project.bias"),
        *in_blocks(""),
        ("post_layernorm.weight", "final_norm.weight"),
        ("post_layernorm.bias", "final_norm.bias"),
        ("head.probe", "vector.probe.query", QUERY),
        *(
            (
                f"head.attention.in_proj_{part}",
                (f"vector.probe.q.{part}", f"vector.probe.k.{part}", f"vector.probe.v.{part}"),
                THIRDS,
            )
            for part in ("weight", "bias")
        ),
        *((f"{theirs}.{part}", f"{ours}.{part}") for theirs, ours in PROBE.items() for part in ("weight", "bias")),
    ),
    old_spelling={"vision_model.": ""},
    half_of=("siglip", "vision_config"),
    defaults={**DEFAULTS, "image_size": 224, "patch_size": 16},
)
TEXT = Family(
    name="siglip_text_model",
    architecture="SiglipTextModel",
    keys=(*KEYS, *OF_A_TOWER, *OF_TEXTS),
    always={**ALWAYS, "vector.pooled": ("last",)},
    rows=(
        ("embeddings.token_embedding.weight", "embed.tokens.weight"),
        ("embeddings.position_ids", DROPPED, POSITION_IDS),
        ("embeddings.position_embedding.weight", "embed.positions.weight"),
        *in_blocks(""),
        ("final_layer_norm.weight", "final_norm.weight"),
        ("final_layer_norm.bias", "final_norm.bias"),
        ("head.weight", "vector.maps.0.dense.weight"),
        ("head.bias", "vector.maps.0.dense.bias"),
    ),
    old_spelling={"text_model.": ""},
    half_of=("siglip", "text_config"),
    defaults={**DEFAULTS, "vocab_size": 32000, "max_position_embeddings": 64},
)
FAMILIES = (PICTURE, TEXT)
