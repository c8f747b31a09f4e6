"""The question about an earlier lesson with which a lesson begins."""

from pages.controls.learn import course
from pages.controls.learn.recall import MISSED, due, hide, today
from tests.pages.test_course import opened, question_of

WAY = list(course.EVENING)


def recalled(lesson: str, **address: str) -> str:
    """The heading of what is asked, "" where nothing is."""
    app = opened(lesson=lesson, **address)
    return next((one.label for one in app.expander if one.label.startswith("Before you begin")), "")


def test_a_lesson_that_is_done_is_asked_about_two_lessons_later() -> None:
    assert not recalled(WAY[2], way="evening")
    assert course.read_lesson(WAY[0]).title in recalled(WAY[2], way="evening", done=WAY[0])
    assert not recalled(WAY[1], way="evening", done=WAY[0])


def test_what_was_answered_wrongly_is_asked_again_until_it_is_right() -> None:
    app = opened(lesson=WAY[2])
    app.button(key=f"{question_of(app)} show").click().run()  # seen is not found
    assert app.session_state[MISSED.name] == {WAY[2]: today()}
    app.session_state[MISSED.name] = {"loss": "2000-01-01"}  # another day: wherever it stands
    app.query_params["lesson"] = WAY[4]
    app.run()
    (asked,) = [one for one in app.expander if one.label.startswith("Before you begin")]
    assert course.read_lesson("loss").title in asked.label
    key = next(one.key for one in app.button if one.key and one.key.startswith("recall loss") and "show" in one.key)
    app.button(key=key).click().run()
    assert app.session_state[MISSED.name] == {"loss": "2000-01-01"}
    app = opened(lesson=WAY[4])
    app.session_state[MISSED.name] = {"loss": "2000-01-01"}
    app.run()
    terms, key = course.read_lesson("loss").terms, key.removesuffix(" show")
    (choice,) = [one for one in app.button_group if one.key == f"{key} said"]
    right = next(at for at, option in enumerate(choice.options) if option in terms)
    choice.set_value(right).run()
    app.button(key=f"{key} check").click().run()
    assert app.session_state[MISSED.name] == {}
    assert any(one.value.endswith(".") and "Right" in one.value for one in app.success)


def test_a_meaning_does_not_say_its_term() -> None:
    assert hide("A mask hides; the Mask is causal.", "mask") == "A … hides; the … is causal."
    assert due(WAY[0], WAY, WAY) is None
