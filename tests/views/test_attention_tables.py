"""The stages of a head in a file, where a position bias stands between the scores and the mask."""

from dataclasses import replace

import numpy as np

from engine import load
from engine.inputs.readers import read_text
from engine.runtime.run import run
from tests.engine import tiny
from views.attention.questions import ATTENTION
from views.core.lanes import lanes
from views.core.run_context import RunContext
from views.core.table_files import Table


def test_the_bias_of_a_head_that_the_text_does_not_change_is_this_heads() -> None:
    checkpoint = load("stories")
    (lane,) = lanes(checkpoint, read_text(checkpoint, "Max gave the ball.", 64))
    model = tiny.model(tiny.config("alibi"))
    trace = run(model, tiny.IDS[:5])
    lane = replace(lane, pieces=lane.pieces[:5], config=model.config)
    page = RunContext("tiny", replace(checkpoint, model=model), trace, [lane])
    query = {"side": "", "focus": "attn", "layer": 1, "head": 2}
    found = ATTENTION.questions["steps"].table(page, query)
    assert isinstance(found, Table)
    names = ("scores", "bias", "masked_scores")
    scores, bias, masked = (np.asarray(found.columns[name]).reshape(5, 5) for name in names)
    slope = 2 ** (-8 / 4 * 3)  # Press et al. 2022: of the third head of four
    places = np.arange(5)
    seen = np.tri(5, dtype=bool)
    np.testing.assert_allclose(bias[seen], (slope * (places - places[:, None]))[seen], atol=1e-6)
    np.testing.assert_allclose((scores + bias)[seen], masked[seen], atol=1e-5)
