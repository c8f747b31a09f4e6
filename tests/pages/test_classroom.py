"""What a link for a class hides, locks and asks, without a browser."""

from pathlib import Path

from streamlit.testing.v1 import AppTest

from pages.controls.share.hiding import hiding_css
from tests.pages.mounted import mounted
from views.core.payload import unpack

APP = str(Path(__file__).parents[2] / "app.py")
WALKTHROUGH = "pages/explore/walkthrough.py"
TEXT = "Max gave the red ball to"


def opened(page: str = WALKTHROUGH, **address: str) -> AppTest:
    app = AppTest.from_file(APP, default_timeout=60)
    for name, value in address.items():
        app.query_params[name] = value
    return app.switch_page(page).run()


def header(app: AppTest, view: str = "walkthrough") -> dict:
    assert not app.exception, app.exception
    (found, *_) = mounted(app, view)
    return unpack(found.bytes)[0]


def test_with_the_text_go_the_example_and_what_would_append_to_it() -> None:
    css = hiding_css(["text", "b_text", "no such control"])
    assert ".st-key-example-text" in css and ".st-key-sides-together" in css and "no" not in css.split("{")[0].split()
    app = opened(text=TEXT, hide="text")
    assert header(app)["locked"] and not header(opened(text=TEXT, hide="model"))["locked"]


def test_a_hidden_text_stays_when_another_model_is_chosen() -> None:
    for hide, stays in (("text", True), ("attention", False)):
        app = opened(hide=hide)
        example = app.text_input(key="text").value
        app.selectbox(key="model").set_value("bilingual").run()
        assert (app.text_input(key="text").value == example) is stays


def test_a_hidden_what_if_keeps_before_and_after() -> None:
    css = hiding_css(["what if"])
    assert ".st-key-experiment-edits" in css and ".st-key-experiment-panel" not in css


def test_what_a_teacher_asks_stands_above_the_page_as_text() -> None:
    app = opened(instruction="Where does *it* look? ![](x)")
    assert app.markdown[0].value.replace("\\", "") == "Where does *it* look? ![](x)"
    assert "\\*it" in app.markdown[0].value
