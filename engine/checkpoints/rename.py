"""Names of a file's tensors mapped onto those that a family expects, for files of a layout of their own."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import NamedTuple

import torch
from torch import Tensor

from engine.checkpoints.weights import Weights

HOLE = re.compile(r"\{\}|\*")  # a layer's number, or any part of a name
PART = {"{}": r"(\d+)", "*": "(.+)"}
LONGEST_NAME = 500
Names = Mapping[str, str]


class Origin(NamedTuple):
    """Source of a tensor: the file's `stored` tensors, stacked if there are several; for a single one, part `at` of
    `parts` equal parts. Both along the first axis."""

    stored: tuple[str, ...]
    at: int = 0
    parts: int = 1

    def read(self, weights: Mapping[str, Tensor]) -> Tensor:
        tensors = [weights[name] for name in self.stored]
        whole = tensors[0] if len(tensors) == 1 else torch.cat(tensors)
        return whole if self.parts == 1 else whole.unflatten(0, (self.parts, -1))[self.at]


def rename_tensors(weights: Weights, rename: Names) -> Weights:
    """The same tensors, each under the name that the first fitting line of `rename` (old -> new) gives it.

    Either side may hold `{}` for a number and `*` for any part, filled in their order; "qkv -> q, k, v" splits a tensor
    into equal parts along its first axis, "q, k, v -> qkv" stacks them. Raises ValueError for a line that fits no
    tensor, for one that does not split or stack, and for two tensors that would have one name.
    """
    origins = map_names(weights, rename)
    whole = {new: origin.stored[0] for new, origin in origins.items() if len(origin.stored) == origin.parts == 1}
    first = {new: origin.stored[0] for new, origin in origins.items()}
    return replace(
        weights,
        shapes={new: find_shape(new, origin, weights) for new, origin in origins.items()},
        readers={new: lambda name: origins[name].read(weights) for new in origins},
        dtypes={new: weights.dtypes[stored] for new, stored in first.items() if stored in weights.dtypes},
        files={new: weights.files[stored] for new, stored in first.items() if stored in weights.files},
        schemes={new: weights.schemes[stored] for new, stored in whole.items() if stored in weights.schemes},
        decoded={new: weights.decoded[stored] for new, stored in first.items() if stored in weights.decoded},
        mapped=frozenset(new for new, stored in whole.items() if stored in weights.mapped),
    )


def find_shape(new: str, origin: Origin, weights: Weights) -> tuple[int, ...]:
    """Raises ValueError where the tensors of the file do not split or stack."""
    shapes = [weights.shapes[name] for name in origin.stored]
    if origin.parts > 1 and (not shapes[0] or shapes[0][0] % origin.parts):
        raise ValueError(
            f"rename must split a tensor whose first side divides by {origin.parts}, and {origin.stored[0]} is "
            f"{shapes[0]}; name as many parts as it has."
        )
    kinds = {(shape[1:], weights.dtypes.get(name)) for name, shape in zip(origin.stored, shapes, strict=True)}
    if len(shapes) > 1 and (len(kinds) > 1 or not all(shapes)):
        told = ", ".join(f"{name} {shape}" for name, shape in zip(origin.stored, shapes, strict=True))
        raise ValueError(
            f"rename must stack tensors of one precision that differ in their first side only, and {new} would be of "
            f"{told}; change that line."
        )
    if len(shapes) == origin.parts == 1:
        return shapes[0]
    return sum(shape[0] for shape in shapes) // origin.parts, *shapes[0][1:]


def map_names(stored: Iterable[str], rename: Names) -> dict[str, Origin]:
    """The new name of each tensor -> those of the file that it is made of."""
    stored = dict.fromkeys(stored)
    lines = [(compile_line(old, new), split_names(old), split_names(new)) for old, new in rename.items()]
    unused, origins = dict(enumerate(rename)), dict[str, Origin]()
    for name in stored:
        fitting = ((at, match) for at, line in enumerate(lines) for one in line[0] if (match := one.fullmatch(name)))
        at, match = next(fitting, (-1, None))
        unused.pop(at, None)
        if match is None:
            made = {name: Origin((name,))}
        else:
            _, olds, news = lines[at]
            sources = tuple(fill_in(old, match.groups()) for old in olds)
            if absent := [source for source in sources if source not in stored]:
                raise ValueError(f"rename must stack tensors of the file, and {absent[0]!r:.80} is not there.")
            made = {fill_in(new, match.groups()): Origin(sources, part, len(news)) for part, new in enumerate(news)}
        for new, origin in made.items():
            if origins.setdefault(new, origin) != origin:
                raise ValueError(
                    f"rename must give each tensor a name of its own, got {new!r:.80} for two; change a line."
                )
    if unused:
        named = ", ".join(sorted(stored)[:3])
        raise ValueError(
            f"rename must name tensors of the file ({named}, ...), got {next(iter(unused.values()))!r:.80}."
        )
    return origins


def split_names(names: str) -> list[str]:
    """The names of one side of a line, which commas part."""
    return [name.strip() for name in names.split(",")]


def compile_line(old: str, new: str) -> list[re.Pattern[str]]:
    """A pattern for each old name. Raises ValueError where one side's holes are not those of the other, and where
    neither side is one name."""
    olds, news = split_names(old), split_names(new)
    alike = {tuple(HOLE.findall(name)) for name in (*olds, *news)}
    if min(len(olds), len(news)) > 1 or len({*olds}) < len(olds) or len({*news}) < len(news):
        raise ValueError(
            f"rename must map one name to one, one to several different ones or several different ones to one, got "
            f"{old!r:.80} -> {new!r:.80}."
        )
    if len(alike) > 1 or not all(0 < len(name) <= LONGEST_NAME for name in (*olds, *news)):
        raise ValueError(
            f"rename must map a name to a name with the same {{}} and * in one order, got {old!r:.80} -> {new!r:.80}."
        )
    return [compile_pattern(name) for name in olds]


def compile_pattern(name: str) -> re.Pattern[str]:
    parts = re.split(r"(\{\}|\*)", name)
    return re.compile("".join(PART.get(part) or re.escape(part) for part in parts))


def fill_in(name: str, groups: Iterable[str]) -> str:
    filling = iter(groups)
    return HOLE.sub(lambda _: next(filling), name)


def parse_lines(text: str) -> dict[str, str]:
    """The lines `old -> new` of a form; one without a new name leaves its tensors as they are."""
    pairs = (line.partition("->") for line in text.split("\n"))
    return {old.strip(): new.strip() for old, arrow, new in pairs if arrow and new.strip()}
