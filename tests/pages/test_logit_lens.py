"""The page Logit lens without a browser: its controls, what a link restores, and what it cannot show."""

from dataclasses import replace
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from engine.analysis import lenses
from engine.runtime import library

APP = str(Path(__file__).parents[2] / "app.py")


def opened(**address: str) -> AppTest:
    app = AppTest.from_file(APP, default_timeout=60)
    for name, value in address.items():
        app.query_params[name] = value
    app.switch_page("pages/analyse/logit_lens.py").run()
    assert not app.exception, app.exception
    return app


def test_the_page_opens_on_what_comes_next_and_follows_what_is_chosen() -> None:
    app = opened(model="stories", text="Max gave the ball.")
    row, candidate = app.selectbox(key_of(app, "position")), app.selectbox(key_of(app, "candidate"))
    trace = library.traces.trace("stories", library.checkpoint("stories").tokenizer.encode("Max gave the ball."))
    assert row.value == len(trace["logits"][0]) - 1
    assert candidate.value == int(trace["logits"][0, -1].argmax())
    row.set_value(1).run()
    assert app.query_params["row"] == "1"
    candidate = app.selectbox(key_of(app, "candidate"))
    assert candidate.value == int(trace["logits"][0, 1].argmax())
    second = candidate.options[1]
    candidate.select(second).run()
    pieces = library.checkpoint("stories").tokenizer.pieces
    assert pieces[int(app.query_params["candidate"])] == second


def test_another_lens_is_made_once_somebody_asks_for_it_and_says_of_what() -> None:
    app = opened(model="stories", text="Max gave the ball.", lens="tuned")
    assert any("learned in 256 steps on 64 texts" in one.value for one in app.caption)
    app.segmented_control(key="lens").set_value("logit").run()
    assert not app.exception and not any("learned" in one.value for one in app.caption)


def test_a_published_lens_says_whose_it_is_and_a_model_without_one_where_to_put_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    app = opened(model="induction", lens="published")
    assert "has no published lens; put config.json and params.pt" in app.warning[0].value
    made = replace(lenses.no_translators(library.checkpoint("induction").model), base="org/*base*")
    monkeypatch.setattr(lenses, "find_published", lambda _checkpoint: made)
    app.run()
    assert not app.warning and any(r"learned for org/\*base\* " in one.value for one in app.caption)


def key_of(app: AppTest, label: str) -> str:
    return next(one.key for one in app.selectbox if one.label == label)


def test_a_link_restores_the_place_and_says_what_it_cannot() -> None:
    app = opened(model="stories", text="Max gave the ball.", row="2", candidate="7")
    assert [app.selectbox(key_of(app, label)).value for label in ("position", "candidate")] == [2, 7]
    app = opened(model="stories", text="Max gave the ball.", row="x", candidate="7")
    assert "row is 'x' and must be a whole number" in app.info[0].value
