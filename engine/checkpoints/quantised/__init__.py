"""Weights that are stored as numbers of few bits, with their scales beside them: a file for each kind, found by its
place here."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from math import prod
from typing import Any

import torch
from torch import Tensor

from engine.checkpoints.quantisation import Options, Quantisation, QuantisedMatrix
from engine.checkpoints.weights import KEYS_OF_QUANTISATION, Weights
from engine.collect import collect
from engine.plurals import count_words

PACKED = {"uint32", "uint16", "uint8", "int8", "int32", "float8_e4m3fn", "float8_e5m2"}
# the types of packed weights, of which one must stand beside such a tensor
ACTIVATIONS = re.compile(r"\.((input|output|activation|[qkv])_(scale|zero_point|global_scale)|input_scale_ub)$")
CONV1D = re.compile(r"\.(c_attn|q_attn|c_proj|c_fc)\.weight$")


@cache
def quantisations() -> tuple[Quantisation, ...]:
    return tuple(collect(__name__, "QUANTISATION", Quantisation))


def decode_quantised(weights: Weights, config: Mapping[str, Any]) -> Weights:
    """The weights of the plain model: each quantised matrix is decoded, to float32, when it is asked for.

    Raises ValueError for a kind or an option that Loupe does not decode, and for tensors that do not fit together.
    """
    chosen, options = choose(weights, config)
    if chosen is None:
        return weights
    found = dict(chosen.find(weights, options))
    if not found:
        note = f"config.json says that weights are quantised ({chosen.name}), and none is: they were read as they are."
        return replace(weights, notes=(*weights.notes, note))
    if chosen.turned and any(".attn.c_attn." in name for name in weights.shapes):
        found = {name: turn(one) if CONV1D.search(name) else one for name, one in found.items()}
    packed = {stored for matrix in found.values() for stored in matrix.stored}
    rounding = {name for name in weights.shapes if ACTIVATIONS.search(name)} - packed
    kept = {name: shape for name, shape in weights.shapes.items() if name not in packed | rounding}
    if twice := sorted(found.keys() & kept.keys()):
        raise ValueError(f"{weights.label(twice[0])} must come once, and comes quantised too; fetch the file again.")

    def read(name: str) -> Tensor:
        made = found[name].decode()
        for stored in found[name].stored:
            weights.release(stored)
        return made

    return replace(
        weights,
        shapes={**kept, **{name: one.shape for name, one in found.items()}},
        readers={**{name: weights.readers[name] for name in kept}, **dict.fromkeys(found, read)},
        dtypes={**{name: weights.dtypes[name] for name in kept}, **dict.fromkeys(found, "float32")},
        files={
            **{name: weights.files[name] for name in kept if name in weights.files},
            **{name: weights.files[one.stored[0]] for name, one in found.items() if one.stored[0] in weights.files},
        },
        mapped=weights.mapped & kept.keys(),
        notes=(*weights.notes, describe_decoded(weights, found, len(rounding))),
        decoded={name: one.kind for name, one in found.items()},
    )


def choose(weights: Weights, config: Mapping[str, Any]) -> tuple[Quantisation | None, Options]:
    """The kind that config.json names, or that names of tensors show, and what config.json says of it."""
    kinds = quantisations()
    for key in KEYS_OF_QUANTISATION:
        said = config.get(key)
        if not said:
            continue
        if not isinstance(said, Mapping):
            raise ValueError(f"config.json's {key} must be a table, got {said!r:.80}; fetch it again.")
        method = said.get("quant_method") or key
        method = "bitsandbytes" if method == key and "load_in_4bit" in said else method
        for kind in kinds:
            if method in kind.methods:
                return kind, Options(said, key)
        known = ", ".join(kind.name for kind in kinds)
        raise ValueError(
            f"the weights must not be quantised, or by what Loupe decodes ({known}), and config.json has a {key} of "
            f"{method!r:.80}; dequantise them first."
        )
    packed = not PACKED.isdisjoint(weights.dtypes.values())
    marked = (kind for kind in kinds if kind.mark and packed and any(re.search(kind.mark, name) for name in weights))
    return next(marked, None), Options()


def turn(matrix: QuantisedMatrix) -> QuantisedMatrix:
    return replace(matrix, shape=matrix.shape[::-1], decode=lambda: matrix.decode().T.contiguous())


def describe_decoded(weights: Weights, found: Mapping[str, QuantisedMatrix], rounding: int) -> str:
    """Sentences about how many bits a number takes with what it is scaled by, and about scales that are not used."""
    stored = {name for matrix in found.values() for name in matrix.stored}
    size = sum(prod(weights.shapes[name]) * getattr(torch, weights.dtypes[name]).itemsize for name in stored)
    numbers = sum(prod(matrix.shape) for matrix in found.values())
    kinds = " and ".join(f"{count:,} {kind}" for kind, count in Counter(one.kind for one in found.values()).items())
    told = f"Its weights are quantised ({kinds}), {8 * size / numbers:.2f} bits each, and were decoded to float32."
    if rounding:
        told += f" {count_words(rounding, 'tensor')} by which its library rounds activations "
        told += f"{'was' if rounding == 1 else 'were'} left out: Loupe does not round those."
    return told


def check_not_quantised(weights: Weights) -> None:
    """Raise ValueError where tensors are quantised that were not decoded."""
    if PACKED.isdisjoint(weights.dtypes.values()):
        return
    kinds = quantisations()
    traced = (name for kind in kinds for name in weights.shapes if re.search(kind.traces, name))
    if name := next(traced, ""):
        told = " or ".join(kind.name for kind in kinds if re.search(kind.traces, name))
        raise ValueError(
            f"the weights must not be quantised but as config.json says, and {name} is of {told}; bring that file, or "
            "dequantise them first."
        )
