"""What a link for a class hides, locks and asks, without a browser."""

import socket
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import segno
from streamlit.testing.v1 import AppTest

from pages.controls.compare.parameters import key
from pages.controls.share import class_link as links
from pages.controls.share.class_link import MOST_CODED, class_link, lan_address
from pages.controls.share.hiding import hiding_css
from tests.pages.mounted import mounted
from tests.pages.test_take import asked
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


def said(app: AppTest, name: str) -> str:
    found = app.query_params[name]
    return found if isinstance(found, str) else found[0]


def test_with_the_text_go_the_example_and_what_would_append_to_it() -> None:
    app = opened(text=TEXT, hide="text")
    css = hiding_css(["text", key("B", "text"), "no such control"])
    assert ".st-key-example-text" in css and ".st-key-sides-together" in css and "no" not in css.split("{")[0].split()
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


def test_a_link_of_this_machine_is_given_as_the_network_reaches_it(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        port = server.getsockname()[1]
        monkeypatch.setattr(links, "lan_address", lambda: "127.0.0.1")
        assert not class_link(f"http://localhost:{port}/attention").warning
        monkeypatch.setattr(links, "lan_address", lambda: "127.0.0.2")  # the server does not listen there
        found = class_link(f"http://localhost:{port}/lab/attention?v=1&text=a%20b#layer=1")
    assert found.address == f"http://127.0.0.2:{port}/lab/attention?v=1&text=a%20b#layer=1"
    assert "make run HOST=0.0.0.0" in found.warning
    monkeypatch.setattr(links, "lan_address", lambda: "")
    assert class_link("http://[::1]:8501/").address == "http://[::1]:8501/" and class_link("http://[::1]/").warning


def test_an_address_that_others_use_already_or_that_is_set_is_given_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    assert class_link("https://loupe.example/a?v=1").address == "https://loupe.example/a?v=1"
    monkeypatch.setattr(links, "OUTSIDE", "https://school.example:444/lab/")
    found = class_link("http://127.0.0.1:8501/base/attention?v=1#head=2")
    assert (found.address, found.warning) == ("https://school.example:444/lab/attention?v=1#head=2", "")


def test_the_code_holds_the_address_and_one_that_is_too_long_says_so() -> None:
    address = "http://192.168.1.20:8501/attention?v=1"
    code = class_link(address).code
    assert code == segno.make(address, error="l").svg_inline(omitsize=True, light="#fff", border=4)
    found = class_link(f"{address}&text={'x' * MOST_CODED}")
    assert not found.code and f"{len(found.address):,}" in found.warning
    with pytest.raises(ValueError, match="must begin with http"):
        class_link("javascript:1")


def test_a_page_answers_what_its_panel_asks_for_the_class() -> None:
    app = opened(text=TEXT)
    found, _ = asked(app, "walkthrough", ask="export_class_link", address="https://loupe.example/walkthrough?v=1")
    assert found["address"] == "https://loupe.example/walkthrough?v=1" and found["code"].startswith("<svg")
    assert not found["warning"] and header(app)["take"]["predicts"]


def test_the_address_in_the_network_is_none_of_this_machine_alone() -> None:
    assert lan_address() == "" or urlsplit(f"http://{lan_address()}").hostname != "127.0.0.1"


def test_a_guess_comes_before_the_picture_and_stands_in_the_address() -> None:
    app = opened(text=TEXT, predict="run")
    assert not app.exception and not mounted(app, "walkthrough")
    (field,) = [one for one in app.text_input if one.key.startswith("guess about")]
    field.set_value("Anna")
    app.button[-1].click().run()
    assert header(app) and any("Anna" in one.value for one in app.markdown)
    kept = {name: said(app, name) for name in ("predict", "revealed", "guess")}
    assert kept["guess"] == "Anna" and header(opened(text=TEXT, **kept))["trace"] == kept["revealed"]
    other = opened(text=f"{TEXT} Anna", **kept)
    assert not other.exception and not mounted(other, "walkthrough")
    app.switch_page("pages/explore/attention.py").run()
    assert header(app, "attention") and said(app, "guess") == "Anna"
    for page in ("generate", "compare"):
        app.switch_page(f"pages/explore/{page}.py").run()
        assert not app.exception and not mounted(app, page)
        (field,) = [one for one in app.text_input if one.key.startswith("guess about")]
        field.set_value("Max")
        next(one for one in app.button if one.label == "Reveal").click().run()
        assert header(app, page)["take"]["predicts"] and said(app, "guess") == "Max"
