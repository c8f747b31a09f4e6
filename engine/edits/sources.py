"""Edits that name what they put in place and are small for it: another run's values, or a token's vector.

`resolve` gets those values before the run, which then sees edits that hold them.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

import torch
from torch import Tensor

from engine.edits.edit import (
    ALL_REAL,
    Edit,
    Reach,
    RealTokens,
    Side,
    Where,
    edit_from_dict,
    from_the_end,
    merge_at,
    selection,
    write_at,
)
from engine.model.hooks import HookPoint, match_hooks
from engine.model.layers.embed import Embed
from engine.model.transformer import Transformer
from engine.tokenizers.encoding import Encoding

if TYPE_CHECKING:
    from engine.runtime.trace import Trace

ReadAt: TypeAlias = Literal["last", "mean"]  # where a text's value is read


@dataclass(frozen=True)
class Source:
    """Another run: what was read (of an encoder-decoder by the encoder, `target` by the decoder), and its own edits.

    Those must not name a further run. A model of pictures reads `pixels`, channel height width, as its processor makes
    them. Of a pair of texts `segments` say which of both each token is of. `name` is what a person calls it, and
    changes nothing.
    """

    ids: list[int] = field(default_factory=list)
    target: list[int] | None = None
    edits: list[Mapping[str, Any]] = field(default_factory=list)
    pixels: list[list[list[float]]] | None = None
    name: str = ""
    segments: list[int] | None = None

    def __post_init__(self) -> None:
        if self.segments is not None and (len(self.segments) != len(self.ids) or not {*self.segments} <= {0, 1}):
            raise ValueError("segments must be 0 or 1 for each token of the run values come from; correct them.")
        if not self.ids and self.pixels is None:
            raise ValueError("the run an edit takes values from needs at least one token, got none.")
        if self.ids and self.pixels is not None:
            raise ValueError("the run an edit takes values from reads tokens or a picture, got both; leave out one.")
        if self.pixels is not None:
            check_pixels(self.pixels)
        for edit in self.edits:
            if issubclass(
                Edit.kinds.get(str(edit.get("edit")), Edit), RunSourcedEdit
            ):  # before it is made: no end otherwise
                raise ValueError(f"the run values come from must not need a further one; leave out {edit['edit']}.")
        self.as_edits()

    def as_edits(self) -> tuple[Edit, ...]:
        return tuple(edit_from_dict(data) for data in self.edits)

    @property
    def read(self) -> list[int] | Encoding | Tensor:
        """Ids, with segments an encoding, or pixels 1 channel height width."""
        if self.segments is not None:
            return replace(Encoding.from_ids(self.ids), segments=tuple(self.segments))
        return self.ids if self.pixels is None else torch.tensor([self.pixels], dtype=torch.float32)


def check_pixels(pixels: list[list[list[float]]]) -> None:
    rows = [row for channel in pixels for row in channel]
    if not rows or not rows[0] or len({len(row) for row in rows}) > 1 or len({len(each) for each in pixels}) > 1:
        raise ValueError("pixels must be channel height width, rows of one length; give one number for each.")
    if not all(math.isfinite(value) for row in rows for value in row):
        raise ValueError("pixels must be finite numbers, got one that is not; correct it.")


class SourceRuns:
    """The runs that edits take values from, each made once. `read` makes one with the hooks that it is to keep.

    Its source is None for the text that is edited, without edits.
    """

    def __init__(self, model: Transformer, read: Callable[[Source | None, tuple[str, ...]], Trace]) -> None:
        self.model, self.read = model, read
        self._made: dict[str, Trace] = {}

    def find(self, source: Source | None, keep: tuple[str, ...]) -> Trace:
        key = json.dumps([None if source is None else asdict(source), keep])
        if key not in self._made:
            self._made[key] = self.read(source, keep)
        return self._made[key]


class FetchingEdit(Edit, serialised=False):
    """An edit that has to get its values before it can be applied."""

    def hold(self, runs: SourceRuns) -> Edit:
        """The edit with what it names."""
        return FetchedEdit(self, self.fetch(runs))

    def fetch(self, runs: SourceRuns) -> Mapping[str, Tensor]:
        """Values it puts in place, by the full name of each hook that it touches."""
        raise TypeError(f"{type(self).__name__} must say where its values come from.")

    def put(self, hook: HookPoint, value: Tensor, fetched: Tensor) -> Tensor:
        raise TypeError(f"{type(self).__name__} must say what it does to {hook.name}.")

    def apply(self, hook: HookPoint, value: Tensor, real: RealTokens = ALL_REAL) -> Tensor:
        raise TypeError(f"{type(self).__name__} has no values yet; resolve() it first, as run() does.")


class RunSourcedEdit(FetchingEdit, serialised=False):
    """Its values are those of other runs."""


@dataclass(frozen=True, eq=False)
class FetchedEdit(Edit, serialised=False):
    """An edit with the values it named, by hook."""

    edit: FetchingEdit
    values: Mapping[str, Tensor]

    def touches(self) -> tuple[str, ...]:
        return self.edit.touches()

    def apply(self, hook: HookPoint, value: Tensor, real: RealTokens = ALL_REAL) -> Tensor:
        return self.edit.put(hook, value, self.values[hook.name])

    def is_anchored(self, hook: HookPoint) -> bool:
        return self.edit.is_anchored(hook)

    def reach(self, hook: HookPoint) -> Reach:
        return self.edit.reach(hook)

    def to_dict(self) -> dict[str, Any]:
        return self.edit.to_dict()


def resolve(edits: Sequence[Edit], runs: SourceRuns) -> tuple[Edit, ...]:
    """The same edits, those that name values holding them. Raises ValueError for a run that cannot be made."""
    return tuple(edit.hold(runs) if isinstance(edit, FetchingEdit) else edit for edit in edits)


@dataclass(frozen=True)
class Patch(RunSourcedEdit):
    """Put what a hook held in another run in place of this one's (activation patching, Meng et al. 2022, section 2.1).

    `source` None is this text's run without edits. `at` says what is replaced; `source_hook` and `source_at` what by,
    and are the same where they are left out: the pattern of head 2 of layer 0 for head 1 of layer 3 is
    `Patch("blocks.3.attn.pattern", at={"head": 1}, source_hook="blocks.0.attn.pattern", source_at={"head": 2})`.
    """

    hook: str
    source: Source | None = None
    at: Where = field(default_factory=dict)
    source_hook: str | None = None
    source_at: Where | None = None

    def touches(self) -> tuple[str, ...]:
        return (self.hook,)

    def fetch(self, runs: SourceRuns) -> Mapping[str, Tensor]:
        model = runs.model
        names = match_hooks(self.hook, model.hook_names)
        others = names if self.source_hook is None else match_hooks(self.source_hook, model.hook_names)
        if self.source_hook is not None and len(others) != 1:
            raise ValueError(f"{self.source_hook!r} stands for {len(others)} hooks; name one of them.")
        others = others * len(names) if len(others) == 1 else others
        trace = runs.find(self.source, tuple(dict.fromkeys(others)))
        at = {axis: i for axis, i in self.at.items() if axis != "batch"} if self.source_at is None else self.source_at
        return {
            name: trace[other][selection(model.hooks[other], trace[other], at)]
            for name, other in zip(names, others, strict=True)
        }

    def put(self, hook: HookPoint, value: Tensor, fetched: Tensor) -> Tensor:
        return write_at(hook, value, self.at, fetched)

    def is_anchored(self, hook: HookPoint) -> bool:
        sized = any(axis in hook.axes and axis not in self.at for axis in ("pos", "key"))
        return sized or from_the_end(self.at)

    def reach(self, hook: HookPoint) -> Reach:
        return "prompt" if "pos" in hook.axes else "each"


@dataclass(frozen=True)
class Steer(RunSourcedEdit):
    """Add `factor` times the difference between two texts' values (Turner et al. 2023, Activation Addition).

    It is read at each text's `last` position, or is that of their means over positions. `at` says where it is added;
    everywhere, what is written behind the text included, where `at` names no position.
    """

    hook: str
    toward: Source
    away: Source
    factor: float = 1.0
    read: ReadAt = "last"
    at: Where = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not math.isfinite(self.factor):
            raise ValueError(f"the factor of a steering vector must be a finite number, got {self.factor}.")
        if self.read not in get_args(ReadAt):
            raise ValueError(f"read must be last or mean, got {self.read!r}.")

    def touches(self) -> tuple[str, ...]:
        return (self.hook,)

    def fetch(self, runs: SourceRuns) -> Mapping[str, Tensor]:
        names = match_hooks(self.hook, runs.model.hook_names)
        for name in names:
            axes = runs.model.hooks[name].axes
            if axes[:2] != ("batch", "pos") or "key" in axes:
                raise ValueError(f"a steering vector needs a value at each position; {name} is {' '.join(axes)}.")
        one, other = runs.find(self.toward, names), runs.find(self.away, names)
        return {name: read_value(one[name], self.read) - read_value(other[name], self.read) for name in names}

    def put(self, hook: HookPoint, value: Tensor, fetched: Tensor) -> Tensor:
        return merge_at(hook, value, self.at, value + self.factor * fetched)

    def is_anchored(self, hook: HookPoint) -> bool:
        return from_the_end(self.at)

    def reach(self, hook: HookPoint) -> Reach:
        return "prompt" if "pos" in self.at else "each"


def read_value(value: Tensor, read: ReadAt) -> Tensor:
    """A value batch pos ... of the first text at its last position, or its mean over positions."""
    return value[0, -1] if read == "last" else value[0].mean(0)


@dataclass(frozen=True)
class ChangeToken(FetchingEdit):
    """Let the embedding at `position` be that of another `token`; with a `share` below 1, mixed with its own."""

    position: int
    token: int
    share: float = 1.0
    stack: Side | None = None

    def __post_init__(self) -> None:
        if self.position < 0:
            raise ValueError(f"the position of a token counts from 0, got {self.position}.")
        if not math.isfinite(self.share):
            raise ValueError(f"the share of the other token must be a finite number, got {self.share}.")

    def touches(self) -> tuple[str, ...]:
        return (f"{self.stack}.embed.tokens" if self.stack else "embed.tokens",)

    def fetch(self, runs: SourceRuns) -> Mapping[str, Tensor]:
        model = runs.model
        (name,) = match_hooks(*self.touches(), model.hook_names)
        token = torch.tensor([[self.token]], device=model.device)
        model.check_tokens(token)
        embed = model.get_submodule(name.removesuffix(".tokens"))
        assert isinstance(embed, Embed)
        return {name: embed.read(token, model.table)[0, 0]}

    def put(self, hook: HookPoint, value: Tensor, fetched: Tensor) -> Tensor:
        return merge_at(hook, value, {"pos": self.position}, torch.lerp(value, fetched.expand_as(value), self.share))

    def reach(self, hook: HookPoint) -> Reach:
        return "prompt"
