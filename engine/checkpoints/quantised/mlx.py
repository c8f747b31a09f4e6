"""MLX: unsigned numbers of a row with a scale and a bias for each group of them (mlx.core.quantize)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from torch import Tensor

from engine.checkpoints.quantisation import (
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

BITS = (2, 3, 4, 5, 6, 8)
SCALE = ".scales"


def find(weights: Weights, options: Options) -> Mapping[str, QuantisedMatrix]:
    found = {}
    for scale in (one for one in weights.shapes if one.endswith(SCALE)):
        module = scale.removesuffix(SCALE)
        own = options.table.get(module)
        here = Options(own, f"{options.key}'s {module}") if isinstance(own, Mapping) else options
        here.choose("mode", ("affine",), "affine")
        bits, size = here.choose("bits", BITS), here.group_size()
        stored = (f"{module}.weight", scale, f"{module}.biases")
        if stored[0] not in weights.shapes:
            check_tensor(weights, stored[0], ("uint32",))
        *rows, words = check_axes(weights, stored[0], ("uint32",), len(weights.shapes[scale]))
        inputs = divide(weights, stored[0], 32 * words, bits, "words of 32 bits")
        groups = divide(weights, stored[0], inputs, size, "a number of inputs") if size else 1
        for name in stored[1:]:
            check_tensor(weights, name, SCALES, (*rows, groups))
        read = partial(decode, weights, stored, bits)
        found[stored[0]] = QuantisedMatrix((*rows, inputs), f"MLX {bits} bits", stored, read)
    return found


def decode(weights: Weights, stored: tuple[str, ...], bits: int) -> Tensor:
    """scale x number + bias, ... out in."""
    numbers, scales, biases = (weights[name] for name in stored)
    return scale_groups(unpack(numbers, bits), scales, add=biases)


QUANTISATION = Quantisation("MLX", ("quantization",), find, traces=r"\.scales$")
