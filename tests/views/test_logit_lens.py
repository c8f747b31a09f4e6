"""The page Logit lens draws the engine's numbers, and gives the Python that computes them."""

import numpy as np
import pandas as pd
import pytest
import torch

from engine import load, run
from engine.analysis.lenses import make_lens
from engine.analysis.logit_lens import candidate_depth, logit_lens
from engine.inputs.readers import read_text
from views.core.codegen import Fields
from views.core.lanes import lanes
from views.core.questions import Page
from views.core.run_context import RunContext
from views.core.table_files import Table
from views.logit_lens.charts import CHARTS
from views.logit_lens.questions import LENS

TEXT = "Max gave the ball."


@pytest.fixture(scope="module")
def context() -> RunContext:
    checkpoint = load("stories")
    reading = read_text(checkpoint, TEXT, 64)
    trace = run(checkpoint.model, reading.read)
    fields = Fields("text", 64, text=TEXT)
    return RunContext("stories", checkpoint, trace, lanes(checkpoint, reading), fields=lambda: fields)


def test_the_tables_hold_what_the_engine_computed(context: RunContext) -> None:
    page, lens = Page((LENS, context)), logit_lens(context.model, context.trace, 5)
    table = page.table({"ask": "lens", "trace": context.digest})
    assert isinstance(table, Table)
    np.testing.assert_array_equal(table.columns["id"], lens.ids.flatten())
    np.testing.assert_array_equal(table.columns["probability"], lens.probability.flatten())
    np.testing.assert_array_equal(np.array(table.columns["kl"])[::5], lens.kl.flatten())
    pieces = context.checkpoint.tokenizer.pieces
    assert list(table.columns["candidate"]) == [pieces[id] for id in lens.ids.flatten()]


def test_the_charts_draw_the_tables(context: RunContext) -> None:
    page, row, id = Page((LENS, context)), len(context.rows) - 1, 3
    for ask, draw in CHARTS.values():
        query = {"ask": ask, "trace": context.digest} | ({"row": row, "candidate": id} if ask == "depth" else {})
        table = page.table(query)
        frame = pd.DataFrame(table.columns)
        for shade in ("light", "dark"):
            (drawn,) = draw(frame, shade).to_dict()["datasets"].values()
            wanted = frame[frame["place"] == 1] if "place" in frame else frame
            assert len(drawn) == len(wanted)
            assert np.allclose([one["probability"] for one in drawn], wanted["probability"])


def test_the_python_computes_the_same(context: RunContext) -> None:
    page, bound = Page((LENS, context)), {}
    exec(page.python({"ask": "depth", "trace": context.digest, "row": 2, "candidate": 7}), bound)
    depth = candidate_depth(context.model, context.trace, 2, 7)
    torch.testing.assert_close(bound["values"].probability, depth.probability)
    assert torch.equal(bound["values"].rank, depth.rank)
    exec(page.python({"ask": "lens", "trace": context.digest}), bound)
    assert torch.equal(bound["values"].ids, logit_lens(context.model, context.trace, 5).ids)
    exec(page.python({"ask": "lens", "trace": context.digest, "lens": "tuned"}), bound)
    made = make_lens(context.checkpoint, "tuned")
    torch.testing.assert_close(bound["values"].kl, logit_lens(context.model, context.trace, 5, made).kl)


@pytest.mark.parametrize(("row", "candidate"), [(99, 0), (0, 10**6), (-1, 0), (0, "the")])
def test_what_the_run_does_not_have_is_refused(context: RunContext, row: int, candidate: object) -> None:
    with pytest.raises(ValueError, match="must be in"):
        Page((LENS, context)).answer({"ask": "depth", "trace": context.digest, "row": row, "candidate": candidate})
