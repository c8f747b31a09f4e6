"""From vector to word: every view survives odd logits and texts, and what is none is said."""

import pytest
from streamlit.testing.v1 import AppTest

from tests.pages.test_course import opened, question_of

VIEWS = ("temperature", "table", "sample", "beams")


def pick(app: AppTest, view: str) -> None:
    (group,) = [one for one in app.button_group if one.key == "vector_to_word-view"]
    group.set_value(view).run()
    assert not app.exception, app.exception


@pytest.mark.parametrize("text", ["the the", "🦉猫`*[a](b)", "La fille voit", "a " * 16])
@pytest.mark.parametrize("logits", ["1000, -1000", "[[0, 0, 0]]"])
def test_odd_input_is_drawn_in_every_view(text: str, logits: str) -> None:
    app = opened(lesson="vector_to_word")
    app.text_input(key="vector_to_word-text").set_value(text).run()
    app.text_input(key="vector_to_word-logits").set_value(logits).run()
    assert not app.exception and not [one for one in app.caption if "Expected" in one.value]
    app.button(key=f"{question_of(app)} show").click().run()
    for view in VIEWS:
        pick(app, view)
        for temperature in (0.0, 3.0) if view in ("temperature", "sample") else ():
            app.slider(key="vector_to_word-temperature").set_value(temperature).run()
            assert not app.exception
    for beams in (1, 5):
        app.slider(key="vector_to_word-beams").set_value(beams).run()
        assert not app.exception


def test_bad_input_is_said_and_the_step_and_the_end_are_drawn() -> None:
    app = opened(lesson="vector_to_word")
    for bad in ("", "a", "[1]", "[[1, 2], [3, 4]]", "1 2 3 4 5 6 7 8 9", "[1e5, 2]", "[1e999, 1]"):
        app.text_input(key="vector_to_word-logits").set_value(bad).run()
        assert not app.exception and [one for one in app.caption if "Expected" in one.value], bad
    app = opened(lesson="vector_to_word")
    for bad in ("", "a", "x" * 401, "a " * 17):
        app.text_input(key="vector_to_word-text").set_value(bad).run()
        assert not app.exception and [one for one in app.caption if "Expected" in one.value], bad
    app.text_input(key="vector_to_word-text").set_value("The red book is").run()
    app.button(key=f"{question_of(app)} show").click().run()
    assert any(one.value == "`[0.0351, 0.2595, 0.7054]`" for one in app.markdown)
    pick(app, "sample")
    app.slider(key="vector_to_word-most").set_value(1).run()
    assert any("maximum length of 1" in one.value for one in app.markdown)
    app.slider(key="vector_to_word-most").set_value(30).run()
    assert any("end token" in one.value and "ends the text" in one.value for one in app.markdown)
    pick(app, "beams")
    (step,) = [one for one in app.slider if one.key and one.key.startswith("vector_to_word-step")]
    step.set_value(step.max).run()
    assert not app.exception
