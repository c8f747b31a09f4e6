"""How much of it: reasons that name the mistake, and what is covered before it is asked."""

from pages.learn.lessons.how_much import lesson as how_much
from tests.pages.test_course import opened
from tests.pages.test_course_true import answered


def test_half_of_the_loss_and_the_line_are_wrong_for_their_own_reasons() -> None:
    for said, reason in ((0, "not half the loss"), (1, "A law that was fitted here holds here.")):
        app = opened(lesson="how_much")
        options = app.button_group(key=f"{how_much.QUESTION} said").options
        assert "half of the fifth" in options[0] and "on the line" in options[1]
        app.button_group(key=f"{how_much.QUESTION} said").set_value(said).run()
        app.button(key=f"{how_much.QUESTION} check").click().run()
        (wrong,) = [one.value for one in app.warning]
        assert reason in wrong and "and the sixth has 5.0" in wrong


def test_weights_for_each_token_are_told_from_tokens_for_each_weight() -> None:
    app = answered("how_much", how_much_view="published")
    assert "GPT-3" not in app.dataframe[0].value.iloc[:, 0].tolist()
    app.number_input(key=f"{how_much.GPT3} said").set_value(0.58).run()
    app.button(key=f"{how_much.GPT3} check").click().run()
    (wrong,) = [one.value for one in app.warning]
    assert "weights for each token" in wrong and "300 / 175 = 1.71" in wrong and "3,500 billion" in wrong
    app.text_input(key="how-much-weights").set_value("70").run()
    app.text_input(key="how-much-tokens").set_value("1400").run()
    yours, *_others, chinchilla = app.dataframe[0].value.to_numpy().tolist()
    assert yours[1:] == chinchilla[1:] and yours[3] == "20"
