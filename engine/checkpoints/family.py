"""A model family as data: what its config.json and its weights are called, and what Loupe calls them.

Both directions read the same tables, so what can be loaded can be saved. Adding a family is one file in
`families/`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor

from engine.checkpoints.canonical import canonical_config
from engine.checkpoints.keys import ConfigTable, Key, head_keys, read_model_config, write_table
from engine.checkpoints.kinds import ANY, KINDS, Kind
from engine.checkpoints.recomputed import SINUSOIDS, RecomputedTensor
from engine.model.config import ModelConfig

LAYER = re.compile(r"blocks\.(\d+)\.")
DROPPED = None  # in a row, in place of Loupe's name: left out on purpose

Convert = Callable[[list[Tensor], ModelConfig], list[Tensor]]


@dataclass(frozen=True)
class Transform:
    """Change of a row's tensors on the way in (`read`) and out (`write`, its inverse).

    One that `loses` something is not inverted exactly: what was stored is kept, and written again where the model still
    has what was made of it. One that `rounds` adds numbers up, which is done in float32 at least.
    """

    read: Convert
    write: Convert
    loses: bool = False
    rounds: bool = False


def _identity(tensors: list[Tensor], config: ModelConfig) -> list[Tensor]:
    return tensors


SAME = Transform(_identity, _identity)
TRANSPOSED = Transform(lambda tensors, _: [tensors[0].mT], lambda tensors, _: [tensors[0].mT])


@dataclass(frozen=True)
class Row:
    """The tensors called `source` become those called `target`."""

    source: tuple[str, ...]
    target: tuple[str, ...]
    transform: Transform = SAME

    @property
    def inverse(self) -> Row:
        made = self.transform
        return Row(self.target, self.source, Transform(made.write, made.read, made.loses, made.rounds))

    def read(self, stored: Sequence[Tensor], config: ModelConfig, dtype: torch.dtype) -> list[Tensor]:
        """Converts tensors as they are stored to those of a model of `dtype`."""
        wide = torch.promote_types(dtype, torch.float32) if self.transform.rounds else dtype
        return self.transform.read([tensor.to(wide) for tensor in stored], config)


@dataclass(frozen=True)
class Family:
    """`rows` are (their name or names, our name or names, transform); `{}` stands for the layer, `*` in their names
    for each of its experts in turn. Of rows that make the same tensor the first
    counts whose tensors a model has all. A row of a tensor that Loupe computes is (their name, DROPPED, what it must
    equal).

    `name` is config.json's `model_type`, `always` what Loupe's config is wherever the family has no key for it (a
    value, or a function of config.json), `only` the keys of theirs of which Loupe can represent a single value,
    `extra` what is written to config.json and never read. `tied` names the tensors that, in a tied model, are others,
    `twins` those that always are. Files may leave `optional_prefix` out of every name, and spell a part of it as in
    `old_spelling`. `module_spelling` is how transformers 5 spells parts of the names of modules, which adapters go by,
    where its files keep the older names of the rows; its later replacements act on what the earlier ones left.

    `common` are the names that the configs of all models share, with the family's own for them (transformers'
    `attribute_map`); a common one counts before the own. `defaults` are what transformers' class says where a key is
    absent (null is a value): a value, or a function of the rest of config.json, common names not yet heeded.

    `kept` are tensors that are left out and saved again as they were: those of a part that Loupe does not compute.

    A model type of several architectures is several of these. `also` are other architectures that are read as this
    one, and `signs` tensors that only a file of this one has. One that `interpolates` reads pictures of any size; one
    that is `half_of` two towers is what a config.json of that model type has under that key.
    """

    name: str
    architecture: str | None = None
    keys: Sequence[Key] = ()
    always: Mapping[str, Any] = field(default_factory=dict)
    only: Mapping[str, Any] = field(default_factory=dict)
    rows: Sequence[tuple[Any, ...]] = ()
    tied: Mapping[str, str] = field(default_factory=dict)
    optional_prefix: str = ""
    twins: Mapping[str, str] = field(default_factory=dict)
    old_spelling: Mapping[str, str] = field(default_factory=dict)
    module_spelling: Mapping[str, str] = field(default_factory=dict)
    also: tuple[str, ...] = ()
    signs: tuple[str, ...] = ()
    interpolates: bool = False
    half_of: tuple[str, str] | None = None
    kept: tuple[str, ...] = ()
    extra: Mapping[str, Any] = field(default_factory=dict)
    common: Mapping[str, str] = field(default_factory=dict)
    defaults: Mapping[str, Any] = field(default_factory=dict)

    def read_config(self, theirs: Mapping[str, Any]) -> ModelConfig:
        """Raises ValueError for a key that is missing or whose value Loupe cannot represent."""
        return read_model_config(self.complete(theirs), self.all_keys, self.always, self.only)

    def complete(self, theirs: Mapping[str, Any]) -> ConfigTable:
        """config.json as transformers' class of the model reads it."""
        read = theirs.read if isinstance(theirs, ConfigTable) else None
        whole = ConfigTable({**self.defaults, **theirs}, read, self.kinds)
        whole |= {name: self.defaults[name](whole) for name, value in whole.items() if callable(value)}
        said = {own: name for name, own in self.common.items() if theirs.get(name) is not None}
        whole |= {own: whole.check(own, theirs[name], name) for own, name in said.items()}
        return whole

    @property
    def kinds(self) -> Mapping[str, Kind]:
        """Kind of each key of config.json that may be read."""
        own = {key.theirs: key.kind for key in self.keys if key.kind is not None}
        return {**KINDS, **dict.fromkeys(self.only, ANY), **own}

    @property
    def all_keys(self) -> Sequence[Key]:
        return (*self.keys, *head_keys(self.name, self.always))

    def write_config(self, config: ModelConfig) -> dict[str, Any]:
        """config.json for `config`. Raises ValueError where this family cannot express it exactly."""
        theirs = {
            "model_type": self.name,
            "architectures": [self.architecture],
            **self.extra,
            **write_table(config, self.all_keys, self.only),
        }
        read = self.read_config(theirs)
        if self.stores_sinusoids and config.positions.kind == "learned":
            read = replace(read, positions=config.positions)
        if canonical_config(read) != canonical_config(config):
            raise ValueError(f"the {self.name} family cannot express {config}.")
        return theirs

    def bind(self, ours: Mapping[str, Tensor]) -> list[Row]:
        """The rows with layers and experts filled in, of a model whose tensors are `ours`."""
        bound = []
        open_names = set(ours)
        layers = count_layers(ours)
        for theirs, names, *transform in self.rows:
            if names is DROPPED:
                continue
            sources = (theirs,) if isinstance(theirs, str) else theirs
            names = (names,) if isinstance(names, str) else names
            for layer in range(layers if "{}" in names[0] else 1):
                target = tuple(name.format(layer) for name in names)
                if open_names.issuperset(target):
                    filled = tuple(source.format(layer) for source in sources)
                    bound.append(Row(fill_experts(filled, len(ours[target[0]])), target, *transform))
                    open_names.difference_update(target)
        return bound

    def drops(self, theirs: str) -> bool:
        """True for the name of a tensor that is left out on purpose."""
        return self.find_dropped(theirs) is not None

    def find_dropped(self, theirs: str) -> tuple[RecomputedTensor | None, int] | None:
        """Value that the tensor `theirs`, which is left out, must equal (None: any value), and its layer; None for a
        tensor that is not left out."""
        for name, ours, *must_equal in self.rows:
            if ours is not DROPPED:
                continue
            match = re.fullmatch(re.escape(name).replace(r"\{\}", r"(\d+)"), theirs)
            if match is not None:
                return next(iter(must_equal), None), int(next(iter(match.groups()), 0))
        return None

    @property
    def stores_sinusoids(self) -> bool:
        """True where files hold sinusoids as tables. One that was trained makes the positions learned ones."""
        return any(ours is DROPPED and SINUSOIDS in must_equal for _, ours, *must_equal in self.rows)

    def spellings(self, stored: str) -> tuple[str, ...]:
        """The names that a tensor called `stored` in a file may have in the rows."""
        for old, new in (*self.old_spelling.items(), *((now, old) for old, now in self.module_spelling.items())):
            stored = stored.replace(old, new)
        return stored, self.optional_prefix + stored

    def module_name(self, name: str) -> str:
        """Name in transformers 5 of a module that the rows call `name`."""
        for old, now in self.module_spelling.items():
            name = name.replace(old, now)
        return name

    def shows(self, stored: Collection[str]) -> bool:
        """True where tensors of these names tell this architecture from its sisters."""
        known = {*stored, *(name for one in stored for name in self.spellings(one))} if self.signs else ()
        return all(sign in known for sign in self.signs)

    def holds_head(self, stored: Collection[str]) -> bool:
        """True where any tensor of these names is of this architecture's head alone."""
        rows = (row for row in self.rows if row[1] is not DROPPED and "head." in str(row[1]))
        sources = {source for row in rows for source in ((row[0],) if isinstance(row[0], str) else row[0])}
        return any(not sources.isdisjoint(self.spellings(name)) for name in stored)

    @property
    def head(self) -> str:
        kind: str = self.always.get("head.kind", "language")
        return kind


def count_layers(ours: Iterable[str]) -> int:
    """Number of layers by the names of a model's tensors: one more than the highest."""
    numbers = (found[1] for name in ours if (found := LAYER.search(name)))
    return max(map(int, numbers), default=-1) + 1


def fill_experts(sources: tuple[str, ...], count: int) -> tuple[str, ...]:
    """Names with `*` for each of `count` experts: all experts' of the first name, then all of the second."""
    return tuple(name.replace("*", str(expert)) for name in sources for expert in range(count if "*" in name else 1))


def translate(tensors: Mapping[str, Tensor], rows: Iterable[Row], config: ModelConfig) -> Iterator[tuple[str, Tensor]]:
    """Rename and transform tensors row by row; on meta tensors this computes shapes and takes no memory.

    The same rows serve loading, saving and checking shapes.
    """
    for row in rows:
        made = row.transform.read([tensors[name] for name in row.source], config)
        yield from zip(row.target, made, strict=True)


def invert_rows(rows: Iterable[Row]) -> list[Row]:
    return [row.inverse for row in rows]


def concatenate(tensors: Sequence[Tensor], dim: int) -> Tensor:
    """Join tensors like torch.cat, which for meta tensors would import PyTorch's compiler: a second of waiting."""
    first = tensors[0]
    if not first.is_meta:
        return torch.cat(list(tensors), dim=dim)
    shape = list(first.shape)
    shape[dim] = sum(tensor.shape[dim] for tensor in tensors)
    return first.new_empty(shape)
