"""Granite 3's mixtures of experts with one that every token sees, as transformers names them."""

from __future__ import annotations

from dataclasses import replace

from engine.checkpoints.experts import MLP
from engine.checkpoints.families import granitemoe
from engine.checkpoints.families.phi3 import HALVES
from engine.checkpoints.keys import Key
from engine.checkpoints.kinds import size
from engine.checkpoints.tasks import body_of

SHARED = Key(
    "shared_intermediate_size",
    "mlp.experts.shared",
    default=None,
    reads=lambda width, _: width or None,
    writes=lambda width, _: width or 0,
    kind=size(0),
)
ROWS = (
    ("model.layers.{}.shared_mlp.input_linear.weight", (f"{MLP}shared.pre.weight", f"{MLP}shared.up.weight"), HALVES),
    ("model.layers.{}.shared_mlp.output_linear.weight", f"{MLP}shared.out.weight"),
)

LANGUAGE = replace(
    granitemoe.LANGUAGE,
    name="granitemoeshared",
    architecture="GraniteMoeSharedForCausalLM",
    keys=(*granitemoe.KEYS, SHARED),
    rows=(*granitemoe.ROWS, *ROWS),
)
FAMILIES = (LANGUAGE, body_of(LANGUAGE, "GraniteMoeSharedModel"))
PLACE = 1  # as granitemoe
