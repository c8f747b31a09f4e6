"""The one format in which numbers travel to the browser and into exported files.

    [u32 header length][JSON header][zeros up to a multiple of 8][raw arrays, each at a multiple of 8]

All little endian. The header is whatever the view wants to know, plus `arrays`: name -> dtype, shape, dims,
offset, which counts from the first byte after the zeros. `assets/views/core/payload.js` is the reader; `unpack`
here serves tests and exports.
"""

import json
import struct
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch

from engine.json_text import parse_json

ALIGNMENT = 8
STORED = {"f32": "<f4", "f16": "<f2", "u8": "u1", "i32": "<i4", "bool": "u1"}
NAMES = {"float32": "f32", "float16": "f16", "uint8": "u8", "int32": "i32", "bool": "bool"}
WIDENED = {"int8": "int32", "int16": "int32", "uint16": "int32"}  # exact
CHECKED = {"int64", "uint32", "uint64"}  # exact when every element fits into an i32

Numbers = np.ndarray | torch.Tensor


class Named(NamedTuple):
    """An array with the names of its axes, which become axis labels."""

    data: np.ndarray
    dims: tuple[str, ...]


def pack(
    header: Mapping[str, Any], arrays: Mapping[str, Numbers], dims: Mapping[str, Sequence[str]] | None = None
) -> bytes:
    """Lay a header and its arrays out for the browser; `dims` names the axes of the arrays that it lists.

    Any float may stand inside an array, NaN and infinities too; JSON has none, so the header refuses them.
    """
    if "arrays" in header:
        raise ValueError('expected a header without "arrays", which describes the arrays; rename that entry')
    described: dict[str, dict[str, Any]] = {}
    pieces: list[bytes] = []
    offset = 0
    for name, numbers in arrays.items():
        array, dtype = _storable(name, numbers)
        axes = list((dims or {}).get(name, ()))
        if axes and len(axes) != array.ndim:
            raise ValueError(f"expected {array.ndim} dims for array {name!r} of shape {array.shape}, got {axes}")
        described[name] = {"dtype": dtype, "shape": list(array.shape), "dims": axes, "offset": offset}
        raw = array.tobytes()
        pieces += [raw, _pad(len(raw))]
        offset += len(raw) + len(pieces[-1])
    if unknown := set(dims or {}) - set(arrays):
        raise ValueError(f"dims names {sorted(unknown)}, but the arrays are {sorted(arrays)}; use the arrays' names")
    text = _header_text({**header, "arrays": described})
    return b"".join([struct.pack("<I", len(text)), text, _pad(4 + len(text)), *pieces])


def unpack(payload: bytes) -> tuple[dict[str, Any], dict[str, Named]]:
    """Read what `pack` wrote: the header as it was given, and the arrays (views of `payload`, read-only)."""
    if len(payload) < 4:
        raise ValueError(f"expected a payload of at least 4 bytes, got {len(payload)}; it is cut off")
    (length,) = struct.unpack_from("<I", payload)
    if 4 + length > len(payload):
        raise ValueError(f"expected a header of {length} bytes, got {len(payload) - 4}; the payload is cut off")
    header = parse_json(payload[4 : 4 + length])
    start = 4 + length + len(_pad(4 + length))
    return header, {name: _read(payload, start, name, entry) for name, entry in header.pop("arrays").items()}


def _storable(name: str, numbers: Numbers) -> tuple[np.ndarray, str]:
    """The array in C order, little endian, in one of the five dtypes, together with that dtype's name."""
    if isinstance(numbers, torch.Tensor):
        tensor = numbers.detach().cpu()
        numbers = (tensor.float() if tensor.dtype is torch.bfloat16 else tensor).numpy()
    array = np.asarray(numbers)
    kind = array.dtype.name
    if kind in WIDENED:
        array, kind = array.astype("int32"), "int32"
    elif kind in CHECKED:
        limit = np.iinfo("int32")
        if array.size and (array.min() < limit.min or array.max() > limit.max):
            found = f"{array.min()} to {array.max()}"
            raise ValueError(f"expected array {name!r} within a 32-bit integer, got {found}; send f32 instead")
        array, kind = array.astype("int32"), "int32"
    if kind not in NAMES:
        choice = "float32, float16, uint8, bool or an integer"
        raise TypeError(f"expected array {name!r} as {choice}, got {kind}; convert it first")
    dtype = NAMES[kind]
    return np.asarray(array, dtype=STORED[dtype], order="C"), dtype


def _header_text(header: Mapping[str, Any]) -> bytes:
    try:
        return json.dumps(header, allow_nan=False, ensure_ascii=False).encode()
    except ValueError as error:
        raise ValueError(
            f"expected a header without NaN or infinity, got {_not_finite(header)}; send an array"
        ) from error
    except TypeError as error:
        raise TypeError(f"expected a header of JSON values, but {error}; send numbers as arrays") from error


def _not_finite(value: Any, path: str = "header") -> str:
    """Finds where in a nested header the first number stands that JSON cannot write."""
    if isinstance(value, float) and not np.isfinite(value):
        return f"{path} = {value}"
    items: Any = ()
    if isinstance(value, Mapping):
        items = value.items()
    elif isinstance(value, list | tuple):
        items = enumerate(value)
    return next((found for key, item in items if (found := _not_finite(item, f"{path}[{key!r}]"))), "")


def _read(payload: bytes, start: int, name: str, entry: Mapping[str, Any]) -> Named:
    dtype = np.dtype(STORED[entry["dtype"]])
    count = int(np.prod(entry["shape"], dtype=np.int64))
    begin = start + entry["offset"]
    size, available = count * dtype.itemsize, max(len(payload) - begin, 0)
    if size > available:
        raise ValueError(f"expected {size} bytes for array {name!r}, got {available}; the payload is cut off")
    array = np.frombuffer(payload, dtype, count, begin).reshape(entry["shape"])
    return Named(array.view(bool) if entry["dtype"] == "bool" else array, tuple(entry["dims"]))


def _pad(length: int) -> bytes:
    return bytes(-length % ALIGNMENT)
