"""OLMo 3 (Olmo et al. 2025): OLMo 2 with a window in three of four layers, which files made for longer texts turn
otherwise than the rest."""

from __future__ import annotations

from dataclasses import replace

from engine.checkpoints.families import olmo2
from engine.checkpoints.keys import write_only_key
from engine.checkpoints.rotary_by_window import keys_by_window
from engine.checkpoints.tasks import with_tasks
from engine.checkpoints.windows import choose_types, layer_types

THETA = 500_000.0
WINDOW = layer_types(lambda theirs: theirs.get("sliding_window", 4096), choose_types(lambda layer, _: layer % 4 != 3))
ROTARY = keys_by_window(WINDOW, THETA, THETA)

KEYS = (
    *(key for key in olmo2.KEYS if key.theirs not in {key.theirs for key in ROTARY}),
    *ROTARY,
    WINDOW,
    write_only_key("sliding_window", lambda ours: ours["attention"]["window"] or ours["context"]),
)

LANGUAGE = replace(olmo2.LANGUAGE, name="olmo3", architecture="Olmo3ForCausalLM", keys=KEYS)
FAMILIES = with_tasks(LANGUAGE, token=None, span=None)
