"""Pictures of arrays: arrays and names in, a picture that can be clicked out, in the colours of the reader's theme.

    cell = matrix(trace["blocks.0.attn.pattern"][0, 2], rows=pieces, columns=pieces, key="pattern", label="head 3")

Each returns what was clicked last. `role` is the colour of a quantity (assets/theme/tokens.json): "attention", "query",
"key", "value", "residual", "probability". docs/components.md shows one of each.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
import torch

from pages.controls.state.session import SessionValue, event_value
from views.core.component import view
from views.core.payload import pack

Numbers = np.ndarray | torch.Tensor
Scale = Literal["unit", "signed"]
MOST_CELLS = 2_000_000  # of one picture

PICKED = SessionValue[dict[str, Any]]("picked", dict)  # what a browser said was clicked last in a picture, by its key

mounted = view("figures", events=("pick",))


def matrix(
    values: Numbers,
    *,
    key: str,
    rows: Sequence[str] = (),
    columns: Sequence[str] = (),
    scale: Scale = "unit",
    role: str = "attention",
    label: str = "matrix",
    terms: Mapping[str, Numbers] | None = None,
    digits: int | None = None,
    lines: int | None = None,
) -> tuple[int, int] | None:
    """Row by column, coloured from 0 to the largest, or "signed" around 0. The pointer reads out the value with its
    `terms`, arrays of the same shape that it was made of; with `digits` each cell has its number in it, rounded to so
    many decimals; `lines` are drawn over it every so many rows and columns. Returns (row, column)."""
    return draw_cells("matrix", values, key, rows, columns, scale, role, label, terms or {}, digits, lines)


def strip(
    values: Numbers, *, key: str, rows: Sequence[str] = (), role: str = "residual", label: str = "vectors"
) -> tuple[int, int] | None:
    """Vectors as rows, one a token, signed around 0. Returns (row, component)."""
    return draw_cells("strip", values, key, rows, (), "signed", role, label, {})


def draw_cells(
    kind: str,
    values: Numbers,
    key: str,
    rows: Sequence[str],
    columns: Sequence[str],
    scale: Scale,
    role: str,
    label: str,
    terms: Mapping[str, Numbers],
    digits: int | None = None,
    lines: int | None = None,
) -> tuple[int, int] | None:
    check_shape("values", values, 2)
    for name, term in terms.items():
        if tuple(term.shape) != tuple(values.shape):
            raise ValueError(f"term {name!r} must have the shape {tuple(values.shape)}, got {tuple(term.shape)}.")
    check_names("rows", rows, values.shape[0])
    check_names("columns", columns, values.shape[1])
    arrays = {"values": values, **{f"term {name}": term for name, term in terms.items()}}
    about: dict[str, Any] = {"rows": list(rows), "columns": list(columns), "scale": scale, "role": role}
    about |= {"terms": list(terms), "digits": digits, "lines": lines}
    finite = as_floats(values)[as_floats(values).isfinite()]
    largest = float(finite.max()) if finite.numel() else 1.0
    found = draw(kind, key, label, arrays, about | {"max": largest})
    return None if found is None else (found[0], found[1])


def tokens(
    pieces: Sequence[str],
    values: Numbers | None = None,
    *,
    key: str,
    role: str = "attention",
    label: str = "tokens",
) -> int | None:
    """Tokens in a line, marked by `values` in 0..1, one for each. Returns the index."""
    if values is not None:
        check_shape("values", values, 1)
        check_names("pieces", pieces, len(values))
    arrays = {} if values is None else {"values": values}
    found = draw("tokens", key, label, arrays, {"rows": list(pieces), "role": role})
    return None if found is None else found[0]


def heads(patterns: Numbers, *, key: str, label: str = "attention of all heads") -> tuple[int, int] | None:
    """Thumbnails of `patterns`, layer head query key. Returns (layer, head)."""
    check_shape("patterns", patterns, 4)
    found = draw("heads", key, label, {"values": patterns}, {})
    return None if found is None else (found[0], found[1])


def bars(probabilities: Numbers, names: Sequence[str], *, key: str, label: str = "probabilities") -> int | None:
    """Probabilities as bars of a whole, in the order in which they are given. Returns the index."""
    check_shape("probabilities", probabilities, 1)
    check_names("names", names, len(probabilities))
    found = draw("bars", key, label, {"values": probabilities}, {"rows": list(names)})
    return None if found is None else found[0]


def cover(values: torch.Tensor, place: Any) -> torch.Tensor:
    """The values, those at `place` (an index of a tensor) covered: drawn as "?"."""
    shown = values.clone().float()
    shown[place] = torch.nan
    return shown


def draw(kind: str, key: str, label: str, arrays: Mapping[str, Numbers], about: Mapping[str, Any]) -> list[int] | None:
    """Mounts the picture and returns the place that was clicked last, while that is in what is drawn now."""
    shape = next((tuple(array.shape) for array in arrays.values()), (len(about.get("rows", ())),))

    def pick() -> None:
        PICKED.get()[key] = event_value(key, "pick")

    picked = picked_place(key, shape)
    empty: dict[str, Any] = {"rows": [], "columns": [], "scale": "unit", "role": "attention", "terms": []}
    empty |= {"digits": None, "lines": None}
    header = {**empty, **about, "kind": kind, "label": label, "picked": picked}
    mounted(pack(header, {name: as_floats(array) for name, array in arrays.items()}), key=key, on={"pick": pick})
    return picked


def picked_place(key: str, shape: Sequence[int]) -> list[int] | None:
    """Place that was clicked last in the picture `key`, which may be drawn further below, while it is in `shape`."""
    return as_place(PICKED.get().get(key), shape)


def as_place(said: Any, shape: Sequence[int]) -> list[int] | None:
    """Place that a browser reports as clicked, None if there is no such place."""
    if not isinstance(said, list) or not all(type(at) is int for at in said) or len(said) > len(shape):
        return None
    return said if all(0 <= at < size for at, size in zip(said, shape, strict=False)) else None


def as_floats(values: Numbers) -> torch.Tensor:
    return torch.as_tensor(values).detach().cpu().float()


def check_shape(name: str, values: Numbers, axes: int) -> None:
    shape = tuple(values.shape)
    if len(shape) != axes or 0 in shape:
        raise ValueError(f"{name} must have {axes} axes and something in each, got the shape {shape}.")
    if (cells := math.prod(shape)) > MOST_CELLS:
        raise ValueError(f"{name} must have at most {MOST_CELLS:,} cells, got {cells:,}; draw a part of it.")


def check_names(what: str, names: Sequence[str], size: int) -> None:
    if names and len(names) != size:
        raise ValueError(f"{what} must be {size} names, got {len(names)}.")
