"""A turn in a conversation: reasons that name the slip, and what is covered before it is asked."""

import pytest

from pages.learn.lessons.conversation import lesson as conversation
from tests.pages.test_course import opened
from tests.pages.test_course_true import answered


@pytest.mark.parametrize(("said", "reason"), [(14, "So it is in pretraining"), (6, "the model would not stop")])
def test_a_slip_in_what_is_learned_is_named(said: int, reason: str) -> None:
    app = opened(lesson="conversation")
    app.number_input(key=f"{conversation.QUESTION} said").set_value(said).run()
    app.button(key=f"{conversation.QUESTION} check").click().run()
    (wrong,) = [one.value for one in app.warning]
    assert reason in wrong and "6 + 1 = 7" in wrong


def test_the_loss_of_the_users_text_is_covered_until_it_is_asked_for() -> None:
    app = answered("conversation", conversation_view="models")
    assert app.dataframe[0].value.iloc[:, 1].tolist() == ["?", "?"]
    app.button(key=f"{conversation.OWN} show").click().run()
    base, instructed = map(float, app.dataframe[0].value.iloc[:, 1])
    assert instructed > base + 3


def test_a_mark_that_is_typed_is_a_token_and_another_mark_is_followed() -> None:
    app = answered("conversation", conversation_view="marks")
    assert len(app.dataframe[0].value) == 1
    app.button(key=f"{conversation.UNMARKED} show").click().run()
    written = app.dataframe[0].value.iloc[:, -1].tolist()
    assert len(written) == 5 and "Je vois le chien." in written[0] and written[1] == "<|endoftext|>"
    assert written[2] == " I see the dog.<|endoftext|>"  # what [toEnglish] asks for
    app.text_input(key="conversation-user").set_value("I see the dog. [toEnglish]").run()
    assert not app.exception and "I see the dog. [toEnglish]" in app.dataframe[0].value.iloc[0, 1]
