"""Predict, then reveal, and the code of a function: without a browser, on the page that shows one of everything."""

from pathlib import Path

import pytest
import torch
from streamlit.testing.v1 import AppTest

from engine import load, run
from engine.analysis.heads import bits
from engine.model.layers.softmax import softmax
from pages.controls.figures import as_place, heads, matrix
from pages.controls.menu import entries
from views.core.function_code import call_lines, source_of

APP = str(Path(__file__).parents[1] / "browser" / "apps" / "figures" / "app.py")


@pytest.fixture
def app() -> AppTest:
    found = AppTest.from_file(APP, default_timeout=60).run()
    assert not found.exception
    return found


def last_row() -> torch.Tensor:
    checkpoint = load("stories")
    trace = run(checkpoint.model, checkpoint.tokenizer.encode("Max gave the red ball to Anna."))
    return trace["blocks.0.attn.pattern"][0, 0]


def test_a_choice_is_checked_once_and_what_it_hides_is_shown_then(app: AppTest) -> None:
    told = "told"
    assert told not in [one.value for one in app.markdown] and app.button(key="most check").disabled
    app.button_group[0].set_value(3).run()
    app.button(key="most check").click().run()
    answer = load("stories").tokenizer.encode("Max gave the red ball to Anna.").pieces[int(last_row()[-1].argmax())]
    assert answer in app.warning[0].value and "You said" in app.warning[0].value
    assert told in [one.value for one in app.markdown]


@pytest.mark.parametrize(("off", "kind"), [(0.1, "success"), (-0.1, "success"), (0.5, "warning")])
def test_a_number_is_right_within_its_tolerance(app: AppTest, off: float, kind: str) -> None:
    answer = float(bits(last_row())[-1])
    app.number_input(key="bits said").set_value(answer + off).run()
    app.button(key="bits check").click().run()
    (said,) = getattr(app, kind)
    assert f"{answer:.4g} bits" in said.value


def test_a_place_can_be_shown_without_an_answer(app: AppTest) -> None:
    app.button(key="place show").click().run()
    assert "8, 0" in app.info[0].value


def test_the_code_of_a_function_runs_and_gives_what_the_function_gives() -> None:
    bound: dict = {}
    scores = torch.tensor([[1.5, -0.25], [0.0, float("-inf")]])
    exec(call_lines(softmax, {"scores": scores, "temperature": 2.0}), bound)
    assert torch.equal(bound["values"], softmax(scores, 2.0))
    assert source_of(softmax).startswith("def softmax(")
    for function, arguments, why in [
        (entries, {}, "of the engine"),
        (softmax, {"scores": torch.zeros(9, 9)}, "tensor of 81 elements"),
    ]:
        with pytest.raises(ValueError, match=why):
            call_lines(function, arguments)


def test_arrays_of_another_shape_and_names_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ValueError, match="values must have 2 axes"):
        matrix(torch.zeros(3), key="k")
    with pytest.raises(ValueError, match="rows must be 2 names, got 1"):
        matrix(torch.zeros(2, 2), key="k", rows=["a"])
    with pytest.raises(ValueError, match=r"term 'score' must have the shape \(2, 2\), got \(2, 3\)"):
        matrix(torch.zeros(2, 2), key="k", terms={"score": torch.zeros(2, 3)})
    with pytest.raises(ValueError, match="at most 2,000,000 cells"):
        heads(torch.zeros(10, 10, 200, 200), key="k")


@pytest.mark.parametrize("said", [None, "x", [1.0, 0], [True, 0], [2, 0], [-1, 0], [0, 0, 0]])
def test_what_no_picture_can_say_is_no_place(said: object) -> None:
    assert as_place(said, (2, 3)) is None
    assert as_place([1, 2], (2, 3)) == [1, 2]
