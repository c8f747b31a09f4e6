"""What an edit is: data that says which hooks it touches and what it does there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor

from engine.model.from_dict import build, write_call
from engine.model.hooks import HookPoint

Where = Mapping[str, int | list[int]]  # axis name -> the indices an edit is limited to
Side = Literal["encoder", "decoder"]  # of an encoder-decoder
Reach = Literal["each", "prompt", "whole"]


@dataclass(frozen=True, eq=False)
class RealTokens:
    """Places of tokens, not of what a batch was filled up with: of queries, batch pos, and of keys, batch
    key.

    None where all are real.
    """

    pos: Tensor | None = None
    key: Tensor | None = None


ALL_REAL = RealTokens()


class Edit:
    kinds: ClassVar[dict[str, type[Edit]]] = {}

    def __init_subclass__(cls, serialised: bool = True) -> None:
        if serialised:
            Edit.kinds[cls.__name__] = cls

    def touches(self) -> tuple[str, ...]:
        """Hook names or patterns whose value this edit changes."""
        raise TypeError(f"{type(self).__name__} must name the hooks it touches.")

    def apply(self, hook: HookPoint, value: Tensor, real: RealTokens = ALL_REAL) -> Tensor:
        """A new tensor; the old one may be shared with other runs and is never written to."""
        raise TypeError(f"{type(self).__name__} must say what it does to {hook.name}.")

    def adapt(self, name: str, x: Tensor, out: Tensor, training: bool = False) -> Tensor:
        """`out`, what the linear map `name` made of `x`, with what this edit adds to it."""
        return out

    def is_anchored(self, hook: HookPoint) -> bool:
        """True if what it does here has the size of the text it was made for, or counts from that text's end."""
        return False

    def reach(self, hook: HookPoint) -> Reach:
        """Extent of the edit of a prompt in what is written behind it.

        `each`: it does the same to every position by itself. `prompt`: it changes positions of the prompt alone.
        `whole`: what was read must be read again, since what it does to a position depends on later ones.
        """
        return "whole"

    def to_dict(self) -> dict[str, Any]:
        return {"edit": type(self).__name__, **asdict(self)}  # type: ignore[call-overload]

    def adapters(self) -> tuple[str, ...]:
        """Keys of the adapters that the edit names."""
        return ()

    def to_code(self, adapters: Mapping[str, str]) -> str:
        """The call that makes this edit; `adapters` are the names of the variables that hold them, by their keys."""
        return write_call(self)


def edit_from_dict(data: Mapping[str, Any]) -> Edit:
    """The inverse of `Edit.to_dict`. Raises ValueError for an unknown kind or field, or a wrong value."""
    if not isinstance(data, Mapping):
        raise ValueError(f"an edit must be a table, got {data!r}.")
    fields = dict(data)
    kind = fields.pop("edit", None)
    if not isinstance(kind, str) or kind not in Edit.kinds:
        raise ValueError(f"edit must be one of {', '.join(Edit.kinds)}, got {kind!r}.")
    return build(Edit.kinds[kind], fields)


@dataclass(frozen=True)
class AnchoredEdit(Edit, serialised=False):
    """An edit made for a text of `length` tokens, in a run over more of it: what is anchored stays within those."""

    edit: Edit
    length: int

    def touches(self) -> tuple[str, ...]:
        return self.edit.touches()

    def apply(self, hook: HookPoint, value: Tensor, real: RealTokens = ALL_REAL) -> Tensor:
        grows = {"pos", "key"} if "cross_attn." not in hook.name else {"pos"}
        if hook.name.startswith("encoder.") or not grows & set(hook.axes) or not self.edit.is_anchored(hook):
            return self.edit.apply(hook, value, real)
        start = tuple(slice(self.length) if axis in grows else slice(None) for axis in hook.axes)
        out = value.clone()
        out[start] = self.edit.apply(hook, value[start], real)
        return out

    def adapt(self, name: str, x: Tensor, out: Tensor, training: bool = False) -> Tensor:
        return self.edit.adapt(name, x, out, training)

    def is_anchored(self, hook: HookPoint) -> bool:
        return False

    def reach(self, hook: HookPoint) -> Reach:
        return "prompt" if self.edit.is_anchored(hook) else self.edit.reach(hook)

    def to_dict(self) -> dict[str, Any]:
        return self.edit.to_dict()


def attention(stack: Side | None, layer: int | None, cross: bool) -> str:
    """The name of a layer's attention, of None the pattern for all of them.

    `cross` is the decoder's to what the encoder gave. All of no stack are those of both.
    """
    side = "decoder" if cross and stack is None else stack
    before = f"{side}." if side else "*" if layer is None else ""
    return f"{before}blocks.{'*' if layer is None else layer}.{'cross_attn' if cross else 'attn'}"


def heads_only(heads: list[int] | None) -> Where:
    return {} if heads is None else {"head": heads}


def query_positions(hook: HookPoint, value: Tensor) -> tuple[Tensor, Tensor]:
    """Positions of the queries and of the keys of a value ... pos key; after a cache the queries are the last."""
    count, keys = value.shape[-2:]
    past = 0 if "cross_attn." in hook.name else keys - count
    pos = torch.arange(past, past + count, device=value.device)
    return pos, torch.arange(keys, device=value.device)


def merge_at(hook: HookPoint, value: Tensor, at: Where, changed: Tensor) -> Tensor:
    """`changed` where `at` picks, `value` elsewhere."""
    if not at:
        return changed.expand(value.shape) if changed.shape != value.shape else changed
    index = selection(hook, value, at)
    out = value.clone()
    out[index] = changed.expand(value.shape)[index]
    return out


def write_at(hook: HookPoint, value: Tensor, at: Where, new: Tensor) -> Tensor:
    """`value` with `new`, which must broadcast, where `at` picks."""
    index = selection(hook, value, at)
    out = value.clone()
    try:
        out[index] = new
    except (RuntimeError, IndexError):
        expected = tuple(out[index].shape)
        raise ValueError(
            f"the replacement for {hook.name} must broadcast to {expected}, got {tuple(new.shape)}."
        ) from None
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
        if wanted == []:
            raise ValueError(f"{axis} of {hook.name} must be one or more of 0..{size - 1}, got none; name one.")
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


def from_the_end(at: Where) -> bool:
    """True if positions are counted from the end of the text."""
    found = [at[axis] for axis in ("pos", "key") if axis in at]
    return any(i < 0 for one in found for i in (one if isinstance(one, list) else [one]))
