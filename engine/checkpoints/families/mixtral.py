"""Mixtral (Jiang et al. 2024): Mistral with a mixture of experts in every layer, and mostly without its window."""

from __future__ import annotations

from dataclasses import replace

from engine.checkpoints.experts import expert_rows, used_key
from engine.checkpoints.families import mistral
from engine.checkpoints.families.llama import ROWS
from engine.checkpoints.keys import Key
from engine.checkpoints.rotary import read_whole_heads, write_parameters
from engine.checkpoints.tasks import with_tasks

THETA = 1_000_000.0
OWN = ("rms_norm_eps", "sliding_window", "rope_parameters")
KEYS = (
    *(key for key in mistral.KEYS if key.theirs not in OWN),
    Key("rms_norm_eps", "norm.eps", default=1e-5),
    Key(
        "rope_parameters",
        ("positions.theta", "positions.scaling"),
        default=lambda theirs: read_whole_heads(theirs, THETA),
        reads=lambda _, theirs: read_whole_heads(theirs, THETA),
        writes=lambda both, _: write_parameters(*both),
    ),
    Key("sliding_window", "attention.window", default=None),
    Key("num_local_experts", "mlp.experts.count"),
    used_key(2),
)

DEFAULTS = {**mistral.DEFAULTS, "num_local_experts": 8, "num_experts_per_tok": 2}

LANGUAGE = replace(
    mistral.LANGUAGE,
    name="mixtral",
    architecture="MixtralForCausalLM",
    keys=KEYS,
    common={"num_experts": "num_local_experts"},
    rows=(
        *(row for row in ROWS if "mlp" not in row[0]),
        *expert_rows("model.layers.{}.block_sparse_moe", ("w1", "w3", "w2")),
    ),
    defaults=DEFAULTS,
)
FAMILIES = with_tasks(LANGUAGE)
