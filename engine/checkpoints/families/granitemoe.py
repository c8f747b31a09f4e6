"""Granite 3's mixtures of experts (Granite Team, IBM 2024): Granite with experts, the first two maps of all in one
tensor."""

from __future__ import annotations

from dataclasses import replace

from engine.checkpoints.experts import INWARD, used_key
from engine.checkpoints.families import granite, llama
from engine.checkpoints.families.phi3 import HALVES
from engine.checkpoints.keys import Key
from engine.checkpoints.tasks import body_of

KEYS = (
    *(key for key in granite.LANGUAGE.keys if key.theirs != "mlp_bias"),
    Key("num_local_experts", "mlp.experts.count"),
    used_key(2),
)

MODULE = "model.layers.{}.block_sparse_moe"
ROWS = (
    *(row for row in llama.ROWS if ".mlp." not in row[0]),
    (f"{MODULE}.input_linear.weight", INWARD, HALVES),
    (f"{MODULE}.output_linear.weight", "blocks.{}.mlp.experts.out.weight"),
    (f"{MODULE}.router.layer.weight", "blocks.{}.mlp.router.weight"),
)

LANGUAGE = replace(
    granite.LANGUAGE,
    name="granitemoe",
    architecture="GraniteMoeForCausalLM",
    keys=KEYS,
    always={**llama.ALWAYS, "mlp.bias": False},
    rows=ROWS,
    defaults={**llama.DEFAULTS, "num_local_experts": 8, "num_experts_per_tok": 2},
)
FAMILIES = (LANGUAGE, body_of(LANGUAGE, "GraniteMoeModel"))
PLACE = 1  # behind Mixtral, which says some of the same and is better known
