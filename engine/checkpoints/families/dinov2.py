"""DINOv2 (Oquab et al. 2023), with registers (Darcet et al. 2024) and without, as transformers names it.

Pictures of another size than config.json's are read with positions that are interpolated: what its processor makes is
the size (`Patches.trained`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from torch import Tensor

from engine.checkpoints.families import vit
from engine.checkpoints.families.bert import CLASSES, CLASSIFIER
from engine.checkpoints.families.vit import CONVOLUTION, ONE_TEXT, ONE_TOKEN
from engine.checkpoints.family import Family, Transform, concatenate
from engine.checkpoints.keys import ACTIVATIONS, Key, Table, check_word
from engine.checkpoints.kinds import FLAG, POSITIVE, size
from engine.model.config import ModelConfig

MULTIPLE = 8  # that the neurons of a gated MLP are


def read_width(_: Any, theirs: Table) -> int:
    """Neurons of an MLP; of a gated one two thirds, rounded up."""
    width = int(theirs["hidden_size"] * theirs["mlp_ratio"])
    return -(-int(width * 2 / 3) // MULTIPLE) * MULTIPLE if theirs.get("use_swiglu_ffn") else width


def read_activation(word: Any, theirs: Table) -> Any:
    return "silu" if theirs.get("use_swiglu_ffn") else check_word("hidden_act", word, ACTIVATIONS)


def write_ratio(d_mlp: Any, ours: Table) -> float:
    ratio = d_mlp / ours["d_model"] * (1.5 if ours["mlp"]["gated"] else 1)
    return int(ratio) if ratio == int(ratio) else ratio


def patches_and_more(theirs: Mapping[str, Any]) -> int:
    return vit.patches_and_cls(theirs) + (theirs.get("num_register_tokens") or 0)


def stored_size(image: Any, ours: Table) -> Any:
    """Size of picture that the table of positions is made for."""
    return (ours["embedding"]["patches"] or {}).get("trained") or image


def split(tensors: list[Tensor], config: ModelConfig) -> list[Tensor]:
    """Gate, the other map of a gated MLP, and its output."""
    return [*tensors[0].chunk(2), tensors[1]]


def fuse(tensors: list[Tensor], config: ModelConfig) -> list[Tensor]:
    return [concatenate(tensors[:2], 0), tensors[2]]


FUSED = Transform(split, fuse)
KEYS = (
    Key("image_size", "embedding.patches.image", writes=stored_size),
    Key("patch_size", "embedding.patches.size"),
    Key("num_channels", "embedding.patches.channels", default=3),
    Key("hidden_size", "d_model"),
    Key("num_hidden_layers", "layers"),
    Key("num_attention_heads", "attention.heads"),
    Key("use_swiglu_ffn", "mlp.gated", default=False, kind=FLAG),
    Key("mlp_ratio", "mlp.d_mlp", reads=read_width, writes=write_ratio, kind=POSITIVE),
    Key("hidden_act", "mlp.activation", reads=read_activation, values=ACTIVATIONS),
    Key("layer_norm_eps", "norm.eps", default=1e-6),
    Key("qkv_bias", "attention.bias", default=True),
    Key("hidden_dropout_prob", "dropout", default=0.0, also=("attention_probs_dropout_prob",)),
)
MASK = Key("use_mask_token", "embedding.patches.mask", default=True, kind=FLAG)
REGISTERS = Key("num_register_tokens", "embedding.patches.registers", kind=size(0))
ALWAYS = vit.ALWAYS | {"layer_scale": True, "vector.pooled": ("first",)}
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
MLP_ROWS = (
    *(
        (
            (f"encoder.layer.{{}}.mlp.weights_in.{part}", f"encoder.layer.{{}}.mlp.weights_out.{part}"),
            (f"blocks.{{}}.mlp.pre.{part}", f"blocks.{{}}.mlp.up.{part}", f"blocks.{{}}.mlp.out.{part}"),
            FUSED,
        )
        for part in ("weight", "bias")
    ),
    *in_blocks({"mlp.fc1": "mlp.pre", "mlp.fc2": "mlp.out"}),
)
DEFAULTS = {
    "hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12, "mlp_ratio": 4, "image_size": 224,
    "hidden_act": "gelu",
}  # fmt: skip
BODY = Family(
    name="dinov2",
    architecture="Dinov2Model",
    keys=(*KEYS, MASK),
    always=ALWAYS,
    only={"apply_layernorm": True},
    rows=(*ROWS, *MLP_ROWS),
    module_spelling=MODULES,
    old_spelling={"dinov2.": ""},
    interpolates=True,
    defaults={**DEFAULTS, "patch_size": 14},
)
OF_CLASSES = {
    "head.kind": "sequence",
    "head.read": "vector",
    "vector.pooled": ("first", "mean"),
    "vector.patches": True,
}


def classified(body: Family, architecture: str) -> Family:
    """The model that names pictures by [CLS] and the mean of the patches, side by side (section 7.1)."""
    return replace(
        body,
        architecture=architecture,
        keys=(*body.keys, CLASSES),
        always={**body.always, **OF_CLASSES},
        rows=(*within(f"{body.name}.", body.rows), *CLASSIFIER),
        signs=("classifier.weight",),
        old_spelling={},
    )


def within(prefix: str, rows: Iterable[tuple[Any, ...]]) -> tuple[tuple[Any, ...], ...]:
    """`rows` of a body that stands in a larger model, where its tensors' names begin with `prefix`."""

    def named(theirs: Any) -> Any:
        return f"{prefix}{theirs}" if isinstance(theirs, str) else tuple(prefix + one for one in theirs)

    return tuple((named(theirs), *ours) for theirs, *ours in rows)


WITH_REGISTERS: dict[str, Any] = {
    "context": patches_and_more,
    "embedding.patches.mask": True,
    "embedding.patches.antialias": True,
}
REGISTERED = replace(
    BODY,
    name="dinov2_with_registers",
    architecture="Dinov2WithRegistersModel",
    keys=(*KEYS, REGISTERS),
    always={**ALWAYS, **WITH_REGISTERS},
    old_spelling={"dinov2_with_registers.": ""},
    defaults={**DEFAULTS, "patch_size": 16, "num_register_tokens": 4},
)
FAMILIES = (
    classified(BODY, "Dinov2ForImageClassification"),
    classified(REGISTERED, "Dinov2WithRegistersForImageClassification"),
    BODY,
    REGISTERED,
)
