"""Attention to the k nearest states equals dense attention masked to its k largest scores."""

import pytest
import torch
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from engine.attention_variants import nearest
from engine.attention_variants.heads import Heads
from engine.attention_variants.material import encode_in_chunks
from engine.attention_variants.measure import PeakBytes
from engine.attention_variants.nearest import attend_cost, exact, exact_cost, fold, nearest_attention
from engine.model.layers.softmax import softmax

HEADS, D_HEAD, D_MODEL = 3, 8, 24


def drawn(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def heads() -> Heads:
    weights = [drawn(HEADS, D_HEAD, D_MODEL, seed=seed) for seed in (1, 2, 3)]
    biases = [10 * drawn(HEADS, D_HEAD, seed=seed) for seed in (4, 5, 6)]  # large: what they must not change shows
    return Heads(*(tensor for pair in zip(weights, biases, strict=True) for tensor in pair))


def constant(q: Tensor, b_k: Tensor) -> Tensor:
    """q . b_K: what folding leaves out of every score of a query, head pos 1."""
    return q @ b_k[..., None]


def dense(x: Tensor, states: Tensor, k: int, visible: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Through W_Q, W_K and W_V with their biases, all scores, all but the k largest of a row masked: pattern and z."""
    h = heads()
    q, key, value = (
        torch.einsum("nm,hdm->hnd", given, w) + b[:, None]
        for given, w, b in ((x, h.w_q, h.b_q), (states, h.w_k, h.b_k), (states, h.w_v, h.b_v))
    )
    scores = q @ key.transpose(-1, -2) / D_HEAD**0.5
    if visible is not None:
        scores = scores.masked_fill(torch.arange(len(states)) >= visible[:, None], -torch.inf)
    least = scores.topk(k).values[..., -1:]
    pattern = scores.masked_fill(scores < least, -torch.inf).softmax(-1)
    return pattern, pattern @ value


@pytest.mark.parametrize("k", [1, 5, 40])
def test_the_pattern_is_the_dense_one_masked_to_its_largest_scores(k: int) -> None:
    x, states = drawn(9, D_MODEL), drawn(40, D_MODEL, seed=7)
    found = nearest_attention(heads().queries(x), states, heads(), k)
    pattern, z = dense(x, states, k)
    torch.testing.assert_close(found.dense(40), pattern, atol=1e-5, rtol=0)
    torch.testing.assert_close(found.z, z, atol=1e-4, rtol=1e-5)
    assert found.keys.shape == (HEADS, 9, k)


def test_tiles_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    queries, states = drawn(50, D_MODEL), drawn(301, D_MODEL, seed=1)
    visible = torch.arange(50) * 6 + 1
    whole, seen = exact(queries, states, 7), exact(queries, states, 7, visible)
    monkeypatch.setattr(nearest, "QUERIES", 8)
    monkeypatch.setattr(nearest, "KEYS", 5)
    monkeypatch.setattr(nearest, "GATHERED", 3)
    for expected, given in ((whole, None), (seen, visible)):
        scores, keys = exact(queries, states, 7, given)
        assert torch.equal(keys, expected[1])
        torch.testing.assert_close(scores, expected[0])
    reference = (queries @ states.T).masked_fill(torch.arange(301) >= visible[:, None], -torch.inf).topk(7)
    torch.testing.assert_close(seen[0], reference.values)
    assert torch.equal(seen[1], reference.indices.masked_fill(reference.values == -torch.inf, -1))


def test_one_index_of_raw_states_answers_every_head() -> None:
    x, states, h = drawn(6, D_MODEL), drawn(30, D_MODEL, seed=2), heads()
    q = h.queries(x)
    folded = fold(q, h.w_k) @ states.T + constant(q, h.b_k)
    torch.testing.assert_close(folded, q @ h.keys(states).mT, atol=1e-3, rtol=1e-5)


def test_the_key_bias_moves_scores_but_neither_their_order_nor_the_softmax() -> None:
    x, states, h = drawn(6, D_MODEL), drawn(30, D_MODEL, seed=2), heads()
    q = h.queries(x)
    scores, shift = fold(q, h.w_k) @ states.T, constant(q, h.b_k)
    assert shift.abs().min() > 0.1
    assert torch.equal((scores + shift).argsort(-1), scores.argsort(-1))
    torch.testing.assert_close((scores + shift).softmax(-1), scores.softmax(-1), atol=1e-4, rtol=1e-3)
    sink = torch.zeros_like(shift)  # an entry that has not got the constant: now it does change the pattern
    with_sink = [torch.cat([part, sink], -1).softmax(-1) for part in (scores, scores + shift)]
    assert (with_sink[0] - with_sink[1]).abs().max() > 0.1


def test_a_query_that_sees_nothing_gets_nothing() -> None:
    states, h = drawn(10, D_MODEL), heads()
    q = h.queries(drawn(2, D_MODEL, seed=3))
    visible = torch.tensor([0, 10]).repeat(HEADS)
    found = nearest_attention(q, states, h, 4, lambda queries, k: exact(queries, states, k, visible))
    assert found.keys[:, 0].eq(-1).all()
    assert found.pattern[:, 0].eq(0).all() and found.z[:, 0].eq(0).all()
    torch.testing.assert_close(found.pattern[:, 1].sum(-1), torch.ones(HEADS))
    assert found.dense(10)[:, 0].eq(0).all()


def test_no_nearest_state_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 1 nearest state, got k = 0"):
        nearest_attention(drawn(HEADS, 2, D_HEAD), drawn(5, D_MODEL), heads(), 0)


def test_more_states_asked_for_than_there_are_gives_all() -> None:
    scores, keys = exact(drawn(3, D_MODEL), drawn(5, D_MODEL), 9)
    assert scores.shape == (3, 5)
    assert keys.sort(-1).values.tolist() == [[0, 1, 2, 3, 4]] * 3


def test_costs_are_those_counted() -> None:
    h, states = heads(), drawn(2000, D_MODEL)
    q = h.queries(states[:600])
    folded = fold(q, h.w_k).flatten(0, 1)
    search, attend = exact_cost(600, 2000, HEADS, D_MODEL, 4), attend_cost(600, HEADS, D_HEAD, D_MODEL, 4)
    with FlopCounterMode(display=False) as flop:
        nearest_attention(q, states, h, 4)
    assert flop.get_total_flops() // 2 == search.multiply_adds + attend.multiply_adds
    with PeakBytes() as seen:
        keys = exact(folded, states, 4)[1]
    assert search.bytes <= seen.peak < 1.1 * search.bytes
    with PeakBytes() as seen:
        nearest_attention(q, states, h, 4, lambda *_: (keys, keys.clone()))
    assert 0.95 * attend.bytes < seen.peak < 1.2 * attend.bytes


def test_shared_key_heads_are_given_to_every_head_of_their_group() -> None:
    layer = nn.Module()
    layer.q, layer.k, layer.v = nn.Linear(24, 32), nn.Linear(24, 16, bias=False), nn.Linear(24, 16)
    h, x = Heads.from_layer(layer, heads=4), drawn(5, 24)
    with torch.no_grad():
        torch.testing.assert_close(h.queries(x).transpose(0, 1).flatten(1), layer.q(x))
        keys = layer.k(x).unflatten(-1, (2, 8)).transpose(0, 1)
        torch.testing.assert_close(h.keys(x), keys[[0, 0, 1, 1]])
        torch.testing.assert_close(h.values(x)[3], layer.v(x)[:, 8:])


@pytest.mark.parametrize("length", [1, 5, 8, 9, 12, 13, 40, 200])
def test_a_state_comes_from_the_middle_of_its_chunk(length: int) -> None:
    context, ids = 8, torch.arange(length)

    def encode(chunk: Tensor) -> Tensor:
        """Each token, and how far it is from both ends of its chunk."""
        place = torch.arange(chunk.shape[1]).expand_as(chunk)
        return torch.stack([chunk, place, chunk.shape[1] - 1 - place], -1)

    states = encode_in_chunks(encode, ids, context)
    assert torch.equal(states[:, 0], ids)
    assert states[:, 1:].amax() < context
    inside = states[2:-2]  # two of each end stand where the text ends
    assert (inside[:, 1:] >= 2).all() or length <= context


def test_softmax_over_the_k_is_the_engines_own() -> None:
    found = nearest_attention(heads().queries(drawn(2, D_MODEL)), drawn(9, D_MODEL, seed=1), heads(), 3)
    scores = fold(heads().queries(drawn(2, D_MODEL)), heads().w_k) @ drawn(9, D_MODEL, seed=1).T / D_HEAD**0.5
    torch.testing.assert_close(found.pattern, softmax(scores.gather(-1, found.keys)), atol=1e-5, rtol=0)
