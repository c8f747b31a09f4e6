"""MPT (MosaicML 2023), as transformers names it: ALiBi, and nothing but matrices and the weights of layer norms."""

from __future__ import annotations

from typing import Any

from engine.checkpoints.families.gpt2 import CAUSAL
from engine.checkpoints.families.phi3 import FUSED_QKV
from engine.checkpoints.family import Family
from engine.checkpoints.keys import ConfigTable, Key, Table
from engine.checkpoints.kinds import ANY, POSITIVE, TABLE, WORD, size
from engine.checkpoints.tasks import with_tasks

ATTENTION = {
    "attn_type": "multihead_attention", "clip_qkv": None, "prefix_lm": False, "qk_ln": False, "alibi": True,
    "alibi_bias_max": 8, "attn_uses_sequence_id": False,
}  # of each of which transformers' class knows one value, whatever a file says  # fmt: skip


def read_attention(said: Any, theirs: Table) -> Any:
    """Scale of the scores, the one thing that varies."""
    table = ConfigTable(
        said or {},
        kinds={**dict.fromkeys(ATTENTION, ANY), "softmax_scale": POSITIVE},
        source="config.json's attn_config.",
    )
    for name, value in ATTENTION.items():
        if table.get(name, value) != value:
            expected = f"config.json's attn_config.{name} must be {value!r}"
            raise ValueError(f"{expected}, got {said[name]!r:.80}: Loupe has no such model.")
    return table.get("softmax_scale")


KEYS = (
    Key("vocab_size", "vocab_size"),
    Key("max_seq_len", "context", kind=size(1)),
    Key("d_model", "d_model"),
    Key("n_layers", "layers"),
    Key("n_heads", "attention.heads"),
    Key("layer_norm_epsilon", "norm.eps", default=1e-5),
    Key("resid_pdrop", "dropout", default=0.0, also=("emb_pdrop",)),
    Key("tie_word_embeddings", "tied", default=True),
    Key(
        "attn_config",
        "attention.scale",
        default=None,
        reads=read_attention,
        writes=lambda scale, _: {**ATTENTION, "softmax_scale": scale},
        kind=TABLE,
    ),
    Key("norm_type", "norm.kind", default="layer", values={"low_precision_layernorm": "layer", "layernorm": "layer"},
        kind=WORD),
)  # fmt: skip

ALWAYS = {
    "positions.kind": "alibi",
    "norm.place": "before",
    "norm.learned": "weight",
    "attention.mask": "causal",
    "attention.bias": False,
    "attention.out_bias": False,
    "mlp.activation": "gelu",
    "mlp.bias": False,
    "mlp.d_mlp": lambda theirs: 4 * theirs["d_model"],
}

LAYER = "transformer.blocks.{}."
NAMES = {"norm_1": "norm1", "attn.out_proj": "attn.out", "norm_2": "norm2", "ffn.up_proj": "mlp.pre"}
NAMES |= {"ffn.down_proj": "mlp.out"}
ROWS = (
    ("transformer.wte.weight", "embed.tokens.weight"),
    (f"{LAYER}attn.Wqkv.weight", *FUSED_QKV),
    *((f"{LAYER}{theirs}.weight", f"blocks.{{}}.{ours}.weight") for theirs, ours in NAMES.items()),
    ("transformer.norm_f.weight", "final_norm.weight"),
    ("lm_head.weight", "head.weight"),
)

LANGUAGE = Family(
    name="mpt",
    architecture="MptForCausalLM",
    keys=KEYS,
    always=ALWAYS,
    only=CAUSAL | {"no_bias": True, "expansion_ratio": 4, "logit_scale": None, "embedding_fraction": 1.0},
    rows=ROWS,
    tied={"lm_head.weight": "transformer.wte.weight"},
    optional_prefix="transformer.",
    common={"num_attention_heads": "n_heads", "hidden_size": "d_model", "num_hidden_layers": "n_layers"},
    defaults={"vocab_size": 50368, "d_model": 2048, "n_layers": 24, "n_heads": 16, "max_seq_len": 2048},
)
FAMILIES = with_tasks(LANGUAGE, token="classifier")
