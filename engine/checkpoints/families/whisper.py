"""Whisper (Radford et al. 2023), as transformers names it.

The encoder's positions are sinusoids in the published files, which hold them as a table; that table is what is read.
Token vectors are never scaled, whatever scale_embedding says: transformers' class computes that number and uses it
nowhere.
"""

from __future__ import annotations

from dataclasses import replace

from engine.checkpoints.families import bart
from engine.checkpoints.family import TRANSPOSED, Family
from engine.checkpoints.keys import Key
from engine.checkpoints.kinds import size

KEYS = (
    *(key for key in bart.SHARED if key.theirs not in ("max_position_embeddings", "scale_embedding", "dropout")),
    Key("dropout", "dropout", default=0.0, also=("attention_dropout", "activation_dropout")),
    Key("max_target_positions", "context", kind=size(1)),
    Key("num_mel_bins", "embedding.sound.bins", kind=size(1)),
    Key("max_source_positions", "embedding.sound.positions", kind=size(1)),
    bart.start_key(50257),
)
ALWAYS = {
    "positions.kind": "learned",
    "norm.kind": "layer",
    "norm.place": "before",
    "norm.eps": 1e-5,
    "attention.mask": "causal",
    "attention.key_bias": False,
    "encoder.attention.mask": "full",
    "encoder.attention.key_bias": False,
    "head.bias": False,
}
CONVOLUTIONS = ("conv1", "conv2")
TABLE = "model.decoder.embed_tokens.weight"
ROWS = (
    (TABLE, "decoder.embed.tokens.weight"),
    *((f"model.encoder.{conv}.weight", f"encoder.embed.{conv}.weight", TRANSPOSED) for conv in CONVOLUTIONS),
    *((f"model.encoder.{conv}.bias", f"encoder.embed.{conv}.bias") for conv in CONVOLUTIONS),
    *((f"model.{side}.embed_positions.weight", f"{side}.embed.positions.weight") for side in ("decoder", "encoder")),
    *(row for row in bart.LAYERS if not row[0].endswith("k_proj.bias")),
    *(
        (f"model.{side}.layer_norm.{part}", f"{side}.final_norm.{part}")
        for side in ("encoder", "decoder")
        for part in ("weight", "bias")
    ),
    ("proj_out.weight", "head.weight"),
)
LANGUAGE = Family(
    name="whisper",
    architecture="WhisperForConditionalGeneration",
    keys=KEYS,
    always=ALWAYS,
    only={"is_encoder_decoder": True},
    rows=ROWS,
    tied={"proj_out.weight": TABLE},
    optional_prefix="model.",
    extra={"scale_embedding": False},
    common=bart.COMMON | {"num_key_value_heads": "encoder_attention_heads"},
    defaults={
        "vocab_size": 51865, "num_mel_bins": 80, "max_source_positions": 1500, "max_target_positions": 448,
        "encoder_layers": 4, "encoder_ffn_dim": 1536, "encoder_attention_heads": 6, "decoder_layers": 4,
        "decoder_ffn_dim": 1536, "decoder_attention_heads": 6, "d_model": 384,
    },
)  # fmt: skip
BODY = replace(  # which predicts tokens by its table
    LANGUAGE,
    architecture="WhisperModel",
    keys=tuple(key for key in KEYS if key.ours != "tied"),
    always=ALWAYS | {"tied": True},
    rows=ROWS[:-1],
    tied={},
)
FAMILIES = (LANGUAGE, BODY)
