"""gpt-oss (OpenAI 2025): experts behind limited gates, heads with a sink, and a window in every other layer."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

from torch import Tensor

from engine.checkpoints.experts import used_key
from engine.checkpoints.families import llama
from engine.checkpoints.families.gpt2 import CAUSAL
from engine.checkpoints.family import Transform
from engine.checkpoints.keys import Key, Table, write_only_key
from engine.checkpoints.rotary import read_rope_table, read_whole_heads, whole_heads_keys, write_parameters
from engine.checkpoints.tasks import with_tasks
from engine.checkpoints.windows import choose_types, layer_types
from engine.model.config import ModelConfig, RotaryScaling

THETA = 150_000.0
YARN = asdict(RotaryScaling("yarn", factor=32.0, trained=4096, whole=False))


def read_rotary(theirs: Table) -> tuple[Any, dict[str, Any] | None]:
    """theta and scaling, which is YARN where nothing is said of them."""
    theta, scaling = read_whole_heads(theirs, THETA)
    return theta, scaling if read_rope_table(theirs) else YARN


def part(tensors: list[Tensor], config: ModelConfig) -> list[Tensor]:
    """Gate and up in turn ... to gate, up: of weights expert in both to expert out in, of biases as they are."""
    both = tensors[0]
    halves = [both[..., ::2], both[..., 1::2]]
    return [half.mT for half in halves] if both.dim() == 3 else halves


def interleave(tensors: list[Tensor], config: ModelConfig) -> list[Tensor]:
    gate, up = (tensor.mT if tensor.dim() == 3 else tensor for tensor in tensors)
    both = gate.new_empty((*gate.shape[:-1], 2 * gate.shape[-1]))
    both[..., ::2], both[..., 1::2] = gate, up
    return [both]


TURNED = Transform(lambda tensors, _: [tensors[0].mT], lambda tensors, _: [tensors[0].mT])
BOTH = Transform(part, interleave)
MODULE, EXPERTS = "model.layers.{}.mlp", "blocks.{}.mlp.experts"
ROWS = (
    *(row for row in llama.ROWS if ".mlp." not in row[0]),
    ("model.layers.{}.self_attn.sinks", "blocks.{}.attn.sinks"),
    *((f"{MODULE}.router.{one}", f"blocks.{{}}.mlp.router.{one}") for one in ("weight", "bias")),
    (f"{MODULE}.experts.gate_up_proj", (f"{EXPERTS}.pre.weight", f"{EXPERTS}.up.weight"), BOTH),
    (f"{MODULE}.experts.gate_up_proj_bias", (f"{EXPERTS}.pre.bias", f"{EXPERTS}.up.bias"), BOTH),
    (f"{MODULE}.experts.down_proj", f"{EXPERTS}.out.weight", TURNED),
    (f"{MODULE}.experts.down_proj_bias", f"{EXPERTS}.out.bias"),
)

OWN = ("rms_norm_eps", "attention_bias", "head_dim", "hidden_act", "mlp_bias", "rope_parameters")
KEYS = (
    *(key for key in (*llama.KEYS, *whole_heads_keys(THETA)) if key.theirs not in OWN),
    Key("rms_norm_eps", "norm.eps", default=1e-5),
    llama.attention_bias_key(True),
    Key("head_dim", "attention.d_head", default=64),
    Key(
        "rope_parameters",
        ("positions.theta", "positions.scaling"),
        default=read_rotary,
        reads=lambda _, theirs: read_rotary(theirs),
        writes=lambda both, _: write_parameters(*both),
    ),
    Key("num_local_experts", "mlp.experts.count"),
    used_key(4),
    Key("swiglu_alpha", "mlp.slope", default=1.702),
    Key("swiglu_limit", "mlp.limit", default=7.0),
    layer_types(lambda theirs: theirs.get("sliding_window", 128), choose_types(lambda layer, _: layer % 2 == 0)),
    write_only_key("sliding_window", lambda ours: ours["attention"]["window"]),
)

DEFAULTS = {
    "vocab_size": 201088, "hidden_size": 2880, "intermediate_size": 2880, "num_hidden_layers": 36,
    "num_attention_heads": 64, "num_key_value_heads": 8, "max_position_embeddings": 131072,
    "num_local_experts": 128, "num_experts_per_tok": 4,
}  # fmt: skip

LANGUAGE = replace(
    llama.LANGUAGE,
    name="gpt_oss",
    architecture="GptOssForCausalLM",
    also=(),
    keys=KEYS,
    always={
        **llama.ALWAYS,
        "attention.sinks": True,
        "mlp.activation": "silu",
        "mlp.shift": 1.0,
        "mlp.bias": True,
        "mlp.experts.bias": True,
    },
    only={**CAUSAL, "hidden_act": "silu"},
    common={"num_experts": "num_local_experts"},
    rows=ROWS,
    defaults=DEFAULTS,
)
FAMILIES = with_tasks(LANGUAGE, span=None)
