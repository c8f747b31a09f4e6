"""Changes to a run, as data: small frozen dataclasses that say which hooks they touch and what they do there.

`to_dict` and `edit_from_dict` carry them through JSON (links, notebooks, saved lessons).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor

from engine.hooks import HookPoint
from engine.plain import build

Where = Mapping[str, int | list[int]]  # axis name -> the indices an edit is limited to
Side = Literal["encoder", "decoder"]  # of an encoder-decoder


class Edit:
    kinds: ClassVar[dict[str, type[Edit]]] = {}

    def __init_subclass__(cls) -> None:
        Edit.kinds[cls.__name__] = cls

    def touches(self) -> tuple[str, ...]:
        """Hook names or patterns whose value this edit changes."""
        raise TypeError(f"{type(self).__name__} must name the hooks it touches.")

    def apply(self, hook: HookPoint, value: Tensor, real: Tensor | None = None) -> Tensor:
        """A new tensor; the old one may be shared with other runs and is never written to.

        `real` (batch pos) is True where a token stands; None where the batch has no padding.
        """
        raise TypeError(f"{type(self).__name__} must say what it does to {hook.name}.")

    def to_dict(self) -> dict[str, Any]:
        return {"edit": type(self).__name__, **asdict(self)}  # type: ignore[call-overload]


def edit_from_dict(data: Mapping[str, Any]) -> Edit:
    """The inverse of `Edit.to_dict`. Raises ValueError for an unknown kind or field, or a wrong value."""
    fields = dict(data)
    kind = fields.pop("edit", None)
    if kind not in Edit.kinds:
        raise ValueError(f"edit must be one of {', '.join(Edit.kinds)}, got {kind!r}.")
    return build(Edit.kinds[kind], fields)


@dataclass(frozen=True)
class SilenceHeads(Edit):
    """Take heads out of the computation (Michel et al. 2019).

    `zero`: their z is 0. `mean`: their z at every position is its mean over the positions of the text.
    `uniform`: they attend equally to every key they may see.
    """

    layer: int
    heads: list[int]
    how: Literal["zero", "mean", "uniform"] = "zero"
    stack: Side | None = None
    cross: bool = False

    def __post_init__(self) -> None:
        if self.how not in ("zero", "mean", "uniform"):
            raise ValueError(f"how must be zero, mean or uniform, got {self.how!r}.")

    def touches(self) -> tuple[str, ...]:
        part = "masked_scores" if self.how == "uniform" else "z"
        return (f"{attention(self.stack, self.layer, self.cross)}.{part}",)

    def apply(self, hook: HookPoint, value: Tensor, real: Tensor | None = None) -> Tensor:
        if self.how == "uniform":
            quiet = torch.where(value.isneginf(), value, torch.zeros_like(value))
        else:
            quiet = mean_over_text(value, real) if self.how == "mean" else torch.zeros_like(value)
        return chosen(hook, value, {"head": self.heads}, quiet)


@dataclass(frozen=True)
class AttentionTemperature(Edit):
    """Divide the masked scores by `value` before the softmax, in every attention of the model, or in those named."""

    value: float
    layer: int | None = None
    heads: list[int] | None = None
    stack: Side | None = None
    cross: bool = False

    def __post_init__(self) -> None:
        if not self.value > 0:
            raise ValueError(f"an attention temperature must be above 0, got {self.value}.")

    def touches(self) -> tuple[str, ...]:
        if self.layer is None and self.stack is None and not self.cross:
            return ("*.temperature",)
        return (f"{attention(self.stack, '*' if self.layer is None else self.layer, self.cross)}.temperature",)

    def apply(self, hook: HookPoint, value: Tensor, real: Tensor | None = None) -> Tensor:
        where: Where = {} if self.heads is None else {"head": self.heads}
        return chosen(hook, value, where, torch.full_like(value, self.value))


@dataclass(frozen=True)
class DrawMask(Edit):
    """Put a drawn mask (rows: queries, columns: keys, true = may attend) in place of a layer's own."""

    layer: int
    allowed: list[list[bool]]
    heads: list[int] | None = None
    stack: Side | None = None
    cross: bool = False

    def touches(self) -> tuple[str, ...]:
        return (f"{attention(self.stack, self.layer, self.cross)}.mask",)

    def apply(self, hook: HookPoint, value: Tensor, real: Tensor | None = None) -> Tensor:
        drawn = torch.tensor(self.allowed, dtype=torch.bool, device=value.device)
        if drawn.shape != value.shape[-2:]:
            raise ValueError(
                f"the mask must have shape (pos, key)={tuple(value.shape[-2:])}, got {tuple(drawn.shape)}."
            )
        where: Where = {} if self.heads is None else {"head": self.heads}
        return chosen(hook, value, where, drawn.expand(value.shape))


@dataclass(frozen=True)
class Scale(Edit):
    """Multiply a hook's value by `factor`, everywhere or where `at` says ({"pos": 3, "head": [0, 1]})."""

    hook: str
    factor: float
    at: Where = field(default_factory=dict)

    def touches(self) -> tuple[str, ...]:
        return (self.hook,)

    def apply(self, hook: HookPoint, value: Tensor, real: Tensor | None = None) -> Tensor:
        if value.dtype == torch.bool:
            raise ValueError(f"{hook.name} is true or false and has no scale; use Replace or DrawMask.")
        return chosen(hook, value, self.at, value * self.factor)


@dataclass(frozen=True)
class Replace(Edit):
    """Put `value` (a number, or nested lists that broadcast to what `at` picks) in place of a hook's."""

    hook: str
    value: float | list[Any]
    at: Where = field(default_factory=dict)

    def touches(self) -> tuple[str, ...]:
        return (self.hook,)

    def apply(self, hook: HookPoint, value: Tensor, real: Tensor | None = None) -> Tensor:
        new = torch.as_tensor(self.value, dtype=value.dtype, device=value.device)
        index = selection(hook, value, self.at)
        out = value.clone()
        try:
            out[index] = new
        except (RuntimeError, IndexError):
            expected = tuple(out[index].shape)
            raise ValueError(
                f"the replacement for {hook.name} must broadcast to {expected}, got {tuple(new.shape)}."
            ) from None
        return out


def attention(stack: Side | None, layer: int | str, cross: bool) -> str:
    """The name of a layer's attention; `cross` is the decoder's to what the encoder gave."""
    side = "decoder" if cross and stack is None else stack
    return f"{side + '.' if side else ''}blocks.{layer}.{'cross_attn' if cross else 'attn'}"


def mean_over_text(z: Tensor, real: Tensor | None) -> Tensor:
    """The mean of z (batch pos head d_head) over the positions where a token stands, batch 1 head d_head."""
    if real is None:
        return z.mean(1, keepdim=True)
    weight = real[:, :, None, None].to(z.dtype)
    return (z * weight).sum(1, keepdim=True) / weight.sum(1, keepdim=True)


def chosen(hook: HookPoint, value: Tensor, at: Where, changed: Tensor) -> Tensor:
    """`changed` where `at` picks, `value` elsewhere."""
    if not at:
        return changed.expand(value.shape) if changed.shape != value.shape else changed
    index = selection(hook, value, at)
    out = value.clone()
    out[index] = changed.expand(value.shape)[index]
    return out


def selection(hook: HookPoint, value: Tensor, at: Where) -> tuple[Any, ...]:
    """An index for `value` from indices by axis name: lists combine as a grid, an int drops its axis."""
    unknown = set(at) - set(hook.axes)
    if unknown:
        raise ValueError(f"{hook.name} has axes {', '.join(hook.axes)}; there is no {', '.join(sorted(unknown))}.")
    lists = [axis for axis in hook.axes if isinstance(at.get(axis), list)]
    index: list[Any] = []
    for axis, size in zip(hook.axes, value.shape, strict=True):
        wanted = at.get(axis)
        if wanted is None:
            index.append(slice(None))
            continue
        for i in wanted if isinstance(wanted, list) else [wanted]:
            if not -size <= i < size:
                raise ValueError(f"{axis} of {hook.name} must be in 0..{size - 1}, got {i}.")
        if isinstance(wanted, int):
            index.append(wanted)
        else:
            shape = [1] * len(lists)
            shape[lists.index(axis)] = -1
            index.append(torch.tensor(wanted, device=value.device).view(shape))
    return tuple(index)
