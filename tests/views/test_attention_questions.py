"""What the page about attention is told on asking is the engine's, and what nobody should ask is one sentence."""

from collections.abc import Mapping
from itertools import product
from typing import Any

import numpy as np
import pytest
import torch

from engine import load
from engine.analysis.sinks import column, describe_sink
from engine.inputs.readers import pictures, read_picture, read_pixels, read_text, read_translation
from engine.runtime.run import run
from views.attention import questions
from views.attention.questions import ATTENTION
from views.core.lanes import lanes
from views.core.payload import Named, unpack
from views.core.questions import Page
from views.core.run_context import RunContext

PLACE = {"side": "", "focus": "attn"}
ASKED = [name for name, one in ATTENTION.questions.items() if one.make_script is None]


def looked(name: str = "stories") -> RunContext:
    checkpoint = load(name)
    if name == "translate-en-fr":
        read = read_translation(checkpoint, "The delighted dog sees a small white cat.", "", 64)
    else:
        read = read_text(checkpoint, "Max gave the red ball to Anna. Max gave the", 64)
    trace = run(checkpoint.model, read.read, target=read.target)
    return RunContext(name, checkpoint, trace, lanes(checkpoint, read))


def asked(page: RunContext, ask: str, **query: Any) -> tuple[Mapping[str, Any], dict[str, Named]]:
    return unpack(answered(page, {"trace": page.digest, "ask": ask, **PLACE, **query}))


def answered(page: RunContext, query: Mapping[str, Any]) -> bytes:
    """Only with the arguments that a question takes."""
    taken = ATTENTION.questions[query["ask"]].parameters if query.get("ask") in ATTENTION.questions else query
    return Page((ATTENTION, page)).answer({k: v for k, v in query.items() if k in taken or k in ("ask", "trace")})


PAGE = looked()


def test_rollout_through_one_layer_is_half_its_mean_pattern_and_half_the_residual() -> None:
    pattern = PAGE.trace["blocks.2.attn.pattern"][0].mean(0)
    expected = 0.5 * pattern + 0.5 * torch.eye(len(pattern))
    _, arrays = asked(PAGE, "rollout", first=2, last=2)
    np.testing.assert_allclose(arrays["rollout"].data, expected.numpy(), atol=1e-6)
    _, arrays = asked(PAGE, "rollout", first=2, last=2, head=1)
    one = 0.5 * PAGE.trace["blocks.2.attn.pattern"][0, 1] + 0.5 * torch.eye(len(pattern))
    np.testing.assert_allclose(arrays["rollout"].data, one.numpy(), atol=1e-6)


def test_weighted_values_are_the_lengths_of_what_each_key_adds() -> None:
    _, arrays = asked(PAGE, "weighted", layer=1)
    attention = PAGE.checkpoint.model.blocks[1].attn
    pattern, v = PAGE.trace["blocks.1.attn.pattern"][0], PAGE.trace["blocks.1.attn.v"][0]
    W_O = attention.out.weight.T.unflatten(0, (attention.heads, attention.d_head))
    moved = torch.einsum("hqk,khd,hdm->hqkm", pattern, v, W_O).norm(dim=-1)
    np.testing.assert_allclose(arrays["weighted"].data, moved.detach().numpy(), atol=1e-5)
    np.testing.assert_allclose(arrays["relative"].data.sum(-1), 1, atol=1e-5)


@pytest.mark.parametrize(("over", "axis"), [("heads", (0,)), ("layers", (0, 1))])
def test_means_are_over_the_heads_of_a_layer_or_of_all(over: str, axis: tuple[int, ...]) -> None:
    stacked = PAGE.trace.stack("attn.pattern")[:, 0]
    expected = stacked[1].mean(0) if over == "heads" else stacked.mean((0, 1))
    _, arrays = asked(PAGE, "average", over=over, layer=1, head=0)
    np.testing.assert_allclose(arrays["pattern"].data, expected.numpy(), atol=1e-6)


def test_a_mean_of_the_layers_may_be_of_the_heads_of_one_number() -> None:
    expected = PAGE.trace.stack("attn.pattern")[:, 0, 2].mean(0)
    _, arrays = asked(PAGE, "average", over="layers", layer=1, head=2, alone=True)
    np.testing.assert_allclose(arrays["pattern"].data, expected.numpy(), atol=1e-6)


def test_many_sentences_are_averaged_and_counted() -> None:
    _, arrays = asked(PAGE, "text_average", layer=1, head=0)
    pattern, count = arrays["pattern"].data, arrays["count"].data
    assert len(pattern) == len(count) and count[0] == 24 and (np.diff(count) <= 0).all() and count.min() >= 3
    np.testing.assert_allclose(pattern.sum(-1), 1, atol=1e-5)


def test_a_column_is_told_as_the_engine_tells_it() -> None:
    header, _ = asked(PAGE, "sink", layer=1, head=2, key=0)
    found = column(PAGE.trace, 1, 0, 2, "", False, PAGE.encoding(""))
    assert header["sentence"] == describe_sink(found)


@pytest.mark.parametrize(
    ("name", "key", "named"),
    [
        ("digits-vit", 0, "“[CLS]” (key 0), the first position and a special token, gets "),
        ("digits-vit", 6, "Patch (2, 2) gets "),
        ("digits-imagegpt", 1 + 8 + 3, "Pixel (2, 4), one of "),
    ],
)
def test_a_column_of_a_picture_is_named_by_its_row_and_column(name: str, key: int, named: str) -> None:
    checkpoint = load(name)
    image = pictures()[0][0]
    drawn = name == "digits-imagegpt"
    read = read_pixels(checkpoint, image, 20, 64, {"temperature": 1.0}, 0) if drawn else read_picture(checkpoint, image)
    trace = run(checkpoint.model, read.read)
    page = RunContext(name, checkpoint, trace, lanes(checkpoint, read))
    assert asked(page, "sink", layer=1, head=0, key=key)[0]["sentence"].startswith(named)


def test_circuits_list_each_token_of_the_text_once_with_names_for_all_they_name() -> None:
    header, arrays = asked(PAGE, "ov", layer=1, head=0)
    ids = arrays["ids"].data.tolist()
    assert len(ids) == len(set(ids)) and set(ids) == set(PAGE.lanes[0].ids)
    assert {str(i) for i in arrays["top"].data.ravel()} <= header["names"].keys()
    assert (np.diff(arrays["logits"].data, axis=1) <= 0).all()
    _, arrays = asked(PAGE, "qk", layer=1, head=0)
    assert arrays["scores"].data.shape == (len(ids), len(ids))


def test_circuits_of_cross_attention_go_from_the_source_to_the_target() -> None:
    page = looked("translate-en-fr")
    of = {"side": "decoder", "focus": "cross_attn", "layer": 1, "head": 0}
    source, target = ({*lane.ids} for lane in page.lanes)
    assert set(asked(page, "ov", **of)[1]["ids"].data.tolist()) == source
    _, arrays = asked(page, "qk", **of)
    assert set(arrays["ids"].data.tolist()) == target and set(arrays["keys"].data.tolist()) == source


def test_scores_that_take_more_than_the_run_come_for_every_attention(monkeypatch: pytest.MonkeyPatch) -> None:
    page = looked("translate-en-fr")
    _, arrays = asked(page, "scores", side="decoder")
    assert {"scores.encoder.attn.positional", "scores.decoder.attn.copying"} <= arrays.keys()
    monkeypatch.setattr(questions, "LARGE", 1)  # of such a model nobody waits for them unasked
    _, unknown = asked(page, "scores", side="decoder")
    assert {name: one.data.shape for name, one in unknown.items()} == {k: one.data.shape for k, one in arrays.items()}
    assert all(np.isnan(one.data).all() for one in unknown.values())


def test_flow_comes_whole_where_it_is_quick_and_a_row_at_a_time_else(monkeypatch: pytest.MonkeyPatch) -> None:
    page = looked("translate-en-fr")
    monkeypatch.setitem(ATTENTION.questions["flows"].defaults, "seconds", 1e9)  # however busy the machine
    for focus, side, keys in (("cross_attn", "decoder", 0), ("attn", "decoder", 1), ("attn", "encoder", 0)):
        of = {"side": side, "focus": focus}
        _, arrays = asked(page, "flows", **of)
        rows = 0 if side == "encoder" else 1
        assert arrays["flow"].data.shape == tuple(len(page.lanes[i].pieces) for i in (rows, keys))
        row = asked(page, "flow", pos=2, **of)[1]["flow"].data
        np.testing.assert_allclose(row, arrays["flow"].data[2], atol=1e-6)
    monkeypatch.setitem(ATTENTION.questions["flows"].defaults, "seconds", 0.0)
    assert not asked(page, "flows", side="decoder")[1]


def test_the_source_is_what_cross_attention_points_at() -> None:
    page = looked("translate-en-fr")
    _, arrays = asked(page, "points", side="decoder", focus="cross_attn", layer=0, head=0, how="pca")
    assert arrays["queries"].data.shape == (len(page.lanes[1].pieces), 2)
    assert arrays["keys"].data.shape == (len(page.lanes[0].pieces), 2)


WRONG: list[dict[str, Any]] = [
    {"layer": 99},
    {"layer": -1},
    {"layer": "0"},
    {"layer": True},
    {"layer": None},
    {"head": 4},
    {"head": 1.5},
    {"key": 10**9},
    {"pos": -3},
    {"side": "encoder"},
    {"side": []},
    {"focus": "cross_attn"},
    {"last": 4},
]


def test_any_number_of_a_browser_is_answered_or_refused_with_a_sentence(subtests: pytest.Subtests) -> None:
    good = {"side": "", "focus": "attn", "layer": 0, "head": 0, "key": 0, "pos": 0, "first": 0, "last": 1}
    good |= {"least": 0.1, "heads": [[0, 0]]}
    for ask, wrong in product(ASKED, WRONG):
        with subtests.test(ask=ask, wrong=wrong):
            try:
                answered(PAGE, {"trace": PAGE.digest, "ask": ask, **good, "over": "heads", **wrong})
            except ValueError as error:
                assert str(error).endswith(".")
            else:
                assert not set(ATTENTION.questions[ask].parameters) & wrong.keys()


def test_another_run_and_an_unknown_question_are_refused() -> None:
    with pytest.raises(ValueError, match="have changed since"):
        Page((ATTENTION, PAGE)).answer({"trace": "other", "ask": "sink"})
    for query in ({"ask": "everything"}, {"ask": ["sink"]}, {}, {"layer": 0}):
        with pytest.raises(ValueError, match="Unknown request"):
            Page((ATTENTION, PAGE)).answer({"trace": PAGE.digest, **query})
