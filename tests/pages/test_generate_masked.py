"""The page Generate with a model that fills in what is masked: it writes nothing, and its tokens are masked in turn."""

import io
from typing import Any

import numpy as np
import pandas as pd
import pytest

from engine.analysis.pseudo import pseudo_surprise
from engine.runtime import library
from tests.pages.test_generate import asked, charts, exported, keys, opened, streamed, view
from tests.pages.test_take import ran
from views.generate import streaming as generate_parts
from views.generate import surprise_cache as generate_measured

PAIR = {"model": "tales-bert", "text": "Max gave the red ball to Anna.", "second": "She was happy."}


def test_tabs_that_write_say_why_they_do_not_and_surprise_is_the_pseudo_log_likelihood() -> None:
    app = opened(**PAIR)
    header, _ = view(app)
    assert list(header["missing"]) == ["write", "beam", "cache"] and not header["follows"]
    assert all("reads every text in both directions" in why for why in header["missing"].values())
    assert header["notice"].endswith("The tab Surprise masks each token in turn.")
    assert not {"method", "temperature", "seed"} & keys(app)
    loaded = library.checkpoint("tales-bert")
    read = loaded.tokenizer.encode(PAIR["text"], PAIR["second"])
    found = pseudo_surprise(loaded, read.ids, read.segments)
    said, arrays = asked(app, ask="surprise", written=[])
    assert said["pseudo"] and said["whole"] and said["asked"] == len(found.ids)
    assert said["total"] == pytest.approx(found.total, rel=1e-5)
    assert said["perplexity"] == pytest.approx(found.perplexity, rel=1e-5)
    assert [read.ids[at] for at in arrays["at"].data] == arrays["id"].data.tolist() == found.ids.tolist()
    np.testing.assert_allclose(arrays["log_probability"].data, found.log_probabilities, atol=1e-5)


def test_its_table_and_lines_of_python_are_what_is_shown() -> None:
    app = opened(**PAIR)
    said, arrays = asked(app, ask="surprise", written=[])
    file = exported(app, "data", {"ask": "surprise", "written": []}, format="csv")[1]["file"].data.tobytes()
    table = pd.read_csv(io.BytesIO(file), comment="#")
    np.testing.assert_allclose(table["log_probability"], arrays["log_probability"].data, rtol=1e-4, atol=1e-6)
    assert table["position"].tolist() == arrays["at"].data.tolist()
    found = ran(exported(app, "python", {"ask": "surprise", "written": []})[0]["lines"])["found"]
    assert found.total == pytest.approx(said["total"], rel=1e-5)


def test_a_text_in_several_parts_adds_up_to_the_text_in_one(monkeypatch: pytest.MonkeyPatch) -> None:
    once = asked(opened(**PAIR), ask="surprise", written=[])[0]
    monkeypatch.setattr(generate_measured, "WORK", 1)
    monkeypatch.setattr(generate_parts, "PACE", 0.0)
    monkeypatch.setattr(generate_parts, "LONGEST", 0.0)
    app = opened(**PAIR)
    parts = list[Any]()
    while not parts or not parts[-1][0]["whole"]:
        (part,) = streamed(app, ask="surprise_parts", written=[], came=len(parts))
        parts.append(part)
        app.session_state["courier asked"] = []
        app.run()  # of the whole page, which loses nothing
    logs = np.concatenate([arrays["log_probability"].data for _, arrays in parts])
    assert len(parts) == once["asked"] == len(logs) == parts[-1][0]["steps"]
    assert -float(logs.astype("f8").sum()) == pytest.approx(once["total"], rel=1e-5)
    assert parts[-1][0]["total"] == pytest.approx(once["total"], rel=1e-5)


def test_what_was_measured_outlives_a_rerun_of_the_page(monkeypatch: pytest.MonkeyPatch) -> None:
    measured, once = list[Any](), generate_measured.pseudo_surprise
    monkeypatch.setattr(generate_measured, "pseudo_surprise", lambda *a: measured.append(a[3]) or once(*a))
    app = opened(**PAIR)
    streamed(app, ask="surprise_parts", written=[])
    before = len(measured)
    app.run()
    assert streamed(app, ask="surprise_parts", written=[])[-1][0]["whole"] and len(measured) == before > 0


def test_what_it_cannot_say_is_refused_with_a_sentence_and_the_page_stays() -> None:
    app = opened(**PAIR)
    for query in (
        {"ask": "step", "begun": [], "settings": {}},
        {"ask": "export_python", "of": {"ask": "written", "ids": []}},
    ):
        with pytest.raises(ValueError, match="both directions"):
            asked(app, **query)
    app.get("button_group")[0].set_value("temperature").run()
    assert "both directions" in app.info[0].value
    ((_, data),) = charts(app)
    assert set(data["curves"]["row"]) == {0, 1, 2}
    long = opened(model="tales-bert", text="the dog ran . " * 70)
    header, _ = view(long)
    assert list(header["missing"]) == ["write", "beam", "cache", "surprise"]
    assert "at most 256 tokens" in header["missing"]["surprise"] and "at most 256 tokens" in header["notice"]
    with pytest.raises(ValueError, match="at most 256 tokens"):
        asked(long, ask="surprise", written=[])


def test_the_settings_of_writing_are_there_again_for_a_model_that_writes() -> None:
    app = opened(model="stories", temperature="0.7")
    app.selectbox(key="model").set_value("tales-bert").run()
    assert not {"method", "temperature"} & keys(app) and view(app)[0]["missing"]
    app.selectbox(key="model").set_value("stories").run()
    assert view(app)[0]["settings"]["temperature"] == 0.7 and not view(app)[0]["missing"]
