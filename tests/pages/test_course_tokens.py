"""Tokens: every view survives every example, and what is no text keeps the last one."""

import pytest

from engine.course.tokens import word_entries
from pages.controls.figures import PICKED
from tests.pages.test_course import opened, question_of


@pytest.mark.parametrize("example", range(5))
def test_examples_are_drawn_in_every_view(example: int) -> None:
    app = opened(lesson="tokens")
    app.button(key=f"tokens-example {example}").click().run()
    app.button(key=f"{question_of(app)} show").click().run()
    for view in ("sizes", "special", "pieces"):
        (group,) = [one for one in app.button_group if one.key == "tokens-view"]
        group.set_value(view).run()
        assert not app.exception, app.exception


def test_a_wrong_end_is_explained_and_what_is_shown_is_escaped_once() -> None:
    app = opened(lesson="tokens")
    app.session_state[PICKED.name]["tokens question picture"] = [4]
    app.run()
    app.button(key="tokens question check").click().run()
    assert "character 5, “e”; it is character 1, “p”. There a word ends" in app.warning[0].value
    assert "It is cut as p \\| h \\| one" in app.warning[0].value


def test_a_bad_text_is_said() -> None:
    app = opened(lesson="tokens")
    for bad in ("", " ", "x" * 61):
        app.text_input(key="tokens-text").set_value(bad).run()
        assert not app.exception and [one for one in app.caption if "Expected" in one.value], bad
    for odd in ("x", "`*[a](b)$", "\u200b", "🦉" * 60):
        app.text_input(key="tokens-text").set_value(odd).run()
        assert not app.exception and not [one for one in app.caption if "Expected" in one.value], odd


def test_a_vocabulary_of_words_that_has_them_keeps_a_word_and_its_plural_apart() -> None:
    entries = word_entries("phone, phones, phone")
    assert list(entries) == ["phone", "phones"] and len(set(entries.values())) == 2
