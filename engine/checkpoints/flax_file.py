"""Flax's files (`flax_model.msgpack`), read without Flax: a tree of tables in MessagePack whose leaves are arrays.

What flax.serialization writes of MessagePack's kinds is read, and no other. Names and layout become those of PyTorch as
transformers turns them: a `kernel` is a `weight` with its axes the other way round.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from math import prod
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from engine.plurals import count_words

ARRAY, CHUNKED = 1, "__msgpack_chunked_array__"  # the kind of extension that an array is; of one above 1 GiB the mark
DEEPEST, MOST_NODES, LONGEST_NAME, MOST_AXES = 32, 2**18, 1000, 8
NUMBERS = {
    0xCA: ">f", 0xCB: ">d", 0xCC: ">B", 0xCD: ">H", 0xCE: ">I", 0xCF: ">Q", 0xD0: ">b", 0xD1: ">h", 0xD2: ">i",
    0xD3: ">q",
}  # fmt: skip
LENGTHS = {  # byte -> what follows, and how its length is written
    0xD9: ("text", ">B"), 0xDA: ("text", ">H"), 0xDB: ("text", ">I"), 0xC4: ("bytes", ">B"), 0xC5: ("bytes", ">H"),
    0xC6: ("bytes", ">I"), 0xDC: ("list", ">H"), 0xDD: ("list", ">I"), 0xDE: ("table", ">H"), 0xDF: ("table", ">I"),
    0xC7: ("extension", ">B"), 0xC8: ("extension", ">H"), 0xC9: ("extension", ">I"),
}  # fmt: skip
PLAIN = {0xC0: None, 0xC2: False, 0xC3: True}
DTYPES = {
    name: getattr(torch, name)
    for name in ("float64", "float32", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint8", "bool")
}
RENAMED = {"kernel": "weight", "scale": "weight", "embedding": "weight"}  # the last part of a name
PARAMETERS = "params"  # under which a module has its tree, and beside which a training state has more


class FlaxArray(NamedTuple):
    """An array of the file: where the numbers of each of its parts begin and end."""

    shape: tuple[int, ...]
    dtype: str
    places: tuple[tuple[int, int], ...]


class FlaxTensors(NamedTuple):
    """Tensors of a file by PyTorch's names."""

    shapes: dict[str, tuple[int, ...]]
    readers: dict[str, Callable[[str], Tensor]]
    dtypes: dict[str, str]
    files: dict[str, Path]


def open_flax(path: Path) -> FlaxTensors:
    """Raises ValueError, in one sentence, for what is no such file, was cut off, or tells of more than it holds."""
    with path.open("rb") as file:
        if not file.read(1):
            raise ValueError(f"{path} must be a Flax file, and is empty; fetch it again.")
        with mmap(file.fileno(), 0, access=ACCESS_READ) as data:
            reader = Reader(path, data)
            tree = reader.value()
            if not isinstance(tree, dict) or reader.at != len(data):
                raise reader.damaged("it is not one table")
    arrays = dict(list_arrays(path, tree.get(PARAMETERS, tree)))
    if not arrays:
        raise ValueError(f"{path} must hold a tree of names and arrays, and has no array; fetch it again.")
    numbers = torch.from_file(str(path), shared=False, size=path.stat().st_size, dtype=torch.uint8)
    found = FlaxTensors({}, {}, {}, {})
    for names, array in arrays.items():
        name = ".".join((*names[:-1], RENAMED.get(names[-1], names[-1])))
        if name in found.shapes:
            raise ValueError(f"{path} has two arrays for {name!r:.80}; save it anew.")
        turned = names[-1] == "kernel"
        found.shapes[name] = turn_shape(array.shape) if turned else array.shape
        found.readers[name] = partial(read, numbers, array, turned)
        found.dtypes[name], found.files[name] = array.dtype, path
    return found


def turn_shape(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Shape in PyTorch of a kernel, whose channels in and out stand last in Flax."""
    return shape[::-1] if len(shape) < 3 else (shape[-1], shape[-2], *shape[:-2])


def read(numbers: Tensor, array: FlaxArray, turned: bool, name: str) -> Tensor:
    """A copy, as numbers need not begin at a multiple of their size in the file."""
    parts = [numbers[start:end] for start, end in array.places]
    whole = (torch.cat(parts) if len(parts) > 1 else parts[0].clone()).view(DTYPES[array.dtype]).view(array.shape)
    if not turned:
        return whole
    return whole.permute(*range(whole.dim())[::-1] if whole.dim() < 3 else (-1, -2, *range(whole.dim() - 2)))


def list_arrays(path: Path, tree: Any, names: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], FlaxArray]]:
    if isinstance(tree, FlaxArray):
        yield names, tree
    elif isinstance(tree, dict) and CHUNKED in tree:
        yield names, join_chunks(path, tree)
    elif isinstance(tree, dict):
        for name, value in tree.items():
            yield from list_arrays(path, value, (*names, name))


def join_chunks(path: Path, tree: Mapping[str, Any]) -> FlaxArray:
    """The array that was written in parts. Raises ValueError where they are not those of one."""
    shape, chunks = tree.get("shape"), tree.get("chunks")
    sizes = list(shape.values()) if isinstance(shape, dict) else []
    parts = list(chunks.values()) if isinstance(chunks, dict) else []
    whole = all(isinstance(part, FlaxArray) and len(part.shape) == 1 for part in parts)
    sized = 0 < len(sizes) <= MOST_AXES and all(type(size) is int and size >= 0 for size in sizes)
    if not parts or not whole or not sized or len({part.dtype for part in parts}) > 1:
        raise ValueError(f"{path} has an array in parts that are not of one; fetch it again.")
    if sum(part.shape[0] for part in parts) != prod(sizes):
        raise ValueError(f"{path} has an array of {prod(sizes):,} numbers and parts of others; fetch it again.")
    return FlaxArray(tuple(sizes), parts[0].dtype, tuple(place for part in parts for place in part.places))


class Reader:
    """Reads values one behind the other; numbers of arrays are passed over. Raises ValueError where the file ends
    before, or has what flax.serialization does not write."""

    def __init__(self, path: Path, data: mmap) -> None:
        self.path, self.data, self.at, self.nodes = path, data, 0, 0

    def damaged(self, fault: str) -> ValueError:
        return ValueError(f"{self.path} must be a file of Flax, and {fault} at byte {self.at:,}; fetch it again.")

    def move(self, count: int) -> int:
        """Passes over so many bytes, and says where they begin."""
        if self.at + count > len(self.data):
            raise self.damaged("it was cut off")
        self.at += count
        return self.at - count

    def number(self, kind: str) -> Any:
        size = struct.calcsize(kind)
        start = self.move(size)
        return struct.unpack(kind, self.data[start : start + size])[0]

    def head(self) -> tuple[str, Any]:
        """Kind of the next value, and its length, or the value itself where it is plain."""
        byte = self.number(">B")
        if byte < 0x80 or byte >= 0xE0:
            return "plain", byte if byte < 0x80 else byte - 256
        if byte < 0xC0:
            return ("table", byte & 15) if byte < 0x90 else ("list", byte & 15) if byte < 0xA0 else ("text", byte & 31)
        if byte in PLAIN:
            return "plain", PLAIN[byte]
        if byte in NUMBERS:
            return "plain", self.number(NUMBERS[byte])
        if byte in LENGTHS:
            kind, written = LENGTHS[byte]
            return kind, self.number(written)
        if 0xD4 <= byte <= 0xD8:
            return "extension", 1 << (byte - 0xD4)
        raise self.damaged(f"it has a value of the kind {byte}, which MessagePack does not have,")

    def value(self, depth: int = 0) -> Any:
        self.nodes += 1
        if depth > DEEPEST or self.nodes > MOST_NODES:
            raise self.damaged("its tables hold more than a model's")
        kind, length = self.head()
        if kind == "plain":
            return length
        if kind == "text":
            return self.text(length)
        if kind == "table":
            return self.table(length, depth)
        if kind == "extension":
            return self.array(length)
        raise self.damaged(f"it has {kind} where a table or an array is expected")

    def text(self, length: int) -> str:
        if length > LONGEST_NAME:
            raise self.damaged(f"it has a name of {length:,} bytes")
        start = self.move(length)
        return self.data[start : start + length].decode("utf-8", "replace")

    def table(self, count: int, depth: int) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for _ in range(count):
            name = self.value(depth + 1)
            if not isinstance(name, str) or not name.isprintable() or name in found:
                raise self.damaged("it has a name that is no text, or is there twice,")
            found[name] = self.value(depth + 1)
        return found

    def array(self, length: int) -> FlaxArray:
        """An array: a list of its shape, its dtype and its numbers, in C's order."""
        kind = self.number(">b")
        if kind != ARRAY:
            raise self.damaged(f"it has an extension of the kind {kind}, where an array is 1,")
        end = self.at + length
        if self.head() != ("list", 3):
            raise self.damaged("it has an array without shape, dtype and numbers")
        told, axes = self.head()
        if told != "list" or axes > MOST_AXES:
            raise self.damaged(f"it has a shape that is no list of at most {count_words(MOST_AXES, 'size')}")
        shape = tuple(self.value() for _ in range(axes))
        dtype = self.value()
        if not all(type(size) is int and size >= 0 for size in shape) or dtype not in DTYPES:
            known = ", ".join(DTYPES)
            raise self.damaged(f"it has an array of {dtype!r:.40} and {shape!r:.60}, where the dtypes are {known},")
        told, size = self.head()
        if told != "bytes" or size != prod(shape) * DTYPES[dtype].itemsize:
            raise self.damaged(f"it has {size!r:.20} bytes for an array of {dtype} and {shape!r:.60}")
        start = self.move(size)
        if self.at != end:
            raise self.damaged("it has an array that is not as long as it says")
        return FlaxArray(shape, dtype, ((start, self.at),))
