"""Rollout against products of numpy."""

import numpy as np
import pytest
import torch

from engine.analysis.rollout import rollout, rollout_across
from engine.model.layers.cache import KVCache
from engine.model.layers.mask import Causal, PaintedMask
from engine.runtime.run import run
from engine.runtime.trace import Trace
from tests.engine import tiny
from tests.engine.twins import twins

MODEL = tiny.model()
TRACE = run(MODEL, tiny.IDS)
COUNT = len(tiny.IDS)


def mixed(trace: Trace, layer: int, heads: list[int] | None = None) -> np.ndarray:
    pattern = trace[f"blocks.{layer}.attn.pattern"][0].double().numpy()
    chosen = pattern if heads is None else pattern[heads]
    return 0.5 * chosen.mean(0) + 0.5 * np.eye(pattern.shape[-1])


def test_every_partial_product_is_that_of_the_mixed_layers() -> None:
    found = rollout(TRACE)
    product = np.eye(COUNT)
    for layer in range(3):
        product = mixed(TRACE, layer) @ product
        assert np.allclose(found[layer], product, atol=1e-6)
    assert torch.equal(found, found.tril())
    assert torch.allclose(found.sum(-1), torch.ones(3, COUNT))


def test_a_part_of_the_layers_and_of_the_heads_is_rolled_out_alone() -> None:
    found = rollout(TRACE, start=1, end=3, heads={1: [2], 2: [0, 3]})
    assert found.shape == (2, COUNT, COUNT)
    assert np.allclose(found[0], mixed(TRACE, 1, [2]), atol=1e-6)
    assert np.allclose(found[1], mixed(TRACE, 2, [0, 3]) @ mixed(TRACE, 1, [2]), atol=1e-6)


def test_layers_that_are_not_rolled_out_need_not_be_recorded() -> None:
    part = run(MODEL, tiny.IDS, keep=["blocks.1.attn.pattern", "blocks.2.attn.pattern"])
    assert torch.allclose(rollout(part, start=1), rollout(TRACE, start=1), atol=1e-6)
    with pytest.raises(ValueError, match=r"blocks\.0\.attn\.pattern was not"):
        rollout(part)


def test_a_position_that_sees_nothing_stays_what_it_was() -> None:
    allowed = torch.ones(COUNT, COUNT, dtype=torch.bool).tril()
    allowed[3] = False
    found = rollout(run(MODEL, tiny.IDS, mask=PaintedMask(allowed) & Causal()))
    assert torch.equal(found[-1, 3], torch.eye(COUNT)[3])
    assert torch.allclose(found.sum(-1), torch.ones(3, COUNT))


def test_padding_takes_no_part() -> None:
    both = run(MODEL, [tiny.IDS[:5], tiny.IDS])
    alone = run(MODEL, tiny.IDS[:5])
    assert torch.allclose(rollout(both), rollout(alone), atol=1e-6)


@pytest.mark.parametrize("kind", ["t5", "bart"])
def test_the_rollout_to_both_texts_is_the_product_over_one_graph_of_both(kind: str) -> None:
    model = twins(kind)[0].model
    trace = run(model, [5, 6, 7, 8, 9], target=[3, 4, 5, 7])
    found = rollout_across(trace)
    encoded = np.eye(5)
    for layer in range(2):
        pattern = trace[f"encoder.blocks.{layer}.attn.pattern"][0].double().numpy().mean(0)
        encoded = (pattern + np.eye(5)) / 2 @ encoded
    assert np.allclose(rollout(trace, "encoder")[-1], encoded, atol=1e-6)
    graph = np.block([[np.eye(4), np.zeros((4, 5))], [np.zeros((5, 4)), encoded]])  # target, then source
    for layer in range(2):
        own = trace[f"decoder.blocks.{layer}.attn.pattern"][0].double().numpy().mean(0)
        cross = trace[f"decoder.blocks.{layer}.cross_attn.pattern"][0].double().numpy().mean(0)
        stays = np.zeros((5, 4)), np.eye(5)
        graph = np.block([[(own + np.eye(4)) / 2, np.zeros((4, 5))], list(stays)]) @ graph
        read = np.block([[np.eye(4) / 2, cross / 2], [np.zeros((5, 4)), np.zeros((5, 5))]])
        read[4:, 4:] = np.eye(5)
        memory = np.block([[np.eye(4), np.zeros((4, 5))], [np.zeros((5, 4)), encoded]])
        assert np.allclose(graph[4:], memory[4:])  # the encoder's output is the same for every layer
        graph = read @ graph
        assert np.allclose(found.target[layer], graph[:4, :4], atol=1e-6)
        assert np.allclose(found.source[layer], graph[:4, 4:], atol=1e-6)
    assert torch.allclose(found.target.sum(-1) + found.source.sum(-1), torch.ones(2, 4))


def test_the_decoder_by_itself_is_rolled_out_over_its_own_tokens() -> None:
    trace = run(twins("t5")[0].model, [5, 6, 7], target=[3, 4, 5, 7])
    pattern = trace["decoder.blocks.0.attn.pattern"][0].mean(0)
    assert torch.allclose(rollout(trace, "decoder", end=1)[0], (pattern + torch.eye(4)) / 2, atol=1e-6)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"start": 2, "end": 2}, "part of 0..3"),
        ({"end": 4}, "part of 0..3"),
        ({"start": -1}, "part of 0..3"),
        ({"heads": {1: [4]}}, r"layer 1 has heads 0..3, got \[4\]"),
        ({"heads": {0: []}}, "name some"),
        ({"side": "encoder"}, "side must be"),
    ],
)
def test_what_the_run_does_not_have_is_refused(options: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        rollout(TRACE, **options)


def test_a_continued_run_is_refused() -> None:
    cache = KVCache(MODEL.config, 1, COUNT, MODEL.embed.tokens.weight)
    run(MODEL, tiny.IDS[:4], cache=cache)
    with pytest.raises(ValueError, match="continued a cache"):
        rollout(run(MODEL, tiny.IDS[4:], cache=cache))
