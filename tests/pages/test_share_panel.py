"""Share & export of charts: the rows it offers, what they answer, and what is in the files."""

import io
import json
from typing import Any
from urllib.parse import urlencode

import numpy as np
import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from pages.controls.checkpoint.parameters import CHECKPOINT
from pages.controls.share import panel
from pages.controls.share.export import data_file
from server.classes.steps import from_json
from tests.pages.mounted import answered, shared
from views.core.matrix_files import Matrix
from views.core.payload import Named
from views.core.table_files import Table


def page() -> None:
    from functools import partial

    import numpy as np

    from pages.controls.share.export import answer_on
    from pages.controls.share.panel import share_panel
    from views.core.component import courier
    from views.core.questions import Page
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
        hidden=["teachers"],
    )
    courier("courier", partial(answer_on, Page()))


def test_charts_offer_each_row_and_make_what_it_gives_when_it_is_asked() -> None:
    app = AppTest.from_function(page, default_timeout=60).run()
    take = shared(app, "weights share")

    def asked(kind: str, **query: Any) -> tuple[dict, dict[str, Named]]:
        return answered(app, {"ask": f"export_{kind}", "trace": take["trace"], **query})

    assert [one["row"] for one in take["rows"]] == ["link", "class", "session", "file", "python", "data"]
    assert take["names"] == ["Weights", "stories"] and take["link"] is None and take["hidden"] == ["teachers"]
    assert take["controls"] == [[name, CHECKPOINT.hideable[name].hidden_as] for name in ("model", "actions")]
    assert asked("link")[0]["link"] == {"v": "1", "model": "stories"}
    assert asked("python", of=take["tables"]["its numbers"])[0]["lines"] == "print(1)"
    assert asked("html", state="", asked=[])[1]["file"].data.tobytes() == b"<p>x</p>"
    file = asked("data", of=take["tables"]["its numbers"], format="csv")[1]["file"].data.tobytes()
    assert pd.read_csv(io.BytesIO(file))["x"].tolist() == [0, 1, 2]
    with pytest.raises(ValueError, match="Too many; choose a head."):
        asked("data", of=take["tables"]["all of them"], format="csv")


def test_a_class_session_begins_with_what_the_link_for_a_class_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    led = dict[str, Any]()
    monkeypatch.setattr("streamlit.switch_page", lambda _page, query_params: led.update(query_params))
    said = {"model": "stories", "hide": "model,actions", "instruction": "Which row is longest?", "predict": "run"}
    panel.open_session(f"http://localhost/checkpoint?{urlencode(said)}#layer=1")
    step = from_json(json.loads(led["step"]))
    assert step.sentence == "Which row is longest?" and step.query == {"model": "stories", "hide": "model,actions"}


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
