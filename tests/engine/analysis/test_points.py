"""Queries and keys as points: the layout leaves the pattern as it is, and the plane is that of numpy's SVD."""

import numpy as np
import pytest
import torch

from engine.analysis.points import head_points, joint
from engine.model.transformer import Transformer
from engine.runtime.run import run
from tests.engine import tiny
from tests.engine.twins import twins

KINDS: dict[str, tuple[Transformer, str]] = {
    "plain": (tiny.model(), "q"),
    "rotated": (tiny.model(tiny.config("rotary")), "q_rotated"),
    "normalised": (tiny.model(tiny.config(attention={"qk_norm": "head"})), "q_norm.out"),
    "normalised together": (tiny.model(tiny.config(attention={"qk_norm": "all"})), "q_norm.out"),
    "normalised, rotated": (tiny.model(tiny.config("rotary", {"qk_norm": "all", "kv_heads": 2})), "q_rotated"),
    "shared keys": (tiny.model(tiny.config(attention={"kv_heads": 2})), "q"),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("head", range(4))
def test_the_points_in_full_width_still_make_the_pattern(kind: str, head: int) -> None:
    model, read = KINDS[kind]
    trace = run(model, tiny.IDS)
    found = head_points(trace, 1, head)
    assert found.read == (f"blocks.1.attn.{read}", f"blocks.1.attn.{read.replace('q', 'k', 1)}")
    scores = found.joint.queries @ found.joint.keys.T / 4**0.5
    scores = scores.masked_fill(~torch.ones(8, 8, dtype=torch.bool).tril(), -torch.inf)
    assert torch.allclose(torch.softmax(scores, -1).float(), trace["blocks.1.attn.pattern"][0, head], atol=1e-5)
    assert not torch.allclose(found.queries[:1], found.queries[1:2])


def test_queries_and_keys_stand_around_one_middle_and_spread_alike() -> None:
    generator = torch.Generator().manual_seed(0)
    queries = torch.randn(30, 6, generator=generator) * 9 + 4
    keys = torch.randn(20, 6, generator=generator) * 0.2 - 7
    laid = joint(queries, keys)
    q, k = laid.queries.numpy(), laid.keys.numpy()
    assert np.allclose(q.mean(0), k.mean(0))
    assert np.square(q - q.mean(0)).sum(1).mean() == pytest.approx(np.square(k - k.mean(0)).sum(1).mean())
    assert laid.scale == pytest.approx(45**0.5, rel=0.2)
    products, distances = queries.double().numpy() @ keys.double().numpy().T, np.empty((30, 20))
    for i in range(30):
        for j in range(20):
            distances[i, j] = np.sqrt(np.square(q[i] - k[j]).sum())
    inside = [values - values.mean(1, keepdims=True) for values in (distances, products)]
    assert laid.correlation == pytest.approx(np.corrcoef(inside[0].ravel(), inside[1].ravel())[0, 1])


def test_where_products_decide_distances_follow_them() -> None:
    generator = torch.Generator().manual_seed(0)
    circle = torch.nn.functional.normalize(torch.randn(40, 5, generator=generator), dim=-1)
    assert joint(circle * 3, circle - circle.mean(0)).correlation < -0.95


def test_one_key_or_keys_that_are_alike_have_no_correlation() -> None:
    for keys in (torch.ones(1, 4), torch.ones(5, 4)):
        laid = joint(torch.eye(4), keys)
        assert np.isnan(laid.correlation)
        assert laid.scale == 1
        assert torch.isfinite(laid.keys).all()


def test_the_plane_is_that_of_the_singular_vectors() -> None:
    found = head_points(run(KINDS["plain"][0], tiny.IDS), 0, 2)
    rows = torch.cat([found.joint.queries, found.joint.keys]).numpy()
    centred = rows - rows.mean(0)
    _, values, directions = np.linalg.svd(centred, full_matrices=False)
    drawn = torch.cat([found.queries, found.keys]).numpy()
    expected = centred @ directions[:2].T
    assert np.allclose(np.abs(drawn), np.abs(expected), atol=1e-5 * np.abs(expected).max())
    assert found.explained == pytest.approx(tuple(values[:2] ** 2 / (values**2).sum()))


@pytest.mark.parametrize("kind", ["t5", "bart"])
def test_across_two_texts_queries_are_the_targets_and_keys_the_sources(kind: str) -> None:
    checkpoint, theirs = twins(kind)
    source, target = [5, 6, 7, 8, 9], [3, 4, 5]
    found = head_points(run(checkpoint.model, source, target=target), 1, 3, crosses=True)
    assert found.queries.shape == (3, 2)
    assert found.keys.shape == (5, 2)
    theirs.set_attn_implementation("eager")
    with torch.no_grad():
        told = theirs(
            input_ids=torch.tensor([source]), decoder_input_ids=torch.tensor([target]), output_attentions=True
        )
    scores = found.joint.queries @ found.joint.keys.T * (1 if kind == "t5" else 0.5)
    assert torch.allclose(torch.softmax(scores, -1).float(), told.cross_attentions[1][0, 3], atol=1e-5)


def test_t_sne_is_the_same_each_time_and_wants_four_points() -> None:
    trace = run(KINDS["plain"][0], tiny.IDS)
    first, second = (head_points(trace, 0, 0, how="tsne") for _ in range(2))
    assert torch.equal(first.queries, second.queries)
    assert torch.equal(first.keys, second.keys)
    assert first.explained is None
    with pytest.raises(ValueError, match="at least 4 rows"):
        head_points(run(KINDS["plain"][0], [3]), 0, 0, how="tsne")


def test_padding_is_no_point() -> None:
    model = KINDS["rotated"][0]
    both, alone = head_points(run(model, [tiny.IDS[:5], tiny.IDS]), 1, 1), head_points(run(model, tiny.IDS[:5]), 1, 1)
    assert both.keys.shape == (5, 2)
    assert torch.allclose(both.keys, alone.keys, atol=1e-4)


def test_what_the_model_does_not_have_is_refused() -> None:
    trace = run(KINDS["plain"][0], tiny.IDS)
    with pytest.raises(ValueError, match=r"must be in 0\.\.3, got 4"):
        head_points(trace, 0, 4)
    with pytest.raises(ValueError, match="side must be"):
        head_points(trace, 0, 0, crosses=True)
    with pytest.raises(KeyError, match="no hook is called"):
        head_points(trace, 9, 0)
    with pytest.raises(KeyError, match="was not recorded"):
        head_points(run(KINDS["plain"][0], tiny.IDS, keep="logits"), 0, 0)
