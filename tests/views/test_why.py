"""The pages Why this token and Why this head draw the engine's numbers, which add up in every table."""

import pandas as pd
import pytest
import torch

from engine import load, run
from engine.analysis.attribution import attribute
from engine.analysis.composition_in_run import compose_in_run
from engine.analysis.score_split import split_score
from engine.analysis.weights.composition import compose
from engine.inputs.readers import read_text
from views.core.codegen import Fields
from views.core.lanes import lanes
from views.core.questions import Page
from views.core.run_context import RunContext
from views.why.charts import HEAD_CHARTS, TOKEN_CHARTS, TOKENS, draw_sources
from views.why.questions import HEAD, HEADS, TOKEN

TEXT = "The girl was thirsty, so she drank a"
PAIR = {"side": "", "focus": "attn", "layer": 4, "head": 1, "pos": 8, "key": 7}


@pytest.fixture(scope="module")
def context() -> RunContext:
    checkpoint = load("everyday")
    reading = read_text(checkpoint, TEXT, 64)
    fields = Fields("text", 64, text=TEXT)
    trace = run(checkpoint.model, reading.read)
    return RunContext("everyday", checkpoint, trace, lanes(checkpoint, reading), fields=lambda: fields)


def test_tables_add_up_to_the_logit_and_to_the_score(context: RunContext) -> None:
    page, row, id = Page((TOKEN, context), (HEAD, context)), 8, 1597
    asked = {"trace": context.digest, "row": row, "candidate": id}
    parts = page.table({"ask": "parts", **asked}).columns
    logit = float(context.trace["logits"][0, row, id])
    assert sum(parts["value"]) == pytest.approx(logit, abs=1e-4)
    sources = pd.DataFrame(page.table({"ask": "sources", **asked}).columns)
    by_part = dict(zip(parts["part"], parts["value"], strict=True))
    assert sources["part"].nunique() == HEADS
    for part, value in sources.groupby("part")["value"].sum().items():
        assert value == pytest.approx(by_part[part], abs=1e-5)
    split = page.table({"ask": "split", "trace": context.digest, **PAIR}).columns
    assert sum(split["value"]) == pytest.approx(float(context.trace["blocks.4.attn.scores"][0, 1, 8, 7]), abs=1e-4)
    assert "all others" in split["query"] and "all others" in split["key"]


def test_the_charts_draw_the_tables_in_either_shade(context: RunContext) -> None:
    page = Page((TOKEN, context), (HEAD, context))
    whole = {"row": 8, "candidate": 5, **PAIR}
    for ask, draw in (*TOKEN_CHARTS.values(), *HEAD_CHARTS.values()):
        names = page.home[ask][0][0].parameters
        for layer in (0, 4):
            query = {"ask": ask, "trace": context.digest} | {k: v for k, v in whole.items() if k in names}
            frame = pd.DataFrame(page.table(query | ({"layer": layer} if "layer" in names else {})).columns)
            for shade in ("light", "dark"):
                drawn = draw(frame, shade).to_dict()
                (data,) = drawn["datasets"].values()
                assert len(data) == max(len(frame), 1)


def test_the_python_computes_the_same(context: RunContext) -> None:
    page, bound = Page((TOKEN, context), (HEAD, context)), {}
    exec(page.python({"ask": "parts", "trace": context.digest, "row": 2, "candidate": 7, "against": 9}), bound)
    assert bound["values"].values == attribute(context.model, context.trace, 2, 7, 9).values
    exec(page.python({"ask": "split", "trace": context.digest, **PAIR}), bound)
    torch.testing.assert_close(bound["values"].values, split_score(context.model, context.trace, 4, 1, 8, 7).values)


def test_composition_is_that_of_the_matrices_written_out(context: RunContext) -> None:
    weights, found = context.model.state_dict(), compose(context.model, 2, 3)
    width = context.model.config.d_head

    def matrix(layer: int, head: int, left: str, right: str) -> torch.Tensor:
        rows = slice(head * width, (head + 1) * width)
        first = weights[f"blocks.{layer}.attn.{left}.weight"][rows].double()
        if right == "out":
            return first.T @ weights[f"blocks.{layer}.attn.out.weight"][:, rows].double().T
        return first.T @ weights[f"blocks.{layer}.attn.{right}.weight"][rows].double()

    for layer, head in ((0, 0), (1, 4)):
        written, qk, ov = matrix(layer, head, "v", "out"), matrix(2, 3, "q", "k"), matrix(2, 3, "v", "out")
        for values, second in ((found.q, qk), (found.k, qk.T), (found.v, ov)):
            wanted = (written @ second).norm() / (written.norm() * second.norm())
            assert float(values[layer, head]) == pytest.approx(float(wanted), rel=1e-6)


def test_the_composition_in_a_run_is_drawn_from_the_same_shares(context: RunContext) -> None:
    page, bound = Page((HEAD, context)), {}
    query = {"ask": "composition", "trace": context.digest, "side": "", "layer": 2, "head": 3, "by": "run"}
    found = compose_in_run(context.model, context.trace, 2, 3)
    table = page.table(query).columns
    assert table["score"] == torch.stack([found.q, found.k, found.v]).flatten().tolist()
    exec(page.python(query), bound)
    torch.testing.assert_close(bound["values"].v, found.v)


def test_of_a_long_text_the_tokens_that_count_most_have_cells_of_their_own() -> None:
    key = [at for _ in range(2) for at in range(TOKENS + 9)]
    values = torch.randn(len(key), generator=torch.Generator().manual_seed(0)).tolist()
    columns = {"part": ["a"] * (len(key) // 2) + ["b"] * (len(key) // 2), "key": key, "key_token": map(str, key)}
    drawn = draw_sources(pd.DataFrame({**columns, "value": values, "attention": 0.0}), "light").to_dict()
    (data,) = drawn["datasets"].values()
    assert len(data) == 2 * TOKENS and sum(one["token"] == "all others" for one in data) == 2
    assert sum(one["value"] for one in data) == pytest.approx(sum(values))
