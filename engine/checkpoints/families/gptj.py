"""GPT-J (Wang & Komatsuzaki 2021), as transformers names it.

Attention and MLP read the same norm of the stream, and the two numbers that turn together are neighbours.
"""

from __future__ import annotations

from engine.checkpoints.families.gpt2 import CAUSAL, COMMON, four_times_the_width
from engine.checkpoints.family import DROPPED, Family
from engine.checkpoints.keys import ACTIVATIONS, Key
from engine.checkpoints.kinds import size
from engine.checkpoints.recomputed import CAUSAL_MASK, MASK_VALUE
from engine.checkpoints.tasks import with_tasks

KEYS = (
    Key("vocab_size", "vocab_size"),
    Key("n_positions", "context"),
    Key("n_embd", "d_model"),
    Key("n_layer", "layers"),
    Key("n_head", "attention.heads"),
    Key("rotary_dim", "positions.turned", default=64, kind=size(2)),
    Key("n_inner", "mlp.d_mlp", default=four_times_the_width),
    Key("activation_function", "mlp.activation", default="gelu_tanh", values=ACTIVATIONS),
    Key("layer_norm_epsilon", "norm.eps", default=1e-5),
    Key("tie_word_embeddings", "tied", default=False),
    Key("resid_pdrop", "dropout", default=0.0, also=("embd_pdrop", "attn_pdrop")),
)

ALWAYS = {
    "positions.kind": "rotary",
    "positions.pairs": "neighbours",
    "norm.kind": "layer",
    "norm.place": "before",
    "sublayers": "parallel_one_norm",
    "attention.mask": "causal",
    "attention.bias": False,
    "attention.out_bias": False,
    "head.bias": True,
}

ROWS = (
    ("transformer.wte.weight", "embed.tokens.weight"),
    ("transformer.h.{}.ln_1.weight", "blocks.{}.norm1.weight"),
    ("transformer.h.{}.ln_1.bias", "blocks.{}.norm1.bias"),
    ("transformer.h.{}.attn.q_proj.weight", "blocks.{}.attn.q.weight"),
    ("transformer.h.{}.attn.k_proj.weight", "blocks.{}.attn.k.weight"),
    ("transformer.h.{}.attn.v_proj.weight", "blocks.{}.attn.v.weight"),
    ("transformer.h.{}.attn.out_proj.weight", "blocks.{}.attn.out.weight"),
    ("transformer.h.{}.attn.bias", DROPPED, CAUSAL_MASK),
    ("transformer.h.{}.attn.masked_bias", DROPPED, MASK_VALUE),
    ("transformer.h.{}.mlp.fc_in.weight", "blocks.{}.mlp.pre.weight"),
    ("transformer.h.{}.mlp.fc_in.bias", "blocks.{}.mlp.pre.bias"),
    ("transformer.h.{}.mlp.fc_out.weight", "blocks.{}.mlp.out.weight"),
    ("transformer.h.{}.mlp.fc_out.bias", "blocks.{}.mlp.out.bias"),
    ("transformer.ln_f.weight", "final_norm.weight"),
    ("transformer.ln_f.bias", "final_norm.bias"),
    ("lm_head.weight", "head.weight"),
    ("lm_head.bias", "head.bias"),
)

DEFAULTS = {"vocab_size": 50400, "n_positions": 2048, "n_embd": 4096, "n_layer": 28, "n_head": 16}

LANGUAGE = Family(
    name="gptj",
    architecture="GPTJForCausalLM",
    keys=KEYS,
    always=ALWAYS,
    only=CAUSAL,
    rows=ROWS,
    tied={"lm_head.weight": "transformer.wte.weight"},
    optional_prefix="transformer.",
    common=COMMON,
    defaults=DEFAULTS,
)
FAMILIES = with_tasks(LANGUAGE, token=None)
