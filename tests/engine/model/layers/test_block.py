import pytest
import torch
from torch.nn import functional

from engine.runtime.run import run
from tests.engine import tiny

CLOSE = {"atol": 1e-5, "rtol": 0}


def test_each_sublayer_reads_the_normed_stream_and_adds_to_it() -> None:
    trace = run(tiny.model(), tiny.IDS)
    for layer in range(3):
        name = f"blocks.{layer}."
        torch.testing.assert_close(
            trace[name + "resid_mid"], trace[name + "resid_pre"] + trace[name + "attn.out"], **CLOSE
        )
        torch.testing.assert_close(
            trace[name + "resid_post"], trace[name + "resid_mid"] + trace[name + "mlp.out"], **CLOSE
        )
        if layer:
            assert torch.equal(trace[name + "resid_pre"], trace[f"blocks.{layer - 1}.resid_post"])


def test_without_residual_connections_the_stream_is_what_the_sublayer_wrote() -> None:
    trace = run(tiny.model(tiny.config(residual=False)), tiny.IDS)
    assert torch.equal(trace["blocks.1.resid_mid"], trace["blocks.1.attn.out"])
    assert torch.equal(trace["blocks.1.resid_post"], trace["blocks.1.mlp.out"])


def test_with_the_norm_after_sublayers_read_the_stream_and_the_sum_is_normed() -> None:
    model = tiny.model(tiny.config(norm=tiny.Norm(place="after")))
    trace = run(model, tiny.IDS)
    block = model.blocks[1].attn
    assert torch.equal(trace["blocks.1.resid_pre"], trace["blocks.0.norm2.out"])
    q = block.q(trace["blocks.1.resid_pre"]).unflatten(-1, (4, 4))
    torch.testing.assert_close(trace["blocks.1.attn.q"], q, **CLOSE)
    total = trace["blocks.1.norm1.out"] + trace["blocks.1.mlp.out"]
    torch.testing.assert_close(trace["blocks.1.resid_post"], total, **CLOSE)
    assert "final_norm.out" not in trace.hooks
    logits = trace["blocks.2.norm2.out"] @ model.embed.tokens.weight.T
    torch.testing.assert_close(trace["logits"], logits, **CLOSE)


def test_an_attention_only_block_has_no_second_norm_and_no_mlp() -> None:
    model = tiny.model(tiny.config(mlp=None))
    trace = run(model, tiny.IDS)
    assert not [name for name in trace if "mlp" in name or "norm2" in name]
    assert torch.equal(trace["blocks.1.resid_pre"], trace["blocks.0.resid_mid"])


@pytest.mark.parametrize("gated", [False, True])
@pytest.mark.parametrize("activation", ["relu", "relu2", "gelu", "gelu_tanh", "silu"])
def test_the_mlp_is_its_activation_between_two_projections(activation: str, gated: bool) -> None:
    model = tiny.model(tiny.config(mlp=tiny.MLP(12, activation=activation, gated=gated, bias=False)))
    trace = run(model, tiny.IDS)
    x, mlp = trace["blocks.0.norm2.out"], model.blocks[0].mlp
    pre = x @ mlp.pre.weight.T
    post = {
        "relu": pre.clamp(min=0),
        "relu2": pre.clamp(min=0) ** 2,
        "gelu": pre * 0.5 * (1 + torch.erf(pre / 2**0.5)),
        "gelu_tanh": pre * 0.5 * (1 + torch.tanh((2 / torch.pi) ** 0.5 * (pre + 0.044715 * pre**3))),
        "silu": pre * torch.sigmoid(pre),
    }[activation]
    if gated:
        post = post * (x @ mlp.up.weight.T)
    torch.testing.assert_close(trace["blocks.0.mlp.pre"], pre, **CLOSE)
    torch.testing.assert_close(trace["blocks.0.mlp.post"], post, **CLOSE)
    torch.testing.assert_close(trace["blocks.0.mlp.out"], functional.linear(post, mlp.out.weight), **CLOSE)
