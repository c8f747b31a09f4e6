"""The original encoder-decoder (Vaswani et al. 2017) against PyTorch's own nn.Transformer."""

import pytest
import torch
from torch import Tensor, nn

from engine.model.config import MLP, Attention, Embedding, Encoder, ModelConfig, Norm, Positions
from engine.model.transformer import Transformer
from engine.runtime.run import run

torch.set_num_threads(1)
pytestmark = pytest.mark.filterwarnings("ignore:enable_nested_tensor")  # PyTorch's, which it does not use here

VOCAB, WIDTH, HEADS, INNER = 30, 24, 4, 40
ENCODER, DECODER = 3, 2
SOURCE = [[5, 0, 29, 7, 7, 12, 3], [4, 8, 15]]
TARGET = [[1, 17, 4], [1, 9, 9, 20, 11]]


def theirs(norm_first: bool) -> nn.Transformer:
    """Random, with every bias and norm away from zero and one."""
    torch.manual_seed(0)
    model = nn.Transformer(
        WIDTH, HEADS, ENCODER, DECODER, INNER, dropout=0.0, activation="relu", batch_first=True, norm_first=norm_first
    )
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter), alpha=0.2)
    return model


def config(norm_first: bool) -> ModelConfig:
    return ModelConfig(
        vocab_size=VOCAB,
        context=16,
        d_model=WIDTH,
        layers=DECODER,
        attention=Attention(HEADS),
        mlp=MLP(INNER, activation="relu"),
        positions=Positions("sinusoidal"),
        norm=Norm(place="before" if norm_first else "after", final=True),
        embedding=Embedding(scale=WIDTH**0.5),
        encoder=Encoder(ENCODER, Attention(HEADS, mask="full"), MLP(INNER, activation="relu"), start=1),
    )


def attention(state: dict[str, Tensor], theirs: str, ours: str) -> dict[str, Tensor]:
    named = {f"{ours}.out.{part}": state[f"{theirs}.out_proj.{part}"] for part in ("weight", "bias")}
    for part in ("weight", "bias"):
        for letter, third in zip("qkv", state[f"{theirs}.in_proj_{part}"].chunk(3), strict=True):
            named[f"{ours}.{letter}.{part}"] = third
    return named


def renamed(model: nn.Transformer, table: Tensor) -> dict[str, Tensor]:
    state = model.state_dict()
    named = {"encoder.embed.tokens.weight": table}
    norms = {"encoder": ("norm1", "norm2"), "decoder": ("norm1", "norm_cross", "norm2")}
    for side, count in (("encoder", ENCODER), ("decoder", DECODER)):
        for layer in range(count):
            their, our = f"{side}.layers.{layer}", f"{side}.blocks.{layer}"
            named |= attention(state, f"{their}.self_attn", f"{our}.attn")
            if side == "decoder":
                named |= attention(state, f"{their}.multihead_attn", f"{our}.cross_attn")
            for part in ("weight", "bias"):
                named[f"{our}.mlp.pre.{part}"] = state[f"{their}.linear1.{part}"]
                named[f"{our}.mlp.out.{part}"] = state[f"{their}.linear2.{part}"]
                for number, norm in enumerate(norms[side], 1):
                    named[f"{our}.{norm}.{part}"] = state[f"{their}.norm{number}.{part}"]
        for part in ("weight", "bias"):
            named[f"{side}.final_norm.{part}"] = state[f"{side}.norm.{part}"]
    return named


def positions(length: int) -> Tensor:
    """PE(pos, 2i) = sin(pos / 10000^(2i/d)), PE(pos, 2i+1) = cos(...): section 3.5, element by element."""
    table = torch.empty(length, WIDTH, dtype=torch.float64)
    for pos in range(length):
        for i in range(0, WIDTH, 2):
            angle = torch.tensor(pos / 10_000 ** (i / WIDTH), dtype=torch.float64)
            table[pos, i], table[pos, i + 1] = angle.sin(), angle.cos()
    return table.float()


def embedded(ids: Tensor, table: Tensor) -> Tensor:
    return table[ids] * WIDTH**0.5 + positions(ids.shape[1])


def padded(rows: list[list[int]]) -> tuple[Tensor, Tensor]:
    """ids, and True where nothing stands."""
    longest = max(map(len, rows))
    ids = torch.tensor([row + [0] * (longest - len(row)) for row in rows])
    return ids, torch.tensor([[i >= len(row) for i in range(longest)] for row in rows])


@pytest.mark.parametrize("norm_first", [False, True], ids=["norm after, as published", "norm before"])
def test_logits_equal_pytorchs_transformer_with_padding_on_both_sides(norm_first: bool) -> None:
    reference = theirs(norm_first)
    table = torch.randn(VOCAB, WIDTH, generator=torch.Generator().manual_seed(2))
    (source, no_source), (target, no_target) = padded(SOURCE), padded(TARGET)
    later = torch.ones(target.shape[1], target.shape[1], dtype=torch.bool).triu(1)
    with torch.no_grad():
        last = reference(
            embedded(source, table),
            embedded(target, table),
            tgt_mask=later,
            src_key_padding_mask=no_source,
            tgt_key_padding_mask=no_target,
            memory_key_padding_mask=no_source,
        )
    model = Transformer(config(norm_first))
    model.load_state_dict(renamed(reference, table))
    trace = run(model.eval(), SOURCE, target=TARGET)
    for row, length in enumerate(map(len, TARGET)):
        expected = last[row, :length]
        torch.testing.assert_close(trace["decoder.final_norm.out"][row, :length], expected, atol=1e-4, rtol=0)
        torch.testing.assert_close(trace["logits"][row, :length], expected @ table.T, atol=1e-4, rtol=0)


@pytest.mark.parametrize("norm_first", [False, True])
def test_each_attention_equals_that_of_pytorchs_layers(norm_first: bool) -> None:
    """The first layer's three attentions, asked of nn.MultiheadAttention with what Loupe's attention read."""
    reference = theirs(norm_first)
    table = torch.randn(VOCAB, WIDTH, generator=torch.Generator().manual_seed(2))
    model = Transformer(config(norm_first))
    model.load_state_dict(renamed(reference, table))
    trace = run(model.eval(), SOURCE[0], target=TARGET[0])

    def read(side: str, norm: str, resid: str) -> Tensor:
        return trace[f"{side}.blocks.0.{norm}.out"] if norm_first else trace[f"{side}.blocks.0.{resid}"]

    cases = [
        ("encoder.blocks.0.attn", reference.encoder.layers[0].self_attn, read("encoder", "norm1", "resid_pre"), None),
        ("decoder.blocks.0.attn", reference.decoder.layers[0].self_attn, read("decoder", "norm1", "resid_pre"), None),
        (
            "decoder.blocks.0.cross_attn",
            reference.decoder.layers[0].multihead_attn,
            read("decoder", "norm_cross", "norm1.out"),
            trace["encoder.final_norm.out"],
        ),
    ]
    for name, layer, queries, memory in cases:
        keys = queries if memory is None else memory
        later = torch.ones(queries.shape[1], keys.shape[1], dtype=torch.bool).triu(1)
        with torch.no_grad():
            out, pattern = layer(
                queries,
                keys,
                keys,
                attn_mask=later if name == "decoder.blocks.0.attn" else None,
                average_attn_weights=False,
            )
        torch.testing.assert_close(trace[f"{name}.pattern"], pattern, atol=1e-5, rtol=0)
        torch.testing.assert_close(trace[f"{name}.out"], out, atol=1e-4, rtol=0)
