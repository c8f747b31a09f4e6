"""Find the circuit: every model and text is drawn, and what was chosen is marked by the answer key."""

from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from pages.controls.learn.predict import QUESTIONS
from pages.learn.lessons.find_circuit.lesson import ADDED, ASKED, QUESTION, ZEROED
from tests.pages.test_course import opened


def pick(app: AppTest, key: str, value: Any) -> None:
    (group,) = [one for one in app.button_group if (one.key or "").startswith(key)]
    group.set_value(value).run()
    assert not app.exception, app.exception


def test_what_was_chosen_is_marked_by_the_key() -> None:
    app = opened(lesson="find_circuit")
    pick(app, f"{QUESTION} said", [1, 3])  # a spare head, and the one that answers
    app.button(key=f"{QUESTION} check").click().run()
    (said,) = app.warning
    assert "Needed, of what you named: block 2, head 1." in said.value
    assert "weights are 0: block 1, head 2." in said.value and "Needed too: block 1, head 1." in said.value
    assert "block 1, head 1 is seen when token 1 of this text becomes “b”" in said.value
    table = app.dataframe[1].value
    assert table.iloc[:, 0].tolist() == ["block 1, head 1", "block 2, head 1"]
    app.button(key=f"{QUESTION} again").click().run()
    assert not app.exception and len(app.dataframe) == 1  # the program of the next model is covered
    assert app.button(key=f"{QUESTION} check").disabled
    pick(app, f"{QUESTION} said", [0, 2])
    app.button(key=f"{QUESTION} check").click().run()
    assert app.success and app.session_state[QUESTIONS.name][QUESTION].right


def test_parts_chosen_in_one_model_are_not_those_of_another() -> None:
    app = opened(lesson="find_circuit")
    pick(app, "find-circuit-model", "3")
    pick(app, f"{QUESTION} said", [0, 8])
    pick(app, "find-circuit-model", "2")  # which has no ninth part
    app.button(key=f"{QUESTION} show").click().run()
    assert not app.exception and "block 1, head 1 + block 1, MLP" in app.info[0].value


@pytest.mark.parametrize("model", ASKED)
def test_every_view_is_drawn_of_every_model(model: int) -> None:
    app = opened(lesson="find_circuit")
    pick(app, "find-circuit-model", str(model))
    app.button(key=f"{QUESTION} show").click().run()
    for view, key in (("added", ADDED), ("zeroed", ZEROED)):
        pick(app, "find-circuit-view", view)
        app.button(key=f"{key} show").click().run()
        assert not app.exception and len(app.info) == 2
    pick(app, "find-circuit-view", "length")
    for text, refused in (("a b b", True), ("b d a c b d", False)):
        app.text_input(key="find-circuit-counted").set_value(text).run()
        assert not app.exception and any("last two tokens differ" in one.value for one in app.caption) is refused
    text = app.text_input(key=f"find-circuit-text {model}")
    for bad in ("", "a b x", "1 2", "a a a a a a a a"):
        text.set_value(bad).run()
        assert any("Expected" in one.value for one in app.caption), bad
    for fine in (("a b c", "a b c d"), ("a a b", "a b c d"), ("4 3 2 1", "1 1 1"))[model - 1]:
        text.set_value(fine).run()
        assert not app.exception and not any("Expected" in one.value for one in app.caption), fine


def test_texts_that_are_answered_alike_are_said() -> None:
    app = opened(lesson="find_circuit")
    app.text_input(key="find-circuit-text 1").set_value("a b c").run()
    pick(app, "find-circuit-token", "d")  # again no token stands there twice
    assert any("answered alike" in one.value for one in app.caption)
    app.button(key=f"{QUESTION} show").click().run()
    assert not app.exception and not [one for one in app.button if one.key == f"{ADDED} check"]


def test_another_model_is_another_question_once_one_was_shown() -> None:
    app = opened(lesson="find_circuit")
    app.button(key=f"{QUESTION} show").click().run()
    pick(app, "find-circuit-model", "2")
    assert app.button(key=f"{QUESTION} check").disabled
