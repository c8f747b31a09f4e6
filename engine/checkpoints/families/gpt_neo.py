"""GPT-Neo (Black et al. 2021), as transformers names it: scores that nothing divides, and a window in every other
layer.
"""

from __future__ import annotations

from typing import Any

from engine.checkpoints.families.gpt2 import ALWAYS, CAUSAL
from engine.checkpoints.family import DROPPED, Family
from engine.checkpoints.keys import ACTIVATIONS, Key, Table, write_only_key
from engine.checkpoints.kinds import LIST, Kind, demand, is_whole
from engine.checkpoints.recomputed import MASK_VALUE, WINDOWED_MASK
from engine.checkpoints.tasks import with_tasks
from engine.checkpoints.windows import layer_types

LOCAL, GLOBAL = "local", "global"


def four_times_the_width(theirs: Table) -> int:
    width: int = 4 * theirs["hidden_size"]
    return width


def check_attention_types(types: Any, _: int) -> Any:
    return demand(bool(types) and all(LIST.admits(words) and is_whole(times) for words, times in types), types)


def read_attention_types(theirs: Table, layers: int) -> list[str]:
    """The words of `attention_types`: [[[global, local], 6]] is six times global and local."""
    types = theirs.get("attention_types")
    types = [[[GLOBAL, LOCAL], 12]] if types is None else types
    return [word for words, times in types for _ in range(min(times, layers)) for word in words]


LAYERS = layer_types(
    lambda theirs: theirs.get("window_size", 256),
    read_attention_types,
    "attention_layers",
    (LOCAL, GLOBAL),
    "num_layers",
)

KEYS = (
    Key("vocab_size", "vocab_size"),
    Key("max_position_embeddings", "context"),
    Key("hidden_size", "d_model"),
    Key("num_layers", "layers"),
    Key("num_heads", "attention.heads"),
    Key("intermediate_size", "mlp.d_mlp", default=four_times_the_width),
    Key("activation_function", "mlp.activation", default="gelu_tanh", values=ACTIVATIONS),
    Key("layer_norm_epsilon", "norm.eps", default=1e-5),
    Key("tie_word_embeddings", "tied", default=True),
    Key("resid_dropout", "dropout", default=0.0, also=("embed_dropout", "attention_dropout")),
    LAYERS,
    Key(
        "attention_types",
        (),
        default=(),
        reads=lambda *_: (),
        writes=lambda _, ours: [
            [LAYERS.write((ours["attention"]["window"], ours["attention"]["windowed"]), ours)["attention_layers"], 1]
        ],
        kind=Kind("a list of [words, whole number]", check_attention_types),
    ),
    write_only_key("window_size", lambda ours: ours["attention"]["window"] or ours["context"]),
)

LINEAR = {
    "attn.attention.q_proj": "attn.q",
    "attn.attention.k_proj": "attn.k",
    "attn.attention.v_proj": "attn.v",
    "attn.attention.out_proj": "attn.out",
    "ln_1": "norm1",
    "ln_2": "norm2",
    "mlp.c_fc": "mlp.pre",
    "mlp.c_proj": "mlp.out",
}
ROWS = (
    ("transformer.wte.weight", "embed.tokens.weight"),
    ("transformer.wpe.weight", "embed.positions.weight"),
    *(
        (f"transformer.h.{{}}.{theirs}.{part}", f"blocks.{{}}.{ours}.{part}")
        for theirs, ours in LINEAR.items()
        for part in ("weight", "bias")
    ),
    ("transformer.h.{}.attn.attention.bias", DROPPED, WINDOWED_MASK),
    ("transformer.h.{}.attn.attention.masked_bias", DROPPED, MASK_VALUE),
    ("transformer.ln_f.weight", "final_norm.weight"),
    ("transformer.ln_f.bias", "final_norm.bias"),
    ("lm_head.weight", "head.weight"),
)

COMMON = {"num_attention_heads": "num_heads", "num_hidden_layers": "num_layers"}
DEFAULTS = {
    "vocab_size": 50257,
    "max_position_embeddings": 2048,
    "hidden_size": 2048,
    "num_layers": 24,
    "num_heads": 16,
}

LANGUAGE = Family(
    name="gpt_neo",
    architecture="GPTNeoForCausalLM",
    keys=KEYS,
    always=ALWAYS | {"attention.scale": 1.0, "attention.bias": False},
    only=CAUSAL,
    rows=ROWS,
    tied={"lm_head.weight": "transformer.wte.weight"},
    optional_prefix="transformer.",
    common=COMMON,
    defaults=DEFAULTS,
)
FAMILIES = with_tasks(LANGUAGE, token="classifier")
