"""Names of a file's tensors mapped onto those that a family expects, for files of a layout of their own."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace

from engine.checkpoints.weights import Weights

HOLE = re.compile(r"\{\}|\*")  # a layer's number, or any part of a name
PART = {"{}": r"(\d+)", "*": "(.+)"}
LONGEST_NAME = 500
Names = Mapping[str, str]


def rename_tensors(weights: Weights, rename: Names) -> Weights:
    """The same tensors, each under the name that the first fitting line of `rename` (old -> new) gives it.

    Either side may hold `{}` for a number and `*` for any part, filled in their order. Raises ValueError for a line
    that fits no tensor, and for two tensors that would have one name.
    """
    names = map_names(weights, rename)
    old = {new: stored for stored, new in names.items()}
    return replace(
        weights,
        shapes={new: weights.shapes[stored] for new, stored in old.items()},
        readers={new: lambda name: weights[old[name]] for new in old},
        dtypes={new: weights.dtypes[stored] for new, stored in old.items() if stored in weights.dtypes},
        files={new: weights.files[stored] for new, stored in old.items() if stored in weights.files},
        mapped=frozenset(new for new, stored in old.items() if stored in weights.mapped),
    )


def map_names(stored: Iterable[str], rename: Names) -> dict[str, str]:
    """The file's name of each tensor -> its new one, or the same."""
    stored = list(stored)
    lines = [(compile_pattern(old, new), new) for old, new in rename.items()]
    unused, names = dict(zip(range(len(lines)), rename, strict=True)), {}
    for name in stored:
        fitting = ((at, match, new) for at, (pattern, new) in enumerate(lines) if (match := pattern.fullmatch(name)))
        at, match, new = next(fitting, (-1, None, name))
        unused.pop(at, None)
        names[name] = new if match is None else fill_in(new, match.groups())
    if unused:
        there = ", ".join(sorted(stored)[:3])
        raise ValueError(
            f"rename must name tensors of the file ({there}, ...), got {next(iter(unused.values()))!r:.80}."
        )
    if len(set(names.values())) < len(names):
        twice = next(new for new in names.values() if list(names.values()).count(new) > 1)
        raise ValueError(f"rename must give each tensor a name of its own, got {twice!r:.80} for two; change a line.")
    return names


def compile_pattern(old: str, new: str) -> re.Pattern[str]:
    """Raises ValueError where the new name has holes that the old one does not fill."""
    if not old or not new or max(len(old), len(new)) > LONGEST_NAME or HOLE.findall(old) != HOLE.findall(new):
        raise ValueError(
            f"rename must map a name to a name with the same {{}} and * in one order, got {old!r:.80} -> {new!r:.80}."
        )
    parts = re.split(r"(\{\}|\*)", old)
    return re.compile("".join(PART.get(part) or re.escape(part) for part in parts))


def fill_in(new: str, groups: Iterable[str]) -> str:
    filling = iter(groups)
    return HOLE.sub(lambda _: next(filling), new)


def parse_lines(text: str) -> dict[str, str]:
    """The lines `old -> new` of a form; one without a new name leaves its tensors as they are."""
    pairs = (line.partition("->") for line in text.split("\n"))
    return {old.strip(): new.strip() for old, arrow, new in pairs if arrow and new.strip()}
