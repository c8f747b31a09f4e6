"""Charts of the page Attention draw the numbers of their questions, and give the Python that computes them."""

import numpy as np
import pandas as pd
import pytest

from engine import load
from engine.analysis.entropy import attention_entropy
from engine.inputs.readers import read_text
from engine.runtime.run import run
from views.attention.charts import CHARTS
from views.attention.questions import ATTENTION
from views.core.codegen import Fields
from views.core.lanes import lanes
from views.core.matrix_files import Matrix, columns
from views.core.questions import Page
from views.core.run_context import RunContext

TEXT = "Max gave the ball."


def context() -> RunContext:
    checkpoint = load("stories")
    reading = read_text(checkpoint, TEXT, 64)
    trace = run(checkpoint.model, reading.read)
    return RunContext(
        "stories", checkpoint, trace, lanes(checkpoint, reading), fields=lambda: Fields("text", 64, text=TEXT)
    )


@pytest.mark.parametrize("title", CHARTS)
def test_a_chart_draws_every_number_of_its_question(title: str) -> None:
    name, draw = CHARTS[title]
    page = context()
    data = Page((ATTENTION, page)).table({"ask": name, "trace": page.digest, "side": ""})
    assert isinstance(data, Matrix)
    drawn = draw(pd.DataFrame(columns(data)), "light").to_dict()
    (rows,) = drawn["datasets"].values()
    np.testing.assert_array_equal([row[data.kind] for row in rows], data.values.reshape(-1))


def test_entropy_is_the_engines_and_its_python_gives_the_same_numbers() -> None:
    page = context()
    query = {"ask": "entropy", "trace": page.digest, "side": ""}
    data = Page((ATTENTION, page)).table(query)
    assert isinstance(data, Matrix)
    np.testing.assert_array_equal(data.values, attention_entropy(page.trace).numpy())
    bound: dict = {}
    exec(Page((ATTENTION, page)).python(query), bound)
    np.testing.assert_array_equal(bound["values"].numpy(), data.values)
