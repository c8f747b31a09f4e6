"""What lessons show at their defaults is what they say."""

from typing import Any

import pandas as pd
from streamlit.testing.v1 import AppTest

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
