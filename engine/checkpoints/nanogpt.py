"""Checkpoints of nanoGPT (`ckpt.pt`) and minGPT (a state dict): GPT-2's names, with linear layers not transposed.

github.com/karpathy/nanoGPT `model.py` and github.com/karpathy/minGPT `mingpt/model.py`, which until 2022 had names of
its own. There is no config.json: nanoGPT's sizes are in the file, minGPT's are inferred.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from engine.checkpoints.family import DROPPED, Family, Transform
from engine.checkpoints.keys import ACTIVATIONS, ConfigTable, Key
from engine.checkpoints.recomputed import CAUSAL_MASK
from engine.model.config import ModelConfig

SIZES = ("n_layer", "n_head", "n_embd", "block_size", "vocab_size")
HEADS = {48: 3, 128: 4, 192: 6, 512: 8, 768: 12, 1024: 16, 1280: 20, 1600: 25}  # minGPT's models, by their width
MOST_LAYERS = 1000


def read_settings(args: Mapping[str, Any], path: Path) -> dict[str, Any]:
    """nanoGPT's `model_args` as the config of one of FAMILIES. Raises ValueError for sizes of no model."""
    table = ConfigTable(args, source=f"{path.name}'s ")
    sizes = {name: table[name] for name in SIZES}
    if not 1 <= sizes["n_layer"] <= MOST_LAYERS:
        raise ValueError(f"{path} must have 1 to {MOST_LAYERS} layers, got {sizes['n_layer']}; is it damaged?")
    architecture = (WITH_BIAS if table.get("bias", True) else WITHOUT_BIAS).architecture
    return {"model_type": "nanogpt", "architectures": [architecture], **sizes, "activation": "gelu"}


def default_heads(theirs: Mapping[str, Any]) -> int | None:
    return HEADS.get(theirs["n_embd"])


def four_times(theirs: Mapping[str, Any]) -> Any:
    return 4 * theirs["n_embd"]


def build_keys(activation: str) -> tuple[Key, ...]:
    return (
        Key("vocab_size", "vocab_size"),
        Key("block_size", "context"),
        Key("n_embd", "d_model"),
        Key("n_layer", "layers"),
        Key("n_head", "attention.heads", default=default_heads),
        Key("activation", "mlp.activation", default=activation, values=ACTIVATIONS),
    )


def fixed_settings(bias: bool, tied: bool) -> dict[str, Any]:
    biases = dict.fromkeys(("attention.bias", "attention.out_bias", "mlp.bias"), bias)
    return {
        "positions.kind": "learned",
        "norm.kind": "layer",
        "norm.eps": 1e-5,
        "attention.mask": "causal",
        "mlp.d_mlp": four_times,
        "tied": tied,
        **biases,
    }


def without_bias(tensors: list[Tensor], config: ModelConfig) -> list[Tensor]:
    """A LayerNorm that has no bias is one whose bias is zero."""
    return [tensors[0], torch.zeros_like(tensors[0])]


THIRDS = Transform(lambda tensors, _: list(tensors[0].chunk(3)), lambda tensors, _: [torch.cat(tensors)])
ZERO_BIAS = Transform(without_bias, lambda tensors, _: [tensors[0]])
ONE_TEXT = Transform(lambda tensors, _: [tensors[0][0]], lambda tensors, _: [tensors[0][None]])
PARTS = ("weight", "bias")
LINEAR = {"attn.c_proj": "attn.out", "mlp.c_fc": "mlp.pre", "mlp.c_proj": "mlp.out"}
OLD_LINEAR = {
    "attn.query": "attn.q",
    "attn.key": "attn.k",
    "attn.value": "attn.v",
    "attn.proj": "attn.out",
    "mlp.0": "mlp.pre",
    "mlp.2": "mlp.out",
    "ln1": "norm1",
    "ln2": "norm2",
}


def norm_rows(theirs: str, ours: str, bias: bool) -> list[tuple[Any, ...]]:
    if not bias:
        return [(f"{theirs}.weight", (f"{ours}.weight", f"{ours}.bias"), ZERO_BIAS)]
    return [(f"{theirs}.{part}", f"{ours}.{part}") for part in PARTS]


def build_family(bias: bool, architecture: str) -> Family:
    """Rows whose tensors the model lacks, as those of a bias it does not have, are left out of themselves."""
    qkv = {part: tuple(f"blocks.{{}}.attn.{x}.{part}" for x in "qkv") for part in PARTS}
    return Family(
        name="nanogpt",
        architecture=architecture,
        keys=build_keys("gelu_tanh" if bias else "gelu"),  # minGPT's, whose state dict shows no more; it has biases
        always=fixed_settings(bias, tied=True),
        rows=(
            ("transformer.wte.weight", "embed.tokens.weight"),
            ("transformer.wpe.weight", "embed.positions.weight"),
            *norm_rows("transformer.h.{}.ln_1", "blocks.{}.norm1", bias),
            ("transformer.h.{}.attn.c_attn.weight", qkv["weight"], THIRDS),
            ("transformer.h.{}.attn.c_attn.bias", qkv["bias"], THIRDS),
            *(
                (f"transformer.h.{{}}.{theirs}.{part}", f"blocks.{{}}.{ours}.{part}")
                for theirs, ours in LINEAR.items()
                for part in PARTS
            ),
            ("transformer.h.{}.attn.bias", DROPPED, CAUSAL_MASK),
            *norm_rows("transformer.h.{}.ln_2", "blocks.{}.norm2", bias),
            *norm_rows("transformer.ln_f", "final_norm", bias),
            ("lm_head.weight", "head.weight"),
        ),
        tied={"lm_head.weight": "transformer.wte.weight"},
    )


WITH_BIAS = build_family(True, "GPT")
WITHOUT_BIAS = build_family(False, "GPT without biases")
OLD_MINGPT = Family(
    name="mingpt",
    architecture="minGPT of before 2022",
    keys=build_keys("gelu"),
    always=fixed_settings(True, tied=False),
    rows=(
        ("tok_emb.weight", "embed.tokens.weight"),
        ("pos_emb", "embed.positions.weight", ONE_TEXT),
        *(
            (f"blocks.{{}}.{theirs}.{part}", f"blocks.{{}}.{ours}.{part}")
            for theirs, ours in OLD_LINEAR.items()
            for part in PARTS
        ),
        ("blocks.{}.attn.mask", DROPPED, CAUSAL_MASK),
        *norm_rows("ln_f", "final_norm", bias=True),
        ("head.weight", "head.weight"),
    ),
)
FAMILIES = (WITH_BIAS, WITHOUT_BIAS, OLD_MINGPT)
