"""Snapshots of a training of an adapter, which hold what learned alone: the rest is in the base of its run.

snapshots/step-0000120.safetensors   adapter.blocks/0/attn/q/a (rank in), .../b (out rank), and all else that learns
base.json                            the base, its tensors that were `taken`, and the checksum of the frozen ones
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping

import torch
from torch import Tensor

from engine.checkpoints.weights import Weights
from engine.json_text import parse_json
from engine.model.config import ModelConfig
from engine.model.layers.lora import Adapter

KEY = "loupe.adapter"  # of the metadata: how the matrices are scaled, and the number of parameters of the whole model
FILE = "base.json"  # of a run's folder
RECORD = ("base", "source", "config", "rename", "taken", "checksum")  # what a snapshot needs of it
MODULE, VALUE = BESIDE = ("adapter", "value")  # modules of the model in training that are not of the one it makes


def name_tensors(base: Mapping[str, Tensor], head: str, config: ModelConfig) -> dict[str, Tensor]:
    """The tensors of a base with this kind of head by their names in a model of `config`."""
    beside = config.head.language and head == "language"
    return {f"language.{key[5:]}" if beside and key.startswith("head.") else key: base[key] for key in base}


def checksum(tensors: Mapping[str, Tensor]) -> int:
    """Equal for tensors of the same names and bits."""
    found = 0
    for name in sorted(tensors):
        data = tensors[name].detach().cpu().contiguous().reshape(-1).view(torch.uint8)
        found = zlib.crc32(data.numpy().data, zlib.crc32(name.encode(), found))
    return found


def read_matrices(learned: Mapping[str, Tensor]) -> dict[str, tuple[Tensor, Tensor]]:
    """A and B of a snapshot by the name of their linear map."""
    of_a = [name for name in learned if name.startswith(f"{MODULE}.") and name.endswith("/a")]
    short = {name: name.removeprefix(f"{MODULE}.").removesuffix("/a").replace("/", ".") for name in of_a}
    return {short[name]: (learned[name], learned[f"{name[:-1]}b"]) for name in of_a}


def merge_learned(frozen: Mapping[str, Tensor], learned: Weights) -> dict[str, Tensor]:
    """Tensors of the whole model of a snapshot, as the training computes them: W + scale B A."""
    own = {name: learned[name] for name in learned if name.partition(".")[0] not in BESIDE}
    whole = {name: tensor.contiguous() for name, tensor in {**frozen, **own}.items()}
    if KEY in learned.metadata:
        adapter = Adapter(MODULE, read_matrices(learned), **parse_json(learned.metadata[KEY])["scale"])
        for name, part in adapter.parts().items():
            weight = whole[f"{name}.weight"]
            whole[f"{name}.weight"] = (weight + part.delta).to(weight.dtype)
    return whole
