"""Product quantization: its scores are those of the decoded states, and its recall and its costs are counted."""

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode

from engine.attention_variants import quantize
from engine.attention_variants.measure import PeakBytes
from engine.attention_variants.nearest import exact
from engine.attention_variants.quantize import (
    Index,
    Settings,
    allocate,
    assign,
    build,
    kmeans,
    metric,
    recall,
    search_cost,
)

D = 16


def drawn(count: int, seed: int = 0) -> Tensor:
    """Clustered, and with some directions far larger than others, as states are."""
    chance = torch.Generator().manual_seed(seed)
    centers = torch.randn(20, D, generator=torch.Generator().manual_seed(99)) * torch.linspace(3, 0.3, D)
    return centers[torch.randint(20, (count,), generator=chance)] + 0.5 * torch.randn(count, D, generator=chance)


def approximations(index: Index) -> Tensor:
    """What the codes say of every state, decoded piece by piece, in the index's coordinates: key d_model."""
    decoded = torch.zeros(len(index.states), D)
    for number, centroid in enumerate(index.centroids):
        for row in range(index.starts[number], index.starts[number + 1]):
            pieces = [index.codebooks[m, int(code)] for m, code in enumerate(index.codes[row])]
            decoded[index.keys[row]] = centroid + torch.cat(pieces)
    return decoded


def test_with_all_lists_visited_scores_are_inner_products_with_the_decoded_states() -> None:
    states, queries = drawn(300), drawn(40, seed=1)
    index = build(states, Settings(4, 32, 8, probes=8, rerank=0), queries)
    scores, keys = index.search(queries, 5)
    reference = queries @ index.metric.to_query @ approximations(index).T
    torch.testing.assert_close(scores, reference.topk(5).values, atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(scores, reference.gather(1, keys), atol=1e-4, rtol=1e-4)
    assert all(len(set(row)) == 5 for row in keys.tolist())


def test_only_members_of_the_lists_visited_are_found() -> None:
    states, queries = drawn(300), drawn(40, seed=1)
    index = build(states, Settings(4, 32, 10, probes=2, rerank=0))
    lists = torch.empty(300, dtype=torch.long)
    for number in range(10):
        lists[index.keys[index.starts[number] : index.starts[number + 1]]] = number
    visited = (queries @ index.metric.to_query @ index.centroids.T).topk(2).indices
    _, keys = index.search(queries, 5)
    for row, seen in zip(keys, visited, strict=True):
        assert set(lists[row[row >= 0]].tolist()) <= set(seen.tolist())
    sizes = torch.bincount(lists, minlength=10)
    assert torch.equal(index.candidates(queries), sizes[visited].sum(1))


def test_compared_again_scores_are_exact_and_with_everything_compared_so_is_the_search() -> None:
    states, queries = drawn(200), drawn(30, seed=2)
    scores, keys = build(states, Settings(4, 16, 8, probes=3, rerank=2)).search(queries, 4)
    torch.testing.assert_close(scores, (queries[:, None] * states[keys]).sum(-1), atol=1e-4, rtol=1e-5)
    everything = build(states, Settings(4, 4, 8, probes=8, rerank=50)).search(queries, 4)
    assert torch.equal(everything[1], exact(queries, states, 4)[1])


def test_batches_of_queries_and_of_visits_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    states, queries = drawn(200), drawn(30, seed=2)
    index = build(states, Settings(4, 16, 8, probes=3, rerank=2))
    whole = index.search(queries, 4)
    monkeypatch.setattr(quantize, "QUERIES", 7)
    monkeypatch.setattr(quantize, "VISITS", 2)
    monkeypatch.setattr(quantize, "GATHERED", 3)
    parts = index.search(queries, 4)
    torch.testing.assert_close(parts[0], whole[0])
    assert torch.equal(parts[1], whole[1])


@pytest.mark.parametrize("rerank", [0, 3])
def test_what_a_query_may_not_see_is_not_found(rerank: int) -> None:
    states = drawn(200)
    index = build(states, Settings(4, 16, 8, probes=8, rerank=rerank))
    visible = torch.arange(200) + 1
    scores, keys = index.search(states, 6, visible)
    assert (keys < visible[:, None]).all()
    assert (keys[0] >= 0).sum() == 1 and scores[0, 1:].eq(-torch.inf).all()
    assert (keys[100] >= 0).all()


def test_the_same_seed_gives_the_same_index_and_another_one_another() -> None:
    states = drawn(400)
    first, again, other = (build(states, Settings(4, 16, 8), seed=seed) for seed in (0, 0, 1))
    assert torch.equal(first.codes, again.codes) and torch.equal(first.codebooks, again.codebooks)
    assert not torch.equal(first.codebooks, other.codebooks)


def test_recall_counts_those_of_the_true_that_were_found() -> None:
    true = torch.tensor([[1, 2, 3], [4, 5, 6]])
    assert recall(true.flip(-1), true) == 1
    assert recall(torch.tensor([[1, 9, -1], [6, 4, 0]]), true) == pytest.approx(3 / 6)


def test_more_bytes_and_more_visits_find_more() -> None:
    states, queries = drawn(3000), drawn(200, seed=3)
    true = exact(queries, states, 8)[1]

    def found(*settings: int) -> float:
        return recall(build(states, Settings(*settings), queries).search(queries, 8)[1], true)

    assert found(2, 16, 32, 4, 0) < found(8, 16, 32, 4, 0) < found(8, 64, 32, 4, 0)
    assert found(8, 64, 32, 1, 0) < found(8, 64, 32, 4, 0) <= found(8, 64, 32, 4, 8)
    assert found(8, 64, 32, 32, 8) > 0.95


def test_knowing_the_queries_finds_more_of_what_they_look_for() -> None:
    states = torch.randn(2000, D, generator=torch.Generator().manual_seed(5))
    narrow = torch.randn(300, D, generator=torch.Generator().manual_seed(6)) * torch.logspace(0, -2, D)
    true = exact(narrow, states, 8)[1]
    settings = Settings(4, 16, 16, 16, 0)
    blind, knowing = build(states, settings), build(states, settings, narrow)
    assert recall(knowing.search(narrow, 8)[1], true) > recall(blind.search(narrow, 8)[1], true) + 0.1


def test_the_metric_keeps_inner_products() -> None:
    states, queries = drawn(100), drawn(50, seed=4)
    for known in (queries, None):
        found = metric(states, known, 4)
        product = (queries @ found.to_query) @ (states @ found.to_state).T
        torch.testing.assert_close(product, queries @ states.T, atol=1e-2, rtol=1e-3)


def test_variances_are_dealt_so_that_their_products_are_alike() -> None:
    variance = torch.tensor([64.0, 32.0, 16.0, 8.0, 4.0, 2.0, 1.0, 0.5])
    dealt = variance[allocate(variance, 2)].view(2, 4)
    assert sorted(allocate(variance, 2)) == list(range(8))
    ratio = (dealt[0].prod() / dealt[1].prod()).log2().abs()
    assert ratio <= 1 < (variance[:4].prod() / variance[4:].prod()).log2()


def test_bytes_are_those_of_the_tensors() -> None:
    index = build(drawn(500), Settings(4, 16, 8))
    assert index.bytes["codes"] == index.codes.nbytes == 500 * 4
    assert index.bytes["keys"] == index.keys.nbytes
    assert index.bytes["codebooks"] == index.codebooks.nbytes
    assert index.bytes["centroids"] == index.centroids.nbytes
    assert index.bytes["metric"] == index.metric.to_query.nbytes


def test_the_cost_of_a_search_is_its_formula() -> None:
    states, queries, settings = drawn(2000), drawn(900, seed=1), Settings(8, 32, 16, 4, 2)
    index = build(states, settings)
    formula = search_cost(900, 2000, 1, D, 4, settings, index.candidates(queries).float().mean().item())
    with FlopCounterMode(display=False) as flop:
        index.search(queries, 4)
    assert flop.get_total_flops() // 2 == formula.multiply_adds
    assert formula.lookups == index.candidates(queries).sum().item() * 8
    with PeakBytes() as seen:
        index.search(queries, 4)
    assert 0.8 * formula.bytes < seen.peak < 2.5 * formula.bytes


def test_kmeans_is_as_good_as_scikit_learns() -> None:
    from sklearn.cluster import KMeans

    points = torch.stack([drawn(600, seed=seed) for seed in (0, 1)])
    centroids = kmeans(points, 20, seed=0, iterations=40)
    for given, found in zip(points, centroids, strict=True):
        nearest = assign(given[None], found[None])[0]
        distances = torch.cdist(given, found)
        torch.testing.assert_close(distances.gather(1, nearest[:, None]).squeeze(1), distances.amin(1))
        inertia = distances.amin(1).square().sum().item()
        reference = KMeans(20, init="random", n_init=3, random_state=0).fit(given.numpy()).inertia_
        assert inertia < 1.3 * reference


def test_a_cluster_that_loses_its_points_finds_others() -> None:
    points = torch.cat([torch.zeros(50, 2), torch.tensor([[9.0, 9.0], [-9.0, 4.0]])])[None]
    centroids = kmeans(points, 3, seed=0)
    assert np.isclose(torch.cdist(points[0], centroids[0]).amin(1).sum().item(), 0, atol=1e-5)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Settings(codes=257), "codes must be in 1..256, got 257"),
        (lambda: Settings(probes=0), "at least 1"),
        (lambda: build(drawn(50), Settings(3)), "must divide d_model = 16, got 3"),
        (lambda: kmeans(drawn(5)[None], 6, 0), "in 1..5, the number of points, got 6"),
    ],
)
def test_settings_that_cannot_be_are_one_sentence(make, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


def test_a_short_text_has_no_more_lists_and_codes_than_it_fills() -> None:
    assert Settings(32, 256, 64, 16).fit_to(80) == Settings(32, 20, 10, 10)
