"""The same random weights in transformers' GPT-2, T5 or BART and in a Loupe model, the two made side by side."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor, nn
from transformers import (
    BartConfig,
    BartForConditionalGeneration,
    GPT2Config,
    GPT2LMHeadModel,
    PreTrainedModel,
    T5Config,
    T5ForConditionalGeneration,
)

from engine.checkpoints import Checkpoint
from engine.model.config import MLP, Attention, Embedding, Encoder, ModelConfig, Norm, OutputHead, Positions
from engine.model.transformer import Transformer

VOCAB, WIDTH, HEADS, INNER, LAYERS, CONTEXT = 31, 16, 4, 24, 2, 40
START, END = 3, 1
SPREAD = 0.5  # of the weights: far from uniform, and no certainty either

Twins = tuple[Checkpoint, PreTrainedModel]


def twins(kind: str, seed: int = 0, ends: tuple[int, ...] = (END,), **shape: int) -> Twins:
    return KINDS[kind](seed, ends, **shape)


def gpt2(seed: int, ends: tuple[int, ...], width: int = WIDTH, layers: int = LAYERS) -> Twins:
    theirs = GPT2LMHeadModel(
        GPT2Config(
            vocab_size=VOCAB,
            n_positions=CONTEXT,
            n_embd=width,
            n_layer=layers,
            n_head=HEADS,
            n_inner=INNER,
            bos_token_id=START,
            eos_token_id=list(ends),
            pad_token_id=0,
        )
    )
    found = random_weights(theirs, seed)
    config = ModelConfig(VOCAB, CONTEXT, width, layers, Attention(HEADS), MLP(INNER))
    rows = {"embed.tokens.weight": found["transformer.wte.weight"]}
    rows["embed.positions.weight"] = found["transformer.wpe.weight"]
    rows |= both("final_norm", found, "transformer.ln_f")
    for layer in range(layers):
        mine, old = f"blocks.{layer}", f"transformer.h.{layer}"
        for part, weight, bias in zip(
            "qkv",
            found[f"{old}.attn.c_attn.weight"].chunk(3, dim=1),
            found[f"{old}.attn.c_attn.bias"].chunk(3),
            strict=True,
        ):
            rows |= {f"{mine}.attn.{part}.weight": weight.T, f"{mine}.attn.{part}.bias": bias}
        for part, name in (("attn.out", "attn.c_proj"), ("mlp.pre", "mlp.c_fc"), ("mlp.out", "mlp.c_proj")):
            rows[f"{mine}.{part}.weight"] = found[f"{old}.{name}.weight"].T
            rows[f"{mine}.{part}.bias"] = found[f"{old}.{name}.bias"]
        rows |= both(f"{mine}.norm1", found, f"{old}.ln_1") | both(f"{mine}.norm2", found, f"{old}.ln_2")
    return checkpoint(config, rows, ends), theirs


def t5(seed: int, ends: tuple[int, ...], width: int = WIDTH, layers: int = LAYERS, heads: int = HEADS) -> Twins:
    theirs = T5ForConditionalGeneration(
        T5Config(
            vocab_size=VOCAB,
            d_model=width,
            d_kv=width // heads,
            d_ff=INNER,
            num_layers=layers,
            num_heads=heads,
            relative_attention_num_buckets=8,
            relative_attention_max_distance=12,
            decoder_start_token_id=START,
            eos_token_id=list(ends),
            pad_token_id=0,
            tie_word_embeddings=True,
        )
    )
    found = random_weights(theirs, seed)
    attention = Attention(heads, bias=False, out_bias=False, scale=1.0)
    wide = Attention(heads, bias=False, out_bias=False, scale=1.0, mask="full")
    mlp = MLP(INNER, activation="relu", bias=False)
    config = ModelConfig(
        VOCAB,
        CONTEXT,
        width,
        layers,
        attention,
        mlp,
        positions=Positions("relative", buckets=8, farthest=12),
        norm=Norm("rms", eps=1e-6),
        head=OutputHead(scale=width**-0.5),
        encoder=Encoder(layers, wide, mlp, start=START),
    )
    rows = {"encoder.embed.tokens.weight": found["shared.weight"]}
    for side, sublayers in (("encoder", T5_ENCODER), ("decoder", T5_DECODER)):
        rows[f"{side}.final_norm.weight"] = found[f"{side}.final_layer_norm.weight"]
        bias = f"{side}.block.0.layer.0.SelfAttention.relative_attention_bias.weight"
        rows[f"{side}.relative.weight"] = found[bias]
        for layer in range(layers):
            for mine, name in sublayers:
                rows[f"{side}.blocks.{layer}.{mine}.weight"] = found[f"{side}.block.{layer}.layer.{name}.weight"]
    return checkpoint(config, rows, ends), theirs


def attention_rows(mine: str, theirs: str) -> list[tuple[str, str]]:
    return [(f"{mine}.{a}", f"{theirs}.{b}") for a, b in (("q", "q"), ("k", "k"), ("v", "v"), ("out", "o"))]


def mlp_rows(sublayer: int) -> list[tuple[str, str]]:
    inner = f"{sublayer}.DenseReluDense"
    return [("mlp.pre", f"{inner}.wi"), ("mlp.out", f"{inner}.wo"), ("norm2", f"{sublayer}.layer_norm")]


T5_SELF = [*attention_rows("attn", "0.SelfAttention"), ("norm1", "0.layer_norm")]
T5_CROSS = [*attention_rows("cross_attn", "1.EncDecAttention"), ("norm_cross", "1.layer_norm")]
T5_ENCODER = [*T5_SELF, *mlp_rows(1)]
T5_DECODER = [*T5_SELF, *T5_CROSS, *mlp_rows(2)]


def bart(seed: int, ends: tuple[int, ...], width: int = WIDTH, layers: int = LAYERS) -> Twins:
    theirs = BartForConditionalGeneration(
        BartConfig(
            vocab_size=VOCAB,
            d_model=width,
            encoder_layers=layers,
            decoder_layers=layers,
            encoder_attention_heads=HEADS,
            decoder_attention_heads=HEADS,
            encoder_ffn_dim=INNER,
            decoder_ffn_dim=INNER,
            max_position_embeddings=CONTEXT,
            decoder_start_token_id=START,
            bos_token_id=4,
            eos_token_id=list(ends),
            pad_token_id=0,
            forced_eos_token_id=None,
        )
    )
    found = random_weights(theirs, seed)
    mlp = MLP(INNER, activation="gelu")
    config = ModelConfig(
        VOCAB,
        CONTEXT,
        width,
        layers,
        Attention(HEADS),
        mlp,
        norm=Norm(place="after"),
        embedding=Embedding(norm=True),
        encoder=Encoder(layers, Attention(HEADS, mask="full"), mlp, start=START),
    )
    rows = {"encoder.embed.tokens.weight": found["model.shared.weight"]}
    for side in ("encoder", "decoder"):
        rows[f"{side}.embed.positions.weight"] = found[f"model.{side}.embed_positions.weight"][2:]  # two rows unused
        rows |= both(f"{side}.embed.norm", found, f"model.{side}.layernorm_embedding")
        for layer in range(layers):
            for mine, name in BART_ROWS:
                if f"model.{side}.layers.{layer}.{name}.weight" in found:
                    rows |= both(f"{side}.blocks.{layer}.{mine}", found, f"model.{side}.layers.{layer}.{name}")
    return checkpoint(config, rows, ends), theirs


BART_ROWS = [
    *((f"attn.{a}", f"self_attn.{b}_proj") for a, b in (("q", "q"), ("k", "k"), ("v", "v"), ("out", "out"))),
    *((f"cross_attn.{a}", f"encoder_attn.{b}_proj") for a, b in (("q", "q"), ("k", "k"), ("v", "v"), ("out", "out"))),
    ("norm1", "self_attn_layer_norm"),
    ("norm_cross", "encoder_attn_layer_norm"),
    ("norm2", "final_layer_norm"),
    ("mlp.pre", "fc1"),
    ("mlp.out", "fc2"),
]
KINDS = {"gpt2": gpt2, "t5": t5, "bart": bart}


def both(mine: str, found: dict[str, Tensor], theirs: str) -> dict[str, Tensor]:
    return {f"{mine}.{part}": found[f"{theirs}.{part}"] for part in ("weight", "bias")}


@torch.no_grad()
def random_weights(model: nn.Module, seed: int) -> dict[str, Tensor]:
    """Every parameter drawn, biases and norms too."""
    model.eval()
    generator = torch.Generator().manual_seed(seed)
    for name, parameter in model.named_parameters():
        drawn = torch.empty_like(parameter).normal_(0.0, SPREAD, generator=generator)
        norm = "norm" in name or ".ln_" in name
        parameter.copy_(1 + drawn if norm and name.endswith("weight") else drawn)
    return {name: tensor.clone() for name, tensor in model.state_dict().items()}


def checkpoint(config: ModelConfig, rows: dict[str, Tensor], ends: Iterable[int]) -> Checkpoint:
    model = Transformer(config).requires_grad_(False).eval()
    model.load_state_dict(rows)
    return Checkpoint(model, end_ids=tuple(ends))
