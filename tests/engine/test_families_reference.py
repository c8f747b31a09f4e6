"""The core against transformers where no family file is needed: weights copied by hand into Loupe's names."""

import pytest
import torch
from torch import Tensor
from transformers import LlamaConfig, LlamaForCausalLM, MistralConfig, MistralForCausalLM, MptConfig, MptForCausalLM

from engine.config import MLP, Attention, ModelConfig, Norm, Positions
from engine.model import Transformer
from engine.run import run

IDS = torch.tensor([[5, 0, 30, 7, 7, 31, 12, 3, 24, 1]])
SIZES = {"vocab_size": 40, "d_model": 24, "layers": 2, "context": 32}
ROTARY = {"vocab_size": 40, "hidden_size": 24, "num_hidden_layers": 2, "intermediate_size": 36}
ROTARY |= {"num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 8, "rms_norm_eps": 1e-5}
ROTARY |= {"max_position_embeddings": 32, "pad_token_id": None, "bos_token_id": None, "eos_token_id": None}


def shaken(model: torch.nn.Module) -> torch.nn.Module:
    torch.manual_seed(1)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter), alpha=0.2)
    model.set_attn_implementation("eager")
    return model.eval()


def compare(theirs: torch.nn.Module, config: ModelConfig, state: dict[str, Tensor]) -> None:
    model = Transformer(config)
    model.load_state_dict(state)
    trace = run(model.eval(), IDS)
    with torch.no_grad():
        expected = theirs(IDS, output_attentions=True)
    torch.testing.assert_close(trace["logits"], expected.logits, atol=1e-4, rtol=0)
    torch.testing.assert_close(trace.stack("attn.pattern"), torch.stack(expected.attentions), atol=1e-5, rtol=0)


NAMES = {
    "model.embed_tokens.": "embed.tokens.",
    "model.layers.": "blocks.",
    "model.norm.": "final_norm.",
    "lm_head.": "head.",
    "self_attn.q_proj": "attn.q",
    "self_attn.k_proj": "attn.k",
    "self_attn.v_proj": "attn.v",
    "self_attn.o_proj": "attn.out",
    "post_attention_layernorm": "norm2",
    "input_layernorm": "norm1",
    "mlp.gate_proj": "mlp.pre",
    "mlp.up_proj": "mlp.up",
    "mlp.down_proj": "mlp.out",
}


def renamed(state: dict[str, Tensor]) -> dict[str, Tensor]:
    for theirs, ours in NAMES.items():
        state = {name.replace(theirs, ours): tensor for name, tensor in state.items()}
    return state


@pytest.mark.parametrize(
    ("theirs", "window"),
    [
        (lambda: LlamaForCausalLM(LlamaConfig(**ROTARY)), None),
        (lambda: MistralForCausalLM(MistralConfig(**ROTARY, sliding_window=4)), 4),
    ],
    ids=["Llama: rotary, RMSNorm, gated, grouped queries", "Mistral: and a window"],
)
def test_the_modern_decoder_equals_transformers(theirs, window: int | None) -> None:
    model = shaken(theirs())
    config = ModelConfig(
        **SIZES,
        attention=Attention(4, kv_heads=2, d_head=8, bias=False, out_bias=False, window=window),
        mlp=MLP(36, activation="silu", gated=True, bias=False),
        positions=Positions("rotary"),
        norm=Norm("rms"),
        tied=False,
    )
    compare(model, config, renamed(model.state_dict()))


def test_alibi_equals_transformers() -> None:
    theirs = shaken(MptForCausalLM(MptConfig(vocab_size=40, d_model=24, n_layers=2, n_heads=4, max_seq_len=32)))
    config = ModelConfig(
        **SIZES,
        attention=Attention(4, bias=False, out_bias=False),
        mlp=MLP(96, activation="gelu", bias=False),
        positions=Positions("alibi"),
    )
    state = {"final_norm.bias": torch.zeros(24)}
    for name, tensor in theirs.state_dict().items():
        name = name.replace("transformer.blocks.", "blocks.").replace("norm_1", "norm1").replace("norm_2", "norm2")
        name = name.replace("ffn.up_proj", "mlp.pre").replace("ffn.down_proj", "mlp.out")
        name = name.replace("attn.out_proj", "attn.out").replace("transformer.norm_f", "final_norm")
        name = name.replace("transformer.wte", "embed.tokens")
        if name.endswith("attn.Wqkv.weight"):
            for part, third in zip("qkv", tensor.chunk(3), strict=True):
                state[name.replace("Wqkv", part)] = third
        elif name != "lm_head.weight":
            state[name] = tensor
        if ".norm" in name:
            state[name.replace("weight", "bias")] = torch.zeros(24)
    compare(theirs, config, state)
