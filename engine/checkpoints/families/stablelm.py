"""StableLM (Bellagente et al. 2024): Llama with layer norms, a part of each head turned, and, where asked for, biases
on queries, keys and values, or attention and MLP side by side, which read the same norm of the stream."""

from __future__ import annotations

from engine.checkpoints.experts import STACKED
from engine.checkpoints.families.gpt2 import CAUSAL
from engine.checkpoints.families.gpt_neox import partial_rotary_keys
from engine.checkpoints.families.llama import ALWAYS, HEADS, SIZES, TIED, each_head_key
from engine.checkpoints.families.llama import ROWS as OF_LLAMA
from engine.checkpoints.families.starcoder2 import NORMS
from engine.checkpoints.family import Family
from engine.checkpoints.keys import Key
from engine.checkpoints.kinds import FLAG
from engine.checkpoints.tasks import with_tasks

OWN = ("num_key_value_heads", "rms_norm_eps", "attention_dropout", "rope_parameters", "rope_theta")
KEYS = (
    *(key for key in SIZES if key.theirs not in OWN),
    HEADS,
    Key("num_key_value_heads", "attention.kv_heads", default=32),
    Key("layer_norm_eps", "norm.eps", default=1e-5),
    Key("hidden_dropout", "dropout", default=0.0, also=("attention_dropout",)),
    Key("use_qkv_bias", "attention.bias", default=False, kind=FLAG),
    Key(
        "use_parallel_residual",
        "sublayers",
        default="sequential",
        reads=lambda parallel, _: "parallel_one_norm" if parallel else "sequential",
        writes=lambda sublayers, _: sublayers == "parallel_one_norm",
        kind=FLAG,
    ),
    each_head_key("qk_layernorm"),
    *partial_rotary_keys("partial_rotary_factor", 0.25),
)

ROWS = (
    *OF_LLAMA,
    *((f"{theirs}.bias", f"{ours}.bias") for theirs, ours in NORMS.items()),
    *(
        (f"model.layers.{{}}.self_attn.{one}_layernorm.norms.*.weight", f"blocks.{{}}.attn.{one}_norm.weight", STACKED)
        for one in "qk"
    ),
)

DEFAULTS = {
    "vocab_size": 50304, "hidden_size": 2560, "intermediate_size": 6912, "num_hidden_layers": 32,
    "num_attention_heads": 32, "max_position_embeddings": 4096, "num_key_value_heads": 32,
}  # fmt: skip

LANGUAGE = Family(
    name="stablelm",
    architecture="StableLmForCausalLM",
    keys=KEYS,
    always={**ALWAYS, "norm.kind": "layer", "attention.out_bias": False, "mlp.bias": False},
    only=CAUSAL,
    rows=ROWS,
    tied=TIED,
    optional_prefix="model.",
    defaults=DEFAULTS,
)
FAMILIES = with_tasks(LANGUAGE, span=None)
