"""What a kind of quantised weights is: how a file of few bits a number is read as the weights of the plain model."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from math import gcd
from typing import Any

import torch
from torch import Tensor

from engine.checkpoints.weights import Weights

INTEGERS, BYTES = ("int32", "uint32"), ("uint8",)
SCALES = ("float32", "float16", "bfloat16", "float8_e8m0fnu")
MISSING = object()


@dataclass(frozen=True)
class QuantisedMatrix:
    """A matrix of the plain model: its `shape`, its `kind` in a report, the names of the tensors that are `stored` of
    it, and how it is decoded, to float32."""

    shape: tuple[int, ...]
    kind: str
    stored: tuple[str, ...]
    decode: Callable[[], Tensor]


@dataclass(frozen=True)
class Options:
    """The `table` of config.json that says how weights are quantised, called `key` there. Every method raises
    ValueError for a value that Loupe does not decode by."""

    table: Mapping[str, Any] = field(default_factory=dict)
    key: str = "quantization_config"

    def choose(self, name: str, allowed: Collection[Any], default: Any = MISSING) -> Any:
        value = self.table.get(name)
        if value is None and default is not MISSING:
            return default
        if not any(type(value) is type(one) and value == one for one in allowed):
            known = " or ".join(map(repr, allowed))
            raise self.refusal(name, known)
        return value

    def group_size(self, name: str = "group_size", default: Any = MISSING) -> int | None:
        """Number of inputs that share a scale, None for all of a row."""
        value = self.table.get(name, default)
        if value in (None, -1):
            return None
        if type(value) is not int or value < 1:
            raise self.refusal(name, "a whole number above 0, or -1")
        return value

    def refuse(self, name: str) -> None:
        """Raise ValueError where the table asks for something by this name."""
        if self.table.get(name):
            raise self.refusal(name, "left out")

    def refusal(self, name: str, known: str) -> ValueError:
        return ValueError(
            f"config.json's {self.key} must have {name} {known} for Loupe to decode the weights, got "
            f"{self.table.get(name)!r:.80}; dequantise them first."
        )


@dataclass(frozen=True)
class Quantisation:
    """A kind of quantised weights. `methods` are its `quant_method`s in config.json, `mark` fits names of tensors that
    say it without one, `traces` those that no plain model has, and `find` lists the matrices of a file by the plain
    model's names. `turned` says that its library stores the matrices of GPT-2's Conv1D turned over, as those of a
    linear layer."""

    name: str
    methods: tuple[str, ...]
    find: Callable[[Weights, Options], Mapping[str, QuantisedMatrix]]
    traces: str
    mark: str = ""
    turned: bool = False


def check_tensor(weights: Weights, name: str, dtypes: Collection[str], *shapes: tuple[int, ...]) -> None:
    """Raise ValueError unless the file has such a tensor, of one of the `dtypes` and `shapes`."""
    told = " or ".join(dtypes) + (f" of shape {' or '.join(map(str, shapes))}" if shapes else "")
    if name not in weights.shapes:
        raise ValueError(f"quantised weights must come with {name}, {told}, which is not there; fetch the file again.")
    if weights.dtypes[name] not in dtypes or weights.shapes[name] not in shapes:
        raise ValueError(
            f"{weights.label(name)} must be {told} by the tensors beside it and config.json, got "
            f"{weights.dtypes[name]} of shape {weights.shapes[name]}; they are not of one model."
        )


def check_axes(weights: Weights, name: str, dtypes: Collection[str], axes: int) -> tuple[int, ...]:
    """Shape of the tensor that numbers are packed in. Raises ValueError for another dtype or number of axes."""
    shape = weights.shapes[name]
    if weights.dtypes[name] not in dtypes or len(shape) != axes or not all(shape):
        raise ValueError(
            f"{weights.label(name)} must be {' or '.join(dtypes)} with {axes} axes, none of them empty, got "
            f"{weights.dtypes[name]} of shape {shape}; fetch the file again."
        )
    return shape


def divide(weights: Weights, name: str, size: int, by: int, what: str) -> int:
    """`size` parts of `by`. Raises ValueError where that does not divide."""
    if size % by:
        raise ValueError(
            f"{weights.label(name)} must have {what} that {by} divides, got {size}; config.json is another model's."
        )
    return size // by


def check_index(label: str, index: Tensor, groups: int) -> Tensor:
    """The group of each input. Raises ValueError for one that is not there."""
    least, most = (int(end) for end in index.aminmax())
    if least < 0 or most >= groups:
        raise ValueError(
            f"{label} must name groups from 0 to {groups - 1}, got {least if least < 0 else most}; fetch the "
            "file again."
        )
    return index.long()


def unpack(words: Tensor, bits: int) -> Tensor:
    """The numbers of a row of 32-bit words as one stream of `bits` each, the lowest bits first: ... word in, ... number
    out, uint8."""
    period = bits // gcd(bits, 32)  # words after which a number begins with a word again
    words = words.view(torch.int32)
    spare = -words.shape[-1] % period
    words = torch.nn.functional.pad(words, (0, spare)).unflatten(-1, (-1, period))
    count = 32 * period // bits
    numbers = torch.empty(*words.shape[:-1], count, dtype=torch.uint8)
    for at in range(count):
        word, shift = divmod(at * bits, 32)
        field = words[..., word] >> shift
        if shift + bits > 32:
            field = field & ((1 << (32 - shift)) - 1) | words[..., word + 1] << (32 - shift)
        numbers[..., at] = field & ((1 << bits) - 1)
    return numbers.flatten(-2)


def scale_groups(
    numbers: Tensor, scales: Tensor, zeros: Tensor | None = None, index: Tensor | None = None, add: Tensor | None = None
) -> Tensor:
    """(number - zero) x scale + add in float32, of ... out in numbers, with all others ... out group: of equal groups
    of inputs, or of those that `index` names for each input."""
    made = numbers.float()
    groups = scales.shape[-1]
    if index is not None and not torch.equal(index, torch.arange(made.shape[-1]) // (made.shape[-1] // groups)):
        made -= 0 if zeros is None else zeros.float()[..., index]
        return made.mul_(scales.float()[..., index])
    grouped = made.unflatten(-1, (groups, -1))
    if zeros is not None:
        grouped -= zeros.float()[..., None]
    grouped *= scales.float()[..., None]
    if add is not None:
        grouped += add.float()[..., None]
    return made


def scale_blocks(numbers: Tensor, scales: Tensor, block: tuple[int, int]) -> Tensor:
    """number x scale in float32, of out in numbers with a scale for each block of rows and columns."""
    made, (rows, columns) = numbers.float(), block
    for at, scale in enumerate(scales.float()):
        made[at * rows : (at + 1) * rows] *= scale.repeat_interleave(columns)[: made.shape[1]]
    return made
