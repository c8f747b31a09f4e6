"""nanochat (Karpathy 2025), as transformers names it: norms that learn nothing, of the embedding and of queries and
keys too, ReLU squared, and logits with a cap.

It turns queries and keys the other way round, which is turning them as others do with the halves of a head exchanged;
and before their norm, which gives the same as behind it.
"""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor

from engine.checkpoints.families.gpt2 import CAUSAL
from engine.checkpoints.families.llama import ALWAYS, HEADS, ROWS, SIZES, TIED, attention_bias_key
from engine.checkpoints.family import Family, Transform, concatenate
from engine.checkpoints.keys import ACTIVATIONS, Key, Table
from engine.checkpoints.rotary import read_whole_heads, write_parameters
from engine.checkpoints.tasks import body_of
from engine.model.config import ModelConfig


def read_rotation(theirs: Table) -> tuple[float, dict[str, object] | None]:
    """theta and scaling, whose factor of cos and sin the norm behind it takes out."""
    theta, scaling = read_whole_heads(theirs)
    if scaling is not None and scaling["kind"] in ("yarn", "longrope"):
        scaling = {**scaling, "attention": 1.0}
    return theta, scaling


KEYS = (
    *(key for key in SIZES if key.theirs not in ("hidden_act", "rope_parameters")),
    HEADS,
    Key("head_dim", "attention.d_head", default=None),
    attention_bias_key(False),
    Key("hidden_act", "mlp.activation", default="relu2", values=ACTIVATIONS),
    Key("final_logit_softcapping", "head.softcap", default=lambda t: t.get("final_logit_softcapping", 15.0)),
    Key(
        "rope_parameters",
        ("positions.theta", "positions.scaling"),
        default=read_rotation,
        reads=lambda _, theirs: read_rotation(theirs),
        writes=lambda both, _: write_parameters(*both),
    ),
)


def exchange_halves(heads: Callable[[ModelConfig], int]) -> Transform:
    """Exchange of the halves of (head half number) ..., which undoes itself."""

    def exchange(tensors: list[Tensor], config: ModelConfig) -> list[Tensor]:
        by_half = tensors[0].unflatten(0, (heads(config), 2, -1))
        return [concatenate([by_half[:, 1:], by_half[:, :1]], dim=1).flatten(0, 2)]

    return Transform(exchange, exchange)


QUERIES, KEYS_OF_GROUPS = exchange_halves(lambda config: config.attention.heads), exchange_halves(lambda c: c.kv_heads)
TURNED = tuple(
    (f"model.layers.{{}}.self_attn.{letter}_proj.{part}", f"blocks.{{}}.attn.{letter}.{part}", exchanged)
    for letter, exchanged in (("q", QUERIES), ("k", KEYS_OF_GROUPS))
    for part in ("weight", "bias")
)
LAYER = "model.layers.{}."
MAPS = (
    (f"{LAYER}mlp.fc1.weight", "blocks.{}.mlp.pre.weight"),
    (f"{LAYER}mlp.fc2.weight", "blocks.{}.mlp.out.weight"),
)

DEFAULTS = {
    "vocab_size": 50304, "hidden_size": 768, "intermediate_size": 8192, "num_hidden_layers": 12,
    "num_attention_heads": 6, "max_position_embeddings": 2048,
}  # fmt: skip

LANGUAGE = Family(
    name="nanochat",
    architecture="NanoChatForCausalLM",
    keys=KEYS,
    always={
        **ALWAYS,
        "norm.learned": "none",
        "embedding.norm": True,
        "attention.qk_norm": "head",
        "mlp.gated": False,
        "mlp.bias": False,
    },
    only=CAUSAL,
    rows=(
        *(row for row in ROWS if not any(part in row[0] for part in ("norm", "mlp", "q_proj", "k_proj"))),
        *TURNED,
        *MAPS,
    ),
    tied=TIED,
    optional_prefix="model.",
    defaults=DEFAULTS,
)
FAMILIES = (LANGUAGE, body_of(LANGUAGE, "NanoChatModel"))
