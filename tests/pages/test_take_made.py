"""What pages that run no model give away: lines that count the same, and tables that add up."""

import io
import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from streamlit.testing.v1 import AppTest

from engine.attention_variants import shared
from engine.attention_variants.measure import Setup
from engine.checkpoints import load
from engine.model.presets import NAMED, blueprint
from pages.controls.long_sequences.export import cost_tables
from pages.controls.share.export import data_file
from tests.pages.mounted import answered
from tests.pages.mounted import shared as offered
from tests.pages.test_take import ROOT, as_question, ran, view
from views.charts.show import SHOWN
from views.checkpoint.embedding import (
    Method,
    nearest_rows,
    nearest_table,
    point_table,
    project_table,
    table_lines,
    vector_table,
)
from views.checkpoint.weights import (
    Weight,
    histogram_table,
    matrix_rows,
    measure,
    spectrum_table,
    too_large,
    weight_lines,
    weight_matrix,
)
from views.core.payload import Named
from views.long_sequences.charts import formula_rows


def opened(page: str, **address: str) -> AppTest:
    app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60)
    app.session_state[SHOWN] = {page}  # no browser reports that the view is drawn
    app.switch_page(str(Path("pages/inspect") / f"{page}.py")).run()
    for name, value in address.items():
        app.selectbox(key=name).set_value(value)
    return app.run() if address else app


def asked(app: AppTest, page: str, **query: object) -> tuple[dict, dict[str, Named]]:
    take = view(app, page)[0]["take"]
    return answered(app, {"trace": take["trace"], **as_question(query, take)})


def parameters(name: str) -> int:
    return sum(parameter.numel() for parameter in blueprint(NAMED[name].config).parameters())


@pytest.mark.parametrize("name", ["bert-base", "gpt2"])
def test_the_lines_of_an_architecture_count_the_parameters_of_the_model_that_is_built(name: str) -> None:
    app = opened("architecture", model=name)
    found = ran(asked(app, "architecture", take="python")[0]["lines"])
    assert found["total"] == parameters(name) == view(app, "architecture")[0]["models"][0]["total"]


def test_the_lines_have_the_switches_that_were_thrown_and_the_model_it_is_compared_with() -> None:
    app = opened("architecture", model="gpt2", against="bert-base")
    app.selectbox(key="mlp").set_value("gated").run()
    drawn = view(app, "architecture")[0]["models"]
    found = ran(asked(app, "architecture", take="python")[0]["lines"])
    assert found["total"] == drawn[0]["total"] != parameters("gpt2")
    assert found["printed"].split()[-1] == str(parameters("bert-base"))


def lines_of(app: AppTest, key: str) -> str:
    """The Python of the charts of that key."""
    take = offered(app, key)
    (of, *_) = take["tables"].values()
    return str(answered(app, {"ask": "export_python", "trace": take["trace"], "of": of})[0]["lines"])


def test_the_charts_of_an_architecture_are_exported_as_lines_that_give_the_same() -> None:
    app = opened("architecture", model="gpt2")
    app.slider(key="batch").set_value(3).run()
    steps = ran(lines_of(app, "envelope share"))["steps"]
    assert sum(step.count for step in steps) == parameters("gpt2")
    found = ran(lines_of(app, "costs share"))
    (cache,) = found["cache"]
    assert cache.bytes == 2 * 3 * 2 * 12 * 512 * 768
    assert offered(app, "costs share")["matrices"] == [
        "Operations of a forward pass, by length",
        "KV cache of generation, by length",
        "Activations kept in training, by length",
        "operations by part",
        "KV cache, by part",
        "memory of training, by part",
    ]


@pytest.mark.parametrize("format", ["csv", "parquet", "npz"])
def test_the_table_of_an_architecture_adds_up(format: str) -> None:
    app = opened("architecture", model="gpt2")
    _, answer = asked(app, "architecture", take="data", matrix="gpt2", format=format)
    raw = io.BytesIO(answer["file"].data.tobytes())
    if format == "npz":
        counts = np.load(raw, allow_pickle=False)["parameters"]
    else:
        counts = (pd.read_csv if format == "csv" else pd.read_parquet)(raw)["parameters"].to_numpy()
    assert counts.sum() == parameters("gpt2") and len(counts) > 5


def test_what_an_architecture_does_not_have_is_a_sentence() -> None:
    app = opened("architecture", model="gpt2")
    for query in ({"take": "data", "matrix": "other", "format": "csv"}, {"take": "python", "trace": "older"}):
        with pytest.raises(ValueError, match=r"[.;]"):
            asked(app, "architecture", **query)


@pytest.mark.parametrize("model", ["stories", "translate-en-fr"])
@pytest.mark.parametrize(
    ("letter", "head", "circuit"),
    [("q", None, False), ("q", 1, False), ("out", 2, False), ("q", 1, True), ("out", 1, True)],
)
def test_a_matrix_of_a_checkpoint_is_downloaded_as_its_lines_give_it(
    model: str, letter: str, head: int | None, circuit: bool
) -> None:
    checkpoint = load(model)
    name = next(row.name for row in matrix_rows(checkpoint.model) if row.name.endswith(f"attn.{letter}.weight"))
    chosen = Weight(name, head, circuit)
    found = ran(weight_lines(model, checkpoint, chosen))
    with np.load(io.BytesIO(data_file(weight_matrix(model, checkpoint, chosen), "npz")), allow_pickle=False) as file:
        np.testing.assert_allclose(file["values"], found["values"].numpy(), rtol=1e-5, atol=1e-7)
        assert len(file["dims"]) == 2
    weight = checkpoint.model.get_parameter(name).detach()
    heads = checkpoint.model.config.attention.heads
    if head is None:
        torch.testing.assert_close(found["values"], weight)
    elif not circuit:
        part = (weight.mT if letter == "out" else weight).unflatten(0, (heads, -1))[head]
        torch.testing.assert_close(found["values"], part)
    else:
        assert found["values"].shape == (len(weight), len(weight))


def test_the_tables_of_a_checkpoint_are_its_tensors_and_its_parameters() -> None:
    app = opened("checkpoint")
    built = load("stories").model
    total = sum(parameter.numel() for parameter in built.parameters())
    assert ran(asked(app, "checkpoint", take="python")[0]["lines"])["total"] == total
    tables = {}
    for name in ("tensors", "parameters"):
        _, answer = asked(app, "checkpoint", take="data", matrix=name, format="parquet")
        tables[name] = pd.read_parquet(io.BytesIO(answer["file"].data.tobytes()))
    assert tables["parameters"]["parameters"].sum() == total
    used = tables["tensors"][tables["tensors"]["status"] != "unexpected"]
    assert len(used) == len(load("stories").report.rows)


def test_long_sequences_give_their_formulas_and_the_pattern_that_is_kept() -> None:
    app = opened("long_sequences")
    header = view(app, "patterns")[0]["take"]
    assert header["matrices"] == ["full", "window", "2-D blocks", "k nearest, exact", "k nearest, PQ"]
    at = {"layer": 1, "head": 2, "matrix": "window"}
    found = ran(asked(app, "patterns", take="python", **at)[0]["lines"])
    _, answer = asked(app, "patterns", take="data", format="npz", **at)
    with np.load(io.BytesIO(answer["file"].data.tobytes()), allow_pickle=False) as file:
        np.testing.assert_array_equal(file["values"], found["values"].numpy())
        assert file["dims"].tolist() == ["query", "key"] and len(file["query_tokens"]) == len(file["values"])
        window = shared.kept_patterns("stories", 128, 1, 2, Setup())["window"]
        np.testing.assert_array_equal(file["values"], window.pattern)
    for wrong in ({"layer": 9, "head": 0, "matrix": "full"}, {"layer": 0, "head": 0, "matrix": "other"}):
        with pytest.raises(ValueError, match="must be"):
            asked(app, "patterns", take="data", format="csv", **wrong)
    found = ran(lines_of(app, "costs share"))
    assert {point.length for point in found["points"]} == {256, 512, 1024}
    table = cost_tables("stories", {"formulas": formula_rows(found["points"], shared.LENGTHS, found["formulas"])})
    columns = table["formulas"]().columns
    assert columns["bytes"].tolist() == [cost.bytes for costs in found["formulas"].values() for cost in costs]
    assert offered(app, "costs share")["matrices"] == ["measured", "formulas", "searches"]


def test_the_file_of_long_sequences_answers_every_head() -> None:
    app = opened("long_sequences")
    _, answer = asked(app, "patterns", take="html", state="#layer=1&head=2", asked=[])
    page = answer["file"].data.tobytes()
    (given,) = re.findall(rb'id="given">(.*?)</script>', page, re.DOTALL)
    heads = {(one["query"]["layer"], one["query"]["head"]) for one in json.loads(given)["answers"]}
    assert len(heads) == 16 and len(page) < 5e6
    assert b"/long_sequences?v=1&amp;model=stories#layer=1&amp;head=2" in page


def test_what_is_drawn_of_a_matrix_is_there_as_tables() -> None:
    model = load("stories").model
    weight = model.get_parameter("blocks.1.attn.q.weight").detach().unflatten(0, (4, -1))[2]
    measured = measure(model, Weight("blocks.1.attn.q.weight", 2))
    values = pd.read_parquet(io.BytesIO(data_file(spectrum_table({}, measured.spectrum), "parquet")))
    counts = pd.read_parquet(io.BytesIO(data_file(histogram_table({}, measured.histogram), "parquet")))
    expected = torch.linalg.svdvals(weight.double()).numpy()
    np.testing.assert_allclose(values["singular value"], expected, rtol=1e-4)
    assert counts["count"].sum() == weight.numel()


def test_a_matrix_that_no_file_can_hold_says_so() -> None:
    assert not too_large((1024, 128))
    assert "16,777,216 numbers" in too_large((4096, 4096)) and "choose a head" in too_large((4096, 4096))


@pytest.mark.parametrize(("method", "axes"), [("pca", 2), ("tsne", 2), ("pca", 3), ("tsne", 3)])
def test_a_table_in_the_plane_or_in_space_is_downloaded_as_its_lines_give_it(method: Method, axes: int) -> None:
    checkpoint, name = load("induction"), "embed.tokens.weight"
    found = ran(table_lines("induction", checkpoint, name, method, axes, 3))
    table = vector_table(checkpoint, name)
    projected = project_table(checkpoint, name, method, axes)
    points = pd.read_parquet(io.BytesIO(data_file(point_table({}, table, projected), "parquet")))
    np.testing.assert_allclose(points[list("xyz"[:axes])], found["found"].points.numpy(), atol=1e-5)
    nearest = pd.read_csv(
        io.BytesIO(data_file(nearest_table({}, table, nearest_rows(checkpoint, name, 3)), "csv")), keep_default_na=False
    )
    assert nearest["id"].tolist() == found["near"].ids.tolist()
    piece = checkpoint.tokenizer.piece
    assert nearest["token"].tolist() == [piece(id) for id in nearest["id"]]
    with pytest.raises(ValueError, match="no such table"):
        table_lines("induction", checkpoint, "blocks.0.attn.q.weight", method, axes, 3)


def test_a_link_to_an_architecture_hides_controls_and_says_what_it_could_not_restore() -> None:
    app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60)
    said = {"model": "gpt2", "mlp": "nope", "layers": "x", "batch": "900", "v": "2", "hide": "switches,published,x"}
    for name, value in said.items():
        app.query_params[name] = value
    app.switch_page("pages/inspect/architecture.py").run()
    (lost,) = [one.value for one in app.info]
    for part in ("version '2'", "mlp is 'nope'", "layers is 'x'", "batch is '900'", "no control 'x'"):
        assert part in lost
    assert app.selectbox(key="model").value == "gpt2"
    styles = "".join(one.proto.body for one in app.get("html"))
    assert ".st-key-switches, .st-key-published { display: none !important; }" in styles
    offered = [key for key, _ in view(app, "architecture")[0]["take"]["controls"]]
    assert offered == ["model", "against", "published", "switches", "length", "batch", "number"]
