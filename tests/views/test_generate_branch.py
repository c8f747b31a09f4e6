"""A text that was found elsewhere is put into the tree of what was written: its steps are those of each token alone."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.views.test_generate import EVERY, answered, asked, kinds, straight, writing
from views.generate.session import Settings

GREEDY = Settings(method="greedy", repetition_penalty=1.3)
METHODS = [EVERY, GREEDY, Settings(method="contrastive", penalty_alpha=0.5, candidates=5)]


@pytest.mark.parametrize("settings", METHODS, ids=lambda one: one.method)
def test_all_steps_of_a_text_are_those_that_are_asked_one_by_one(settings: Settings) -> None:
    for one in kinds():
        ids = [step.id for step in straight(one, Settings(seed=5), 6)]
        header, arrays = asked(one, settings, ask="steps", begun=ids[:2], ids=ids[2:])
        assert arrays["id"].data.tolist() == ids[2:] and len(header["stops"]) == len(ids) - 2
        for place in range(2, len(ids)):
            alone, row = asked(one, settings, ask="step", begun=ids[:place], id=ids[place])
            assert alone["pieces"].items() <= header["pieces"].items()
            for name, named in row.items():
                found = arrays[name].data[place - 2]
                if name != "top.id" and name != "candidate.id":
                    np.testing.assert_allclose(found, named.data[0], atol=2e-4, rtol=1e-4, err_msg=name)
                else:
                    assert found.tolist() == named.data[0].tolist()


def test_what_ends_the_text_is_told_of_its_last_step() -> None:
    one = writing()
    end = one.checkpoint.end_ids[0]
    header, arrays = asked(one, GREEDY, ask="steps", begun=[5], ids=[6, end, 7])
    assert arrays["id"].data.tolist() == [6, end]
    assert [stop and stop["kind"] for stop in header["stops"]] == [None, "end"]
    dot = one.checkpoint.tokenizer.encode(".").ids[0]
    header, _ = asked(one, replace(GREEDY, stop_at="."), ask="steps", begun=[], ids=[5, dot])
    assert [stop and stop["kind"] for stop in header["stops"]] == [None, "string"]
    small = writing("stories", [5] * 255)
    header, _ = asked(small, GREEDY, ask="steps", begun=[], ids=[6, 7])
    assert [stop and stop["kind"] for stop in header["stops"]] == [None, "context"]
    assert asked(one, GREEDY, ask="steps", begun=[end], ids=[6])[0]["stops"] == []


@pytest.mark.parametrize(
    "query",
    [
        {"begun": [], "ids": []},
        {"begun": [], "ids": [5] * 65},
        {"begun": [5] * 250, "ids": [5] * 9},
        {"begun": [], "ids": [10**6]},
        {"begun": [], "ids": "5"},
        {"begun": None, "ids": [5]},
        {"begun": [], "ids": [5], "settings": {"temperature": -1}},
        {"begun": [], "ids": [5], "trace": "another"},
    ],
)
def test_what_a_browser_should_not_ask_of_a_branch_is_answered_with_a_sentence(query: dict[str, Any]) -> None:
    one = writing()
    with pytest.raises(ValueError, match=r"\w+ .*\."):
        answered(one, {"ask": "steps", "trace": one.digest, **query})
