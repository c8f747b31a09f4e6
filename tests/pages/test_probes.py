"""The page Linear probes without a browser: its sentences, tables, charts and lines of Python are the engine's."""

import re
from pathlib import Path
from urllib.parse import parse_qs

import pandas as pd
import pytest
import torch
from streamlit.testing.v1 import AppTest

from engine import load, run
from engine.analysis.linear_probes import OF_FILE, find_probes, measure_removal, read_labelled
from engine.edits import ProjectOut
from engine.inputs.readers import read_text
from engine.runtime import library
from pages.controls.train.user_data import store_file
from pages.controls.what_if.experiment_link import from_link
from views.core.codegen import Fields
from views.core.lanes import lanes
from views.core.questions import Page
from views.probes.charts import CHARTS
from views.probes.questions import PROBES, ProbeContext

APP = str(Path(__file__).parents[2] / "app.py")


def opened(**address: str) -> AppTest:
    app = AppTest.from_file(APP, default_timeout=60)
    for name, value in address.items():
        app.query_params[name] = value
    app.switch_page("pages/analyse/probes.py").run()
    assert not app.exception, app.exception
    return app


def told(app: AppTest) -> str:
    return "\n".join(one.value for kind in (app.markdown, app.caption, app.warning) for one in kind)


def test_the_page_says_where_a_probe_is_selective_and_what_its_direction_does() -> None:
    app = opened(model="stories", layer="3")
    probes = find_probes(library.checkpoint("stories"), "quoted")
    removal = measure_removal(library.checkpoint("stories"), "quoted", 3)
    assert float(probes.selectivity.max()) > 0.03, "the model knows in the middle what is quoted"
    says = told(app)
    assert f"a selectivity of **{float(probes.selectivity.max()):+.3f}**" in says
    assert f"changes by **{float(removal.loss[0]) - removal.plain:+.4f}**" in says
    assert f"move by **{float(removal.kl[0]):.4f}** nats" in says and not app.warning
    link = parse_qs(re.search(r"compare\?([^)]*)\)", says.replace("\\", ""))[1])  # type: ignore[index]
    assert [type(one.edit) for one in from_link(link["b_edits"][0])[0].entries] == [ProjectOut]
    assert all(f"**{title}**" in says for title in CHARTS)


@pytest.mark.parametrize(
    ("address", "says"),
    [
        ({"model": "digits-vit"}, "this model reads pictures"),
        ({"model": "stories", "label": "number"}, "and none is “number”"),
        ({"model": "compiled-brackets", "label": "depth of brackets"}, "is for a label with two classes"),
        ({"model": "t5-tasks", "label": "token that stood before"}, "Most selective"),
    ],
)
def test_every_kind_of_model_has_its_probes_or_a_sentence(address: dict[str, str], says: str) -> None:
    assert says in told(opened(**address))


def test_a_file_with_labels_is_offered_and_read() -> None:
    lines = [
        f"The {('cat', 'dog')[n // 2 % 2]} saw {'the ' * (n % 3)}ball.,{('c', 'd')[n // 2 % 2]}" for n in range(40)
    ]
    file = store_file("labelled.csv", "\n".join(["text,who", *lines]).encode())
    app = opened(model="stories", corpus=file.parent.name, label="labels of a file")
    assert "“c”, “d”: learned at 30 positions" in told(app) and app.selectbox(key="label_column").value == "who"
    labelled = store_file("gaps.csv", b"text,who\nThe dog saw,a\nThe cat saw,")
    assert "row 2 must have a text" in told(opened(corpus=labelled.parent.name, label="labels of a file"))


def test_tables_charts_and_python_are_the_engine_s(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    rows = [f"The {('cat', 'dog')[n % 2]} saw {'the ' * (n % 5)}ball,{n % 2}" for n in range(20)]
    Path("mine.csv").write_text("\n".join(["text,who", *rows]))
    checkpoint, text = load("stories"), "The dog saw the ball"
    reading, fields = read_text(checkpoint, text, 64), Fields("text", 64, text=text)
    context = ProbeContext(
        "stories", checkpoint, run(checkpoint.model, reading.read), lanes(checkpoint, reading), fields=lambda: fields,
        corpus=read_labelled("mine.csv", "text", "who"), column="text", label=OF_FILE, label_column="who",
    )  # fmt: skip
    page, query = Page((PROBES, context)), {"trace": context.digest}
    for ask, draw in CHARTS.values():
        place = {"layer": 4} if "layer" in page.home[ask][0][0].parameters else {}
        frame = pd.DataFrame(page.table({"ask": ask, **query, **place}).columns)
        for shade in ("light", "dark"):
            assert draw(frame, shade).to_dict()["datasets"]
        bound: dict = {}
        exec(page.python({"ask": ask, **query, **place}), bound)
        own = bound["values"]
        if ask == "probe_text":
            torch.testing.assert_close(own[:, 1], torch.tensor(frame["p"].tolist(), dtype=torch.float64))
        else:
            column = {"probe_layers": "accuracy", "probe_removal": "kl", "probe_selectivity": "selectivity"}[ask]
            own = own if isinstance(own, torch.Tensor) else getattr(own, column)
            assert own.tolist() == pytest.approx(frame[column].tolist(), abs=1e-5)
