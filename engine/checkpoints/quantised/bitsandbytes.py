"""bitsandbytes: 8 bits with a scale for each row (Dettmers et al. 2022), and 4 bits that name one of 16 numbers, whose
scales may be quantised too (Dettmers et al. 2023)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from math import prod
from typing import Any

import torch
from torch import Tensor

from engine.checkpoints.quantisation import (
    BYTES,
    SCALES,
    Options,
    Quantisation,
    QuantisedMatrix,
    check_axes,
    check_tensor,
)
from engine.checkpoints.weights import Weights
from engine.json_text import parse_json

ROWS, STATE = ".SCB", ".quant_state.bitsandbytes__"
KINDS = ("nf4", "fp4")
LONGEST_STATE = 2**14  # bytes
SHARE = 7.874015718698502e-3  # 1 / 127, as the library writes it


def find(weights: Weights, options: Options) -> Mapping[str, QuantisedMatrix]:
    found = {}
    for name in weights.shapes:
        if name.endswith(ROWS):
            matrix, one = find_rows(weights, name.removesuffix(ROWS))
            found[matrix] = one
        elif STATE in name:
            matrix, _, kind = name.partition(STATE)
            found[matrix] = find_blocks(weights, matrix, kind)
    return found


def find_rows(weights: Weights, module: str) -> tuple[str, QuantisedMatrix]:
    stored: tuple[str, ...] = (f"{module}.weight", f"{module}{ROWS}")
    if stored[0] not in weights.shapes:
        check_tensor(weights, stored[0], ("int8",))
    shape = check_axes(weights, stored[0], ("int8",), 2)
    check_tensor(weights, stored[1], SCALES, shape[:1])
    order = f"{module}.weight_format"
    if order in weights.shapes:
        check_tensor(weights, order, BYTES, (), (1,))
        if weights[order].item() != 0:
            raise ValueError(f"{weights.label(order)} must be 0, numbers by rows, got {weights[order].item()}.")
        stored = (*stored, order)
    read = partial(decode_rows, weights, stored)
    return stored[0], QuantisedMatrix(shape, "bitsandbytes int8", stored, read)


def decode_rows(weights: Weights, stored: tuple[str, ...]) -> Tensor:
    return weights[stored[0]].float() * weights[stored[1]].float()[:, None] * SHARE


def find_blocks(weights: Weights, matrix: str, kind: str) -> QuantisedMatrix:
    state = read_state(weights, f"{matrix}{STATE}{kind}")
    shape = tuple(state["shape"])
    count = prod(shape)
    blocks = -(-count // state["blocksize"])
    if matrix not in weights.shapes:
        check_tensor(weights, matrix, BYTES)
    width = getattr(torch, weights.dtypes[matrix]).itemsize  # whose bytes hold two numbers each
    words = -(-count // (2 * width))
    check_tensor(weights, matrix, (weights.dtypes[matrix],), (words, 1), (1, words))
    stored = [matrix, f"{matrix}.absmax", f"{matrix}.quant_map", f"{matrix}{STATE}{kind}"]
    check_tensor(weights, f"{matrix}.quant_map", SCALES, (16,))
    if state["nested_blocksize"]:
        check_tensor(weights, f"{matrix}.absmax", BYTES, (blocks,))
        check_tensor(weights, f"{matrix}.nested_absmax", SCALES, (-(-blocks // state["nested_blocksize"]),))
        check_tensor(weights, f"{matrix}.nested_quant_map", SCALES, (256,))
        stored += [f"{matrix}.nested_absmax", f"{matrix}.nested_quant_map"]
    else:
        check_tensor(weights, f"{matrix}.absmax", SCALES, (blocks,))
    read = partial(decode_blocks, weights, matrix, state)
    return QuantisedMatrix(shape, f"bitsandbytes {kind}", tuple(stored), read)


def read_state(weights: Weights, name: str) -> dict[str, Any]:
    """Reads what a tensor of JSON says. Raises ValueError where that is not the shape and the sizes of blocks."""
    (length,) = check_axes(weights, name, BYTES, 1)
    told = f"{weights.label(name)} must be JSON with quant_type, shape and blocksize"
    if length > LONGEST_STATE:
        raise ValueError(f"{told}, at most {LONGEST_STATE:,} bytes, got {length:,}; fetch the file again.")
    try:
        said = parse_json(bytes(weights[name].tolist()))
    except ValueError as error:
        raise ValueError(f"{told}, and does not read as such ({error}); fetch the file again.") from None
    said = said if isinstance(said, dict) else {}
    shape, nested = said.get("shape"), said.get("nested_blocksize")
    sizes = [*(shape if isinstance(shape, list) else ["none"]), said.get("blocksize"), nested or 1]
    offset = said.get("nested_offset", 0.0)
    if said.get("quant_type") not in KINDS or not shape or not all(type(one) is int and one > 0 for one in sizes):
        raise ValueError(f"{told}, of {' or '.join(KINDS)}, got {said!r:.200}; fetch the file again.")
    if not isinstance(offset, float):
        raise ValueError(f"{told}, with nested_offset a number, got {offset!r:.80}; fetch the file again.")
    return {"shape": shape, "blocksize": said["blocksize"], "nested_blocksize": nested or 0, "offset": offset}


def decode_blocks(weights: Weights, matrix: str, state: Mapping[str, Any]) -> Tensor:
    """number x scale of its block; the upper half of a byte comes first."""
    scales, count = weights[f"{matrix}.absmax"], prod(state["shape"])
    if state["nested_blocksize"]:
        inner = weights[f"{matrix}.nested_absmax"].float().repeat_interleave(state["nested_blocksize"])[: len(scales)]
        scales = weights[f"{matrix}.nested_quant_map"].float()[scales.int()] * inner + state["offset"]
    packed = weights[matrix].contiguous().reshape(-1).view(torch.uint8)
    levels = torch.stack([packed >> 4, packed & 15], -1).view(-1)[:count].int()
    made = weights[f"{matrix}.quant_map"].float()[levels]
    return made.mul_(scales.float().repeat_interleave(state["blocksize"])[:count]).view(state["shape"])


QUANTISATION = Quantisation(
    "bitsandbytes",
    ("bitsandbytes",),
    find,
    mark=r"\.quant_state\.bitsandbytes__|\.SCB$",
    traces=r"\.quant_state\.|\.(nested_)?(quant_map|absmax)$|\.SCB$",
    turned=True,
)
