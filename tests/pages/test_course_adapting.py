"""Adapting: every adapter and matrix, every strength, odd texts."""

import pytest

from tests.pages.test_course import opened, question_of
from tests.pages.test_course_batch import pick


def answered_at(view: str):  # type: ignore[no-untyped-def]
    app = opened(lesson="adapting")
    app.button(key=f"{question_of(app)} show").click().run()
    pick(app, "adapting-view", view)
    return app


@pytest.mark.parametrize("name", ["style-cheerful", "style-old", "style-pirate"])
def test_every_adapter_opens(name: str) -> None:
    app = opened(lesson="adapting")
    app.selectbox(key="adapting-adapter").set_value(name).run()
    app.selectbox(key="adapting-matrix").set_value("blocks.4.attn.q").run()
    app.button(key=f"{question_of(app)} show").click().run()
    assert not app.exception and any("rank 4" in one.value for one in app.markdown)
    assert not any(".attn.k" in option for option in app.selectbox(key="adapting-matrix").options)


ODD = {"": True, "a": True, "猫坐在垫子上。": False, "🦉🦉": False, "[MASK]`*": False, "word " * 90: True}


@pytest.mark.parametrize("view, field", [("text", "adapting-prompt"), ("loss", "adapting-story")])
def test_odd_texts_are_read_and_bad_ones_are_said(view: str, field: str) -> None:
    app = answered_at(view)
    for text, bad in ODD.items():
        app.text_input(key=field).set_value(text).run()
        assert not app.exception, app.exception
        assert bool([one for one in app.caption if "Expected" in one.value]) == bad, text


def test_strength_is_the_readers() -> None:
    app = answered_at("text")
    for strength in (0.0, 2.0):
        app.slider(key="adapting-strength").set_value(strength).run()
        assert not app.exception, app.exception
    assert any("differ by at most" in one.value for one in app.caption)


def test_separators_and_rewards_take_any_text() -> None:
    app = answered_at("separator")
    assert any("The cat sleeps." in one.value for one in app.text)
    for text in ("a", "猫", "🦉", "[toFrench] [toEnglish]", "", "le chat " * 20):
        app.text_input(key="adapting-sentence").set_value(text).run()
        assert not app.exception, app.exception
    pick(app, "adapting-view", "reward")
    app.button(key="adapting reward question show").click().run()
    app.text_input(key="adapting-ending").set_value("happy happy happy").run()
    assert any("gives yours 3" in one.value for one in app.caption)
    app.select_slider(key="adapting-step").set_value(0).run()
    assert not app.exception, app.exception
