"""The page Similarity without a browser: its numbers are the engine's, whatever way a vector is made."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from engine import load, run
from engine.analysis.text_vectors import cosines, split_cosine, text_vectors, vector_shares
from engine.model.config import Pooling

APP = str(Path(__file__).parents[2] / "app.py")
TEXT, OTHER = "Once there was a girl who had a cat.", "A boy had a big dog."


def opened(**address: str) -> AppTest:
    app = AppTest.from_file(APP, default_timeout=60)
    for name, value in address.items():
        app.query_params[name] = value
    app.switch_page("pages/analyse/similarity.py").run()
    assert not app.exception, app.exception
    return app


def told(app: AppTest) -> str:
    found = "\n".join(one.value for kind in (app.markdown, app.caption, app.warning) for one in kind)
    return found.replace("\\", "")


@pytest.mark.parametrize(("model", "pooling"), [("tales-bert", "mean"), ("stories", "last"), ("tales-bert", "max")])
def test_the_cosine_is_the_engines_and_the_sum_of_its_pairs(model: str, pooling: Pooling) -> None:
    app = opened(model=model, text=TEXT, others=f"{OTHER}\nThe sun was hot.", pooled=pooling)
    checkpoint = load(model)
    vectors = text_vectors(checkpoint, [TEXT, OTHER], pooling=pooling)
    found = re.search(r"is \*\*(-?[\d.]+)\*\*: the sum of [\d,]+ pairs? of tokens, (-?[\d.]+)\.", told(app))
    assert found is not None
    cosine, parts = found.groups()
    assert float(cosine) == pytest.approx(float(cosines(vectors[:1], vectors[1:])[0, 0]), abs=1e-4)
    assert float(parts) == pytest.approx(float(cosine), abs=1e-4)
    traces = [run(checkpoint.model, checkpoint.tokenizer.encode(text)) for text in (TEXT, OTHER)]
    shares = [vector_shares(checkpoint.model, trace, pooling) for trace in traces]
    assert split_cosine(*shares).cosine == pytest.approx(float(cosine), abs=1e-4)
    assert not app.warning and "Compare both runs" in told(app)


def test_what_has_no_vector_is_told() -> None:
    for model in ("t5-tasks", "digits-vit"):
        assert "choose another model" in opened(model=model).warning[0].value
    assert "at least one other text" in opened(model="stories", others="\n").warning[0].value
