"""Views of our own on a page, as AppTest has them."""

import re
from functools import cache
from pathlib import Path
from typing import Any

from streamlit.testing.v1 import AppTest

from engine.edits.experiment import Experiment
from pages.controls.state.session import Record
from pages.controls.what_if.experiment import EditTrial
from pages.controls.what_if.experiment_link import linkable, to_link
from views.core.markdown import JOINER
from views.core.payload import Named, unpack

APP = str(Path(__file__).parents[2] / "app.py")


@cache
def registered() -> dict[str, Any]:
    """The pages with their addresses, as a browser knows them, from the first run of the app."""
    return AppTest.from_file(APP, default_timeout=60).run()._registered_pages


def at_page(path: str, **address: str) -> AppTest:
    """The app at the page of that file, before its first run, whatever the page's address is."""
    app = AppTest.from_file(APP, default_timeout=60)
    app._registered_pages = registered()
    for name, value in address.items():
        app.query_params[name] = value
    return app.switch_page(path)


def mounted(app: AppTest, name: str) -> list[Any]:
    """Messages of the views called `name`, the last parts of their module's path with dots."""
    protos = [element.proto for element in app.get("bidi_component")]
    return [one for one in protos if one.component_name.rsplit(".", 1)[0].endswith(f".{name}")]


def shared(app: AppTest, key: str) -> dict[str, Any]:
    """What the Share & export of charts has for the browser, by its key."""
    assert not app.exception, app.exception
    offers = [unpack(one.bytes)[0]["take"] for one in mounted(app, "panel")]
    (found,) = [one for one in offers if one["trace"] == key]
    return found


def answered(app: AppTest, query: dict[str, Any]) -> tuple[dict, dict[str, Named]]:
    """What the page answers to a question of the browser; raises ValueError with the sentence where it cannot."""
    app.session_state["courier asked"] = [{"id": 1, "query": query}]
    app.run()
    assert not app.exception, app.exception
    (courier,) = mounted(app, "courier")
    answers, arrays = unpack(courier.bytes)
    (answer,) = answers["answers"]
    if "sentence" in answer:
        raise ValueError(answer["sentence"])
    return unpack(arrays["1"].data.tobytes())


def record(app: AppTest, kind: type[Record]) -> Record:
    """What the session remembers by a class, as pages/controls/state/session.py has it."""
    name = f"{kind.__module__}.{kind.__qualname__}"
    if name not in app.session_state:
        app.session_state[name] = kind()
    found: Record = app.session_state[name]
    return found


def try_edits(app: AppTest, made: Experiment) -> None:
    """Lets the session and its address have the edits, as the panel does."""
    tried = record(app, EditTrial)
    tried.experiment, tried.text = made, to_link(made) if made.entries and linkable(made) else ""
    app.query_params["edits"] = tried.text


def read_markdown(markdown: str) -> str:
    """The text that is read of Markdown in which nothing is markup."""
    return re.sub(r"\\([!-/:-@\[-`{-~])", r"\1", markdown).replace(JOINER, "")


def field(fields: Any, label: str) -> Any:
    """The one widget among `fields`, such as app.selectbox, whose label begins so."""
    (found,) = [one for one in fields if one.label == label or one.label.startswith(f"{label} (")]
    return found
