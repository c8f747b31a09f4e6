"""The header of a GGUF file: what it says of the model, and where each tensor lies (the GGUF specification of ggml).

Whatever it says is measured against the size of the file before anything of that size is made.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import Any

import numpy as np

from engine.checkpoints.memory import gigabytes
from engine.plurals import count_words

MAGIC = b"GGUF"
LARGEST_HEADER = 2**28  # bytes
MOST_KEYS, MOST_TENSORS, MOST_AXES = 2**16, 2**17, 4
NUMBERS = {
    0: "<u1",
    1: "<i1",
    2: "<u2",
    3: "<i2",
    4: "<u4",
    5: "<i4",
    6: "<f4",
    7: "?",
    10: "<u8",
    11: "<i8",
    12: "<f8",
}
TEXT, ARRAY = 8, 9
ALIGNMENT = "general.alignment"
SPLIT = re.compile(r"(?P<stem>.+)-(?P<number>\d{5})-of-(?P<count>\d{5})\.gguf")
# Types of tensors, by ggml's numbers: floats, schemes of engine/model/quantised, and those that Loupe does not decode.
FLOATS = {0: "float32", 1: "float16", 28: "float64", 30: "bfloat16"}
QUANTISED = {
    2: "Q4_0", 3: "Q4_1", 6: "Q5_0", 7: "Q5_1", 8: "Q8_0", 10: "Q2_K", 11: "Q3_K", 12: "Q4_K", 13: "Q5_K", 14: "Q6_K",
    20: "IQ4_NL", 23: "IQ4_XS", 39: "MXFP4",
}  # fmt: skip
OTHERS = {
    9: "Q8_1", 15: "Q8_K", 16: "IQ2_XXS", 17: "IQ2_XS", 18: "IQ3_XXS", 19: "IQ1_S", 21: "IQ3_S", 22: "IQ2_S", 24: "I8",
    25: "I16", 26: "I32", 27: "I64", 29: "IQ1_M", 34: "TQ1_0", 35: "TQ2_0",
}  # fmt: skip


@dataclass(frozen=True)
class StoredAt:
    """A tensor of a file: its type by ggml's number, and where its bytes begin."""

    shape: tuple[int, ...]
    type: int
    start: int


@dataclass(frozen=True)
class Header:
    metadata: Mapping[str, Any]
    tensors: Mapping[str, StoredAt]


class Reader:
    """Reads values one behind the other. Raises ValueError where the file ends before."""

    def __init__(self, path: Path, data: mmap) -> None:
        self.path, self.data, self.at = path, data, 0

    def take(self, count: int) -> bytes:
        if count < 0 or self.at + count > min(len(self.data), LARGEST_HEADER):
            raise ValueError(f"{self.path} was cut off, or its header is damaged at byte {self.at:,}; fetch it again.")
        self.at += count
        return self.data[self.at - count : self.at]

    def number(self, kind: str) -> int:
        return int(struct.unpack(kind, self.take(struct.calcsize(kind)))[0])

    def text(self) -> str:
        return self.take(self.number("<Q")).decode("utf-8", "replace")

    def value(self, kind: int, depth: int = 0) -> Any:
        if kind in NUMBERS:
            return np.frombuffer(self.take(np.dtype(NUMBERS[kind]).itemsize), NUMBERS[kind])[0].item()
        if kind == TEXT:
            return self.text()
        if kind != ARRAY or depth:
            raise ValueError(f"{self.path} has a value of the kind {kind}, which GGUF does not have; fetch it again.")
        inner, count = self.number("<I"), self.number("<Q")
        if inner in NUMBERS:
            size = np.dtype(NUMBERS[inner]).itemsize
            return np.frombuffer(self.take(count * size), NUMBERS[inner]).tolist()
        self.check_count(count, 8)
        return [self.value(inner, depth + 1) for _ in range(count)]

    def check_count(self, count: int, least: int) -> None:
        """Refuses more than the rest of the file could hold, each of `least` bytes."""
        if count * least > min(len(self.data), LARGEST_HEADER) - self.at:
            raise ValueError(f"{self.path} tells of {count:,} entries, which it is too short for; fetch it again.")


def read_header(path: Path) -> Header:
    """Raises ValueError, in one sentence, for a file that is none, was cut off, or tells of more than it holds."""
    size = path.stat().st_size
    with path.open("rb") as file:
        if file.read(4) != MAGIC:
            raise ValueError(f"{path} must be a GGUF file, and does not begin like one; fetch it again.")
        with mmap(file.fileno(), 0, access=ACCESS_READ) as data:
            reader = Reader(path, data)
            reader.take(4)
            version = reader.number("<I")
            if version not in (2, 3):
                swapped = version & 0xFFFF == 0
                told = "big-endian" if swapped else f"of version {version}"
                raise ValueError(f"{path} must be a little-endian GGUF of version 2 or 3, got one {told}; convert it.")
            tensors, keys = reader.number("<Q"), reader.number("<Q")
            if keys > MOST_KEYS or tensors > MOST_TENSORS:
                told = f"{count_words(keys, 'key')} and {count_words(tensors, 'tensor')}"
                raise ValueError(f"{path} tells of {told}, more than a file can hold; fetch it again.")
            metadata = {}
            for _ in range(keys):
                name = reader.text()
                metadata[name] = reader.value(reader.number("<I"))
            found = [read_tensor(reader) for _ in range(tensors)]
            step = metadata.get(ALIGNMENT, 32)
            if not isinstance(step, int) or step < 1 or step % 8:
                raise ValueError(f"{path} has an alignment of {step!r:.40}, which must be a multiple of 8.")
            start = -(-reader.at // step) * step
    at = {name: StoredAt(shape, kind, start + offset) for name, shape, kind, offset in found}
    check_places(path, at, len(found), size)
    return Header(metadata, at)


def read_tensor(reader: Reader) -> tuple[str, tuple[int, ...], int, int]:
    name, axes = reader.text(), reader.number("<I")
    if axes > MOST_AXES:
        raise ValueError(f"{reader.path} has a tensor of {axes} axes, and {MOST_AXES} are the most; fetch it again.")
    shape = tuple(reader.number("<Q") for _ in range(axes))[::-1]
    return name, shape, reader.number("<I"), reader.number("<Q")


def check_places(path: Path, tensors: Mapping[str, StoredAt], count: int, size: int) -> None:
    """Refuses names that are there twice or are no text, types that Loupe does not decode, and tensors that lie outside
    of the file."""
    if len(tensors) < count or not all(name.isprintable() for name in tensors):
        raise ValueError(f"{path} has two tensors of one name, or a name that is no text; fetch it again.")
    for name, one in tensors.items():
        if one.type not in FLOATS and one.type not in QUANTISED:
            kinds = ", ".join((*FLOATS.values(), *QUANTISED.values()))
            raise ValueError(
                f"{name} in {path.name} must be of a type that Loupe decodes ({kinds}), got "
                f"{OTHERS.get(one.type, f'number {one.type}')}; quantise the model otherwise."
            )
        if (end := one.start + bytes_of(path, name, one)) > size:
            raise ValueError(
                f"{path} must be at least {gigabytes(end)} long by its header, got {gigabytes(size)}; it was cut off, "
                "fetch it again."
            )


def bytes_of(path: Path, name: str, one: StoredAt) -> int:
    from engine.model.quantised import SCHEMES

    if one.type in FLOATS:
        return prod(one.shape) * int(re.sub(r"\D", "", FLOATS[one.type])) // 8
    scheme = SCHEMES[QUANTISED[one.type]]
    if not one.shape or one.shape[-1] % scheme.numbers:
        raise ValueError(
            f"{name} in {path.name} must have rows of blocks of {scheme.numbers} numbers, got a shape of "
            f"{' x '.join(map(str, one.shape))}; fetch the file again."
        )
    return prod(one.shape) // scheme.numbers * scheme.bytes


def parts_of(path: Path) -> list[Path]:
    """The files that a model was split into, of which `path` is one. Raises FileNotFoundError where one is absent."""
    named = SPLIT.fullmatch(path.name)
    if named is None:
        return [path]
    count = int(named["count"])
    files = [path.with_name(f"{named['stem']}-{number:05}-of-{count:05}.gguf") for number in range(1, count + 1)]
    if lacking := [file.name for file in files if not file.is_file()]:
        raise FileNotFoundError(
            f"{path.name} is one of {count_words(count, 'file')}, and {lacking[0]} is not beside it; fetch it too."
        )
    return files
