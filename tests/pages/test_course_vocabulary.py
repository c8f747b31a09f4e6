"""Learning a vocabulary: every step of every method, and a text with nothing to learn."""

import pytest

from tests.pages.test_course import opened, question_of

WAYS = ("bpe", "wordpiece", "unigram")


def answered(text: str | None = None):  # type: ignore[no-untyped-def]
    app = opened(lesson="vocabulary")
    if text is not None:
        app.text_input(key="vocabulary-text").set_value(text).run()
    app.button(key=f"{question_of(app)} show").click().run()
    assert not app.exception, app.exception
    return app


def choose_way(app, way: str) -> None:  # type: ignore[no-untyped-def]
    """Opens a way, whose own question is shown without an answer."""
    (group,) = [one for one in app.button_group if one.key == "vocabulary-view"]
    group.set_value(way).run()
    for shown in [one for one in app.button if (one.key or "").endswith(" show")]:
        shown.click().run()


def test_steps_go_forward_and_back_and_the_library_is_compared() -> None:
    app = answered()
    assert "It is t + h. t + h occurs 11 ×" in app.info[0].value  # which is found in several places
    for way in WAYS:
        choose_way(app, way)
        key = f"vocabulary-step {way}"
        first = app.slider(key=key).value
        for press, value in (("forward", first + 1), ("forward", first + 2), ("back", first + 1)):
            app.button(key=f"{key} {press}").click().run()
            assert not app.exception and app.slider(key=key).value == value
            assert any(one.value.startswith(f"Step {value} of") for one in app.markdown)
        app.slider(key=key).set_value(app.slider(key=key).max).run()
        assert not app.exception
        (said,) = [one.value for one in app.caption if "tokenizers library" in one.value]
        assert ("by frequency" in said) == (way == "wordpiece")
        if way == "bpe":
            count = int(app.slider(key=key).max)
            assert f"of all {count} merged entries {count} are equal" in said


@pytest.mark.parametrize("text", ["ab", "aaaa", "猫坐在垫子上。猫坐", "🦉🦉 👩‍🚀👩‍🚀", "`a`b`a`b [x](y) $z$z"])
def test_a_short_or_foreign_text_is_learned_from(text: str) -> None:
    app = answered(text)
    for way in WAYS:
        choose_way(app, way)
        assert not app.exception, app.exception


def test_a_shorter_text_takes_the_step_back_and_a_bad_one_is_said() -> None:
    app = answered()
    app.slider(key="vocabulary-step bpe").set_value(20).run()
    app.text_input(key="vocabulary-text").set_value("abc abc").run()
    app.button(key=f"{question_of(app)} show").click().run()
    assert not app.exception and 1 <= app.slider(key="vocabulary-step bpe").value <= 2
    for bad in ("", "a b c", "x" * 201):
        app.text_input(key="vocabulary-text").set_value(bad).run()
        assert not app.exception and [one for one in app.caption if "Expected" in one.value], bad
