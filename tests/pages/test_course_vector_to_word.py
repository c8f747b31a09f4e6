"""From vector to word: every view survives odd logits and texts, what is none is said, and two words are compared."""

import pytest
from streamlit.testing.v1 import AppTest

from engine.course.vector_to_word import compare_continuations
from pages.learn.lessons.vector_to_word import lesson
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


def test_two_words_are_compared_after_two_contexts_both_ways_round() -> None:
    app = opened(lesson="vector_to_word")
    app.button(key=f"{question_of(app)} show").click().run()
    pick(app, "pair")
    assert not app.dataframe  # it is asked for
    app.number_input(key=f"{lesson.PAIR} said").set_value(-4.9).run()
    app.button(key=f"{lesson.PAIR} check").click().run()
    assert "the other way round" in app.warning[0].value and "140: so many times" in app.warning[0].value
    table = app.dataframe[0].value
    found = compare_continuations(lesson.EVERYDAY, lesson.CONTEXTS, lesson.WORDS)
    shown = [[float(one) for one in row] for row in table.iloc[:, 1:].values]
    assert [row[:2] for row in shown[:2]] == [[round(one, 2) for one in row] for row in found.tolist()]
    both = found[0, 0] - found[0, 1] - found[1, 0] + found[1, 1]
    assert shown[2][2] == round(float(both), 2) and any(
        f"same {float(both):.1f} nats" in one.value for one in app.caption
    )
    said = [one.value for one in app.caption if "likelier" in one.value]
    assert "“house” is likelier than “shout”" in said[0] and "“shout” is likelier than “house”" in said[1]

    app.text_input(key="vector_to_word-word-1").set_value("house").run()  # the same word
    assert not app.exception
    app.button(key=f"{lesson.PAIR} show").click().run()
    assert len([one for one in app.caption if "are as likely" in one.value]) == 2
    app.text_input(key="vector_to_word-word-1").set_value("🦉" * 20).run()
    app.text_input(key="vector_to_word-context-1").set_value(lesson.CONTEXTS[0]).run()
    assert not app.exception
    app.button(key=f"{lesson.PAIR} show").click().run()
    assert not app.exception and any("as likely after" in one.value for one in app.caption)
    for key, bad in (("context-0", "a"), ("word-0", " "), ("word-1", "x" * 21)):
        app.text_input(key=f"vector_to_word-{key}").set_value(bad).run()
        assert not app.exception and [one for one in app.caption if "Expected" in one.value], bad
