"""How many bits: what is covered before it is asked, and reasons that name the mistake."""

from pages.controls.figures import PICKED
from pages.learn.lessons.bits import lesson as bits
from tests.pages.test_course_true import answered


def test_a_group_without_its_outlier_loses_nothing_and_the_reason_says_what_the_largest_does() -> None:
    app = answered("bits")
    assert "2.8 / 7 = 0.4 for all of them" in app.info[0].value and "It is 4 " in app.info[0].value
    app.text_input(key="bits-weights").set_value(bits.WEIGHTS.removesuffix(" 2.8")).run()
    app.number_input(key=f"{bits.QUESTION} said").set_value(3).run()
    app.button(key=f"{bits.QUESTION} check").click().run()
    assert "it is 0 " in app.warning[0].value and "0.33 / 7 = 0.04714" in app.warning[0].value


def test_a_number_that_float16_cannot_hold_is_said() -> None:
    app = answered("bits", bits_view="floats")
    assert not any("too few for it" in one.value for one in app.caption)
    app.text_input(key="bits-number").set_value("-70000").run()
    assert any("float16 has 5 bits of exponent, too few" in one.value for one in app.caption)
    assert any("float16: -∞" in one.value for one in app.markdown)


def test_formats_of_fewer_bits_are_covered_until_they_are_asked_for() -> None:
    app = answered("bits", bits_view="model")
    assert app.dataframe[0].value.iloc[:, 0].tolist() == ["float32", "bfloat16", "int8"]
    app.button_group(key=f"{bits.HALF} said").set_value(0).run()
    app.button(key=f"{bits.HALF} check").click().run()
    assert len(app.dataframe[0].value) == 6
    (wrong,) = [one.value for one in app.warning]
    assert "Half the bits is not half as good" in wrong and "127 / 7 = 18.1 times" in wrong


def test_the_matrix_that_was_clicked_is_compared_with_those_of_the_size_of_the_worst() -> None:
    app = answered("bits", bits_view="blame")
    app.session_state[PICKED.name][f"{bits.BLAME} picture"] = [0, 0]
    app.run()
    app.button(key=f"{bits.BLAME} check").click().run()
    (wrong,) = [one.value for one in app.warning]
    assert "block 1, attn.q has 36,864 weights" in wrong and "Of 18 matrices of its size, 98,304 weights" in wrong
