"""Phi-3 (Abdin et al. 2024), which Phi-4 and Phi-4-mini are as well: Llama with q, k and v side by side in one tensor,
the MLP's two first maps in another, and a part of each head turned."""

from __future__ import annotations

from torch import Tensor

from engine.checkpoints.families.gpt2 import CAUSAL
from engine.checkpoints.families.gpt_neox import partial_rotary_keys
from engine.checkpoints.families.llama import ALWAYS, HEADS, SIZES, TIED
from engine.checkpoints.families.llama import ROWS as OF_LLAMA
from engine.checkpoints.family import Family, Transform, concatenate
from engine.checkpoints.keys import Key, write_only_key
from engine.checkpoints.rotary import CONTEXT, TRAINED
from engine.checkpoints.tasks import with_tasks
from engine.model.config import ModelConfig

OWN = ("rms_norm_eps", "attention_dropout", CONTEXT, "rope_parameters", "rope_theta")
KEYS = (
    *(key for key in SIZES if key.theirs not in OWN),
    HEADS,
    Key(CONTEXT, "context"),
    Key("rms_norm_eps", "norm.eps", default=1e-5),
    Key("resid_pdrop", "dropout", default=0.0, also=("embd_pdrop", "attention_dropout")),
    Key("sliding_window", "attention.window", default=None),
    *partial_rotary_keys("partial_rotary_factor", 1.0, scalings=dict.fromkeys(("longrope", "su", "yarn"), "longrope")),
    write_only_key(TRAINED, lambda ours: (ours["positions"]["scaling"] or {"trained": ours["context"]})["trained"]),
)


def split(tensors: list[Tensor], config: ModelConfig) -> list[Tensor]:
    """(queries, then keys, then values) ... to three."""
    queries = config.attention.heads * config.d_head
    keys = (len(tensors[0]) - queries) // 2
    return list(tensors[0].split((queries, keys, keys)))


def halve(tensors: list[Tensor], config: ModelConfig) -> list[Tensor]:
    """(gate, then up) in to gate, up; of each expert by itself where there are several."""
    return list(tensors[0].chunk(2, dim=-2))


def stack(tensors: list[Tensor], config: ModelConfig) -> list[Tensor]:
    return [concatenate(tensors, dim=-2)]


QKV = tuple(f"blocks.{{}}.attn.{x}.weight" for x in "qkv")
GATED = ("blocks.{}.mlp.pre.weight", "blocks.{}.mlp.up.weight")
FUSED_QKV = QKV, Transform(split, stack)
HALVES = Transform(halve, stack)
FUSED_MLP = GATED, HALVES
FUSED = ("q_proj", "k_proj", "v_proj", "gate_proj", "up_proj", "bias", "inv_freq")
ROWS = (
    *(row for row in OF_LLAMA if not any(part in row[0] for part in FUSED)),
    ("model.layers.{}.self_attn.qkv_proj.weight", *FUSED_QKV),
    ("model.layers.{}.mlp.gate_up_proj.weight", *FUSED_MLP),
)

DEFAULTS = {
    "vocab_size": 32064, "hidden_size": 3072, "intermediate_size": 8192, "num_hidden_layers": 32,
    "num_attention_heads": 32, "max_position_embeddings": 4096, TRAINED: 4096,
}  # fmt: skip

LANGUAGE = Family(
    name="phi3",
    architecture="Phi3ForCausalLM",
    keys=KEYS,
    always={**ALWAYS, "attention.bias": False, "attention.out_bias": False, "mlp.bias": False},
    only=CAUSAL,
    rows=ROWS,
    tied=TIED,
    optional_prefix="model.",
    defaults=DEFAULTS,
)
FAMILIES = with_tasks(LANGUAGE, span=None)
