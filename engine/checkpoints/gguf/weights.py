"""The tensors of a GGUF file, as views of a private map of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import partial
from math import prod
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from engine.checkpoints.gguf.header import FLOATS, QUANTISED, Header, bytes_of, parts_of, read_header
from engine.checkpoints.gguf.tokenizer import tokenizer_files
from engine.checkpoints.weights import Weights
from engine.model.quantised import SCHEMES
from engine.model.quantised.scheme import Scheme
from engine.model.quantised.tensor import QuantisedTensor

DTYPES = {number: getattr(torch, name) for number, name in FLOATS.items()}
DTYPES_BY_NAME = {name: getattr(torch, name) for name in FLOATS.values()}


def open_gguf(path: Path) -> Weights:
    """Weights whose `settings` are the file's metadata, with its tokenizer `beside` them. Raises as `read_header` and
    `parts_of` do, and ValueError for parts that hold one tensor twice."""
    shapes, files, dtypes = dict[str, tuple[int, ...]](), dict[str, Path](), dict[str, str]()
    readers, schemes = dict[str, Callable[[str], Tensor]](), dict[str, Scheme]()
    metadata: dict[str, Any] = {}
    parts = [(part, read_header(part)) for part in parts_of(path)]
    for part, header in parts:
        numbers = torch.from_file(str(part), shared=False, size=part.stat().st_size, dtype=torch.uint8)
        for name, one in header.tensors.items():
            if name in shapes:
                raise ValueError(f"{name} is in {files[name].name} and in {part.name}; fetch both again.")
            shapes[name], files[name], readers[name] = one.shape, part, partial(read, part, header, numbers)
            dtypes[name] = FLOATS.get(one.type) or QUANTISED[one.type]
            if one.type in QUANTISED:
                schemes[name] = SCHEMES[QUANTISED[one.type]]
        metadata = {**header.metadata, **metadata}
    try:
        beside, notes = tokenizer_files(metadata), tuple[str, ...]()
    except ValueError as error:
        beside, notes = {}, (f"No tokenizer from the file: {error}",)
    return Weights(shapes, {}, readers, dtypes, files, frozenset(shapes), metadata, notes, schemes, beside)


def read(path: Path, header: Header, numbers: Tensor, name: str) -> Tensor:
    one = header.tensors[name]
    own = numbers[one.start : one.start + bytes_of(path, name, one)]
    if one.type in FLOATS:
        return own.view(DTYPES[one.type]).view(one.shape)
    scheme = SCHEMES[QUANTISED[one.type]]
    return QuantisedTensor(own.view(*one.shape[:-1], -1) if prod(one.shape) else own, scheme)


def describe_types(weights: Weights) -> tuple[str, ...]:
    """Sentence for a file of quantised weights: how many bits a weight takes, and of which types they are."""
    if not weights.schemes:
        return ()
    numbers, bits = Counter[str](), 0.0
    for name, shape in weights.shapes.items():
        scheme = weights.schemes.get(name)
        numbers[weights.dtypes[name]] += prod(shape)
        bits += prod(shape) * (scheme.bits if scheme else 8 * DTYPES_BY_NAME[weights.dtypes[name]].itemsize)
    total = numbers.total()
    shares = ", ".join(f"{100 * count / total:.1f} % {kind}" for kind, count in numbers.most_common())
    return (f"Its weights are quantised, {bits / total:.2f} bits each: {shares}.",)
