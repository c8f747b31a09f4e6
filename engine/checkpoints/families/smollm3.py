"""SmolLM3 (Bakouch et al. 2025): Llama in which every fourth layer has no positions."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from engine.checkpoints.families import llama
from engine.checkpoints.keys import Key, Table, write_only_key
from engine.checkpoints.rotary import whole_heads_keys
from engine.checkpoints.tasks import with_tasks
from engine.checkpoints.windows import SLIDING, WHOLE, layer_types
from engine.plurals import count_words


def has_positions(theirs: Table) -> list[bool]:
    """Reads whether each layer turns queries and keys."""
    layers, said = theirs["num_hidden_layers"], theirs.get("no_rope_layers")
    if said is None:
        interval = theirs.get("no_rope_layer_interval") or 4
        return [(layer + 1) % interval != 0 for layer in range(layers)]
    if len(said) < layers or any(one not in (0, 1) for one in said):
        expected = f"config.json's no_rope_layers must be {count_words(layers, 'number')}, one per layer, each 1 or 0"
        raise ValueError(f"{expected}, got {count_words(len(said), 'number')}: {said!r:.80}.")
    return [bool(one) for one in said[:layers]]


def read_other(theirs: Table) -> dict[str, Any] | None:
    without = tuple(layer for layer, turns in enumerate(has_positions(theirs)) if not turns)
    return {"layers": without} if without else None


def write_other(other: Table | None, ours: Table) -> list[int]:
    if other is not None and other["theta"] is not None:
        raise ValueError("such a model turns queries and keys by one angle, or not at all.")
    layers = range(ours["layers"])
    without = layers if ours["positions"]["kind"] == "none" else () if other is None else other["layers"]
    return [int(layer not in without) for layer in layers]


def windows_without_positions(theirs: Table, layers: int) -> list[str]:
    slides = theirs.get("use_sliding_window", False) and theirs.get("sliding_window") is not None
    return [SLIDING if slides and not turns else WHOLE for turns in has_positions(theirs)]


ROTARY = whole_heads_keys(2_000_000.0)
OWN = (
    *ROTARY,
    Key("tie_word_embeddings", "tied", default=True),
    Key("num_attention_heads", "attention.heads"),
    Key(
        "no_rope_layers",
        "positions.other",
        default=read_other,
        reads=lambda _, theirs: read_other(theirs),
        writes=write_other,
    ),
    layer_types(lambda theirs: theirs.get("sliding_window"), windows_without_positions),
    write_only_key("sliding_window", lambda ours: ours["attention"]["window"]),
    write_only_key("use_sliding_window", lambda ours: ours["attention"]["window"] is not None),
)
KEYS = (*(key for key in llama.KEYS if key.theirs not in {key.theirs for key in OWN}), *OWN)

DEFAULTS = {
    "vocab_size": 128256, "hidden_size": 2048, "intermediate_size": 11008, "num_hidden_layers": 36,
    "num_attention_heads": 16, "num_key_value_heads": 4, "max_position_embeddings": 32768,
}  # fmt: skip

LANGUAGE = replace(
    llama.LANGUAGE, name="smollm3", architecture="SmolLM3ForCausalLM", keys=KEYS, also=(), defaults=DEFAULTS
)
FAMILIES = with_tasks(LANGUAGE, span_prefix="transformer.")
