import pytest
import torch
from torch._dynamo.utils import counters

from engine.model.config import Positions
from engine.runtime.run import run
from tests.engine import tiny

pytestmark = pytest.mark.long


@pytest.fixture(autouse=True)
def fresh() -> None:
    torch._dynamo.reset()
    counters.clear()


@pytest.mark.parametrize(
    "config",
    [
        tiny.CONFIG,
        tiny.config("rotary", attention={"kv_heads": 2, "window": 3}, mlp=tiny.MLP(8, gated=True)),
        tiny.config("alibi"),
        tiny.config(Positions("disentangled", buckets=4, farthest=6, normed=True)),
        tiny.config("sinusoidal", norm=tiny.Norm("rms", "after")),
    ],
    ids=["gpt", "rotary", "alibi", "disentangled", "sinusoidal"],
)
def test_hooks_are_invisible_to_the_compiler(config) -> None:
    model = tiny.model(config)
    ids = torch.tensor([tiny.IDS])
    expected = model(ids)
    compiled = torch.compile(model, fullgraph=True, backend="eager")
    torch.testing.assert_close(compiled(ids), expected, atol=1e-5, rtol=0)
    assert not counters["graph_break"]
    assert counters["stats"]["unique_graphs"] == 1


def test_compiling_for_training_gives_the_same_gradients() -> None:
    model = tiny.model().train().requires_grad_(True)
    ids = torch.tensor([tiny.IDS])
    gradients = []
    for forward in (model, torch.compile(model, fullgraph=True, backend="aot_eager")):
        model.zero_grad()
        forward(ids).logsumexp(-1).sum().backward()
        gradients.append([parameter.grad.clone() for parameter in model.parameters()])
    for eager, compiled in zip(*gradients, strict=True):
        torch.testing.assert_close(compiled, eager, atol=1e-3, rtol=1e-4)


def test_a_compiled_model_does_not_stop_its_original_from_being_looked_into() -> None:
    model = tiny.model()
    ids = torch.tensor([tiny.IDS])
    torch.compile(model, backend="eager")(ids)
    assert run(model, ids)["blocks.0.attn.pattern"].shape == (1, 4, 8, 8)
