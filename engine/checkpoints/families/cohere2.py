"""Cohere 2 (Command R7B, Cohere 2024): Cohere with a window in three of four layers, of which alone the queries and
keys are turned."""

from __future__ import annotations

from dataclasses import replace

from engine.checkpoints.families import cohere
from engine.checkpoints.keys import Key, Table, write_only_key
from engine.checkpoints.rotary import whole_heads_keys
from engine.checkpoints.tasks import body_of
from engine.checkpoints.windows import choose_types, layer_types, positions_by_window


def slides(layer: int, theirs: Table) -> bool:
    return (layer + 1) % (theirs.get("sliding_window_pattern") or 4) != 0


OWN: tuple[Key, ...] = (
    *whole_heads_keys(),
    positions_by_window(layer_types(lambda theirs: theirs.get("sliding_window", 4096), choose_types(slides))),
    write_only_key("sliding_window", lambda ours: ours["attention"]["window"] or ours["context"]),
)
KEYS = (*(key for key in cohere.KEYS if key.theirs not in {"use_qk_norm", *(key.theirs for key in OWN)}), *OWN)

LANGUAGE = replace(
    cohere.LANGUAGE,
    name="cohere2",
    architecture="Cohere2ForCausalLM",
    keys=KEYS,
    extra={"position_embedding_type": "rope_gptj", "rotary_pct": 1.0},  # as published, and read by nobody
)
FAMILIES = (LANGUAGE, body_of(LANGUAGE, "Cohere2Model"))
