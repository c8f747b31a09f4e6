"""Gemma 3 (Kamath et al. 2025), the model of text: Gemma 2 with norms of queries and keys, a window in five of six
layers, which turn by an angle of their own, and no softcaps. EmbeddingGemma sees both directions."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from engine.checkpoints.families import gemma2
from engine.checkpoints.families.qwen3 import NORMS as OF_QUERIES
from engine.checkpoints.keys import Key, Table, write_only_key
from engine.checkpoints.rotary_by_window import keys_by_window
from engine.checkpoints.tasks import with_tasks
from engine.checkpoints.windows import choose_types, layer_types


def read_window(theirs: Table) -> Any:
    """Keys that a query sees in each direction: half of what config.json says, and itself, where it sees both."""
    said = theirs.get("sliding_window", 4096)
    return said // 2 + 1 if said is not None and theirs.get("use_bidirectional_attention") else said


def write_window(ours: Table) -> int:
    window: int = ours["attention"]["window"] or ours["context"]
    return 2 * (window - 1) if ours["attention"]["mask"] == "full" else window


WINDOW = layer_types(
    read_window, choose_types(lambda layer, theirs: (layer + 1) % (theirs.get("sliding_window_pattern") or 6) != 0)
)
ROTARY = keys_by_window(WINDOW, 1_000_000.0, 10_000.0, "rope_local_base_freq")
OWN = (
    *ROTARY,
    Key("final_logit_softcapping", "head.softcap", default=None),
    Key(
        "use_bidirectional_attention",
        "attention.mask",
        default="causal",
        reads=lambda both, _: "full" if both else "causal",
        writes=lambda mask, _: mask == "full",
    ),
    WINDOW,
    write_only_key("sliding_window", write_window),
)
REPLACED = {"attn_logit_softcapping", *(key.theirs for key in OWN)}  # scores are never capped, whatever a file says
KEYS = (*(key for key in gemma2.KEYS if key.theirs not in REPLACED), *OWN)

DEFAULTS = gemma2.DEFAULTS | {"vocab_size": 262208, "max_position_embeddings": 131072}

LANGUAGE = replace(
    gemma2.LANGUAGE,
    name="gemma3_text",
    architecture="Gemma3ForCausalLM",
    keys=KEYS,
    always={**gemma2.LANGUAGE.always, "attention.qk_norm": "head"},
    rows=(*gemma2.LANGUAGE.rows, *((*row, gemma2.LESS_ONE) for row in OF_QUERIES)),
    defaults=DEFAULTS,
)
FAMILIES = with_tasks(LANGUAGE, token=None, span=None, stem="Gemma3Text")
