"""Flow against networkx's maximum flow, and the narrowest cut of graphs small enough to try them all."""

from itertools import product

import networkx as nx
import numpy as np
import pytest
import torch

from engine.analysis.flow import crossed_flow_from, crossed_network, flow, flow_from, flows, network
from engine.analysis.rollout import rollout_across
from engine.budget import budget
from engine.model.config import Encoder
from engine.model.layers.mask import Causal, PaintedMask
from engine.runtime.run import run
from engine.runtime.trace import Trace
from tests.engine import tiny
from tests.engine.twins import twins

MODEL = tiny.model()
TRACE = run(MODEL, tiny.IDS)
COUNT = len(tiny.IDS)


def mixed(trace: Trace, name: str, heads: list[int] | None = None) -> np.ndarray:
    pattern = trace[f"{name}.pattern"][0].double().numpy()
    return 0.5 * (pattern if heads is None else pattern[heads]).mean(0) + 0.5 * np.eye(pattern.shape[-1])


def connected(graph: nx.DiGraph, capacities: np.ndarray, start: str, end: str) -> None:
    for (row, col), capacity in np.ndenumerate(capacities):
        if capacity > 0:
            graph.add_edge((start, row), (end, col), capacity=float(capacity))


def both_stacks(trace: Trace, layers: int) -> nx.DiGraph:
    """The pipes of an encoder-decoder, drawn again from the patterns."""
    graph = nx.DiGraph()
    for layer in range(layers):
        connected(graph, mixed(trace, f"encoder.blocks.{layer}.attn"), f"e{layer + 1}", f"e{layer}")
        connected(graph, mixed(trace, f"decoder.blocks.{layer}.attn"), f"m{layer}", f"d{layer}")
        cross = trace[f"decoder.blocks.{layer}.cross_attn.pattern"][0].double().numpy().mean(0)
        connected(graph, 0.5 * cross, f"d{layer + 1}", f"e{layers}")
        connected(graph, 0.5 * np.eye(len(cross)), f"d{layer + 1}", f"m{layer}")
    return graph


@pytest.mark.parametrize("attention", ["causal", "full"])
def test_flow_is_the_maximum_flow_of_networkx(attention: str) -> None:
    trace = run(tiny.model(tiny.config(attention={"mask": attention})), tiny.IDS)
    graph = nx.DiGraph()
    for layer in range(3):
        connected(graph, mixed(trace, f"blocks.{layer}.attn"), str(layer + 1), str(layer))
    whole = flows(network(trace), 60)
    assert whole is not None
    for pos in (0, 4, 7):
        expected = [
            nx.maximum_flow_value(graph, ("3", pos), ("0", key)) if ("0", key) in graph else 0.0 for key in range(COUNT)
        ]
        assert np.allclose(whole[pos], expected, atol=1e-6)
        assert torch.equal(flow(network(trace), pos), whole[pos])


@pytest.mark.parametrize("kind", ["t5", "bart"])
def test_flow_to_the_source_is_the_maximum_flow_through_both_stacks(kind: str) -> None:
    trace = run(twins(kind)[0].model, [5, 6, 7, 8, 9], target=[3, 4, 5, 7])
    graph = both_stacks(trace, 2)
    whole = flows(crossed_network(trace), 60)
    assert whole is not None and whole.shape == (4, 5)
    for (pos, key), found in np.ndenumerate(whole.numpy()):
        assert found == pytest.approx(nx.maximum_flow_value(graph, ("d2", pos), ("e0", key)), abs=1e-6)


def test_flow_to_the_source_is_its_narrowest_cut() -> None:
    encoder = Encoder(1, tiny.config(attention={"mask": "full"}).attention, tiny.MLP(12))
    model = tiny.model(tiny.config(layers=1, encoder=encoder))
    trace = run(model, [1, 2], target=[3, 4])
    graph = both_stacks(trace, 1)
    inner = [node for node in graph if node not in {("d1", 1), ("e0", 0)}]
    assert len(inner) <= 10
    narrowest = np.inf
    for sides in product([False, True], repeat=len(inner)):
        upper = {("d1", 1), *(node for node, above in zip(inner, sides, strict=True) if above)}
        across = [pipe for pipe in graph.edges if pipe[0] in upper and pipe[1] not in upper]
        narrowest = min(narrowest, sum(graph.edges[pipe]["capacity"] for pipe in across))
    assert float(flow(crossed_network(trace), 1)[0]) == pytest.approx(narrowest, abs=1e-6)


def test_no_less_can_flow_to_the_source_than_is_rolled_out_to_it() -> None:
    trace = run(twins("t5")[0].model, [5, 6, 7, 8, 9], target=[3, 4, 5, 7])
    whole = flows(crossed_network(trace), 60)
    assert whole is not None and bool((whole >= rollout_across(trace).source[-1] - 1e-6).all())


def test_the_flow_of_one_position_of_two_stacks_is_its_row() -> None:
    trace = run(twins("t5")[0].model, [5, 6, 7, 8, 9], target=[3, 4, 5, 7])
    means = [
        [trace[name][0].mean(0) for name in trace if name.startswith(side) and name.endswith(f".{focus}.pattern")]
        for side, focus in (("encoder", "attn"), ("decoder", "attn"), ("decoder", "cross_attn"))
    ]
    for pos in range(4):
        found = crossed_flow_from(means[0], means[1], means[2], pos)
        assert np.allclose(found, flow(crossed_network(trace), pos), atol=1e-6)


def test_a_row_that_sees_nothing_of_the_source_gets_nothing_through_its_own_cross_attention() -> None:
    model = tiny.model(tiny.config(layers=1, encoder=Encoder(1, tiny.CONFIG.attention, tiny.MLP(12))))
    trace = run(model, [1, 2, 3], target=[3, 4])
    cut = run(model, [1, 2, 3], target=[3, 4])
    pattern = cut["decoder.blocks.0.cross_attn.pattern"]
    pattern[:, :, 0] = 0
    assert not flow(crossed_network(cut), 0).any()
    assert flow(crossed_network(trace), 0).any() and flow(crossed_network(cut), 1).any()


def test_the_flow_through_one_layer_is_its_row() -> None:
    found = flow(network(TRACE, start=1, end=2, heads={1: [3]}), 5)
    assert np.allclose(found, mixed(TRACE, "blocks.1.attn", [3])[5], atol=1e-6)


def test_a_position_that_sees_nothing_gets_itself_alone() -> None:
    allowed = torch.ones(COUNT, COUNT, dtype=torch.bool).tril()
    allowed[3] = False
    assert torch.equal(
        flow(network(run(MODEL, tiny.IDS, mask=PaintedMask(allowed) & Causal())), 3), torch.eye(COUNT)[3]
    )


def test_flow_is_refused_where_it_would_take_long(monkeypatch: pytest.MonkeyPatch) -> None:
    assert flows(network(TRACE), 0.0) is None
    edges = 3 * COUNT * (COUNT + 1) // 2
    allowed = edges * COUNT - 1
    monkeypatch.setattr(budget, "flow_work", allowed)
    with pytest.raises(ValueError, match=rf"{edges} weights .* {COUNT} keys.* LOUPE_FLOW_WORK allows {allowed}"):
        flow(network(TRACE), 0)
    assert flows(network(TRACE), 60) is None
    assert len(flow(network(TRACE, end=2), 0)) == COUNT


@pytest.mark.parametrize("attention", ["causal", "full"])
def test_the_flow_of_one_position_is_its_row(attention: str) -> None:
    trace = run(tiny.model(tiny.config(attention={"mask": attention})), tiny.IDS)
    averages = [trace[f"blocks.{layer}.attn.pattern"][0].mean(0) for layer in range(3)]
    pipes = network(trace)
    for pos in range(COUNT):
        assert np.allclose(flow_from(averages, pos), flow(pipes, pos), atol=1e-6)


def test_an_early_position_is_not_refused_for_the_text_behind_it(monkeypatch: pytest.MonkeyPatch) -> None:
    averages = [TRACE[f"blocks.{layer}.attn.pattern"][0].mean(0) for layer in range(3)]
    monkeypatch.setattr(budget, "flow_work", 300)
    assert np.allclose(flow_from(averages, 2)[3:], 0) and float(flow_from(averages, 2)[:3].min()) > 0
    with pytest.raises(ValueError, match="LOUPE_FLOW_WORK"):
        flow_from(averages, 7)


def test_a_position_outside_is_refused() -> None:
    with pytest.raises(ValueError, match="must be in 0..7, got 8"):
        flow(network(TRACE), COUNT)
