"""compressed-tensors, as vLLM and LLM Compressor store weights: whole or packed integers, and 8-bit floats, with scales
for a matrix, rows, groups or blocks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

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
    scale_blocks,
    scale_groups,
    unpack,
)
from engine.checkpoints.quantised.fp8 import TRACES, read_block
from engine.checkpoints.weights import Weights

FORMATS = ("dense", "int-quantized", "float-quantized", "naive-quantized", "pack-quantized")
PACKED, SCALE = ".weight_packed", ".weight_scale"
WHOLE = {"int8": "int", "float8_e4m3fn": "float"}


@dataclass(frozen=True)
class Scheme:
    """A group of config.json: how its matrices are quantised."""

    kind: str
    bits: int
    symmetric: bool
    strategy: str
    size: int | None
    block: tuple[int, int]

    def scales(self, rows: int, columns: int) -> list[tuple[int, ...]]:
        """Shapes that the scales of a matrix may have."""
        if self.strategy == "tensor":
            return [(), (1,), (1, 1)]
        if self.strategy == "block":
            return [(-(-rows // self.block[0]), -(-columns // self.block[1]))]
        return [(rows, columns // self.size)] if self.size and columns % self.size == 0 else []


def find(weights: Weights, options: Options) -> Mapping[str, QuantisedMatrix]:
    options.choose("format", (*FORMATS, "mixed-precision"), "dense")
    options.refuse("transform_config")
    sparsity = Options(options.table.get("sparsity_config") or {}, f"{options.key}'s sparsity_config")
    sparsity.choose("format", ("dense",), "dense")
    groups = options.table.get("config_groups")
    if not isinstance(groups, Mapping) or not all(isinstance(one, Mapping) for one in groups.values()):
        raise options.refusal("config_groups", "a table of tables")
    schemes = [read_scheme(one, f"{options.key}'s {name}") for name, one in groups.items() if one.get("weights")]
    found = {}
    for name in (one for one in weights.shapes if one.endswith(SCALE)):
        module = name.removesuffix(SCALE)
        if module + PACKED in weights.shapes:
            shape = read_shape(weights, module)
            kind, matrix = "int", module + PACKED
        else:
            matrix = f"{module}.weight"
            if weights.dtypes.get(matrix) not in WHOLE:
                check_tensor(weights, matrix, tuple(WHOLE))
            shape = check_axes(weights, matrix, tuple(WHOLE), 2)
            kind = WHOLE[weights.dtypes[matrix]]
        found[f"{module}.weight"] = find_one(weights, module, matrix, shape, kind, schemes)
    return found


def read_scheme(group: Mapping[str, Any], named: str) -> Scheme:
    Options(group, named).choose("format", FORMATS, "dense")
    table = group["weights"]
    if not isinstance(table, Mapping):
        raise Options(group, named).refusal("weights", "a table")
    said = Options(table, f"{named}'s weights")
    kind = said.choose("type", ("int", "float"), "int")
    bits = said.choose("num_bits", range(1, 9) if kind == "int" else (8,), 8)
    size = said.group_size(default=None)
    usual = "group" if size else "tensor" if table.get("group_size") is None else "channel"
    strategy = said.choose("strategy", ("tensor", "channel", "group", "block"), usual)
    said.choose("dynamic", (False,), False)
    return Scheme(
        kind, bits, said.choose("symmetric", (True, False), True), strategy, size, read_block(said, "block_structure")
    )


def read_shape(weights: Weights, module: str) -> tuple[int, ...]:
    """The shape that packed numbers have, by a tensor that says it, which must fit them."""
    name, matrix = f"{module}.weight_shape", module + PACKED
    rows, words = check_axes(weights, matrix, INTEGERS, 2)
    check_tensor(weights, name, ("int64", "int32"), (2,))
    shape = tuple(weights[name].tolist())
    if shape[0] != rows or not 0 < shape[1] <= 32 * words:
        raise ValueError(
            f"{weights.label(name)} must be the shape of what {(rows, words)} holds packed, got {shape}; fetch the "
            "file again."
        )
    return shape


def find_one(
    weights: Weights, module: str, matrix: str, shape: tuple[int, ...], kind: str, schemes: list[Scheme]
) -> QuantisedMatrix:
    """The matrix by the one scheme of config.json that fits its tensors."""
    rows, columns = shape
    packed, scale, zero = matrix.endswith(PACKED), module + SCALE, f"{module}.weight_zero_point"
    fitting = {
        one.bits: one
        for one in map(partial(complete, columns=columns), schemes)
        if one.kind == kind
        and weights.shapes[scale] in one.scales(rows, columns)
        and (one.symmetric or zero in weights.shapes)
        and (not packed or weights.shapes[matrix][1] == -(-columns * one.bits // 32))
    }
    if len(fitting) != 1:
        raise ValueError(
            f"{weights.label(matrix)}, {kind} of shape {shape} with scales {weights.shapes[scale]}, must be of one "
            f"group that config.json's config_groups has, and fits {len(fitting)}; they are not of one model."
        )
    (one,) = fitting.values()
    stored = [matrix, scale, *([f"{module}.weight_shape"] if packed else [])]
    check_tensor(weights, scale, SCALES, weights.shapes[scale])
    if zero in weights.shapes:
        if packed and weights.dtypes[zero] in INTEGERS:
            check_tensor(weights, zero, INTEGERS, (-(-rows * one.bits // 32), *weights.shapes[scale][1:]))
        else:
            check_tensor(weights, zero, ("int8", "float8_e4m3fn"), weights.shapes[scale])
        stored.append(zero)
    if (index := f"{module}.weight_g_idx") in weights.shapes:
        check_tensor(weights, index, ("int32", "int64"), (columns,))
        stored.append(index)
    told = f"compressed-tensors {kind}{one.bits}"
    return QuantisedMatrix(shape, told, tuple(stored), partial(decode, weights, module, matrix, shape, one))


def complete(scheme: Scheme, columns: int) -> Scheme:
    """The scheme with one group of all columns, where rows have a scale each."""
    if scheme.strategy == "channel" or scheme.size is None:
        return replace(scheme, size=columns)
    return scheme


def decode(weights: Weights, module: str, matrix: str, shape: tuple[int, ...], scheme: Scheme) -> Tensor:
    """(number - zero) x scale, out in; what is packed is stored with half its range added."""
    numbers, scales, half = weights[matrix], weights[module + SCALE].float(), 2 ** (scheme.bits - 1)
    zero, index = f"{module}.weight_zero_point", f"{module}.weight_g_idx"
    zeros = weights[zero] if zero in weights.shapes else None
    if matrix.endswith(PACKED):
        numbers = unpack(numbers, scheme.bits)[:, : shape[1]].float() - half
        if zeros is not None and weights.dtypes[zero] in INTEGERS:
            zeros = unpack(zeros.T, scheme.bits)[:, : shape[0]].T.float() - half
    if scheme.strategy == "tensor":
        return (numbers.float() - (0 if zeros is None else zeros.float().view(()))) * scales.view(())
    if scheme.strategy == "block":
        made = numbers.float()
        if zeros is not None:
            made = made - spread(zeros, scheme.block, shape)
        return scale_blocks(made, scales, scheme.block)
    found = weights.shapes.get(index)
    groups = check_index(weights.label(index), weights[index], scales.shape[1]) if found else None
    return scale_groups(numbers, scales, zeros, groups)


def spread(values: Tensor, block: tuple[int, int], shape: tuple[int, ...]) -> Tensor:
    """Repeats the value of each block for all numbers of it."""
    whole = values.float().repeat_interleave(block[0], 0).repeat_interleave(block[1], 1)
    return whole[: shape[0], : shape[1]]


QUANTISATION = Quantisation("compressed-tensors", ("compressed-tensors", "compression_config"), find, traces=TRACES)
