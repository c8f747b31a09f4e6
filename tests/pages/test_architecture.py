"""The architecture page without a browser: what reaches the picture, and what a person is told."""

import json
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow
import pytest
from streamlit.runtime.scriptrunner import RerunData
from streamlit.testing.v1 import AppTest, local_script_runner

from tests.pages.mounted import read_markdown
from views.core.payload import unpack

PAGE = str(Path(__file__).parents[2] / "pages" / "inspect" / "architecture.py")


def opened(**query: str) -> AppTest:
    app = AppTest.from_file(PAGE, default_timeout=60)
    for name, value in query.items():
        app.query_params[name] = value
    return app.run()


def models(app: AppTest) -> list[dict[str, Any]]:
    assert not app.exception, app.exception
    (found,) = [e.proto for e in app.get("bidi_component") if "architecture" in e.proto.component_name]
    return unpack(found.bytes)[0]["models"]


def words(app: AppTest) -> str:
    return "\n".join([*(e.value for e in app.caption), *(e.value for e in app.markdown)])


def test_first_open_shows_bert_base_counted_to_the_last_parameter() -> None:
    app = opened()
    (model,) = models(app)
    assert (model["name"], model["total"]) == ("bert-base", 109_482_240)
    assert "Together they are 109,482,240; the tensors of the model itself, built without memory, have 109,482,240" in (
        words(app)
    )
    assert "| Adam's two moments in float32 |" in words(app)
    assert "about 101.3 million" in words(app) and "$W_O$ | 7,077,888 | ${L \\cdot d^{2}}$" in words(app)
    assert "continues no text, so it keeps none" in words(app)


def test_a_link_opens_its_model_with_its_switches() -> None:
    app = opened(model="gpt2", mask="full", mlp="gated", layers="3")
    (model,) = models(app)
    assert model["name"] == "gpt2, changed"
    (stack,) = model["stacks"]
    assert (stack["attention"]["mask"], stack["mlp"]["gated"], stack["layers"]) == ("full", True, 3)


def test_throwing_a_switch_changes_picture_and_counts_and_can_be_taken_back() -> None:
    app = opened(model="llama-3-8b")
    before = models(app)[0]["total"]
    app.selectbox(key="kv_heads").select("as many").run()
    after = models(app)[0]
    assert after["total"] - before == 2 * 32 * 4096 * (4096 - 1024)
    assert after["stacks"][0]["attention"]["kvHeads"] == 32
    app.button[0].click().run()
    assert models(app)[0]["total"] == before


def test_another_model_comes_with_its_own_switches() -> None:
    app = opened(model="llama-3-8b", norm="layer")
    app.selectbox(key="model").select("t5-small").run()
    (model,) = models(app)
    assert (model["name"], model["total"]) == ("t5-small", 60_506_624)
    assert app.selectbox(key="stacks").value == "two"


def test_a_second_model_stands_beside_and_labels_say_where_it_differs() -> None:
    app = opened(model="bert-base", against="gpt2")
    assert [model["name"] for model in models(app)] == ["bert-base", "gpt2"]
    assert app.selectbox(key="mask").label == "mask :violet[≠ causal]"
    assert app.selectbox(key="norm").label == "norm"


@pytest.mark.parametrize(
    ("query", "said"),
    [
        (
            {"model": "gpt2", "sublayers": "parallel", "place": "after"},
            "parallel sublayers must have their norms before",
        ),
        ({"model": "vit-b-16", "head": "language"}, "a model that reads patches has no tokens to predict"),
        ({"model": "gpt2", "heads": "7"}, "d_model 768 cannot be split into 7 heads; try 6 or 8"),
    ],
)
def test_what_cannot_be_built_is_one_sentence(query: dict[str, str], said: str) -> None:
    app = opened(**query)
    assert not app.exception
    (warning,) = app.warning
    text = read_markdown(warning.value)
    assert text.startswith("This configuration is not possible: ") and said in text
    assert [model["name"] for model in models(app)] == [query["model"]]  # the picture stays


def test_a_choice_that_fits_no_model_keeps_the_picture_and_offers_the_nearest_that_fits() -> None:
    app = opened(model="gpt2")
    app.number_input(key="layers").set_value(6).run()
    before = models(app)[0]
    app.number_input(key="heads").set_value(7).run()
    assert models(app)[0] == before and "d_model 768 cannot be split into 7 heads" in read_markdown(
        app.warning[0].value
    )
    offers = {button.label: button for button in app.button if button.key and button.key.startswith("instead ")}
    assert list(offers)[:2] == ["heads: 6", "width, d: 770"]
    offers["heads: 6"].click().run()
    assert not app.warning and not app.exception and app.number_input(key="heads").value == 6


def test_an_older_link_keeps_its_width_and_the_model_of_side_d_is_no_width() -> None:
    app = opened(model="gpt2", d_model="96")
    assert app.number_input(key="d").value == 96 and "d_model" not in app.query_params
    app = opened(model="gpt2", d_model="stories")
    assert not app.exception and app.number_input(key="d").value == 768


@pytest.mark.parametrize("name", ["stories", "vit-b-16", "mistral-7b", "chatglm-6b", "gpt3-175b"])
def test_every_kind_of_model_opens(name: str) -> None:
    assert models(opened(model=name))[0]["name"] == name


def test_length_and_batch_change_the_cache() -> None:
    app = opened(model="gpt2", length="100", batch="3")
    assert f"{2 * 3 * 2 * 12 * 100 * 768:,}" in words(app)


def readings(app: AppTest) -> dict[str, str]:
    """What each chart reads at the chosen length, by its title."""
    assert not app.exception, app.exception
    found = {}
    for chart in (element.proto for element in app.get("vega_lite_chart")):
        (now,) = (one.data.data for one in chart.datasets if one.name == "now")
        title = json.loads(chart.spec)["title"]["text"]
        found[title] = pyarrow.ipc.open_stream(now).read_pandas()["reading"].item()
    return found


def test_the_charts_are_at_the_length_the_batch_and_the_numbers_that_are_chosen() -> None:
    app = opened(model="gpt2", length="100", batch="3", number="float32")
    (estimate,) = app.get("plotly_chart")
    assert json.loads(estimate.proto.spec)["data"][0]["text"][-1] == "124,439,808"
    assert readings(app)["KV cache of generation"] == f"100 tokens: {2 * 3 * 4 * 12 * 100 * 768:,} bytes"
    app.slider(key="batch").set_value(5).run()
    assert readings(app)["KV cache of generation"] == f"100 tokens: {2 * 5 * 4 * 12 * 100 * 768:,} bytes"


def test_the_charts_of_a_model_of_pictures_go_along_the_pictures_side() -> None:
    app = opened(model="vit-b-16")
    found = readings(app)
    assert list(found) == ["Operations of a forward pass", "Activations kept in training"]
    assert found["Operations of a forward pass"].startswith("224 pixels a side: ")
    assert found["Operations of a forward pass"].endswith(" operations a picture")
    assert "pictures of 224 pixels a side" in words(app)


def test_the_way_back_leads_to_the_model_of_its_entry_with_that_ones_switches() -> None:
    app = opened(model="gpt2", layers="3")
    app.query_params.clear()
    with patch.object(local_script_runner, "RerunData", partial(RerunData, is_history_navigation=True)):
        app.run()
    (model,) = models(app)
    assert (model["name"], model["total"]) == ("bert-base", 109_482_240)
    assert app.selectbox(key="mask").value == "full" and app.number_input(key="layers").value == 12


def test_a_page_opens_on_the_model_that_was_looked_at_with_its_own_switches() -> None:
    app = AppTest.from_file(str(Path(PAGE).parents[2] / "app.py"), default_timeout=60)
    app.query_params["model"] = "induction"
    app.switch_page("pages/explore/attention.py").run()
    app.query_params.clear()
    app.switch_page("pages/inspect/architecture.py").run()
    assert models(app)[0]["name"] == "induction" and app.query_params["model"] in ("induction", ["induction"])
