"""What many heads of a long text say at once is what the whole patterns say, a row or a column at a time."""

import pytest
import torch
from torch import Tensor

from engine import load
from engine.analysis.averages import over_heads, over_texts
from engine.analysis.flow import crossed_network, flow, network
from engine.analysis.overview_cache import LongRun
from engine.analysis.rollout import rollout, rollout_across
from engine.budget import budget
from engine.edits import AttentionTemperature
from engine.inputs.readers import Reading
from engine.inputs.samples import samples
from engine.runtime.run import run
from engine.runtime.trace import Trace
from tests.engine import tiny
from tests.views.test_attention_long import LENGTH, SMALL, TWO, asked, ids, looked_at
from views.attention import long as long_module
from views.attention.long import LongContext, long_context
from views.attention.questions import FEWEST, LONGEST, TEXTS
from views.core.lanes import lanes

pytestmark = pytest.mark.long

MODEL, READ = tiny.model(SMALL), ids(LENGTH)
PAIR = (tiny.model(TWO), ids(280), ids(LENGTH, 1))
ATTENTIONS = [("encoder", "attn"), ("decoder", "attn"), ("decoder", "cross_attn")]


def line(long: LongContext, **query: object) -> Tensor:
    _, arrays = asked(long, **query)
    return torch.tensor(arrays["line"].data)


def same(long: LongContext, expected: Tensor, **query: object) -> None:
    """The first, a middle and the last row and column."""
    for pos in (0, 130, len(expected) - 1):
        torch.testing.assert_close(line(long, pos=pos, **query), expected[pos], atol=1e-6, rtol=1e-5)
    for key in (0, 77, expected.shape[1] - 1):
        torch.testing.assert_close(line(long, key=key, **query), expected[:, key], atol=1e-6, rtol=1e-5)


def test_the_mean_of_the_heads_of_a_layer_is_that_of_their_whole_patterns() -> None:
    expected = run(MODEL, READ)["blocks.1.attn.pattern"][0].mean(0)
    same(looked_at(MODEL, READ), expected, ask="average", over="heads", layer=1)


@pytest.mark.parametrize("alone", [False, True])
def test_the_mean_of_the_layers_is_of_all_heads_or_of_those_of_one_number(alone: bool) -> None:
    whole = run(MODEL, READ).stack("attn.pattern")[:, 0]
    expected = whole[:, 2].mean(0) if alone else whole.mean((0, 1))
    same(looked_at(MODEL, READ), expected, ask="average", over="layers", head=2, alone=alone)


@pytest.mark.parametrize(("side", "focus"), ATTENTIONS)
def test_means_of_each_attention_of_two_stacks_are_its_own(side: str, focus: str) -> None:
    trace, long = run(PAIR[0], PAIR[1], target=PAIR[2]), looked_at(*PAIR)
    for over, layers in (("heads", [1]), ("layers", None)):
        expected = over_heads(trace, layers, None, side, focus == "cross_attn")
        same(long, expected, ask="average", over=over, layer=1, side=side, focus=focus)


@pytest.mark.parametrize("head", [None, 3])
def test_a_rollout_is_the_product_of_half_attention_and_half_what_passes_by(head: int | None) -> None:
    trace, long = run(MODEL, READ), looked_at(MODEL, READ)
    expected = torch.eye(LENGTH)
    for layer in range(2):
        pattern = trace[f"blocks.{layer}.attn.pattern"][0]
        expected = (0.5 * (pattern.mean(0) if head is None else pattern[head]) + 0.5 * torch.eye(LENGTH)) @ expected
    same(long, expected, ask="rollout", first=0, last=1, head=head)
    same(long, rollout(trace, "", 1, 2, {1: [3]})[-1], ask="rollout", first=1, last=1, head=3)


@pytest.mark.parametrize(("side", "focus"), ATTENTIONS)
def test_a_rollout_of_two_stacks_is_that_of_a_short_text(side: str, focus: str) -> None:
    trace, long = run(PAIR[0], PAIR[1], target=PAIR[2]), looked_at(*PAIR)
    crosses = focus == "cross_attn"
    for first, last, head in ((0, 1, None), (1, 1, 2)):
        heads = None if head is None else {layer: [head] for layer in range(2)}
        options = (first, last + 1, heads)
        expected = rollout_across(trace, *options, heads).source[-1] if crosses else rollout(trace, side, *options)[-1]
        same(long, expected, ask="rollout", first=first, last=last, head=head, side=side, focus=focus)


def test_means_and_rollouts_are_of_the_run_under_its_edits() -> None:
    edit = AttentionTemperature(3.0, layer=0)
    trace, long = run(MODEL, READ, edits=[edit]), looked_at(MODEL, READ, None, edit)
    same(long, over_heads(trace), ask="average", over="layers")
    same(long, rollout(trace)[-1], ask="rollout", first=0, last=1, head=None)


def test_each_layer_is_computed_once_for_all_that_is_asked_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    real = long_module.rerun_reduced
    monkeypatch.setattr(
        long_module, "rerun_reduced", lambda *given, **more: calls.extend(given[2]) or real(*given, **more)
    )
    long = looked_at(MODEL, ids(LENGTH, 5))
    for _ in range(2):
        for pos in (3, 300):
            line(long, ask="average", over="layers", pos=pos)
            line(long, ask="rollout", first=0, last=1, head=None, pos=pos)
    assert calls == ["blocks.0.attn.pattern", "blocks.1.attn.pattern"]


def test_a_flow_is_that_of_a_short_text() -> None:
    model, read, target = tiny.model(TWO), ids(9), ids(12, 1)
    trace, long = run(model, read, target=target), looked_at(model, read, target)
    pipes = {"encoder": network(trace, "encoder"), "decoder": network(trace, "decoder")}
    for side, focus in ATTENTIONS:
        expected = flow(crossed_network(trace) if focus == "cross_attn" else pipes[side], 7)
        _, whole = asked(long, ask="flows", side=side, focus=focus)
        _, arrays = asked(long, ask="flow", side=side, focus=focus, pos=7)
        assert not whole
        torch.testing.assert_close(torch.tensor(arrays["flow"].data), expected)


def test_a_flow_that_would_take_minutes_is_refused_with_its_limit_and_an_early_token_is_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    long, expected = looked_at(MODEL, READ), flow(network(run(MODEL, READ)), 8)
    monkeypatch.setattr(budget, "flow_work", 100_000)
    with pytest.raises(ValueError, match=r"LOUPE_FLOW_WORK allows 100,000; .* a higher LOUPE_FLOW_WORK\.$"):
        asked(long, ask="flow", pos=LENGTH - 1)
    _, arrays = asked(long, ask="flow", pos=8)
    torch.testing.assert_close(torch.tensor(arrays["flow"].data), expected)


def test_the_average_of_many_texts_is_that_of_a_short_text() -> None:
    checkpoint = load("stories")
    read = checkpoint.tokenizer.encode("Once upon a time there was a cat.")
    long = long_context("it", checkpoint, lanes(checkpoint, Reading(read)), LongRun(checkpoint.model, read), {})
    _, arrays = asked(long, ask="text_average", layer=1, head=2)
    traces = [run(checkpoint.model, one.read) for one in samples(checkpoint, TEXTS, LONGEST)]
    expected = over_texts(traces, FEWEST)
    torch.testing.assert_close(torch.tensor(arrays["pattern"].data), expected.pattern[1, 2])
    assert arrays["count"].data.tolist() == expected.texts.tolist()


@pytest.mark.parametrize(
    "query",
    [
        {"ask": "average", "over": "heads"},
        {"ask": "average", "over": "heads", "pos": LENGTH},
        {"ask": "average", "over": "layers", "key": -1},
        {"ask": "average", "over": "words", "pos": 0},
        {"ask": "average", "over": "layers", "pos": 0, "focus": "cross_attn"},
        {"ask": "rollout", "first": 1, "last": 0, "pos": 0, "head": None},
        {"ask": "rollout", "first": 0, "last": 2, "pos": 0, "head": None},
        {"ask": "rollout", "first": 0, "last": 1, "pos": 0, "head": 4},
        {"ask": "flow", "pos": LENGTH},
        {"ask": "flows", "side": "encoder"},
        {"ask": "flows", "side": None},
    ],
)
def test_what_there_is_not_is_refused_with_a_sentence(query: dict) -> None:
    with pytest.raises(ValueError, match=r"\.$"):
        asked(looked_at(MODEL, READ), **query)


def test_nothing_that_was_asked_for_stays_with_the_run_and_a_line_is_all_that_travels() -> None:
    long = looked_at(MODEL, READ)
    header, arrays = asked(long, ask="rollout", first=0, last=1, head=None, key=4)
    assert not header and {name: one.data.shape for name, one in arrays.items()} == {"line": (LENGTH,)}
    assert isinstance(long.trace, Trace) and not any(tensor.dim() == 4 for tensor in long.trace.values())
