"""How many bits: what formats leave of a number and of a group of weights, and of what a whole model says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from engine.edits import ExchangedMaps
from engine.model.layers.lora import list_linears
from engine.model.transformer import Transformer
from engine.runtime import library
from engine.runtime.run import run
from engine.scoring.score import cross_entropy

FLOATS = {  # each with its bits of exponent and of mantissa
    "float32": (torch.float32, torch.int32, 8, 23),
    "bfloat16": (torch.bfloat16, torch.int16, 8, 7),
    "float16": (torch.float16, torch.int16, 5, 10),
}
INTEGERS = {"int8": 8, "int4": 4, "int3": 3, "int2": 2}  # bits of each
SCALE_BITS = 32  # a scale is a float32
FORMATS = ("float32", "bfloat16", *INTEGERS)

# --- one number ---


@dataclass(frozen=True)
class FloatParts:
    """What a float format keeps of a number: (-1)^sign · 2^(exponent - bias) · (1 + mantissa / 2^mantissa_bits), and
    without the 1, with an exponent of 1, where the exponent is 0 (IEEE 754)."""

    kind: str
    sign: int
    exponent: int
    mantissa: int
    exponent_bits: int
    mantissa_bits: int
    value: float

    @property
    def bias(self) -> int:
        return int(2 ** (self.exponent_bits - 1) - 1)

    @property
    def infinite(self) -> bool:
        return self.exponent == 2**self.exponent_bits - 1


def split_float(x: float, kind: str) -> FloatParts:
    """The nearest float of a kind, by its bits."""
    dtype, integer, exponent_bits, mantissa_bits = FLOATS[kind]
    stored = torch.tensor(x, dtype=torch.float64).to(dtype)
    pattern = int(stored.view(integer)) % 2 ** (1 + exponent_bits + mantissa_bits)
    rest, mantissa = divmod(pattern, 2**mantissa_bits)
    sign, exponent = divmod(rest, 2**exponent_bits)
    return FloatParts(kind, sign, exponent, mantissa, exponent_bits, mantissa_bits, float(stored))


# --- a group of weights ---


@dataclass(frozen=True)
class StoredWeights:
    """`values` = `integers` · `scales`, which stand for the weights; all of their shape."""

    integers: Tensor
    scales: Tensor
    values: Tensor


def store_integers(weights: Tensor, bits: int, group: int) -> StoredWeights:
    """n = round(w / s) with one scale s = max|w| / (2^(b-1) - 1) for each `group` of weights along the last axis, of
    which the last may be shorter (absmax quantisation; Dettmers et al. 2022, LLM.int8(), section 2)."""
    integers, scales = list[Tensor](), list[Tensor]()
    for w in weights.split(group, dim=-1):
        s = w.abs().amax(-1, keepdim=True) / (2 ** (bits - 1) - 1)
        integers.append(torch.where(s > 0, (w / s).round(), 0.0))
        scales.append(s.expand_as(w))
    n, s = torch.cat(integers, -1), torch.cat(scales, -1)
    return StoredWeights(n, s, n * s)


def store(weights: Tensor, kind: str, group: int) -> Tensor:
    """What a format leaves of weights, in float32."""
    if kind in INTEGERS:
        return store_integers(weights, INTEGERS[kind], group).values
    return weights.to(FLOATS[kind][0]).float()


def bits_of_weight(kind: str, group: int) -> float:
    """Bits that a weight takes, with its share of the scale of its group."""
    if kind in INTEGERS:
        return INTEGERS[kind] + SCALE_BITS / group
    _dtype, _integer, exponent_bits, mantissa_bits = FLOATS[kind]
    return 1 + exponent_bits + mantissa_bits


# --- a whole model ---


@dataclass(frozen=True)
class FormatEffect:
    """What a model says of a text with its matrices in a format: mean `loss` of each next token, and mean distance `kl`
    of its predictions from those with float32, in nats; the share of places where the likeliest token is the `same`;
    and the probability `p` after the text of the token that is the likeliest with float32."""

    kind: str
    bits: float
    loss: float
    kl: float
    same: float
    p: float


@torch.no_grad()
def store_matrices(model: Transformer, kind: str, group: int) -> dict[str, Tensor]:
    """What a format changes the matrix of each linear map of attention and MLPs by, out in, by name."""
    weights = {name: one.weight.detach().float() for name, one in list_linears(model).items()}
    return {name: store(weight, kind, group) - weight for name, weight in weights.items()}


@torch.no_grad()
def predict(model: Transformer, ids: Sequence[int], changes: Mapping[str, Tensor]) -> Tensor:
    """Logarithms of all probabilities after each token, pos vocab, in float64."""
    edits = [ExchangedMaps(changes)] if changes else []
    return run(model, list(ids), ["logits"], edits)["logits"][0].double().log_softmax(-1)


def mean_kl(own: Tensor, other: Tensor) -> float:
    """KL(own || other), the mean over positions."""
    return float((own.exp() * (own - other)).sum(-1).mean())


def measure_formats(name: str, ids: Sequence[int], kinds: Sequence[str], group: int) -> list[FormatEffect]:
    """A model's predictions on a text with all its matrices in each of the formats."""
    model, found = library.checkpoint(name).model, []
    own, targets = predict(model, ids, {}), torch.tensor(ids[1:])
    for kind in kinds:
        other = predict(model, ids, store_matrices(model, kind, group))
        loss, _ = cross_entropy(other[:-1], targets)
        same = float((own.argmax(-1) == other.argmax(-1)).double().mean())
        p = float(other[-1, own[-1].argmax()].exp())
        found.append(FormatEffect(kind, bits_of_weight(kind, group), float(loss), mean_kl(own, other), same, p))
    return found


def measure_each(name: str, ids: Sequence[int], kind: str, group: int) -> dict[str, float]:
    """Distance of a model's predictions on a text from its own, mean KL in nats, with one matrix at a time in a
    format, by its name."""
    model = library.checkpoint(name).model
    own, changes = predict(model, ids, {}), store_matrices(model, kind, group)
    return {one: mean_kl(own, predict(model, ids, {one: change})) for one, change in changes.items()}
