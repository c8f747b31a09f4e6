"""OLMo 3 (Olmo et al. 2025): OLMo 2 with a window in three of four layers.

Its files may turn the layers with a window otherwise than the rest, as those do that were made for longer texts: Loupe
opens the ones that turn all alike.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from engine.checkpoints.families import olmo2
from engine.checkpoints.keys import Key, Table, write_only_key
from engine.checkpoints.rotary import CONTEXT, TRAINED, read_context, read_whole_heads, write_context, write_parameters
from engine.checkpoints.tasks import with_tasks
from engine.checkpoints.windows import SLIDING, WHOLE, choose_types, layer_types

THETA = 500_000.0
WINDOW = layer_types(lambda theirs: theirs.get("sliding_window", 4096), choose_types(lambda layer, _: layer % 4 != 3))


def flatten(theirs: Table, kind: str) -> dict[str, Any]:
    """config.json as of a model whose layers are all of one kind: transformers gives `rope_scaling` and `rope_theta`
    to those without a window."""
    tables = theirs.get("rope_parameters") or {}
    for name, table in tables.items():
        if not isinstance(table, Mapping):
            expected = "config.json's rope_parameters must hold one table a kind of layer"
            raise ValueError(f"{expected}, got {name} {table!r:.80}.")
    own = {"rope_theta": THETA, **tables.get(kind, {})}
    if kind == WHOLE:
        theta = theirs.get("rope_theta", THETA)
        own = {"rope_theta": theta, **tables.get(kind, {}), **(theirs.get("rope_scaling") or {})}
    return {CONTEXT: theirs[CONTEXT], TRAINED: theirs.get(TRAINED), "rope_parameters": own}


def read_rotary(theirs: Table) -> dict[str, Any]:
    window, windowed = WINDOW.read(theirs)
    kinds = [kind for kind, has in ((SLIDING, window is not None), (WHOLE, window is None or windowed)) if has]
    first, *others = (flatten(theirs, kind) for kind in kinds)
    if any(read_whole_heads(first) != read_whole_heads(other) for other in others):
        raise ValueError(
            "config.json's rope_parameters must turn layers with a window and those without alike, got "
            f"{first['rope_parameters']!r:.80} and {others[0]['rope_parameters']!r:.80}: Loupe has no such model."
        )
    return first


KEYS = (
    *(key for key in olmo2.KEYS if key.theirs not in (CONTEXT, "rope_parameters", "rope_scaling")),
    Key(CONTEXT, "context", reads=lambda n, theirs: read_context(n, read_rotary(theirs)), writes=write_context),
    Key(
        "rope_parameters",
        ("positions.theta", "positions.scaling"),
        default=lambda theirs: read_whole_heads(read_rotary(theirs)),
        reads=lambda _, theirs: read_whole_heads(read_rotary(theirs)),
        writes=lambda both, _: {kind: write_parameters(*both) for kind in (SLIDING, WHOLE)},
    ),
    WINDOW,
    write_only_key("sliding_window", lambda ours: ours["attention"]["window"] or ours["context"]),
)

LANGUAGE = replace(olmo2.LANGUAGE, name="olmo3", architecture="Olmo3ForCausalLM", keys=KEYS)
FAMILIES = with_tasks(LANGUAGE, token=None, span=None)
