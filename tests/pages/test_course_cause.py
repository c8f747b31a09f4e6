"""Cause and correlation: what a click on the wrong head is told, and what is covered before it is asked."""

from pages.controls.figures import PICKED
from pages.learn.lessons.cause import lesson as cause
from tests.pages.test_course import opened
from tests.pages.test_course_true import answered


def test_the_head_that_adds_most_is_told_from_the_one_that_is_needed() -> None:
    app = opened(lesson="cause")
    app.session_state[PICKED.name][f"{cause.QUESTION} picture"] = [1, 3]
    app.run()
    app.button(key=f"{cause.QUESTION} check").click().run()
    (wrong,) = [one.value for one in app.warning]
    assert "What adds most need not be needed most." in wrong and "it is block 1, head 3" in wrong


def test_what_the_others_add_without_the_head_is_covered_until_it_is_asked_for() -> None:
    app = answered("cause", cause_view="instead")
    assert set(app.dataframe[0].value.iloc[:, 2]) == {"?"}
    app.button(key=f"{cause.INSTEAD} show").click().run()
    assert "It is by less." in app.info[-1].value or any("It is by less." in one.value for one in app.info)
    *parts, total = (float(one) for one in app.dataframe[0].value.iloc[:, 2])
    assert abs(sum(parts) - total) < 0.01


def test_another_text_of_another_length_is_said() -> None:
    app = answered("cause")
    app.text_input(key="cause-other induction").set_value("abcab").run()
    assert not app.exception and any(":material/error:" in one.value for one in app.caption)


def test_a_text_that_the_program_does_not_know_is_said() -> None:
    app = answered("cause", cause_view="key")
    assert app.dataframe[0].value.iloc[:, 1].tolist()[0] == "0.00"
    app.text_input(key="cause-keyed").set_value("a b z").run()
    assert any("each one of a b c d" in one.value for one in app.caption)
