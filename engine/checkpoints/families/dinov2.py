"""DINOv2 (Oquab et al. 2023), with registers (Darcet et al. 2024) and without, as transformers names it.

Pictures of another size than config.json's are read with positions that are interpolated: what its processor makes is
the size (`Patches.trained`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from torch import Tensor

from engine.checkpoints.families import vit
from engine.checkpoints.families.vit import CONVOLUTION, ONE_TEXT, ONE_TOKEN
from engine.checkpoints.family import Family, Transform, concatenate
from engine.checkpoints.keys import ACTIVATIONS, Key, Table
from engine.checkpoints.kinds import FLAG, POSITIVE, size
from engine.model.config import ModelConfig

MULTIPLE = 8  # that the neurons of a gated MLP are


def plain_width(_: Any, theirs: Table) -> int:
    return int(theirs["hidden_size"] * theirs["mlp_ratio"])


def gated_width(_: Any, theirs: Table) -> int:
    """Two thirds of the neurons of a plain MLP, rounded up."""
    return -(-int(plain_width(_, theirs) * 2 / 3) // MULTIPLE) * MULTIPLE


def write_ratio(d_mlp: Any, ours: Table) -> float:
    ratio = d_mlp / ours["d_model"] * (1.5 if ours["mlp"]["gated"] else 1)
    return int(ratio) if ratio == int(ratio) else ratio


def patches_and_more(theirs: Mapping[str, Any]) -> int:
    return vit.patches_and_cls(theirs) + (theirs.get("num_register_tokens") or 0)


def stored_size(image: Any, ours: Table) -> Any:
    """Size of picture that the table of positions is made for."""
    return ours["embedding"]["patches"]["trained"] or image


def split(tensors: list[Tensor], config: ModelConfig) -> list[Tensor]:
    return list(tensors[0].chunk(2))


FUSED = Transform(split, lambda tensors, _: [concatenate(tensors, 0)])
DEFAULTS = {
    "hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12, "mlp_ratio": 4, "image_size": 224,
    "patch_size": 16, "num_register_tokens": 4,
}  # fmt: skip
KEYS = (
    Key("image_size", "embedding.patches.image", writes=stored_size),
    Key("patch_size", "embedding.patches.size"),
    Key("num_channels", "embedding.patches.channels", default=3),
    Key("hidden_size", "d_model"),
    Key("num_hidden_layers", "layers"),
    Key("num_attention_heads", "attention.heads"),
    Key("layer_norm_eps", "norm.eps", default=1e-6),
    Key("qkv_bias", "attention.bias", default=True),
    Key("hidden_dropout_prob", "dropout", default=0.0, also=("attention_probs_dropout_prob",)),
)
PLAIN = (
    Key("mlp_ratio", "mlp.d_mlp", reads=plain_width, writes=write_ratio, kind=POSITIVE),
    Key("hidden_act", "mlp.activation", default="gelu", values=ACTIVATIONS),
)
MASK = Key("use_mask_token", "embedding.patches.mask", default=True, kind=FLAG)
GATED = (Key("mlp_ratio", "mlp.d_mlp", reads=gated_width, writes=write_ratio, kind=POSITIVE),)
REGISTERS = Key("num_register_tokens", "embedding.patches.registers", kind=size(0))
ALWAYS = vit.ALWAYS | {"layer_scale": True, "vector.pooled": ("first",)}
MULTIPLIED = ALWAYS | {"mlp.gated": True, "mlp.activation": "silu"}
LINEAR = {
    "attention.attention.query": "attn.q",
    "attention.attention.key": "attn.k",
    "attention.attention.value": "attn.v",
    "attention.output.dense": "attn.out",
    "norm1": "norm1",
    "norm2": "norm2",
}
MODULES = {
    ".attention.attention.query": ".attention.q_proj",
    ".attention.attention.key": ".attention.k_proj",
    ".attention.attention.value": ".attention.v_proj",
    ".attention.output.dense": ".attention.o_proj",
}


def in_blocks(names: Mapping[str, str], prefix: str = "encoder.layer.{}.") -> tuple[tuple[Any, ...], ...]:
    return tuple(
        (f"{prefix}{theirs}.{part}", f"blocks.{{}}.{ours}.{part}")
        for theirs, ours in names.items()
        for part in ("weight", "bias")
    )


ROWS = (
    ("embeddings.cls_token", "embed.patches.cls", ONE_TOKEN),
    ("embeddings.mask_token", "embed.patches.mask", ONE_TEXT),
    ("embeddings.register_tokens", "embed.patches.registers", ONE_TEXT),
    ("embeddings.position_embeddings", "embed.positions.weight", ONE_TEXT),
    ("embeddings.patch_embeddings.projection.weight", "embed.patches.project.weight", CONVOLUTION),
    ("embeddings.patch_embeddings.projection.bias", "embed.patches.project.bias"),
    *in_blocks(LINEAR),
    ("encoder.layer.{}.layer_scale1.lambda1", "blocks.{}.scale1"),
    ("encoder.layer.{}.layer_scale2.lambda1", "blocks.{}.scale2"),
    ("layernorm.weight", "final_norm.weight"),
    ("layernorm.bias", "final_norm.bias"),
)
PLAIN_ROWS = in_blocks({"mlp.fc1": "mlp.pre", "mlp.fc2": "mlp.out"})
GATED_ROWS = (
    *(
        (
            f"encoder.layer.{{}}.mlp.weights_in.{part}",
            (f"blocks.{{}}.mlp.pre.{part}", f"blocks.{{}}.mlp.up.{part}"),
            FUSED,
        )
        for part in ("weight", "bias")
    ),
    *in_blocks({"mlp.weights_out": "mlp.out"}),
)


def architectures(name: str, stem: str, registers: bool) -> tuple[Family, ...]:
    """Both kinds of MLP, of a model with registers or without."""
    own: dict[str, Any] = {}
    if registers:
        own = {"context": patches_and_more, "embedding.patches.mask": True, "embedding.patches.antialias": True}
    more = (REGISTERS,) if registers else (MASK,)
    body = Family(
        name=name,
        architecture=f"{stem}Model",
        keys=(*KEYS, *more, *PLAIN),
        always=ALWAYS | own,
        only={"use_swiglu_ffn": False, "apply_layernorm": True},
        rows=(*ROWS, *PLAIN_ROWS),
        module_spelling=MODULES,
        old_spelling={f"{name}.": ""},
        interpolates=True,
        defaults=DEFAULTS,
    )
    gated = replace(
        body,
        keys=(*KEYS, *more, *GATED),
        always=MULTIPLIED | own,
        only={"use_swiglu_ffn": True, "apply_layernorm": True},
        rows=(*ROWS, *GATED_ROWS),
        signs=("encoder.layer.0.mlp.weights_in.weight",),
    )
    return gated, body


FAMILIES = (
    *architectures("dinov2", "Dinov2", registers=False),
    *architectures("dinov2_with_registers", "Dinov2WithRegisters", registers=True),
)
