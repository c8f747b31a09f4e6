"""The tensors of a GGUF file, as views of a private map of it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import prod
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from engine.checkpoints.gguf.header import FLOATS, QUANTISED, Header, bytes_of, parts_of, read_header
from engine.checkpoints.gguf.tokenizer import tokenizer_files
from engine.model.quantised import SCHEMES
from engine.model.quantised.scheme import Scheme
from engine.model.quantised.tensor import QuantisedTensor

DTYPES = {number: getattr(torch, name) for number, name in FLOATS.items()}


class GgufTensors(NamedTuple):
    """Tensors of a file by name, with its metadata (`settings`) and its tokenizer, as files `beside` it."""

    shapes: dict[str, tuple[int, ...]]
    readers: dict[str, Callable[[str], Tensor]]
    dtypes: dict[str, str]
    files: dict[str, Path]
    settings: dict[str, Any]
    schemes: dict[str, Scheme]
    beside: dict[str, bytes]
    notes: tuple[str, ...]


def open_gguf(path: Path) -> GgufTensors:
    """Raises as `read_header` and `parts_of` do, and ValueError for parts that hold one tensor twice."""
    found = GgufTensors({}, {}, {}, {}, {}, {}, {}, ())
    for part in parts_of(path):
        header = read_header(part)
        numbers = torch.from_file(str(part), shared=False, size=part.stat().st_size, dtype=torch.uint8)
        for name, one in header.tensors.items():
            if name in found.shapes:
                raise ValueError(f"{name} is in {found.files[name].name} and in {part.name}; fetch both again.")
            found.shapes[name], found.files[name] = one.shape, part
            found.readers[name] = partial(read, part, header, numbers)
            found.dtypes[name] = FLOATS.get(one.type) or QUANTISED[one.type]
            if one.type in QUANTISED:
                found.schemes[name] = SCHEMES[QUANTISED[one.type]]
        found.settings.update({key: value for key, value in header.metadata.items() if key not in found.settings})
    try:
        return found._replace(beside=tokenizer_files(found.settings))
    except ValueError as error:
        return found._replace(notes=(f"No tokenizer from the file: {error}",))


def read(path: Path, header: Header, numbers: Tensor, name: str) -> Tensor:
    one = header.tensors[name]
    own = numbers[one.start : one.start + bytes_of(path, name, one)]
    if one.type in FLOATS:
        return own.view(DTYPES[one.type]).view(one.shape)
    scheme = SCHEMES[QUANTISED[one.type]]
    return QuantisedTensor(own.view(*one.shape[:-1], -1) if prod(one.shape) else own, scheme)
