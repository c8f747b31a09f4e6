"""AWQ, as AutoAWQ's GEMM kernels read it: words of an input's columns, in an order of their own (Lin et al. 2023)."""

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
    check_tensor,
    divide,
    scale_groups,
    unpack,
)
from engine.checkpoints.weights import Weights

PLACE = -1  # before the kinds that have a name of its scales too
MATRIX = ".qweight"
PLACES = (0, 4, 1, 5, 2, 6, 3, 7)  # in a word, of each of its eight columns


def find(weights: Weights, options: Options) -> Mapping[str, QuantisedMatrix]:
    options.choose("bits" if "bits" in options.table else "w_bit", (4,))
    size = options.group_size("group_size" if "group_size" in options.table else "q_group_size")
    for name in ("version", "format", "checkpoint_format"):
        options.choose(name, ("gemm", "GEMM"), "gemm")
    options.choose("zero_point", (True,), True)
    found = {}
    for name in (one for one in weights.shapes if one.endswith(MATRIX)):
        module = name.removesuffix(MATRIX)
        inputs, words = check_axes(weights, name, INTEGERS, 2)
        groups = divide(weights, name, inputs, size, "a number of inputs") if size else 1
        check_tensor(weights, f"{module}.scales", SCALES, (groups, 8 * words))
        check_tensor(weights, f"{module}.qzeros", INTEGERS, (groups, words))
        stored = (name, f"{module}.scales", f"{module}.qzeros")
        read = partial(decode, weights, stored)
        found[f"{module}.weight"] = QuantisedMatrix((8 * words, inputs), "AWQ 4 bits", stored, read)
    return found


def decode(weights: Weights, stored: tuple[str, ...]) -> Tensor:
    """(number - zero) x scale, out in."""
    numbers, scales, zeros = (weights[name] for name in stored)
    return scale_groups(unpack_columns(numbers), scales.T, unpack_columns(zeros))


def unpack_columns(words: Tensor) -> Tensor:
    """... word in, eight times as many columns ... out."""
    return unpack(words, 4).unflatten(-1, (-1, 8))[..., PLACES].flatten(-2).T.contiguous()


QUANTISATION = Quantisation("AWQ", ("awq",), find, traces=r"\.q(weight|zeros)$", turned=True)
