"""Low-rank adapters as a mechanism: drawn, used, merged, refused; never on the model that threads share."""

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import replace
from threading import Barrier

import pytest
import torch
from torch import Tensor

from engine.model.config import Encoder, ModelConfig
from engine.model.hooks import active
from engine.model.layers.lora import AdaptedRun, Adapter, find_targets, list_linears, merge, new_adapter
from engine.model.transformer import Transformer
from tests.engine import tiny

IDS = torch.tensor([tiny.IDS])
PAIR = replace(tiny.CONFIG, encoder=Encoder(2, tiny.CONFIG.attention, tiny.CONFIG.mlp))
CONFIGS: dict[str, ModelConfig] = {
    "gpt": tiny.CONFIG,
    "grouped, gated": tiny.config("rotary", {"kv_heads": 2}, mlp=tiny.MLP(20, gated=True)),
    "tied blocks": tiny.config(distinct=1),
    "pair": PAIR,
}


def random_adapter(model: Transformer, *targets: str, seed: int = 0, rank: int = 3, **options) -> Adapter:
    """One whose B is random too."""
    made = new_adapter(model, targets or ("*",), rank, 6.0, seed=seed, **options)
    matrices = {n: (a, tiny.normal(*b.shape, seed=seed + i) / 8) for i, (n, (a, b)) in enumerate(made.matrices.items())}
    return replace(made, matrices=matrices)


def adapted(adapters: Mapping[Adapter, float]) -> AbstractContextManager[None]:
    """Forward passes in this context see the adapters, each with its strength."""
    return active(AdaptedRun(adapters, torch.device("cpu")))


def by_hand(model: Transformer, adapter: Adapter, strength: float = 1.0) -> Tensor:
    """Logits of a model whose weights are W + strength alpha / rank B A, written without the engine's help."""
    state = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    for name, (a, b) in adapter.matrices.items():
        state[f"{name}.weight"] += strength * adapter.alpha / len(a) * b @ a
    other = tiny.model(model.config)
    other.load_state_dict(state)
    return other(IDS)


@pytest.mark.parametrize("kind", CONFIGS)
def test_an_adapter_adds_scale_b_a_and_merging_does_the_same(kind: str) -> None:
    model = tiny.model(CONFIGS[kind])
    adapter, plain = random_adapter(model), model(IDS)
    with adapted({adapter: 0.7}):
        used = model(IDS)
    assert not torch.allclose(used, plain, atol=1e-2)
    torch.testing.assert_close(used, by_hand(model, adapter, 0.7), atol=1e-5, rtol=1e-5)
    merged = merge(model, {adapter: 0.7})
    torch.testing.assert_close(merged(IDS), used, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(model(IDS), plain, atol=0, rtol=0)
    back = merge(merged, {adapter: -0.7})
    for name, tensor in model.state_dict().items():
        torch.testing.assert_close(back.state_dict()[name], tensor, atol=1e-6, rtol=0)
        untouched = name.removesuffix(".weight") not in adapter.matrices
        assert (merged.state_dict()[name].data_ptr() == tensor.data_ptr()) == untouched


def test_a_new_adapter_is_drawn_as_peft_draws_and_changes_nothing() -> None:
    model = tiny.model()
    adapter = new_adapter(model, ["attn.q", "blocks.[02].mlp.*"], rank=4, alpha=16)
    assert list(adapter.matrices) == [
        "blocks.0.attn.q", "blocks.0.mlp.pre", "blocks.0.mlp.out", "blocks.1.attn.q",
        "blocks.2.attn.q", "blocks.2.mlp.pre", "blocks.2.mlp.out",
    ]  # fmt: skip
    a, b = adapter.matrices["blocks.0.mlp.out"]
    assert a.shape == (4, 20)
    assert b.shape == (16, 4)
    assert not b.any()
    assert 0.9 * 20**-0.5 < a.abs().max() <= 20**-0.5
    assert (adapter.rank, adapter.scale_of("blocks.1.attn.q")) == (4, 4.0)
    assert replace(adapter, rank_stabilised=True).scale_of("blocks.1.attn.q") == 8.0
    with adapted({adapter: 1.0}):
        torch.testing.assert_close(model(IDS), model(IDS), atol=0, rtol=0)


def test_blocks_that_share_their_tensors_have_one_adapter() -> None:
    names = list(list_linears(tiny.model(CONFIGS["tied blocks"])))
    assert names == [f"blocks.0.{part}" for part in ("attn.q", "attn.k", "attn.v", "attn.out", "mlp.pre", "mlp.out")]
    assert "decoder.blocks.0.cross_attn.q" in find_targets(tiny.model(PAIR), ["cross_attn.q"])
    assert all("cross" not in name for name in find_targets(tiny.model(PAIR), ["attn.q"]))


def test_what_does_not_fit_is_refused_with_what_would() -> None:
    model, wide = tiny.model(), tiny.model(replace(tiny.CONFIG, d_model=24, attention=tiny.Attention(heads=6)))
    with pytest.raises(ValueError, match=r"no linear map is called 'c_attn'; this model has blocks.\{0-2\}.attn.q, "):
        new_adapter(model, ["c_attn"])
    with pytest.raises(ValueError, match=r"the rank at blocks.0.mlp.pre \(20 x 16\) must lie in 1..16, got 17"):
        new_adapter(model, ["mlp.pre"], rank=17)
    with pytest.raises(ValueError, match=r"maps 24 numbers to 24 at blocks.0.attn.q, and the model maps 16 to 16"):
        merge(model, {new_adapter(wide, ["attn.q"]): 1.0})
    with pytest.raises(ValueError, match=r"acts on 'blocks.0.mlp.up', and this model has blocks"):
        merge(model, {new_adapter(tiny.model(CONFIGS["grouped, gated"]), ["mlp.up"]): 1.0})
    with pytest.raises(ValueError, match="rank x in and out x rank, got 3 x 16 and 16 x 2"):
        Adapter("x", {"blocks.0.attn.q": (torch.ones(3, 16), torch.ones(16, 2))}, 1.0)


def test_a_shared_matrix_is_one_parameter_and_dropout_is_of_training_alone() -> None:
    model = tiny.model().train()
    adapter = random_adapter(model, "attn.q", "attn.k", dropout=0.5)
    shared = adapter.matrices["blocks.0.attn.q"][0]
    matrices = {name: (shared, b) for name, (_, b) in adapter.matrices.items()}
    learned = replace(adapter, matrices=matrices).trainable()
    assert len(learned.tensors) == 1 + len(matrices)
    with adapted({learned: 1.0}):
        one, other = model(IDS), model(IDS)
        assert not torch.allclose(one, other)
        one.logsumexp(-1).sum().backward()
        model.eval()
        torch.testing.assert_close(model(IDS), model(IDS), atol=0, rtol=0)
    assert all(tensor.grad is not None and tensor.grad.any() for tensor in learned.tensors)
    assert all(parameter.grad is None for parameter in model.parameters())


def test_threads_that_share_a_model_do_not_see_each_others_adapters() -> None:
    model = tiny.model()
    adapters = [random_adapter(model, seed=seed) for seed in (0, 50)]
    expected, together = [by_hand(model, adapter) for adapter in adapters], Barrier(3)

    def work(adapter: Adapter | None, logits: Tensor) -> None:
        for _ in range(30):
            together.wait()
            with adapted({} if adapter is None else {adapter: 1.0}):
                torch.testing.assert_close(model(IDS), logits, atol=1e-5, rtol=1e-5)

    with ThreadPoolExecutor(3) as pool:
        list(pool.map(work, (*adapters, None), (*expected, model(IDS))))


@pytest.mark.long
def test_the_compiler_does_not_see_it() -> None:
    model = tiny.model()
    compiled, plain = torch.compile(model, fullgraph=True, backend="eager"), model(IDS)
    with adapted({random_adapter(model): 1.0}):
        torch.testing.assert_close(compiled(IDS), plain, atol=1e-5, rtol=0)
