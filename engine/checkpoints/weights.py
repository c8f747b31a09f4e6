"""Weights files, opened without being read: names and shapes at once, the tensors when they are asked for.

A tensor from a file is a private (copy-on-write) map of it, so it takes no memory until it is used and nothing
written to it reaches the file.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from math import prod
from pathlib import Path
from threading import get_ident
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from engine.checkpoints.flax_file import open_flax
from engine.checkpoints.gguf.tensors import open_gguf
from engine.checkpoints.memory import describe_unmapped, release_pages
from engine.checkpoints.tensorflow_file import open_tensorflow
from engine.checkpoints.torch_pickle import read_torch_pickle
from engine.json_text import parse_json
from engine.model.quantised.scheme import Scheme
from engine.model.stored import StoredTensor, as_stored

KEYS_OF_QUANTISATION = ("quantization", "quantization_config", "compression_config")  # of config.json
LIMIT = 100_000_000  # bytes of a header, by safetensors itself
LARGEST_HEADER = 2**24  # bytes; 100,000 tensors take half of it
LARGEST_CONFIG = 2**24  # bytes of a config or an index
LARGEST_JSON = 2**26  # bytes of any other file of a checkpoint, such as a tokenizer
DTYPES = {
    "F64": "float64",
    "F32": "float32",
    "F16": "float16",
    "BF16": "bfloat16",
    "I64": "int64",
    "I32": "int32",
    "I16": "int16",
    "I8": "int8",
    "U8": "uint8",
    "BOOL": "bool",
    "F8_E4M3": "float8_e4m3fn",
    "F8_E5M2": "float8_e5m2",
    "F8_E8M0": "float8_e8m0fnu",
    "U16": "uint16",
    "U32": "uint32",
    "U64": "uint64",
}  # safetensors' word -> torch's; others are shown as they are
ENDINGS = ".safetensors, .gguf, .bin, .pt, .pth, .ckpt, .msgpack or .h5"
# Files of models that hold no checkpoint that Loupe reads, by their endings.
OTHERS = {
    ".onnx": "a program that computes a model, in which weights have no names",
    ".tflite": "a program for TensorFlow Lite",
    ".ot": "rust-bert's file of weights",
    ".pkl": "a pickle, which could run any program",
    ".joblib": "a pickle, which could run any program",
    ".npz": "arrays of NumPy, which say nothing of a model",
}


@dataclass(frozen=True)
class Weights(Mapping[str, Tensor]):
    """Name -> tensor as stored. `shapes`, `metadata` and `dtypes` (torch's words) come from the header.

    `files` is where each tensor lies, `mapped` which of them are maps of their file, `settings` a config that came
    in the file itself, and `notes` are sentences about how it was read. `schemes` are those of quantised tensors, whose
    `dtypes` are called like them, and `beside` files that are read as if they lay beside the weights. `decoded` is how
    those are stored that are decoded whenever they are asked for.
    """

    shapes: Mapping[str, tuple[int, ...]]
    metadata: Mapping[str, str]
    readers: Mapping[str, Callable[[str], Tensor]]
    dtypes: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, Path] = field(default_factory=dict)
    mapped: frozenset[str] = frozenset()
    settings: Mapping[str, Any] | None = None
    notes: tuple[str, ...] = ()
    schemes: Mapping[str, Scheme] = field(default_factory=dict)
    beside: Mapping[str, bytes] = field(default_factory=dict)
    decoded: Mapping[str, str] = field(default_factory=dict)

    def __getitem__(self, name: str) -> Tensor:
        return self.readers[name](name)

    def __iter__(self) -> Iterator[str]:
        return iter(self.shapes)

    def __len__(self) -> int:
        return len(self.shapes)

    def release(self, name: str) -> None:
        """Give back the memory under a tensor that nobody reads any more."""
        if name in self.mapped:
            read = self[name]
            release_pages(read.stored if isinstance(read, StoredTensor) else read)

    def label(self, name: str) -> str:
        """Name of a tensor in messages: with its file."""
        return f"{name} in {self.files[name].name}" if name in self.files else name


def weights_of_tensors(tensors: Mapping[str, Tensor], path: Path, mapped: bool) -> Weights:
    """Tensors that are there already, from one file."""
    return Weights(
        shapes={name: tuple(tensor.shape) for name, tensor in tensors.items()},
        metadata={},
        readers=dict.fromkeys(tensors, tensors.__getitem__),
        dtypes={name: str(tensor.dtype).removeprefix("torch.") for name, tensor in tensors.items()},
        files=dict.fromkeys(tensors, path),
        mapped=frozenset(tensors) if mapped else frozenset(),
    )


def open_weights(path: Path) -> Weights:
    """Open a `.safetensors`, `.gguf`, `.bin`, `.pt`, `.pth`, `.msgpack` or `.h5` file, or the `.index.json` of a
    sharded one.

    Raises ValueError for a file that is cut off, damaged, or not what its name says.
    """
    if path.name.endswith(".index.json"):
        return _merge_shards(path, [open_weights(shard) for shard in shards(path)])
    if path.suffix == ".safetensors":
        return _open_safetensors(path)
    if path.suffix == ".gguf":
        stored = open_gguf(path)
        return Weights(**stored._asdict(), metadata={}, mapped=frozenset(stored.shapes))
    if path.suffix in (".bin", ".pt", ".pth", ".ckpt"):
        found = read_torch_pickle(path)
        return replace(
            weights_of_tensors(found.tensors, path, found.mapped), settings=found.settings, notes=found.notes
        )
    if path.suffix == ".h5":
        return Weights(**open_tensorflow(path)._asdict(), metadata={})
    if path.suffix == ".msgpack":
        return Weights(**open_flax(path)._asdict(), metadata={})
    told = f", {OTHERS[path.suffix]}; fetch model.safetensors of the same model" if path.suffix in OTHERS else ""
    raise ValueError(f"a weights file must end in {ENDINGS}, got {path.name}{told}.")


def write_weights(path: Path, tensors: Mapping[str, Tensor], metadata: Mapping[str, str]) -> None:
    """Write a safetensors file beside `path`, then move it there: no reader ever sees half of one."""
    partial = path.with_name(f".{path.name}.{os.getpid()}-{get_ident()}")
    partial.touch()
    mode = partial.stat().st_mode  # what the person's umask says; safetensors would let nobody else read it
    stored = {name: as_stored(tensor).detach().contiguous() for name, tensor in tensors.items()}
    save_file(stored, partial, dict(metadata))
    partial.chmod(mode)
    os.replace(partial, path)


def read_json(path: Path) -> dict[str, Any]:
    """Read a config or an index. Raises ValueError where the file is not a JSON object."""
    if path.stat().st_size > LARGEST_CONFIG:
        raise ValueError(
            f"{path} must be at most {LARGEST_CONFIG:,} bytes, got {path.stat().st_size:,}; is it a config?"
        )
    try:
        data = parse_json(path.read_text(encoding="utf-8"))
    except ValueError as error:
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
        if name != Path(name).name or name in ("", ".", "..") or "\\" in name or not name.isprintable():
            raise ValueError(f"{index.name} must name files beside itself, got {name!r:.80}; do not trust it.")
        if len(name) > 255 or not (index.parent / name).is_file():
            raise FileNotFoundError(f"{index.name} names {name}, which is not in {index.parent}; fetch that file too.")
        if name.endswith(".index.json"):
            raise ValueError(f"{index.name} must name files of weights, got {name}; fetch it again.")
    return [index.parent / name for name in files]


def _merge_shards(index: Path, parts: list[Weights]) -> Weights:
    """Merges all shards into one. A tensor may be in several of them if it is the same in all."""
    whole = Weights({}, parts[0].metadata, {})
    for part in parts:
        for name in sorted(whole.shapes.keys() & part.shapes.keys()):
            _check_same(index, name, whole, part)
        whole = Weights(
            {**part.shapes, **whole.shapes},
            whole.metadata,
            {**part.readers, **whole.readers},
            {**part.dtypes, **whole.dtypes},
            {**part.files, **whole.files},
            whole.mapped | (part.mapped - whole.shapes.keys()),
            notes=whole.notes + part.notes,
        )
    return replace(whole, notes=whole.notes + _describe_lacking(index, whole))


def _check_same(index: Path, name: str, one: Weights, other: Weights) -> None:
    same = (one.shapes[name], one.dtypes[name]) == (other.shapes[name], other.dtypes[name])
    equal = same and torch.equal(*(weights[name].reshape(-1).view(torch.uint8) for weights in (one, other)))
    for weights in (one, other):
        weights.release(name)
    if not equal:
        raise ValueError(
            f"{name} must be one tensor in the shards of {index.name}, and {one.files[name].name} and "
            f"{other.files[name].name} hold two that differ; fetch both files again."
        )


def _describe_lacking(index: Path, whole: Weights) -> tuple[str, ...]:
    """Sentence for tensors that the index names and no shard has."""
    lacking = {name: file for name, file in read_json(index)["weight_map"].items() if name not in whole.shapes}
    if not lacking:
        return ()
    name, more = min(lacking), len(lacking) - 1
    also = f" ({more} more are not where it says)" if more else ""
    return (f"{index.name} says that {name} is in {lacking[name]}, which lacks it{also}; fetch that file again.",)


def _open_safetensors(path: Path) -> Weights:
    header = safetensors_header(path)
    try:
        file = safe_open(path, "pt")
    except SafetensorError as error:
        raise ValueError(f"{path} is a damaged safetensors file ({error}); fetch it again.") from None
    except (RuntimeError, OSError):
        raise ValueError(describe_unmapped(path)) from None
    metadata = header.pop("__metadata__", None) or {}
    shapes = {name: tuple(entry["shape"]) for name, entry in header.items()}

    def read(name: str) -> Tensor:
        try:
            tensor: Tensor = file.get_tensor(name)
        except (SafetensorError, RuntimeError, AttributeError) as error:
            raise ValueError(f"{name} in {path} does not read ({error}); fetch the file again.") from None
        return tensor

    return Weights(
        shapes,
        metadata,
        dict.fromkeys(shapes, read),
        {name: DTYPES.get(entry["dtype"], entry["dtype"]) for name, entry in header.items()},
        dict.fromkeys(shapes, path),
        frozenset(shapes),
    )


def safetensors_header(path: Path) -> dict[str, Any]:
    """The header, checked against the size of the file before anything is allocated."""
    size = path.stat().st_size
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        if size < 10 or length > LIMIT or file.read(1) != b"{":
            raise ValueError(f"{path} must be a safetensors file, and does not begin like one; fetch it again.")
        if 8 + length > size:
            raise ValueError(
                f"{path} was cut off: the header takes {8 + length} bytes, the file {size}; fetch it again."
            )
        if length > LARGEST_HEADER:
            raise ValueError(f"{path} must have a header of at most {LARGEST_HEADER:,} bytes, got {length:,}.")
        text = b"{" + file.read(length - 1)
    try:
        header: dict[str, Any] = parse_json(text, object_pairs_hook=_refuse_duplicates)
        entries = [entry for name, entry in header.items() if name != "__metadata__"]
        end = max((entry["data_offsets"][1] for entry in entries), default=0)
        lying = any(min(entry["shape"], default=0) < 0 or prod(entry["shape"]) > 8 * size for entry in entries)
        expected = 8 + length + end
    except (ValueError, LookupError, TypeError):
        raise ValueError(f"{path} is a damaged safetensors file: its header does not read; fetch it again.") from None
    if size != expected:
        raise ValueError(
            f"{path} must be {expected} bytes long by its header, got {size}; it was cut off, fetch it again."
        )
    if lying or not all(name.isprintable() for name in header):
        fault = "tells of more than it holds" if lying else "has names that are no text"
        raise ValueError(f"{path} is a damaged safetensors file: its header {fault}.")
    return header


def _refuse_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(table := dict(pairs)) < len(pairs):
        raise ValueError("two entries of one name")
    return table
