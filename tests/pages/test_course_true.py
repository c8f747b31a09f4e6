"""What lessons show at their defaults is what they say."""

from typing import Any

import pandas as pd
from streamlit.testing.v1 import AppTest

from engine.edits import Scale
from pages.controls.learn import words
from pages.controls.what_if.experiment_link import from_link
from pages.learn.lessons import residual
from tests.pages.test_course import opened, question_of


def answered(name: str, **chosen: Any) -> AppTest:
    """A lesson whose answer was shown, with widgets set by their keys."""
    app = opened(lesson=name)
    app.button(key=f"{question_of(app)} show").click().run()
    for key, value in chosen.items():
        app.session_state[key.replace("_", "-")] = value
        app.run()
    assert not app.exception, app.exception
    return app


def first_table(app: AppTest) -> pd.DataFrame:
    return app.dataframe[0].value


def test_queries_are_cut_into_heads_and_the_stream_is_not() -> None:
    table = first_table(answered("masks_and_heads", masks_view="shapes"))
    steps, shapes = table.iloc[:, 0].tolist(), table.iloc[:, 2].tolist()
    assert [step.partition(",")[0] for step in steps[:3]] == ["x", "q = x W_Q + b", "q"]
    assert shapes[:3] == ["[1, 6, 128]", "[1, 6, 4, 32]", "[1, 4, 6, 32]"]


def test_a_stack_with_residual_connections_learns_more_at_every_depth_that_is_offered() -> None:
    for layers in (residual.LEAST, 5):
        with_, without = (residual.train(layers, kept, residual.STEPS, 0) for kept in (True, False))
        assert with_.losses[-1] < 0.5 * without.losses[-1]
        assert without.gradients[-1].argmin() == 0
        assert 1 / 3 < with_.gradients[-1][0] / with_.gradients[-1][-1] < 3


def test_the_link_of_the_residual_stream_takes_one_out() -> None:
    for lang in words.languages(words.CATALOGUE):
        about, _text = words.parse_text(words.CATALOGUE, lang, "residual.md")
        experiment, broken = from_link(about["inside"]["edits"])
        assert not broken and experiment.edits == (Scale("blocks.1.skip1", 0.0),)
