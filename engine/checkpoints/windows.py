"""How config.json says which layers see only a window of the text: `layer_types`, or what older files say instead."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from engine.checkpoints.keys import Key, Table, written_only

SLIDING, WHOLE = "sliding_attention", "full_attention"


def layer_types(size: Callable[[Table], Any], slides: Callable[[int, Table], bool]) -> Key:
    """`size` gives the window, None for none; where there is no `layer_types`, `slides` says whether a layer has it."""

    def read(theirs: Table) -> tuple[Any, tuple[int, ...] | None]:
        layers, window = theirs["num_hidden_layers"], size(theirs)
        kinds = theirs.get("layer_types") or [SLIDING if slides(i, theirs) else WHOLE for i in range(layers)]
        if not isinstance(kinds, list) or len(kinds) != layers or not set(kinds) <= {SLIDING, WHOLE}:
            raise ValueError(f"config.json's layer_types must be {layers} words, each {SLIDING} or {WHOLE}.")
        windowed = tuple(layer for layer, kind in enumerate(kinds) if kind == SLIDING)
        if window is None or not windowed:
            return None, None
        return window, None if len(windowed) == layers else windowed

    def write(both: tuple[int | None, tuple[int, ...] | None], ours: Table) -> list[str]:
        window, windowed = both
        layers = range(ours["layers"])
        chosen = () if window is None else layers if windowed is None else windowed
        return [SLIDING if layer in chosen else WHOLE for layer in layers]

    return Key(
        "layer_types",
        ("attention.window", "attention.windowed"),
        default=read,
        reads=lambda _, theirs: read(theirs),
        writes=write,
    )


def asked_for(theirs: Table) -> Any:
    return theirs.get("sliding_window", 4096) if theirs.get("use_sliding_window", False) else None


QWEN = (
    layer_types(asked_for, lambda layer, theirs: layer >= theirs.get("max_window_layers", 28)),
    written_only("sliding_window", lambda ours: ours["attention"]["window"]),
    written_only("use_sliding_window", lambda ours: ours["attention"]["window"] is not None),
)
