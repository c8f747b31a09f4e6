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

from engine.checkpoints import load
from engine.model.presets import NAMED, blueprint
from tests.pages.mounted import mounted
from tests.pages.test_take import ROOT, ran, view
from views.core.payload import Named, unpack


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


def of_charts(app: AppTest, place: int, **query: object) -> tuple[dict, dict[str, Named]]:
    """What the toolbar under the charts number `place` of an architecture is given."""
    payloads = [one.bytes for one in mounted(app, "sizes")]
    return asked(app, "architecture", **{"trace": unpack(payloads[place])[0]["take"]["trace"], **query})


def test_the_charts_of_an_architecture_are_taken_as_lines_that_give_the_same() -> None:
    app = opened("architecture", model="gpt2")
    app.slider(key="batch").set_value(3).run()
    steps = ran(of_charts(app, 0, take="python")[0]["lines"])["steps"]
    assert sum(step.count for step in steps) == parameters("gpt2")
    found = ran(of_charts(app, 1, take="python")[0]["lines"])
    (cache,) = found["cache"]
    assert cache.bytes == 2 * 3 * 2 * 12 * 512 * 768
    tables = {}
    for place, name in ((0, "from the back of an envelope"), (1, "KV cache of generation, by length"),
                        (1, "operations by part"), (1, "memory of training, by part")):  # fmt: skip
        _, answer = of_charts(app, place, take="data", matrix=name, format="parquet")
        tables[name] = pd.read_parquet(io.BytesIO(answer["file"].data.tobytes()))
    assert tables["from the back of an envelope"]["parameters"].sum() == parameters("gpt2")
    curve = tables["KV cache of generation, by length"].set_index("length")["bytes"]
    assert curve[512] == cache.bytes and curve[1024] == 2 * cache.bytes
    assert tables["operations by part"]["operations"].sum() == sum(one.flops for one in found["work"])
    held = sum(one.bytes for one in [*found["kept"], *found["adam"]])
    assert tables["memory of training, by part"]["bytes"].sum() == held


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
    header = view(app, "long_sequences")[0]["take"]
    assert "pattern: full" in header["matrices"]
    at = {"layer": 1, "head": 2}
    found = ran(asked(app, "long_sequences", take="python", **at)[0]["lines"])
    _, answer = asked(app, "long_sequences", take="data", matrix="pattern: window", format="npz", **at)
    with np.load(io.BytesIO(answer["file"].data.tobytes()), allow_pickle=False) as file:
        np.testing.assert_array_equal(file["values"], found["kept"]["window"].pattern.numpy())
        assert file["dims"].tolist() == ["query", "key"] and len(file["query_tokens"]) == len(file["values"])
    _, answer = asked(app, "long_sequences", take="data", matrix="formulas", format="csv", **at)
    table = pd.read_csv(io.BytesIO(answer["file"].data.tobytes()))
    assert table["bytes"].tolist() == [cost.bytes for costs in found["formulas"].values() for cost in costs]
    with pytest.raises(ValueError, match="no such head"):
        asked(app, "long_sequences", take="data", matrix="pattern: full", format="csv", layer=9, head=0)


def test_the_file_of_long_sequences_answers_every_head() -> None:
    app = opened("long_sequences")
    _, answer = asked(app, "long_sequences", take="html", state="#layer=1&head=2", asked=[])
    page = answer["file"].data.tobytes()
    (given,) = re.findall(rb'id="given">(.*?)</script>', page, re.DOTALL)
    heads = {(one["query"]["layer"], one["query"]["head"]) for one in json.loads(given)["answers"]}
    assert len(heads) == 16 and len(page) < 5e6
    assert b"/long_sequences?v=1&amp;model=stories#layer=1&amp;head=2" in page


def test_what_is_drawn_of_a_matrix_is_there_as_tables() -> None:
    app = opened("checkpoint")
    of = {"of": "blocks.1.attn.q.weight", "head": 2, "circuit": False}
    weight = load("stories").model.get_parameter(of["of"]).detach().unflatten(0, (4, -1))[2]
    tables = {}
    for name in ("its singular values", "its histogram"):
        _, answer = asked(app, "weights", take="data", matrix=name, format="parquet", **of)
        tables[name] = pd.read_parquet(io.BytesIO(answer["file"].data.tobytes()))
    expected = torch.linalg.svdvals(weight.double()).numpy()
    np.testing.assert_allclose(tables["its singular values"]["singular value"], expected, rtol=1e-4)
    assert tables["its histogram"]["count"].sum() == weight.numel()


@pytest.mark.parametrize("how", ["pca", "tsne"])
def test_a_table_in_the_plane_is_taken_as_its_lines_give_it(how: str) -> None:
    app = opened("checkpoint", model="induction")
    name = view(app, "projection")[0]["tables"][0]["name"]
    of = {"table": name, "how": how, "near": 3}
    found = ran(asked(app, "projection", take="python", **of)[0]["lines"])
    tables = {}
    for what in ("points in the plane", "nearest to the chosen one"):
        _, answer = asked(app, "projection", take="data", matrix=what, format="parquet", **of)
        tables[what] = pd.read_parquet(io.BytesIO(answer["file"].data.tobytes()))
    np.testing.assert_allclose(tables["points in the plane"][["x", "y"]], found["found"].points.numpy(), atol=1e-5)
    nearest = tables["nearest to the chosen one"]
    assert nearest["id"].tolist() == found["near"].ids.tolist()
    piece = load("induction").tokenizer.piece
    assert nearest["token"].tolist() == [piece(id) for id in nearest["id"]]
    with pytest.raises(ValueError, match="no such table"):
        asked(app, "projection", take="python", **of | {"table": "blocks.0.attn.q.weight"})


def test_the_files_of_a_checkpoint_answer_every_matrix_head_and_circuit_and_what_is_near() -> None:
    app = opened("checkpoint", model="induction")
    model = load("induction").model
    heads, layers = model.config.attention.heads, model.config.layers
    for page, more in (("weights", {}), ("projection", {"table": "embed.tokens.weight", "how": "pca", "near": 3})):
        _, answer = asked(app, page, take="html", state="", asked=[], **more)
        file = answer["file"].data.tobytes()
        (given,) = re.findall(rb'id="given">(.*?)</script>', file, re.DOTALL)
        queries = [one["query"] for one in json.loads(given)["answers"]]
        assert b"/checkpoint?v=1&amp;model=induction" in file and len(file) < 5e6
        if page == "weights":
            assert sum(query.get("circuit") is True for query in queries) == 2 * layers * heads
            assert len({query.get("matrix") for query in queries}) > len(view(app, page)[0]["matrices"])
        else:
            near = {query["near"] for query in queries if query["table"] == more["table"] and "near" in query}
            assert near == set(range(len(model.get_parameter(more["table"]))))


def test_a_link_to_an_architecture_hides_controls_and_says_what_it_could_not_restore() -> None:
    app = AppTest.from_file(str(ROOT / "pages/inspect/architecture.py"), default_timeout=60)
    said = {"model": "gpt2", "mlp": "nope", "layers": "x", "batch": "900", "v": "2", "hide": "switches,published,x"}
    for name, value in said.items():
        app.query_params[name] = value
    app.run()
    (lost,) = [one.value for one in app.info]
    for part in ("version '2'", "mlp is 'nope'", "layers is 'x'", "batch is '900'", "no control 'x'"):
        assert part in lost
    assert app.selectbox(key="model").value == "gpt2"
    styles = "".join(one.proto.body for one in app.get("html"))
    assert ".st-key-switches, .st-key-published { display: none !important; }" in styles
    offered = [key for key, _ in view(app, "architecture")[0]["take"]["controls"]]
    assert offered == ["model", "against", "published", "switches", "length", "batch", "number"]
