"""Checkpoints of nanoGPT (`ckpt.pt`) and minGPT (a state dict): GPT-2's names, with linear layers not transposed.

github.com/karpathy/nanoGPT `model.py` and github.com/karpathy/minGPT `mingpt/model.py`.
"""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from engine.checkpoints.family import DROPPED, Family, Transform
from engine.checkpoints.weights import UNREADABLE, Weights
from engine.config import MLP, Activation, Attention, ModelConfig, Norm

WRAPPERS = ("_orig_mod.", "module.")  # what torch.compile and DistributedDataParallel put before each name
SIZES = ("n_layer", "n_head", "n_embd", "block_size", "vocab_size")
HEADS = {48: 3, 128: 4, 192: 6, 512: 8, 768: 12, 1024: 16, 1280: 20, 1600: 25}  # minGPT's models, by their width
MOST_LAYERS = 1000

Read = tuple[Family, ModelConfig, Weights, tuple[str, ...]]


def read_nanogpt(path: Path, heads: int | None = None) -> Read:
    """The last are sentences about what the file does not say and was assumed. `heads` are needed for a state dict of
    a width that minGPT has no model of.

    Raises ValueError for what is no such file, or holds anything but tensors and plain values.
    """
    loaded = _unpickled(path)
    notes: tuple[str, ...] = ()
    if isinstance(loaded, dict) and isinstance(loaded.get("model_args"), dict):
        state, args = _state(loaded.get("model"), path), loaded["model_args"]
        config = _config(_checked(args, path), bool(args.get("bias", True)), "gelu")
    else:
        state = _state(loaded, path)
        args, notes = _inferred(state, heads, path)
        config = _config(_checked(args, path), True, "gelu_tanh")
    weights = Weights({name: tuple(t.shape) for name, t in state.items()}, {}, dict.fromkeys(state, state.__getitem__))
    return family(config.attention.bias), config, weights, notes


def _unpickled(path: Path) -> Any:
    zipped = zipfile.is_zipfile(path)
    try:
        if zipped:
            with zipfile.ZipFile(path) as file:
                packed = any(entry.compress_type != zipfile.ZIP_STORED for entry in file.infolist())
            if packed:
                raise ValueError("it is compressed")
        return torch.load(path, map_location="cpu", weights_only=True, mmap=zipped)
    except (*UNREADABLE, zipfile.BadZipFile, OSError) as error:
        raise ValueError(
            f"{path} must be a checkpoint of nanoGPT or minGPT, tensors and plain values, and does not read as one; "
            "save it anew with torch.save."
        ) from error


def _state(loaded: Any, path: Path) -> dict[str, Tensor]:
    """The tensors by the names of the file, each no larger than what is stored of it."""
    tensors = loaded if isinstance(loaded, dict) else {}
    if not tensors or not all(isinstance(n, str) and isinstance(t, Tensor) for n, t in tensors.items()):
        raise ValueError(f"{path} must hold a table of names and tensors; save the model's state_dict().")
    for name, tensor in tensors.items():
        if tensor.layout != torch.strided or tensor.untyped_storage().nbytes() < tensor.numel() * tensor.element_size():
            raise ValueError(f"{name} in {path} must be stored whole, got less than its shape; do not trust this file.")
    return tensors


def _plain(name: str) -> str:
    for wrapper in WRAPPERS:
        name = name.removeprefix(wrapper)
    return name


def _inferred(state: Mapping[str, Tensor], heads: int | None, path: Path) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The sizes that minGPT's state dict shows; it does not show how many heads share the width."""
    plain = {_plain(name): tensor for name, tensor in state.items()}
    tables = [plain.get(f"transformer.{name}.weight") for name in ("wte", "wpe")]
    if any(table is None or table.dim() != 2 for table in tables):
        raise ValueError(f"{path} must hold minGPT's transformer.wte.weight and transformer.wpe.weight, and does not.")
    (vocab, width), (block, _) = (tuple(table.shape) for table in tables if table is not None)
    if heads is None and width not in HEADS:
        raise ValueError(f"{path} does not say how many heads its width of {width} has; give the number of heads.")
    layers = {name.split(".")[2] for name in plain if name.startswith("transformer.h.")}
    sizes = {"n_layer": len(layers), "n_head": heads or HEADS[width], "n_embd": width, "block_size": block}
    note = f"{path.name} does not say its heads and activation: {sizes['n_head']} and GELU's tanh form assumed."
    return {**sizes, "vocab_size": vocab}, (note,)


def _checked(args: Mapping[str, Any], path: Path) -> dict[str, int]:
    for name in SIZES:
        if type(args.get(name)) is not int or args[name] < 1:
            raise ValueError(f"{path} must give {name} as a whole number above 0, got {args.get(name)!r}.")
    if args["n_layer"] > MOST_LAYERS:
        raise ValueError(f"{path} must have at most {MOST_LAYERS} layers, got {args['n_layer']}; is it damaged?")
    return {name: args[name] for name in SIZES}


def _config(sizes: Mapping[str, int], bias: bool, activation: Activation) -> ModelConfig:
    return ModelConfig(
        vocab_size=sizes["vocab_size"],
        context=sizes["block_size"],
        d_model=sizes["n_embd"],
        layers=sizes["n_layer"],
        attention=Attention(sizes["n_head"], bias=bias, out_bias=bias),
        mlp=MLP(4 * sizes["n_embd"], activation, bias=bias),
        norm=Norm("layer", eps=1e-5),
    )


THIRDS = Transform(
    lambda tensors, _: list(tensors[0].chunk(3)),
    lambda tensors, _: [torch.cat(tensors)],
)
WITHOUT_BIAS = Transform(
    lambda tensors, _: [tensors[0], torch.zeros_like(tensors[0])],
    lambda tensors, _: [tensors[0]],
)


def norm(theirs: str, ours: str, bias: bool) -> list[tuple[Any, ...]]:
    """A LayerNorm that has no bias is one whose bias is zero."""
    if not bias:
        return [(f"{theirs}.weight", (f"{ours}.weight", f"{ours}.bias"), WITHOUT_BIAS)]
    return [(f"{theirs}.{part}", f"{ours}.{part}") for part in ("weight", "bias")]


def family(bias: bool) -> Family:
    """Rows whose tensors the model lacks, as those of a bias it does not have, are left out of themselves."""
    qkv = [tuple(f"blocks.{{}}.attn.{x}.{part}" for x in "qkv") for part in ("weight", "bias")]
    linear = [(f"transformer.h.{{}}.{a}.{part}", f"blocks.{{}}.{b}.{part}") for a, b in LINEAR for part in PARTS]
    return Family(
        name="nanogpt",
        rows=(
            ("transformer.wte.weight", "embed.tokens.weight"),
            ("transformer.wpe.weight", "embed.positions.weight"),
            *norm("transformer.h.{}.ln_1", "blocks.{}.norm1", bias),
            ("transformer.h.{}.attn.c_attn.weight", qkv[0], THIRDS),
            ("transformer.h.{}.attn.c_attn.bias", qkv[1], THIRDS),
            *linear,
            ("transformer.h.{}.attn.bias", DROPPED),  # the causal mask, which we compute
            *norm("transformer.h.{}.ln_2", "blocks.{}.norm2", bias),
            *norm("transformer.ln_f", "final_norm", bias),
            ("lm_head.weight", "head.weight"),
        ),
        tied={"lm_head.weight": "transformer.wte.weight"},
        old_spelling=dict.fromkeys(WRAPPERS, ""),
    )


PARTS = ("weight", "bias")
LINEAR = (("attn.c_proj", "attn.out"), ("mlp.c_fc", "mlp.pre"), ("mlp.c_proj", "mlp.out"))
