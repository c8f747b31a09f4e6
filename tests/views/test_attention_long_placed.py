"""The positional share of a long text's heads as the page asks for it: step by step, and whole once it is known."""

import pytest
import torch

from engine.analysis.positional import positional
from engine.runtime import library
from engine.runtime.run import run
from tests.engine import tiny
from tests.views.test_attention_long import LENGTH, SMALL, TWO, asked, ids, looked_at

pytestmark = pytest.mark.long


@pytest.mark.parametrize("side", ["", "encoder", "decoder"])
def test_step_by_step_every_head_gets_the_share_that_it_has_in_a_whole_run(side: str) -> None:
    model, read, target = tiny.model(TWO if side else SMALL), ids(LENGTH, 3), ids(280, 4) if side else None
    long = looked_at(model, read, target)
    expected = positional(model, run(model, read, target=target), side)
    with pytest.raises(ValueError, match="stay until it has"):
        asked(long, ask="positional", side=side, whole=True)
    for step in range(1, 9 * len(expected) + 1):
        header, arrays = asked(long, ask="positional", side=side)
        assert (header["done"], header["steps"], header["scored"]) == (step, 9 * len(expected), step // 9)
        found = torch.tensor(arrays["positional"].data)
        assert found[header["scored"] :].isnan().all()
        torch.testing.assert_close(found[: header["scored"]], expected[: header["scored"]], atol=1e-5, rtol=1e-4)
    for whole in (True, False):
        header, arrays = asked(long, ask="positional", side=side, whole=whole)
        assert header["done"] == header["steps"] and header["scored"] == len(expected)
        torch.testing.assert_close(torch.tensor(arrays["positional"].data), expected, atol=1e-5, rtol=1e-4)


def test_steps_that_are_over_leave_only_what_came_of_them_in_memory() -> None:
    long = looked_at(tiny.model(SMALL), ids(LENGTH, 5))
    shelf, key = library.traces.shelf, long.made.key
    asked(long, ask="positional")
    assert shelf.find((*key, "positional steps", "")) is not None
    for _ in range(17):
        asked(long, ask="positional")
    assert shelf.find((*key, "positional steps", "")) is None and shelf.find((*key, "positional", "")) is not None


def test_a_text_with_no_other_order_has_no_share_and_that_is_known_at_once() -> None:
    long = looked_at(tiny.model(SMALL), type(ids(1)).from_ids([5] * LENGTH))
    header, arrays = asked(long, ask="positional")
    assert header["done"] == header["steps"] and header["scored"] == SMALL.layers
    assert torch.tensor(arrays["positional"].data).isnan().all()


@pytest.mark.parametrize("side", ["encoder", "x", 3])
def test_a_stack_that_the_run_does_not_have_is_refused_with_a_sentence(side: object) -> None:
    with pytest.raises(ValueError, match=r"\.$"):
        asked(looked_at(tiny.model(SMALL), ids(LENGTH)), ask="positional", side=side)
