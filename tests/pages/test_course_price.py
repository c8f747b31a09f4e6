"""The price of a token: reasons that name the slip of an answer, and what is covered before it is asked."""

import pytest
from streamlit.testing.v1 import AppTest

from pages.learn.lessons.price import lesson as price
from tests.pages.test_course_true import answered


def say(app: AppTest, key: str, value: float) -> str:
    """The warning that an answer gets."""
    app.number_input(key=f"{key} said").set_value(value).run()
    app.button(key=f"{key} check").click().run()
    (wrong,) = app.warning
    return wrong.value


@pytest.mark.parametrize(
    ("said", "slip"),
    [(4096, "a key and a value for each query head"), (512, "with the keys alone"), (32, "in one layer")],
)
def test_a_slip_in_the_bytes_of_a_cache_is_named(said: int, slip: str) -> None:
    app = answered("price", price_view="cache")
    found = say(app, price.BYTES, said)
    assert slip in found and "it is 1024 MiB" in found and "× 8 (heads of keys and values) ×" in found


def test_a_cache_without_sharing_has_no_slip_of_sharing() -> None:
    app = answered("price", price_view="cache")
    app.selectbox(key="price-kv 32").set_value(32).run()
    found = say(app, price.BYTES, 1024)
    assert "it is 4096 MiB" in found and "So it would be" not in found
    app.number_input(key="price-heads").set_value(7).run()
    assert not app.exception and app.selectbox(key="price-kv 7").value == 7


def test_where_attention_is_as_dear_is_covered_and_a_length_too_short_gets_its_share() -> None:
    app = answered("price", price_view="crossing")
    app.button_group(key=f"{price.CROSSING} said").set_value(1).run()
    app.button(key=f"{price.CROSSING} check").click().run()
    (wrong,) = [one.value for one in app.warning]
    assert "At 768 tokens attention takes 25.0% of what the MLP does" in wrong and "it is 3,072" in wrong


def test_the_answer_without_a_cache_follows_the_text() -> None:
    app = answered("price")
    assert "It is 12×" in app.info[0].value
    app.text_input(key="price-text").set_value(price.OTHERS[0]).run()
    app.button_group(key=f"{price.QUESTION} said").set_value(0).run()
    app.button(key=f"{price.QUESTION} check").click().run()
    assert "One token is written either way" in app.warning[0].value and "it is 8×" in app.warning[0].value
