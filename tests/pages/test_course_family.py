"""The family: every member in every view, sizes that do not fit, and odd texts."""

import pytest

from engine.course.family import FAMILY
from tests.pages.test_course import opened, question_of
from tests.pages.test_course_batch import pick

VIEWS = ("parts", "estimate", "switches", "tasks")


@pytest.mark.parametrize("name", FAMILY)
def test_every_member_is_counted(name: str) -> None:
    app = opened(lesson="family")
    app.selectbox(key="family-model").set_value(name).run()
    app.button(key=f"{question_of(app)} show").click().run()
    for view in VIEWS:
        pick(app, "family-view", view)
    for task in ("short", "zero"):
        pick(app, "family-task", task)


def test_what_does_not_fit_is_said_and_odd_texts_are_read() -> None:
    app = opened(lesson="family")
    app.number_input(key="family-width bert-base").set_value(770).run()
    assert not app.exception and [one for one in app.caption if "12 heads divide" in one.value]
    app.number_input(key="family-width bert-base").set_value(768).run()
    app.button(key=f"{question_of(app)} show").click().run()
    assert any("109,482,240" in one.value for one in app.markdown)
    pick(app, "family-view", "tasks")
    for odd in ("a", "猫坐在垫子上。", "🦉" * 20, "[MASK]`*", "a " * 90):
        app.text_input(key="family-text answer").set_value(odd).run()
        assert not app.exception and not [one for one in app.caption if "Expected" in one.value], odd
    for odd in ("🦉" * 5 + ", b", "猫, 狗", ", ".join("abcdefgh")):
        app.text_input(key="family-answers answer").set_value(odd).run()
        assert not app.exception and not [one for one in app.caption if "Expected" in one.value], odd
    for bad in ("", "🦉" * 100, "x" * 401):
        app.text_input(key="family-text answer").set_value(bad).run()
        app.text_input(key="family-answers answer").set_value(bad).run()
        assert not app.exception and len([one for one in app.caption if "Expected" in one.value]) == 2, bad
    pick(app, "family-task", "short")
    app.text_input(key="family-text short").set_value("One sentence").run()
    assert [one for one in app.caption if "its own summary" in one.value]
