"""Pegasus (Zhang et al. 2020), as transformers names it: BART's layers with their norms before, and sinusoids."""

from __future__ import annotations

from dataclasses import replace

from engine.checkpoints.families import bart, marian

ALWAYS = marian.ALWAYS | {"norm.place": "before"}
ROWS = (
    *marian.ROWS,
    ("model.encoder.layer_norm.weight", "encoder.final_norm.weight"),
    ("model.encoder.layer_norm.bias", "encoder.final_norm.bias"),
    ("model.decoder.layer_norm.weight", "decoder.final_norm.weight"),
    ("model.decoder.layer_norm.bias", "decoder.final_norm.bias"),
)


WITHOUT_BIAS = replace(
    bart.WITHOUT_BIAS,
    name="pegasus",
    architecture="PegasusForConditionalGeneration",
    keys=(*bart.SHARED, bart.start_key(0)),
    always=ALWAYS | {"head.bias": False},
    rows=ROWS,
    also=("PegasusModel",),
)
FAMILIES = (
    replace(WITHOUT_BIAS, always=ALWAYS, rows=(*ROWS, bart.HEAD_BIAS), signs=("final_logits_bias",)),
    WITHOUT_BIAS,
)
