"""EXAONE 4 (LG AI Research 2025): OLMo 2 with a norm for each head's queries and keys, and, where three of four layers
have a window, no positions in the others."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from engine.checkpoints.families import olmo2
from engine.checkpoints.keys import Key, Table, write_only_key
from engine.checkpoints.kinds import Kind, demand
from engine.checkpoints.kinds import size as sized
from engine.checkpoints.tasks import with_tasks
from engine.checkpoints.windows import choose_types, layer_types, positions_by_window

COUNT = sized(0)


def read_pattern(value: Any, size: int) -> Any:
    if isinstance(value, str):
        return demand(bool(value) and set(value) <= {"L", "G"}, value)
    return COUNT.read(value, size)


PATTERN = Kind(f"{COUNT.words}, or letters L and G", read_pattern)


def slides(layer: int, theirs: Table) -> bool:
    """A layer in so many has no window; or letters say which, and the last has none in any case."""
    pattern = theirs.get("sliding_window_pattern") or 4
    if isinstance(pattern, str):
        return layer < theirs["num_hidden_layers"] - 1 and pattern[layer % len(pattern)] == "L"
    return (layer + 1) % pattern != 0


def write_window(ours: Table) -> int | None:
    """The window, without which all layers would turn."""
    window: int | None = ours["attention"]["window"]
    return ours["context"] if window is None and ours["positions"]["kind"] == "none" else window


WINDOW = layer_types(lambda theirs: theirs.get("sliding_window", 4096), choose_types(slides))
KEYS: tuple[Key, ...] = (
    *(key for key in olmo2.KEYS if key.theirs != "attention_bias"),
    positions_by_window(WINDOW, without=True),
    write_only_key("sliding_window", write_window),
    write_only_key("sliding_window_pattern", lambda _: None, PATTERN),
)

DEFAULTS = {
    "vocab_size": 102400, "hidden_size": 4096, "intermediate_size": 16384, "num_hidden_layers": 32,
    "num_attention_heads": 32, "num_key_value_heads": 32, "max_position_embeddings": 2048,
}  # fmt: skip

LANGUAGE = replace(
    olmo2.LANGUAGE,
    name="exaone4",
    architecture="Exaone4ForCausalLM",
    keys=KEYS,
    always={
        **olmo2.LANGUAGE.always,
        "attention.qk_norm": "head",
        "attention.bias": False,
        "attention.out_bias": False,
    },
    defaults=DEFAULTS,
)
FAMILIES = with_tasks(LANGUAGE, span_prefix="transformer.")
