"""Layers of config.json that see only a window of the text: `layer_types`, or what older files say instead."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from engine.checkpoints.keys import Key, Table, write_only_key
from engine.plurals import count_words

SLIDING, WHOLE = "sliding_attention", "full_attention"


def layer_types(
    size: Callable[[Table], Any],
    otherwise: Callable[[Table, int], list[str]],
    name: str = "layer_types",
    words: tuple[str, str] = (SLIDING, WHOLE),
    count: str = "num_hidden_layers",
) -> Key:
    """`size` gives the window, None for none, and the key `name` a word for each layer: with it or without; where there
    is no such key, `otherwise` gives those, of config.json and the number of layers, which is called `count`."""
    sliding, whole = words

    def read(theirs: Table) -> tuple[Any, tuple[int, ...] | None]:
        layers, window = theirs[count], size(theirs)
        kinds = theirs.get(name)
        kinds = otherwise(theirs, layers) if kinds is None else kinds
        if len(kinds) != layers or any(kind not in words for kind in kinds):
            expected = f"config.json's {name} must be {count_words(layers, 'word')}, one per layer, each {sliding} or "
            expected += whole
            raise ValueError(f"{expected}, got {count_words(len(kinds), 'word')}: {kinds!r:.80}.")
        windowed = tuple(layer for layer, kind in enumerate(kinds) if kind == sliding)
        if window is None or not windowed:
            return None, None
        return window, None if len(windowed) == layers else windowed

    def write(both: tuple[int | None, tuple[int, ...] | None], ours: Table) -> list[str]:
        window, windowed = both
        layers = range(ours["layers"])
        chosen = () if window is None else layers if windowed is None else windowed
        return [sliding if layer in chosen else whole for layer in layers]

    return Key(
        name,
        ("attention.window", "attention.windowed"),
        default=read,
        reads=lambda _, theirs: read(theirs),
        writes=write,
    )


def choose_types(slides: Callable[[int, Table], bool]) -> Callable[[Table, int], list[str]]:
    """Make a function that gives each layer a word: with a window where `slides` says so."""
    return lambda theirs, layers: [SLIDING if slides(layer, theirs) else WHOLE for layer in range(layers)]


def positions_by_window(types: Key, without: bool = False) -> Key:
    """The key that `types` is, of a family that turns queries and keys only in layers with the window; `without` says
    whether it turns those of all layers where config.json has no window."""

    def read(theirs: Table) -> tuple[Any, Any, dict[str, Any] | None]:
        window, windowed = types.read(theirs)
        layers = range(theirs["num_hidden_layers"])
        turned = layers if window is not None and windowed is None else windowed or ()
        if without and theirs.get("sliding_window", 1) is None:
            turned = layers
        other = tuple(layer for layer in layers if layer not in turned)
        return window, windowed, {"layers": other} if other else None

    return replace(
        types,
        ours=("attention.window", "attention.windowed", "positions.other"),
        default=read,
        reads=lambda _, theirs: read(theirs),
        writes=lambda three, ours: types.writes and types.writes(three[:2], ours),
    )


def read_qwen_window(theirs: Table) -> Any:
    return theirs.get("sliding_window", 4096) if theirs.get("use_sliding_window", False) else None


QWEN = (
    layer_types(read_qwen_window, choose_types(lambda layer, theirs: layer >= theirs.get("max_window_layers", 28))),
    write_only_key("sliding_window", lambda ours: ours["attention"]["window"]),
    write_only_key("use_sliding_window", lambda ours: ours["attention"]["window"] is not None),
)
