"""Cohere's Command R (Cohere For AI 2024), as transformers names it: layer norms without bias, of which attention and
MLP read the same one, side by side, and logits times a number."""

from __future__ import annotations

from engine.checkpoints.families.gpt2 import CAUSAL
from engine.checkpoints.families.llama import ALWAYS, HEADS, ROWS, SIZES, TIED, attention_bias_key, each_head_key
from engine.checkpoints.family import Family
from engine.checkpoints.keys import Key
from engine.checkpoints.kinds import POSITIVE
from engine.checkpoints.rotary import whole_heads_keys
from engine.checkpoints.tasks import body_of

OWN = (
    *whole_heads_keys(500_000.0),
    Key("tie_word_embeddings", "tied", default=True),
)
KEYS = (
    *(key for key in SIZES if key.theirs not in {"rms_norm_eps", *(key.theirs for key in OWN)}),
    *OWN,
    HEADS,
    Key("head_dim", "attention.d_head", default=None),
    Key("layer_norm_eps", "norm.eps", default=1e-5),
    each_head_key("use_qk_norm"),
    Key("logit_scale", "head.scale", default=0.0625, kind=POSITIVE),
    attention_bias_key(False),
)

ALWAYS_SO = {
    **ALWAYS,
    "positions.pairs": "neighbours",
    "norm.kind": "layer",
    "norm.learned": "weight",
    "sublayers": "parallel_one_norm",
    "mlp.bias": False,
}

DEFAULTS = {
    "vocab_size": 256000, "hidden_size": 8192, "intermediate_size": 22528, "num_hidden_layers": 40,
    "num_attention_heads": 64, "max_position_embeddings": 8192,
}  # fmt: skip

LANGUAGE = Family(
    name="cohere",
    architecture="CohereForCausalLM",
    keys=KEYS,
    always=ALWAYS_SO,
    only=CAUSAL,
    rows=(
        *(row for row in ROWS if "post_attention" not in row[0]),
        *(
            (f"model.layers.{{}}.self_attn.{one}.weight", f"blocks.{{}}.attn.{one}.weight")
            for one in ("q_norm", "k_norm")
        ),
    ),
    tied=TIED,
    optional_prefix="model.",
    defaults=DEFAULTS,
)
FAMILIES = (LANGUAGE, body_of(LANGUAGE, "CohereModel"))
