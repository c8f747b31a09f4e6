"""Marian (Junczys-Dowmunt et al. 2018; the translators of OPUS-MT), as transformers names it.

Its positions are sinusoids, all the sines before all the cosines, and stored as tables that may have been trained.
"""

from __future__ import annotations

from dataclasses import replace

from engine.checkpoints.families import bart
from engine.checkpoints.family import DROPPED, Family
from engine.checkpoints.keys import Key
from engine.checkpoints.recomputed import SINUSOIDS

VOCABULARY = Key("vocab_size", "vocab_size", also=("decoder_vocab_size",))
ALWAYS = bart.ALWAYS | {"positions.kind": "sinusoidal", "positions.pairs": "halves", "embedding.norm": False}
ROWS = (
    bart.TOKENS,
    *((f"model.{side}.embed_positions.weight", DROPPED, SINUSOIDS) for side in ("encoder", "decoder")),
    *((f"model.{side}.embed_positions.weight", f"{side}.embed.positions.weight") for side in ("encoder", "decoder")),
    *bart.LAYERS,
    bart.HEAD,
)


WITHOUT_BIAS = Family(
    name="marian",
    architecture="MarianMTModel",
    keys=(VOCABULARY, *bart.SHARED[1:], bart.start_key(lambda theirs: theirs["vocab_size"] - 1)),
    always=ALWAYS | {"head.bias": False},
    only={"is_encoder_decoder": True, "is_decoder": False, "share_encoder_decoder_embeddings": True},
    rows=ROWS,
    tied=bart.TIED,
    twins=bart.TWINS,
    optional_prefix="model.",
    also=("MarianModel",),
    extra={"forced_eos_token_id": None},
    common=bart.COMMON,
    defaults={name: value for name, value in bart.DEFAULTS.items() if name != "num_labels"}
    | {"vocab_size": 58101, "decoder_start_token_id": 58100},
)
FAMILIES = (
    replace(WITHOUT_BIAS, always=ALWAYS, rows=(*ROWS, bart.HEAD_BIAS), signs=("final_logits_bias",)),
    WITHOUT_BIAS,
)
