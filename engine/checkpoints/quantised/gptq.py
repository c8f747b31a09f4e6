"""GPTQ, as AutoGPTQ and GPTQModel store it: words of a column's inputs, zero points, scales and the group of each input
(Frantar et al. 2022)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from torch import Tensor

from engine.checkpoints.quantisation import (
    INTEGERS,
    SCALES,
    Options,
    Quantisation,
    QuantisedMatrix,
    check_axes,
    check_index,
    check_tensor,
    divide,
    scale_groups,
    unpack,
)
from engine.checkpoints.weights import Weights

PLACE = -2  # before the kinds that have a name of its scales too
BITS = (2, 3, 4, 8)
MATRIX = ".qweight"


def find(weights: Weights, options: Options) -> Mapping[str, QuantisedMatrix]:
    bits, size = options.choose("bits", BITS), options.group_size()
    shifted = options.choose("checkpoint_format", ("gptq", "gptq_v2"), "gptq") == "gptq"
    options.choose("pack_dtype", ("int32",), "int32")
    options.refuse("is_marlin_format")
    if any(not str(name).startswith("-:") for name in options.table.get("dynamic") or {}):  # those are left as they are
        options.refuse("dynamic")
    found = {}
    for name in (one for one in weights.shapes if one.endswith(MATRIX)):
        module = name.removesuffix(MATRIX)
        rows, columns = check_axes(weights, name, INTEGERS, 2)
        inputs = divide(weights, name, 32 * rows, bits, "rows of 32 bits")
        groups = divide(weights, name, inputs, size, "a number of inputs") if size else 1
        divide(weights, name, columns * bits, 32, "columns whose bits")
        check_tensor(weights, f"{module}.scales", SCALES, (groups, columns))
        check_tensor(weights, f"{module}.qzeros", INTEGERS, (groups, columns * bits // 32))
        stored = [name, f"{module}.scales", f"{module}.qzeros"]
        if f"{module}.g_idx" in weights.shapes or (options.table.get("desc_act") and size):
            check_tensor(weights, f"{module}.g_idx", ("int32", "int64"), (inputs,))
            stored.append(f"{module}.g_idx")
        read = partial(decode, weights, tuple(stored), bits, shifted)
        found[f"{module}.weight"] = QuantisedMatrix((columns, inputs), f"GPTQ {bits} bits", tuple(stored), read)
    return found


def decode(weights: Weights, stored: tuple[str, ...], bits: int, shifted: bool) -> Tensor:
    """scale x (number - zero), out in; a `shifted` zero is stored less 1, and wraps."""
    numbers, scales, zeros, *index = (weights[name] for name in stored)
    levels = unpack(zeros, bits).T
    if shifted:
        levels = (levels + 1) & (2**bits - 1)
    groups = check_index(weights.label(stored[-1]), index[0], len(scales)) if index else None
    return scale_groups(unpack(numbers.T, bits), scales.T, levels, groups)


QUANTISATION = Quantisation("GPTQ", ("gptq",), find, traces=r"\.(g_idx|qweight|qzeros)$", turned=True)
