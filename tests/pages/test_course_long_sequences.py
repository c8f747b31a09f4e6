"""Long sequences: every view with its steps, odd texts, and sizes at their ends."""

import re

import pytest

from tests.pages.test_course import opened, question_of
from tests.pages.test_course_batch import pick


def test_every_view_and_step_draws() -> None:
    app = opened(lesson="long_sequences")
    app.number_input(key="long_sequences-length").set_value(32).run()
    app.number_input(key="long_sequences-times").set_value(2).run()
    app.button(key=f"{question_of(app)} show").click().run()
    assert any("4.0× the bytes" in one.value for one in app.markdown)
    app.button(key="long_sequences-again").click().run()
    assert not app.exception, app.exception
    pick(app, "long_sequences-view", "local")
    for odd in ("a b", "猫坐", "🦉🦉", "[MASK]`*", "", "a", "word " * 30):
        app.text_input(key="long_sequences-text").set_value(odd).run()
        assert not app.exception, app.exception
        assert bool([one for one in app.caption if "Expected" in one.value]) == (odd in ("", "a", "word " * 30)), odd
    pick(app, "long_sequences-local", "block")
    app.number_input(key="long_sequences-block").set_value(8).run()
    assert any("64 of 64" in one.value for one in app.markdown)


@pytest.mark.parametrize("odd", ["one", "猫坐在垫子上。", "🦉", "a " * 59, "", "a " * 61])
def test_any_text_is_crossed(odd: str) -> None:
    app = opened(lesson="long_sequences")
    app.button(key=f"{question_of(app)} show").click().run()
    pick(app, "long_sequences-view", "nearest")
    app.text_input(key="long_sequences-source").set_value(odd).run()
    assert not app.exception, app.exception
    assert bool([one for one in app.caption if "Expected" in one.value]) == (odd in ("", "a " * 61))
    app.number_input(key="long_sequences-k").set_value(60).run()
    assert any(re.search("holds? 100% of", one.value) for one in app.markdown)


def test_all_lists_and_all_keys_find_everything() -> None:
    app = opened(lesson="long_sequences")
    app.button(key=f"{question_of(app)} show").click().run()
    pick(app, "long_sequences-view", "codes")
    for step in ("pieces", "lists", "tables", "recall"):
        pick(app, "long_sequences-step", step)
        if step == "tables":
            app.toggle(key="long_sequences-distances").set_value(True).run()
            assert not app.exception and any("squared distance" in one.value for one in app.markdown)
    app.number_input(key="long_sequences-visited").set_value(32).run()
    assert any("keys, 100%." in one.value for one in app.markdown)
    app.text_input(key="long_sequences-query").set_value("").run()
    assert not app.exception and [one for one in app.caption if "Expected" in one.value]
