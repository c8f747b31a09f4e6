"""What pages that run no model give away: lines that count the same, and tables that add up."""

import io
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from streamlit.testing.v1 import AppTest

from engine.checkpoints import load
from engine.named import NAMED, blueprint
from tests.pages.test_take import ROOT, ran, view
from views.payload import Named, unpack


def opened(page: str, **address: str) -> AppTest:
    app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60)
    app.run()
    app.switch_page(str(Path("pages/inspect") / f"{page}.py")).run()
    for name, value in address.items():
        app.selectbox(key=name).set_value(value)
    return app.run() if address else app


def asked(app: AppTest, page: str, **query: object) -> tuple[dict, dict[str, Named]]:
    made = view(app, page)[0]["take"]["trace"]
    app.session_state["courier asked"] = [{"id": 1, "query": {"trace": made, **query}}]
    app.run()
    answers, arrays = view(app, "courier")
    (answer,) = answers["answers"]
    if "sentence" in answer:
        raise ValueError(answer["sentence"])
    return unpack(arrays["1"].data.tobytes())


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
def test_a_matrix_of_a_checkpoint_is_taken_as_its_lines_give_it(
    model: str, letter: str, head: int | None, circuit: bool
) -> None:
    app = opened("checkpoint", model=model)
    name = next(m["name"] for m in view(app, "weights")[0]["matrices"] if m["name"].endswith(f"attn.{letter}.weight"))
    of = {"of": name, "head": head, "circuit": circuit}
    found = ran(asked(app, "weights", take="python", **of)[0]["lines"])
    _, answer = asked(app, "weights", take="data", format="npz", **of)
    with np.load(io.BytesIO(answer["file"].data.tobytes()), allow_pickle=False) as file:
        np.testing.assert_allclose(file["values"], found["values"].numpy(), rtol=1e-5, atol=1e-7)
        assert len(file["dims"]) == 2
    weight = load(model).model.get_parameter(name).detach()
    heads = load(model).model.config.attention.heads
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


def test_what_a_checkpoint_does_not_have_is_a_sentence() -> None:
    app = opened("checkpoint")
    for more in ({"of": "nothing", "head": None}, {"of": "blocks.0.attn.q.weight", "head": 9}, {"of": 3, "head": 0}):
        with pytest.raises(ValueError, match="no such matrix"):
            asked(app, "weights", take="python", circuit=False, **more)


def test_long_sequences_give_their_formulas_and_the_pattern_that_is_kept() -> None:
    app = opened("long_sequences")
    header = view(app, "taken")[0]["take"]
    assert header["rows"] == ["link", "python", "data"] and "pattern: full" in header["matrices"]
    found = ran(asked(app, "taken", take="python")[0]["lines"])
    _, answer = asked(app, "taken", take="data", matrix="pattern: full", format="npz")
    with np.load(io.BytesIO(answer["file"].data.tobytes()), allow_pickle=False) as file:
        np.testing.assert_array_equal(file["values"], found["kept"]["full"].pattern.numpy())
        assert file["dims"].tolist() == ["query", "key"]
    _, answer = asked(app, "taken", take="data", matrix="formulas", format="csv")
    table = pd.read_csv(io.BytesIO(answer["file"].data.tobytes()))
    assert table["bytes"].tolist() == [cost.bytes for costs in found["formulas"].values() for cost in costs]
