"""Weights files, opened without being read: names and shapes at once, the tensors when they are asked for.

A tensor from a safetensors file is a private (copy-on-write) map of it, so it takes no memory until it is
used and nothing written to it reaches the file. Nothing is ever unpickled beyond what
`torch.load(weights_only=True)` allows.
"""

from __future__ import annotations

import json
import os
import pickle
import zipfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

LARGEST_HEADER = 100_000_000  # bytes; safetensors' own limit
UNREADABLE = (
    pickle.UnpicklingError,
    RuntimeError,
    EOFError,
    LookupError,
    ValueError,
    TypeError,
    AttributeError,
)


@dataclass(frozen=True)
class Weights(Mapping[str, Tensor]):
    """Name -> tensor as stored. `shapes` and `metadata` come from the header."""

    shapes: Mapping[str, tuple[int, ...]]
    metadata: Mapping[str, str]
    readers: Mapping[str, Callable[[str], Tensor]]

    def __getitem__(self, name: str) -> Tensor:
        return self.readers[name](name)

    def __iter__(self) -> Iterator[str]:
        return iter(self.shapes)

    def __len__(self) -> int:
        return len(self.shapes)


def open_weights(path: Path) -> Weights:
    """A `.safetensors`, `.bin`, `.pt` or `.pth` file, or the `.index.json` of a sharded one.

    Raises ValueError for a file that is cut off, damaged, or not what its name says.
    """
    if path.name.endswith(".index.json"):
        return _joined(path, [open_weights(shard) for shard in shards(path)])
    if path.suffix == ".safetensors":
        return _safetensors(path)
    if path.suffix in (".bin", ".pt", ".pth"):
        return _pytorch(path)
    raise ValueError(f"a weights file must end in .safetensors, .bin, .pt or .pth, got {path.name}.")


def write_weights(path: Path, tensors: Mapping[str, Tensor], metadata: Mapping[str, str]) -> None:
    """A safetensors file, written beside `path` and then moved there: no reader ever sees half of one."""
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    partial.touch()
    mode = partial.stat().st_mode  # what the person's umask says; safetensors would let nobody else read it
    save_file({name: tensor.detach().contiguous() for name, tensor in tensors.items()}, partial, dict(metadata))
    partial.chmod(mode)
    os.replace(partial, path)


def read_json(path: Path) -> dict[str, Any]:
    """Raises ValueError where the file is not a JSON object."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} must be JSON, and does not read as such ({error}); fetch it again.") from None
    if not isinstance(data, dict):
        raise ValueError(f"{path} must hold a JSON object, got a {type(data).__name__}.")
    return data


def shards(index: Path) -> list[Path]:
    """The files that an index names. It comes from others and is not trusted: each must lie beside it."""
    named = read_json(index).get("weight_map")
    if not isinstance(named, dict) or not named or not all(isinstance(name, str) for name in named.values()):
        raise ValueError(f"{index} must have a table weight_map (tensor -> file); fetch it again.")
    files = sorted(set(named.values()))
    for name in files:
        if name != Path(name).name or name in ("", ".", "..") or "\\" in name or "\0" in name:
            raise ValueError(f"{index.name} must name files beside itself, got {name!r}; do not trust this checkpoint.")
        if not (index.parent / name).is_file():
            raise FileNotFoundError(f"{index.name} names {name}, which is not in {index.parent}; fetch that file too.")
    return [index.parent / name for name in files]


def _joined(index: Path, parts: list[Weights]) -> Weights:
    shapes: dict[str, tuple[int, ...]] = {}
    readers: dict[str, Callable[[str], Tensor]] = {}
    for part in parts:
        twice = shapes.keys() & part.shapes.keys()
        if twice:
            raise ValueError(f"the shards of {index} must not overlap, and {min(twice)} is in two of them.")
        shapes |= part.shapes
        readers |= part.readers
    return Weights(shapes, parts[0].metadata, readers)


def _safetensors(path: Path) -> Weights:
    header = safetensors_header(path)
    try:
        file = safe_open(path, "pt")
    except SafetensorError as error:
        raise ValueError(f"{path} is a damaged safetensors file ({error}); fetch it again.") from None
    metadata = header.pop("__metadata__", None) or {}
    shapes = {name: tuple(entry["shape"]) for name, entry in header.items()}
    return Weights(shapes, metadata, dict.fromkeys(shapes, file.get_tensor))


def safetensors_header(path: Path) -> dict[str, Any]:
    """The header, checked against the size of the file before anything is allocated."""
    size = path.stat().st_size
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        if size < 10 or length > LARGEST_HEADER or file.read(1) != b"{":
            raise ValueError(f"{path} must be a safetensors file, and does not begin like one; fetch it again.")
        if 8 + length > size:
            raise ValueError(
                f"{path} was cut off: the header takes {8 + length} bytes, the file {size}; fetch it again."
            )
        text = b"{" + file.read(length - 1)
    try:
        header = json.loads(text)
        end = max((entry["data_offsets"][1] for name, entry in header.items() if name != "__metadata__"), default=0)
        expected = 8 + length + end
    except (ValueError, LookupError, TypeError, RecursionError):
        raise ValueError(f"{path} is a damaged safetensors file: its header does not read; fetch it again.") from None
    if size != expected:
        raise ValueError(
            f"{path} must be {expected} bytes long by its header, got {size}; it was cut off, fetch it again."
        )
    return header


def _pytorch(path: Path) -> Weights:
    try:
        state = torch.load(path, map_location="cpu", weights_only=True, mmap=zipfile.is_zipfile(path))
    except UNREADABLE as error:
        raise ValueError(
            f"{path} must be a PyTorch file of tensors and nothing else, and does not read as one; "
            "save it as safetensors."
        ) from error
    if not isinstance(state, dict) or not all(isinstance(n, str) and isinstance(t, Tensor) for n, t in state.items()):
        raise ValueError(f"{path} must hold a table of names and tensors; save the model's state_dict() alone.")
    return Weights({name: tuple(t.shape) for name, t in state.items()}, {}, dict.fromkeys(state, state.__getitem__))
