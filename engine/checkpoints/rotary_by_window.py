"""Rotary positions in config.json where layers with a window turn otherwise than the rest.

`rope_parameters` then holds a table for each of the two kinds. What older files say beside it is of layers without a
window: `rope_theta` and `rope_scaling`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from engine.checkpoints.keys import Key, Table, write_only_key
from engine.checkpoints.rotary import (
    CONTEXT,
    OLD_SCALING,
    TRAINED,
    read_context,
    read_whole_heads,
    write_context,
    write_parameters,
)
from engine.checkpoints.windows import SLIDING, WHOLE


def keys_by_window(
    window: Key, theta: float, near: float, near_name: str | None = None, far_name: str = "rope_theta"
) -> tuple[Key, ...]:
    """Keys of a family whose layers have the window that `window` reads.

    `theta` counts where config.json says none, and `near` for layers with a window, for which older files call it
    `near_name`, as they call that of the others `far_name`. With another name than `rope_theta` what they say as
    `rope_scaling` is of all layers.
    """

    def flatten(theirs: Table, kind: str) -> dict[str, Any]:
        """config.json as of a model whose layers are all of one kind."""
        tables = theirs.get("rope_parameters") or {}
        for name, table in tables.items():
            if table is not None and not isinstance(table, Mapping):
                expected = "config.json's rope_parameters must hold one table a kind of layer"
                raise ValueError(f"{expected}, got {name} {table!r:.80}.")
        own = {"rope_theta": near if near_name is None else theirs.get(near_name) or near}
        beside: Mapping[str, Any] = {}
        if kind == WHOLE:
            own = {"rope_theta": theirs.get(far_name) or theta}
        if kind == WHOLE or far_name != "rope_theta":
            beside = theirs.get("rope_scaling") or {}
        said = {name: value for name, value in (tables.get(kind) or {}).items() if value is not None}
        return {CONTEXT: theirs[CONTEXT], TRAINED: theirs.get(TRAINED), "rope_parameters": {**own, **said, **beside}}

    def read_kinds(theirs: Table) -> tuple[dict[str, Any], dict[str, Any] | None, tuple[int, ...]]:
        """config.json as of most layers, and as of some others, if there are any."""
        size, windowed = window.read(theirs)
        if size is None:
            return flatten(theirs, WHOLE), None, ()
        if windowed is None:
            return flatten(theirs, SLIDING), None, ()
        return flatten(theirs, WHOLE), flatten(theirs, SLIDING), windowed

    def read(theirs: Table) -> tuple[Any, Any, Any]:
        most, some, layers = read_kinds(theirs)
        angles = read_whole_heads(most)
        other = angles if some is None else read_whole_heads(some)
        if other == angles:
            return *angles, None
        return *angles, {"layers": layers, "theta": other[0], "scaling": other[1]}

    def write(value: tuple[float, Table | None, Table | None], _: Table) -> dict[str, Any]:
        theta, scaling, other = value
        if other is not None and other["theta"] is None:
            raise ValueError("such a model turns queries and keys in each of its layers.")
        whole = write_parameters(theta, scaling)
        return {SLIDING: whole if other is None else write_parameters(other["theta"], other["scaling"]), WHOLE: whole}

    def write_near(ours: Table) -> float:
        positions = ours["positions"]
        theta: float = (positions["other"] or positions)["theta"]
        return theta

    return (
        Key(CONTEXT, "context", reads=lambda n, theirs: read_context(n, read_kinds(theirs)[0]), writes=write_context),
        Key(
            "rope_parameters",
            ("positions.theta", "positions.scaling", "positions.other"),
            default=read,
            reads=lambda _, theirs: read(theirs),
            writes=write,
        ),
        write_only_key(far_name, lambda ours: ours["positions"]["theta"]),
        OLD_SCALING,
        *([] if near_name is None else [write_only_key(near_name, write_near)]),
    )
