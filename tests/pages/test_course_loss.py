"""Loss: every view survives odd texts, and what is no text is said."""

import pytest
from streamlit.testing.v1 import AppTest

from tests.pages.test_course import opened, question_of

VIEWS = ("places", "gradient", "masked", "pairs")


def pick(app: AppTest, view: str) -> None:
    (group,) = [one for one in app.button_group if one.key == "loss-view"]
    group.set_value(view).run()
    assert not app.exception, app.exception


@pytest.mark.parametrize("text", ["zq", "🦉猫", "[MASK]", "the the the the", "`*[a](b)$"])
def test_odd_texts_are_drawn_in_every_view(text: str) -> None:
    app = opened(lesson="loss")
    app.text_input(key="loss-text").set_value(text).run()
    assert not app.exception and not [one for one in app.caption if "Expected" in one.value]
    app.button(key=f"{question_of(app)} show").click().run()
    for view in VIEWS:
        pick(app, view)
    for odd in ("x", text):
        app.text_input(key="loss-pair 1").set_value(odd).run()
        assert not app.exception


def test_bad_texts_are_said_and_another_place_has_another_gradient() -> None:
    app = opened(lesson="loss")
    for bad in ("", "a", "x" * 401, "a " * 17):
        app.text_input(key="loss-text").set_value(bad).run()
        assert not app.exception and [one for one in app.caption if "Expected" in one.value], bad
    app.text_input(key="loss-text").set_value("Max gave the red ball.").run()
    app.button(key=f"{question_of(app)} show").click().run()
    pick(app, "gradient")
    said = set()
    (place,) = [one for one in app.selectbox if one.key and one.key.startswith("loss-at")]
    for at in range(3):
        place.set_value(at).run()
        assert not app.exception
        said |= {one.value for one in app.markdown if "autograd differ" in one.value}
    assert len(said) == 3
    pick(app, "masked")
    app.slider(key="loss-draws").set_value(5000).run()
    assert not app.exception
    pick(app, "pairs")
    for bad in ("", "x" * 81):
        app.text_input(key="loss-pair 0").set_value(bad).run()
        assert not app.exception and [one for one in app.caption if "Expected" in one.value]
