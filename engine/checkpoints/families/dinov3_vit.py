"""DINOv3's vision transformer (Siméoni et al. 2025), as transformers names it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from engine.checkpoints.families import vit
from engine.checkpoints.families.dinov2 import in_blocks, patches_and_more, stored_size
from engine.checkpoints.families.vit import CONVOLUTION, ONE_TEXT, ONE_TOKEN
from engine.checkpoints.family import Family
from engine.checkpoints.keys import ACTIVATIONS, Key, Table
from engine.checkpoints.kinds import FLAG, size


def both_biases(found: Any, theirs: Table) -> Any:
    other = theirs.get("value_bias")
    if other is not None and other != found:
        raise ValueError(f"config.json's value_bias must be its query_bias, {found}, got {other}: Loupe has no other.")
    return found


KEYS = (
    Key("image_size", "embedding.patches.image", writes=stored_size),
    Key("patch_size", "embedding.patches.size"),
    Key("num_channels", "embedding.patches.channels", default=3),
    Key("num_register_tokens", "embedding.patches.registers", kind=size(0)),
    Key("hidden_size", "d_model"),
    Key("num_hidden_layers", "layers"),
    Key("num_attention_heads", "attention.heads"),
    Key("intermediate_size", "mlp.d_mlp"),
    Key("use_gated_mlp", "mlp.gated", default=False, kind=FLAG),
    Key("hidden_act", "mlp.activation", default="gelu", values=ACTIVATIONS),
    Key("layer_norm_eps", "norm.eps", default=1e-5),
    Key("query_bias", "attention.bias", default=True, reads=both_biases, also=("value_bias",), kind=FLAG),
    Key("key_bias", "attention.key_bias", default=False, kind=FLAG),
    Key("proj_bias", "attention.out_bias", default=True, kind=FLAG),
    Key("mlp_bias", "mlp.bias", default=True),
    Key("rope_theta", "positions.theta"),
    Key("attention_dropout", "dropout", default=0.0),
)
ALWAYS: Mapping[str, Any] = {
    **{name: value for name, value in vit.ALWAYS.items() if name != "positions.kind"},
    "positions.kind": "rotary",
    "positions.grid": True,
    "context": patches_and_more,
    "embedding.patches.mask": True,
    "layer_scale": True,
    "vector.pooled": ("first",),
}
ATTENTION = {
    "attention.q_proj": "attn.q",
    "attention.k_proj": "attn.k",
    "attention.v_proj": "attn.v",
    "attention.o_proj": "attn.out",
    "norm1": "norm1",
    "norm2": "norm2",
}
LAYER = "layer.{}."
ROWS = (
    ("embeddings.cls_token", "embed.patches.cls", ONE_TOKEN),
    ("embeddings.mask_token", "embed.patches.mask", ONE_TOKEN),
    ("embeddings.register_tokens", "embed.patches.registers", ONE_TEXT),
    ("embeddings.patch_embeddings.weight", "embed.patches.project.weight", CONVOLUTION),
    ("embeddings.patch_embeddings.bias", "embed.patches.project.bias"),
    *in_blocks(ATTENTION, LAYER),
    ("layer.{}.layer_scale1.lambda1", "blocks.{}.scale1"),
    ("layer.{}.layer_scale2.lambda1", "blocks.{}.scale2"),
    ("norm.weight", "final_norm.weight"),
    ("norm.bias", "final_norm.bias"),
)
MLP = (
    *(
        (
            tuple(f"layer.{{}}.mlp.{name}.{part}" for name in ("gate_proj", "up_proj")),
            (f"blocks.{{}}.mlp.pre.{part}", f"blocks.{{}}.mlp.up.{part}"),
        )
        for part in ("weight", "bias")
    ),
    *in_blocks({"mlp.up_proj": "mlp.pre", "mlp.down_proj": "mlp.out"}, LAYER),
)
BODY = Family(
    name="dinov3_vit",
    architecture="DINOv3ViTModel",
    keys=KEYS,
    always=ALWAYS,
    only={"apply_layernorm": True},
    rows=(*ROWS, *MLP),
    old_spelling={"model.": ""},
    interpolates=True,
    defaults={
        "hidden_size": 384, "intermediate_size": 1536, "num_hidden_layers": 12, "num_attention_heads": 6,
        "image_size": 224, "patch_size": 16, "num_register_tokens": 0, "rope_theta": 100.0,
    },
)  # fmt: skip
FAMILIES = (BODY,)
