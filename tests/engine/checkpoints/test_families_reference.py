"""The core against transformers where no family file is needed: weights copied by hand into Loupe's names."""

from collections.abc import Mapping

import torch
from torch import Tensor
from transformers import MptConfig, MptForCausalLM, PhiConfig, PhiForCausalLM

from engine.model.config import MLP, Attention, ModelConfig, OutputHead, Positions
from engine.model.transformer import Transformer
from engine.runtime.run import run

IDS = torch.tensor([[5, 0, 30, 7, 7, 31, 12, 3, 24, 1]])
SIZES = {"vocab_size": 40, "d_model": 24, "layers": 2, "context": 32}
ENDS = {"pad_token_id": None, "bos_token_id": None, "eos_token_id": None}


def shaken(model: torch.nn.Module) -> torch.nn.Module:
    torch.manual_seed(1)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter), alpha=0.2)
    model.set_attn_implementation("eager")
    return model.eval()


def compare(theirs: torch.nn.Module, config: ModelConfig, state: Mapping[str, Tensor]) -> None:
    model = Transformer(config)
    model.load_state_dict(state)
    trace = run(model.eval(), IDS)
    with torch.no_grad():
        expected = theirs(IDS, output_attentions=True)
    torch.testing.assert_close(trace["logits"], expected.logits, atol=1e-4, rtol=0)
    torch.testing.assert_close(trace.stack("attn.pattern"), torch.stack(expected.attentions), atol=1e-5, rtol=0)


def renamed(state: Mapping[str, Tensor], names: Mapping[str, str]) -> dict[str, Tensor]:
    """Every part of a name in `names` replaced, in their order."""
    out = {}
    for name, tensor in state.items():
        for theirs, ours in names.items():
            name = name.replace(theirs, ours)
        out[name] = tensor
    return out


MPT = {
    "transformer.blocks.": "blocks.",
    "norm_1": "norm1",
    "norm_2": "norm2",
    "ffn.up_proj": "mlp.pre",
    "ffn.down_proj": "mlp.out",
    "attn.out_proj": "attn.out",
    "transformer.norm_f": "final_norm",
    "transformer.wte": "embed.tokens",
}


def test_alibi_equals_mpt() -> None:
    theirs = shaken(MptForCausalLM(MptConfig(vocab_size=40, d_model=24, n_layers=2, n_heads=4, max_seq_len=32)))
    config = ModelConfig(
        **SIZES,
        attention=Attention(4, bias=False, out_bias=False),
        mlp=MLP(96, activation="gelu", bias=False),
        positions=Positions("alibi"),
    )
    state = renamed(theirs.state_dict(), MPT)
    del state["lm_head.weight"]
    for layer in range(2):
        thirds = state.pop(f"blocks.{layer}.attn.Wqkv.weight").chunk(3)
        state |= {f"blocks.{layer}.attn.{part}.weight": third for part, third in zip("qkv", thirds, strict=True)}
    state |= {n.replace("weight", "bias"): torch.zeros(24) for n in state if "norm" in n}
    compare(theirs, config, state)


PHI = {
    "model.layers.": "blocks.",
    "model.embed_tokens": "embed.tokens",
    "model.final_layernorm": "final_norm",
    "input_layernorm": "norm1",
    "self_attn.q_proj": "attn.q",
    "self_attn.k_proj": "attn.k",
    "self_attn.v_proj": "attn.v",
    "self_attn.dense": "attn.out",
    "mlp.fc1": "mlp.pre",
    "mlp.fc2": "mlp.out",
    "lm_head": "head",
}


def test_one_norm_for_both_sublayers_partial_rotary_and_groups_equal_phi() -> None:
    sizes = {"vocab_size": 40, "hidden_size": 24, "intermediate_size": 36, "num_hidden_layers": 2}
    rope = {"rope_theta": 10_000.0, "partial_rotary_factor": 0.7}
    heads = {"num_attention_heads": 4, "num_key_value_heads": 2}
    theirs = shaken(PhiForCausalLM(PhiConfig(**sizes, **heads, **ENDS, rope_parameters=rope)))
    config = ModelConfig(
        **SIZES,
        attention=Attention(4, kv_heads=2),
        mlp=MLP(36),
        positions=Positions("rotary", turned=4),
        sublayers="parallel_one_norm",
        head=OutputHead(bias=True),
        tied=False,
    )
    compare(theirs, config, renamed(theirs.state_dict(), PHI))
