"""GLM-4-0414 (GLM Team 2025), as transformers names it: GLM-4 with norms around each sublayer."""

from __future__ import annotations

from dataclasses import replace

from engine.checkpoints.families import glm
from engine.checkpoints.tasks import with_tasks

AROUND = (
    ("model.layers.{}.post_self_attn_layernorm.weight", "blocks.{}.norm1_after.weight"),
    ("model.layers.{}.post_mlp_layernorm.weight", "blocks.{}.norm2_after.weight"),
)

LANGUAGE = replace(
    glm.LANGUAGE,
    name="glm4",
    architecture="Glm4ForCausalLM",
    always={**glm.LANGUAGE.always, "norm.place": "around"},
    rows=(*glm.ROWS, *AROUND),
)
FAMILIES = with_tasks(LANGUAGE, span=None)
