"""Share & export of charts: what its panel offers, and what is in the files."""

import io
import json
from typing import Any
from urllib.parse import parse_qs, urlsplit

import numpy as np
import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from pages.controls.checkpoint.parameters import CHECKPOINT
from pages.controls.share.links import READABLE
from pages.controls.share.panel import data_file, file_stem, link_address
from server.classes.steps import from_json
from views.core.matrix_files import Matrix
from views.core.table_files import Table


@pytest.fixture(autouse=True)
def led(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, str]]:
    """Queries of the links to other pages, which a script by itself does not have."""
    queries: list[dict[str, str]] = []
    monkeypatch.setattr("streamlit.page_link", lambda *_said, query_params, **_more: queries.append(query_params))
    return queries


def page() -> None:
    import numpy as np

    from pages.controls.share.panel import share_panel
    from views.core.table_files import Table

    share_panel(
        "Weights",
        lambda: {"v": "1", "model": "stories"},
        ["model", "actions", "no such control"],
        lambda: "print(1)",
        {"its numbers": lambda: Table({"x": np.arange(3)}, {}), "all of them": "Too many; choose a head."},
        lambda: "<p>x</p>",
        key="weights share",
        names=["stories"],
    )


def opened() -> AppTest:
    app = AppTest.from_function(page, default_timeout=60)
    app.session_state["weights share"] = True
    app.run()
    assert not app.exception
    return app


def query(app: AppTest, number: int = 0) -> dict[str, Any]:
    return {name: text for name, (text,) in parse_qs(urlsplit(app.code[number].value).query).items()}


def test_nothing_is_made_before_the_panel_is_opened() -> None:
    app = AppTest.from_function(page, default_timeout=60).run()
    assert not app.code and not app.get("download_button")


def test_an_open_panel_has_the_link_the_lines_and_a_file_in_each_format() -> None:
    app = opened()
    assert query(app) == {"v": "1", "model": "stories"} and app.code[1].value == "print(1)"
    assert [button.label for button in app.download_button] == ["CSV", "Parquet", "npz", "HTML"]


def test_a_link_for_a_class_hides_controls_says_what_to_do_and_keeps_the_shade(led: list[dict[str, str]]) -> None:
    app = opened()
    (hide,) = app.get("button_group")
    assert hide.options == [CHECKPOINT.hideable[name].hidden_as for name in ("model", "actions")]
    hide.set_value(["model", "actions"])
    app.text_area(key="weights share instruction").set_value("Which row is longest?")
    app.toggle(key="weights share theme").set_value(True)
    app.toggle(key="weights share class").set_value(True).run()
    plain = {"v": "1", "model": "stories", "embed_options": "light_theme"}
    assert query(app) == plain
    assert query(app, 1) == plain | {"hide": "model,actions", "instruction": "Which row is longest?"}
    step = from_json(json.loads(led[-1]["step"]))
    assert step.sentence == "Which row is longest?" and step.query == plain | {"hide": "model,actions"}


def test_what_has_no_file_says_why() -> None:
    app = opened()
    app.selectbox(key="weights share table").set_value("all of them").run()
    assert [button.label for button in app.download_button] == ["HTML"]
    assert app.caption[-1].value == "Too many; choose a head."


def test_a_link_that_nobody_could_read_is_a_sentence() -> None:
    address, sentence = link_address({"model": "stories", "text": "x" * READABLE})
    assert not address and "text" in sentence and f"{READABLE:,}" in sentence


@pytest.mark.parametrize("format", ["csv", "parquet", "npz"])
def test_a_table_and_a_matrix_are_read_back_from_each_format(format: str) -> None:
    values = np.array([[1.5, -2.0, 0.25]], np.float32)
    for data, name in (
        (Table({"value": values[0]}, {"model": "stories"}), "value"),
        (Matrix("w", "stories", values, ("out", "in"), {}), "w"),
    ):
        raw = io.BytesIO(data_file(data, format))
        if format == "npz":
            found = np.load(raw, allow_pickle=False)["value" if isinstance(data, Table) else "values"].reshape(-1)
        else:
            found = (pd.read_csv if format == "csv" else pd.read_parquet)(raw)[name].to_numpy(np.float32)
        np.testing.assert_array_equal(found, values[0])


def test_files_are_called_by_what_is_in_them() -> None:
    names = ["Weights", "stories", "blocks-1-attn-q-weight", "", "its numbers"]
    assert file_stem(names) == "loupe-weights-stories-blocks-1-attn-q-weight-its-numbers"
