"""Long sequences: the square in bytes, k nearest as the model has them, and an index that loses nothing at all keys."""

import pytest
import torch

from engine import load
from engine.attention_variants import shared
from engine.attention_variants.measure import index_of, sampled_queries
from engine.attention_variants.nearest import exact, fold
from engine.attention_variants.quantize import Settings
from engine.course.long_sequences import (
    cross,
    encode_long,
    keep_window,
    measure_lengths,
    open_state,
    pattern_bytes,
    read_long,
    recall_curve,
    states_behind,
    with_nearest,
)
from engine.runtime.run import run

LONG = "the old man eats an apple in the garden and my sister reads a book at school and the birds are small and sad"


def test_four_times_as_long_is_sixteen_times_the_bytes() -> None:
    found = measure_lengths(shared.states("stories", 256), (64, 256), ("explicit", "window"), 32, times=1)
    full = {one.length: one.bytes for one in found if one.kind == "explicit"}
    near = {one.length: one.bytes for one in found if one.kind == "window"}
    assert full[256] == 16 * full[64] and near[256] < 4 * near[64]
    assert full == {n: pattern_bytes(n, 4) for n in (64, 256)} and full[256] == 2 * 4 * 4 * 256**2
    assert all(one.seconds > 0 for one in found)


def test_a_window_as_long_as_the_text_keeps_all() -> None:
    checkpoint = load("stories")
    assert checkpoint.tokenizer is not None
    encoding = checkpoint.tokenizer.encode("Max gave the red ball to Anna.")
    whole = keep_window(checkpoint, encoding, 3, 0, len(encoding.ids))
    assert whole.mass == pytest.approx(1) and whole.cells == 1
    one = keep_window(checkpoint, encoding, 3, 0, 1)
    torch.testing.assert_close(one.pattern, torch.eye(len(encoding.ids)))


def test_k_nearest_is_what_the_model_does_and_all_keys_are_full_attention() -> None:
    checkpoint = load("translate-en-fr")
    assert checkpoint.tokenizer is not None
    text = "My mother is in the kitchen. My father is in the garden."
    ids = read_long(checkpoint, text)
    memory = encode_long(checkpoint, ids)
    for k in (2, len(ids)):
        for layer in range(3):
            found = cross(checkpoint, ids, k, layer)
            written = checkpoint.tokenizer.decode(found.written, special=False)
            assert written.strip() == "Ma mère est dans la cuisine. Mon père est dans le jardin."
            hook = f"decoder.blocks.{layer}.cross_attn.pattern"
            trace = run(with_nearest(checkpoint.model, k), ids, keep=[hook], target=found.written)
            torch.testing.assert_close(found.nearest.dense(len(ids)), trace[hook][0], atol=1e-5, rtol=1e-4)
            assert (found.kept <= 1 + 1e-5).all()
    assert checkpoint.tokenizer.decode(cross(checkpoint, ids, 1, 2).written, special=False).strip() != written.strip()
    torch.testing.assert_close(found.nearest.dense(len(ids)), found.full)
    torch.testing.assert_close(found.kept, torch.ones(6))
    torch.testing.assert_close(memory, checkpoint.model.encoder.forward_resid(torch.tensor([ids]))[0].detach())


def test_a_text_beyond_the_context_is_read_in_chunks() -> None:
    checkpoint = load("translate-en-fr")
    ids = read_long(checkpoint, LONG + ". " + LONG + ".")
    assert len(ids) > checkpoint.config.context and encode_long(checkpoint, ids).shape == (len(ids), 192)
    assert 2 <= len(cross(checkpoint, ids, 4, 1).written) <= checkpoint.config.context
    assert read_long(checkpoint, "") == [] and encode_long(checkpoint, [5]).shape == (1, 192)


def test_tables_add_up_and_recall_is_one_at_all_keys() -> None:
    checkpoint = load("stories")
    assert checkpoint.tokenizer is not None
    material = states_behind(checkpoint, checkpoint.tokenizer.encode("Max gave the red ball to Anna.").ids, 200)
    count = len(material.states)
    index = index_of(material, Settings(subspaces=8, codes=16, lists=8, probes=8, rerank=0))
    queries = sampled_queries(material, seed=1, count=16)
    ones = recall_curve(index, queries, (1, 8, count))
    assert ones[-1] == 1 and 0 < ones[0] < 1
    query = fold(material.heads.queries(material.states[-1:]), material.heads.w_k)[0, 0]
    scores, keys = index.search(query[None], count)
    for state in (0, 7, count - 1):
        found = open_state(index, query, state)
        assert found.exact == pytest.approx(float(query @ material.states[state]), rel=1e-3, abs=1e-3)
        assert found.quantized == pytest.approx(float(scores[keys == state]), rel=1e-3, abs=1e-3)
        apart = open_state(index, query, state, distances=True)
        q, h = query @ index.metric.to_query, material.states[state] @ index.metric.to_state
        assert apart.exact == pytest.approx(float((q - h).square().sum()), rel=1e-4)
        row = int((index.keys == state).nonzero())
        kept = index.codebooks[torch.arange(8), index.codes[row].long()].flatten() + index.centroids[found.list]
        assert apart.quantized == pytest.approx(float((q - kept).square().sum()), rel=1e-3)
    few = index_of(material, Settings(subspaces=8, codes=16, lists=8, probes=1, rerank=0))
    assert recall_curve(few, queries, (count,))[0] < 1
    exactly = exact(queries, material.states, count)[1]
    assert exactly.sort().values.tolist() == [list(range(count))] * len(queries)
