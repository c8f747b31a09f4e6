"""Encoder, decoder, both: every view survives odd texts, and what is no text keeps the last one."""

import pytest
from streamlit.testing.v1 import AppTest

from engine.data.kinds.answering import ANSWER, SUMMARISE
from engine.data.kinds.text_to_text import JUDGE, SORT
from tests.pages.test_course import opened, question_of

VIEWS = ("three", "across", "shifted", "tasks", "written")
WRITTEN = {
    SUMMARISE: "**My father sees a cat and sleeps.**",
    ANSWER: "**My father**",
    JUDGE: "**acceptable**",
    SORT: "**a cat father garden in My sees small the**",
}


def show(app: AppTest) -> None:
    app.button(key=f"{question_of(app)} show").click().run()
    for view in VIEWS:
        (group,) = [one for one in app.button_group if one.key == "encoder_decoder-view"]
        group.set_value(view).run()
        assert not app.exception, app.exception


@pytest.mark.parametrize("text", ["the the", "🦉 猫 🦉", "[MASK] `a`", "a " * 15, "She gives the red book to the boy."])
def test_odd_texts_are_shown_in_every_view(text: str) -> None:
    app = opened(lesson="encoder_decoder")
    app.text_input(key="encoder_decoder-text").set_value(text).run()
    assert not app.exception and not [one for one in app.caption if "Expected" in one.value]
    show(app)


def test_bad_texts_are_said() -> None:
    app = opened(lesson="encoder_decoder")
    for bad in ("", "a", "x" * 61, "a " * 20):
        app.text_input(key="encoder_decoder-text").set_value(bad).run()
        assert not app.exception and [one for one in app.caption if "Expected" in one.value], bad
    app = opened(lesson="encoder_decoder")
    show(app)
    for bad in ("", "x" * 61, "🦉" * 20):
        app.text_input(key="encoder_decoder-target").set_value(bad).run()
        assert not app.exception and [one for one in app.caption if "Expected" in one.value], bad
    for odd in ("🦉", "le"):
        app.text_input(key="encoder_decoder-target").set_value(odd).run()
        assert not app.exception and not [one for one in app.caption if "Expected" in one.value], odd


def test_one_text_is_summed_up_asked_about_judged_and_sorted() -> None:
    app = opened(lesson="encoder_decoder")
    show(app)
    (group,) = [one for one in app.button_group if one.key == "encoder_decoder-view"]
    group.set_value("tasks").run()
    for task, words in WRITTEN.items():
        (group,) = [one for one in app.button_group if one.key == "encoder_decoder-task"]
        group.set_value(task).run()
        assert not app.exception and any(words in one.value for one in app.markdown), task
    app.text_input(key="encoder_decoder-task-sentence").set_value("x" * 121).run()
    assert not app.exception and [one for one in app.caption if "Expected" in one.value]
