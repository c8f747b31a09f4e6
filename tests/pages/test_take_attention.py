"""What the tabs of the page about attention give away: lines and files with the numbers that the tab shows."""

import io
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from engine.analysis.heads import cross_scores, head_scores
from engine.analysis.recorded_patterns import patterns
from pages.controls.share.export import data_file
from tests.pages.test_take import asked, opened, ran, view
from views.core.matrix_files import Matrix

MODELS = {"stories": ("", "attn"), "translate-en-fr": ("decoder", "cross_attn"), "digits-vit": ("", "attn")}
MEASURES: dict[str, dict[str, Any]] = {
    "mean of heads": {"ask": "average", "over": "heads", "layer": 1, "head": 1},
    "mean of layers": {"ask": "average", "over": "layers", "layer": 1, "head": 1, "alone": False},
    "mean of one head": {"ask": "average", "over": "layers", "layer": 1, "head": 1, "alone": True},
    "rollout": {"ask": "rollout", "first": 0, "last": 1, "head": None},
    "rollout of one head": {"ask": "rollout", "first": 1, "last": 1, "head": 1},
    "flow": {"ask": "flows"},
    "flow of a row": {"ask": "flow", "pos": 2},
    "mean of texts": {"ask": "text_average", "layer": 1, "head": 1},
}
HERE = {"layer": 1, "head": 1}


@cache
def shown(**address: str) -> AppTest:
    """The page at an address, opened once: a question leaves it as it was."""
    return opened("attention", **address)


def place(model: str) -> dict[str, Any]:
    side, focus = MODELS[model]
    return {"side": side, "focus": focus}


def hook(model: str) -> str:
    side, focus = MODELS[model]
    return f"{f'{side}.' if side else ''}blocks.1.{focus}.pattern"


def lines(app: AppTest, model: str, tab: dict[str, Any]) -> dict[str, Any]:
    query = {"hook": hook(model), "head": 1, "row": 2, "col": 1, "tab": tab}
    return ran(asked(app, "attention", take="python", **query)[0]["lines"])


def file(app: AppTest, tab: Any, format: str = "npz") -> Any:
    _, answer = asked(app, "attention", take="data", hook="", tab=tab, format=format)
    return io.BytesIO(answer["file"].data.tobytes())


@pytest.mark.parametrize("model", MODELS)
def test_lines_and_data_of_a_measure_are_what_is_painted_over_the_text(model: str) -> None:
    app = shown(model=model)
    trace = lines(app, model, MEASURES["mean of heads"] | place(model))["trace"]
    side, focus = MODELS[model]
    held = [one.numpy() for one in patterns(trace, side, focus == "cross_attn")]
    means = {
        "mean of heads": held[1].mean(0),
        "mean of layers": np.mean([one.mean(0) for one in held], axis=0),
        "mean of one head": np.mean([one[1] for one in held], axis=0),
    }
    for name, measure in MEASURES.items():
        tab = measure | place(model)
        _, arrays = asked(app, "attention", **tab)
        if not arrays:
            continue  # the flow of all rows takes too long: the browser asks for a row then
        painted = next(iter(arrays.values())).data
        found = lines(app, model, tab)
        np.testing.assert_allclose(found["values"].numpy(), painted, atol=1e-6, err_msg=name)
        if name in means:
            np.testing.assert_allclose(painted, means[name], atol=1e-6, err_msg=name)
        with np.load(file(app, tab), allow_pickle=False) as kept:
            np.testing.assert_array_equal(kept["values"], painted)
            assert kept["dims"].tolist() == ["query", "key"][2 - painted.ndim :]
            assert ("key_tokens" in kept) == (name != "mean of texts")
        looked_at = painted[(2, 1)[2 - painted.ndim :]]
        assert float(found["printed"]) == pytest.approx(looked_at, abs=1e-6)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("how", ["pca", "tsne"])
def test_lines_and_data_of_the_points_are_where_they_stand(model: str, how: str) -> None:
    app = shown(model=model)
    tab = {"ask": "points", "how": how} | HERE | place(model)
    _, drawn = asked(app, "attention", **tab)
    both = np.concatenate([drawn["queries"].data, drawn["keys"].data])
    found = lines(app, model, tab)["values"]
    np.testing.assert_allclose(np.concatenate([found.queries, found.keys]), both, atol=1e-6)
    table = pd.read_parquet(file(app, tab, "parquet"))
    np.testing.assert_array_equal(table[["x", "y"]].to_numpy(), both)
    assert table["role"].tolist() == ["query"] * len(drawn["queries"].data) + ["key"] * len(drawn["keys"].data)


@pytest.mark.parametrize("model", ["stories", "translate-en-fr"])
def test_lines_and_data_of_the_circuits_are_both_tables(model: str) -> None:
    app = shown(model=model)
    where = HERE | place(model)
    ov, qk = (asked(app, "attention", ask=ask, **where)[1] for ask in ("ov", "qk"))
    tab = {"ask": "circuits"} | where
    found = lines(app, model, tab)
    np.testing.assert_array_equal(found["ov"].tokens.numpy(), ov["top"].data)
    np.testing.assert_allclose(found["scores"].numpy(), qk["scores"].data, atol=1e-6)
    with np.load(file(app, tab), allow_pickle=False) as kept:
        np.testing.assert_allclose(found["values"].numpy(), kept["value"], atol=1e-6)
        written = kept["circuit"] == "ov"
        np.testing.assert_array_equal(kept["value"][written], ov["logits"].data.reshape(-1))
        np.testing.assert_array_equal(kept["to_id"][written], ov["top"].data.reshape(-1))
        np.testing.assert_array_equal(kept["value"][~written], qk["scores"].data.reshape(-1))


def test_a_model_without_words_has_no_circuits_and_says_so() -> None:
    app = shown(model="digits-vit")
    for query in ({"take": "python"}, {"take": "data", "format": "csv"}):
        with pytest.raises(ValueError, match="reads pictures"):
            asked(app, "attention", tab={"ask": "circuits"} | HERE | place("digits-vit"), **query)


@pytest.mark.parametrize("model", MODELS)
def test_lines_and_data_of_a_product_are_q_and_k_and_add_up_to_the_score(model: str) -> None:
    app = shown(model=model)
    tab = {"ask": "product", "pos": 2, "key": 1} | HERE | place(model)
    found = lines(app, model, tab)
    table = pd.read_parquet(file(app, tab, "parquet"))
    np.testing.assert_array_equal(found["values"].numpy().reshape(-1), table["product"])
    np.testing.assert_allclose(table["q"] * table["k"], table["product"], rtol=1e-6)
    stored = found["trace"][hook(model).replace("pattern", "scores")][0, 1, 2].numpy()
    sums = table.groupby("key")["product"].sum().to_numpy()
    np.testing.assert_allclose(sums / found["k"].shape[1] ** 0.5, stored, atol=1e-4)


@pytest.mark.parametrize("model", MODELS)
def test_lines_and_data_of_the_steps_are_every_stage_of_the_head(model: str) -> None:
    app = shown(model=model)
    tab = {"ask": "steps"} | HERE | place(model)
    found = lines(app, model, tab)
    table = pd.read_parquet(file(app, tab, "parquet"))
    stages = {name: one.detach().numpy().reshape(-1) for name, one in found["values"].items()}
    assert list(stages) == list(table.columns[4:])
    np.testing.assert_array_equal(np.stack(list(stages.values()), -1), table.iloc[:, 4:])
    pattern = found["trace"][hook(model)][0, 1].numpy()
    np.testing.assert_array_equal(table["pattern"].to_numpy().reshape(pattern.shape), pattern)
    moved = asked(app, "attention", ask="weighted", layer=1, **place(model))[1]["weighted"].data[1]
    np.testing.assert_allclose(table["moved"].to_numpy().reshape(moved.shape), moved, atol=1e-6)
    assert list(table.columns[:5]) == ["query", "query_token", "key", "key_token", "raw"]


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("one", [{}, {"pos": 2}, {"key": 1}])
def test_lines_and_data_of_the_lines_are_the_weights_that_are_drawn(model: str, one: dict[str, int]) -> None:
    app = shown(model=model)
    tab = {"ask": "lines", "heads": [[1, 1], [0, 2]], "least": 0.05} | one | place(model)
    found = lines(app, model, tab)
    drawn = []
    for layer, head in tab["heads"]:
        pattern = found["trace"][hook(model).replace("blocks.1", f"blocks.{layer}")][0, head].double().numpy()
        for query, key in np.argwhere(pattern >= 0.05):
            if one in ({}, {"pos": query}, {"key": key}):
                drawn.append((layer, head, query, key, pattern[query, key]))
    table = pd.read_parquet(file(app, tab, "parquet"))
    expected = np.array(drawn)
    assert len(drawn) > 1
    np.testing.assert_allclose(table[["layer", "head", "query", "key", "weight"]].to_numpy(), expected)
    np.testing.assert_allclose(found["values"].weight.numpy(), expected[:, 4])


@pytest.mark.parametrize("by", ["written", "own"])
def test_lines_and_data_of_the_alignment_join_each_target_word_with_the_source(by: str) -> None:
    model = "translate-en-fr"
    app = shown(model=model)
    tab = {"ask": "alignment", "by": by} | HERE | place(model)
    found = lines(app, model, tab)
    pattern = found["trace"][hook(model)][0, 1].numpy()
    joined = {target: pattern[target - (by == "written")] for target in range(by == "written", len(pattern))}
    np.testing.assert_array_equal(found["values"].numpy(), list(joined.values()))
    table = pd.read_parquet(file(app, tab, "parquet"))
    for target, rows in table.groupby("target"):
        np.testing.assert_array_equal(rows["weight"], joined[target])
        assert rows["source"][rows["most"] == 1].tolist() == [joined[target].argmax()]
    assert sorted(set(table["target"])) == list(joined)
    assert float(found["printed"]) == pattern[2, 1]


def test_the_lines_of_a_measure_have_the_pages_edits() -> None:
    app = opened("attention")
    tab = MEASURES["mean of texts"] | place("stories")
    trained = asked(app, "attention", **tab)[1]["pattern"].data
    app.slider(key="attention").set_value(0.5).run()
    drawn = asked(app, "attention", **tab)[1]["pattern"].data
    assert np.abs(drawn - trained).max() > 0.01
    np.testing.assert_allclose(lines(app, "stories", tab)["values"].numpy(), drawn, atol=1e-6)


@pytest.mark.parametrize(
    "tab",
    [
        None,
        "rollout",
        {"ask": "everything"},
        {"ask": ["rollout"]},
        {"ask": "rollout", "side": "", "first": 0, "last": 99},
        {"ask": "rollout", "side": "", "first": 2, "last": 1, "head": None},
        {"ask": "flow", "side": "decoder", "focus": "attn"},
        {"ask": "flow", "side": "", "pos": 99},
        {"ask": "average", "side": "", "layer": 0, "head": "0"},
        {"ask": "points", "side": "", "focus": "cross_attn", **HERE},
        {"ask": "product", "side": "", "focus": "attn", "pos": 0, "key": -1, **HERE},
        {"ask": "steps", "side": "", "focus": "attn", "layer": 0},
        {"ask": "lines", "side": "", "focus": "attn", "heads": [], "least": 0.1},
        {"ask": "lines", "side": "", "focus": "attn", "heads": [[0, 99]], "least": 0.1},
        {"ask": "lines", "side": "", "focus": "attn", "heads": [[0]], "least": 0.1},
        {"ask": "lines", "side": "", "focus": "attn", "heads": [[0, 1]], "least": "all"},
        {"ask": "lines", "side": "", "focus": "attn", "heads": [[0, 1]], "least": 0.1, "pos": 99},
        {"ask": "alignment", "side": "", "focus": "cross_attn", **HERE},
    ],
)
def test_a_tab_that_is_not_there_is_a_sentence(tab: Any) -> None:
    app = shown(text="the dog")
    for query in ({"take": "python"}, {"take": "data", "format": "csv"}):
        with pytest.raises(ValueError, match=r"[.;]"):
            asked(app, "attention", tab=tab, **query)


@pytest.mark.parametrize("model", MODELS)
def test_patterns_and_scores_of_all_heads_are_files(model: str) -> None:
    app = shown(model=model)
    header, _ = view(app, "attention")
    tables = header["take"]["tables"]
    assert header["take"]["matrices"] == ["", *tables]
    side, focus = MODELS[model]
    of = {name: tables[name] for name in tables if (tables[name]["side"], tables[name]["focus"]) == (side, focus)}
    weights, scored = of.values()
    trace = lines(app, model, weights)["trace"]
    held = [one.numpy() for one in patterns(trace, side, focus == "cross_attn")]
    with np.load(file(app, weights), allow_pickle=False) as kept:
        np.testing.assert_array_equal(kept["values"], np.stack(held))
        assert kept["dims"].tolist() == ["layer", "head", "query", "key"]
    found = pd.read_csv(file(app, scored, "csv"))
    crosses = focus == "cross_attn"
    expected = vars(cross_scores(trace) if crosses else head_scores(trace, side))
    for name, values in expected.items():
        np.testing.assert_allclose(found[name], values.flatten().numpy(), rtol=1e-6, err_msg=name)
    assert len(found) == values.numel() and found["head"].nunique() == values.shape[1]
    assert ("copying" in found) == ("positional" in found) == (not crosses)


def test_a_table_longer_than_a_spreadsheet_takes_is_refused_but_as_npz() -> None:
    long = Matrix("pattern", "none", np.zeros((12, 12, 128, 128), np.float32), ("layer", "head", "query", "key"), {})
    for format in ("csv", "parquet"):
        with pytest.raises(ValueError, match=r"has 2,359,296 rows .* takes 1,048,576; choose npz\.$"):
            data_file(long, format)  # type: ignore[arg-type]
    assert data_file(long, "npz").startswith(b"PK")
