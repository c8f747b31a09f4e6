import math
from dataclasses import replace

import pytest
import torch
from torch import nn

from engine.model.config import Attention, Encoder, Norm
from engine.model.transformer import Transformer, initialise
from engine.runtime.run import run
from tests.engine import tiny


def test_a_tied_head_reads_with_the_embedding_and_has_no_weight_of_its_own() -> None:
    tied, untied = tiny.model(), tiny.model(tiny.config(tied=False))
    assert "head.weight" not in tied.state_dict()
    for model, weight in ((tied, tied.embed.tokens.weight), (untied, untied.head.weight)):
        trace = run(model, tiny.IDS)
        torch.testing.assert_close(trace["logits"], trace["final_norm.out"] @ weight.T, atol=1e-5, rtol=0)


@pytest.mark.parametrize("positions", tiny.POSITIONS)
def test_the_first_stream_is_the_token_plus_what_its_position_adds(positions: str) -> None:
    model = tiny.model(tiny.config(positions))
    trace = run(model, [tiny.IDS, tiny.IDS])
    expected = model.embed.tokens.weight[trace.ids]
    assert torch.equal(trace["embed.tokens"], expected)
    if positions == "learned":
        expected = expected + model.embed.positions.weight[:8]
    if positions in ("learned", "sinusoidal"):
        expected = trace["embed.tokens"] + trace["embed.positions"]
    else:
        assert "embed.positions" not in trace.hooks
    assert torch.equal(trace["blocks.0.resid_pre"], expected)


def test_a_model_without_layers_reads_out_its_embedding() -> None:
    model = tiny.model(tiny.config(layers=0))
    trace = run(model, tiny.IDS)
    assert list(trace) == ["embed.tokens", "embed.positions", "final_norm.scale", "final_norm.out", "logits"]
    assert torch.equal(run(model, tiny.IDS, base=trace)["logits"], trace["logits"])


def test_on_the_meta_device_a_model_takes_no_memory_whatever_its_size() -> None:
    with torch.device("meta"):
        model = Transformer(tiny.config("rotary", d_model=2**20, vocab_size=2**20, context=2**30))
    assert all(parameter.is_meta for parameter in model.parameters())
    assert sum(buffer.nbytes for buffer in model.buffers() if not buffer.is_meta) < 2**22


def test_weights_start_as_wide_as_the_model_says_and_the_same_for_the_same_seed() -> None:
    config = tiny.config(d_model=256, vocab_size=500, layers=2, mlp=tiny.MLP(512))
    model, again, other = (initialise(Transformer(config), seed) for seed in (1, 1, 2))
    for name, parameter in model.named_parameters():
        assert torch.equal(parameter, again.get_parameter(name)), name
        if name.endswith("bias"):
            assert not parameter.any(), name
        elif "norm" in name:
            assert (parameter == 1).all(), name
        else:
            assert not torch.equal(parameter, other.get_parameter(name)), name
            shrink = math.sqrt(2 * 2) if name.endswith(("attn.out.weight", "mlp.out.weight")) else 1
            assert parameter.std().item() == pytest.approx(256**-0.5 / shrink, rel=0.05), name


def test_a_t5_starts_as_wide_as_in_its_own_code() -> None:
    """As `T5PreTrainedModel._init_weights` of transformers has it: scores begin as those of others do."""
    attention = Attention(4, bias=False, out_bias=False, scale=1.0)
    config = replace(
        tiny.config("relative", d_model=256, vocab_size=500, norm=Norm("rms")),
        attention=attention,
        encoder=Encoder(2, replace(attention, mask="full"), tiny.MLP(512)),
    )
    model = initialise(Transformer(config), 0)
    for name, parameter in model.named_parameters():
        if name.endswith("attn.q.weight"):
            assert parameter.std().item() == pytest.approx((256 * 64) ** -0.5, rel=0.05), name
        if name.endswith(("attn.k.weight", "attn.v.weight")):
            assert parameter.std().item() == pytest.approx(256**-0.5, rel=0.05), name


def test_half_precision_keeps_exact_positions() -> None:
    model = tiny.model(tiny.config("rotary"))
    half = Transformer(model.config).eval()
    state = {name: tensor.bfloat16() for name, tensor in model.state_dict().items()}
    half.load_state_dict(state, assign=True)
    assert half.dtype == torch.bfloat16
    trace = run(half, tiny.IDS)
    assert trace["blocks.0.attn.q_rotated"].dtype == torch.bfloat16
    torch.testing.assert_close(
        trace["blocks.0.attn.q_rotated"].float(),
        run(model, tiny.IDS)["blocks.0.attn.q_rotated"],
        atol=0.1,
        rtol=0.05,
    )


def test_a_dropped_out_model_in_training_gives_gradients_to_every_parameter() -> None:
    model = tiny.model(tiny.config("learned", dropout=0.1, tied=False)).train().requires_grad_(True)
    model(torch.tensor([tiny.IDS])).logsumexp(-1).sum().backward()
    unmoved = [n for n, p in model.named_parameters() if p.grad is None or not p.grad.any()]
    assert [n for n in unmoved if not n.endswith("attn.k.bias")] == []  # softmax does not see a shift of all keys


def test_post_norm_blocks_equal_pytorchs_own() -> None:
    config = tiny.config(
        "sinusoidal",
        attention={"mask": "full"},
        norm=tiny.Norm(place="after"),
        mlp=tiny.MLP(20, activation="relu"),
    )
    model = tiny.model(config)
    trace = run(model, tiny.IDS)
    stream = trace["blocks.0.resid_pre"]
    for layer, block in enumerate(model.blocks):
        theirs = nn.TransformerEncoderLayer(16, 4, 20, 0.0, batch_first=True).eval().requires_grad_(False)
        copied = {
            "self_attn.in_proj_weight": torch.cat([block.attn.q.weight, block.attn.k.weight, block.attn.v.weight]),
            "self_attn.in_proj_bias": torch.cat([block.attn.q.bias, block.attn.k.bias, block.attn.v.bias]),
        }
        names = {"self_attn.out_proj": "attn.out", "linear1": "mlp.pre", "linear2": "mlp.out"}
        for name, ours in (names | {"norm1": "norm1", "norm2": "norm2"}).items():
            part = block.get_submodule(ours)
            copied |= {f"{name}.weight": part.weight, f"{name}.bias": part.bias}
        theirs.load_state_dict(copied)
        stream = theirs(stream)
        torch.testing.assert_close(trace[f"blocks.{layer}.norm2.out"], stream, atol=1e-4, rtol=0)
