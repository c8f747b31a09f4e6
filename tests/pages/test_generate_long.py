"""The page Generate with a text that is longer than its model reads: what is left of it, and why the rest is not."""

import io
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from engine import run
from engine.analysis.surprise import surprise
from engine.budget import budget
from engine.generation.prompt import begin
from engine.runtime import library
from tests.pages.test_generate import asked, charts, exported, opened, streamed, view
from tests.pages.test_take import ran
from views.generate.codegen import temperature_lines
from views.generate.session import Call, GenerationContext

pytestmark = pytest.mark.long

LONG = "the dog " * 300
WRITING = ["write", "beam", "cache"]


def whole(app: Any) -> tuple[list[dict[str, Any]], np.ndarray]:
    """The parts of the tab Surprise, and the log-probabilities in them."""
    parts = list[Any]()
    while not parts or not parts[-1][0]["whole"]:
        parts += streamed(app, ask="surprise_parts", written=[], came=parts[-1][0]["count"] if parts else 0)
    return [header for header, _ in parts], np.concatenate([arrays["log_probability"].data for _, arrays in parts])


def test_a_text_longer_than_the_context_is_measured_whole_and_the_tabs_that_write_say_why_they_do_not() -> None:
    app = opened(text=LONG)
    header, _ = view(app)
    loaded = library.checkpoint("stories")
    ids = loaded.tokenizer.encode(LONG).ids
    assert header["tokens"] == len(ids) > 256 and not header["fits"]
    assert header["prompt"]["ids"] == list(ids[-12:])
    assert list(header["missing"]) == WRITING
    for why in (*header["missing"].values(), header["notice"]):
        assert "at most 256 tokens" in why and f"the text has {len(ids):,}" in why and "shorten it" in why
    assert header["notice"].endswith("The tab Surprise reads it whole, in windows that overlap.")
    headers, logs = whole(app)
    found = surprise(loaded, ids)
    assert headers[0]["windows"] == [[one.begin, one.asked, one.end] for one in found.windows]
    np.testing.assert_allclose(logs, found.log_probabilities, atol=1e-5)
    assert headers[-1]["perplexity"] == pytest.approx(found.perplexity, rel=1e-5)
    assert not list(app.warning) and not app.exception


def test_what_a_text_that_is_too_long_has_no_room_for_is_refused_with_the_sentence_of_its_tab() -> None:
    app = opened(text=LONG)
    for query in (
        {"ask": "step", "begun": [], "settings": {}},
        {"ask": "beam", "wanted": {}},
        {"ask": "cache", "begun": []},
        {"ask": "costs", "begun": []},
        {"ask": "export_python", "of": {"ask": "cache", "begun": []}},
        {"ask": "export_python", "of": {"ask": "written", "ids": []}},
    ):
        with pytest.raises(ValueError, match=r"at most 256 tokens .* shorten it\."):
            asked(app, **query)
    offered = view(app)[0]["take"]["matrices"]
    assert "Surprise: tokens" in offered and not [name for name in offered if name.split(":")[0].lower() in WRITING]


def test_a_long_texts_table_and_lines_of_python_are_what_is_shown() -> None:
    app = opened(text=LONG)
    headers, logs = whole(app)
    _, arrays = exported(app, "data", {"ask": "surprise", "written": []}, format="csv")
    table = pd.read_csv(io.BytesIO(arrays["file"].data.tobytes()), comment="#")
    np.testing.assert_allclose(table["log_probability"], logs, rtol=1e-4, atol=1e-6)
    found = ran(exported(app, "python", {"ask": "surprise", "written": []})[0]["lines"])["found"]
    assert found.total == pytest.approx(headers[-1]["total"], rel=1e-6)
    assert [[one.begin, one.asked, one.end] for one in found.windows] == headers[0]["windows"]


@pytest.mark.parametrize(("said", "stride"), [("half", 128), ("quarter", 64), ("whole", 255)])
def test_windows_stand_as_far_apart_as_is_asked(said: str, stride: int) -> None:
    app = opened(text=LONG)
    header = asked(app, ask="surprise", written=[], stride=said)[0]
    assert header["windows"][1][0] == stride
    found = ran(exported(app, "python", {"ask": "surprise", "written": [], "stride": said})[0]["lines"])["found"]
    assert [[one.begin, one.asked, one.end] for one in found.windows] == header["windows"]
    assert found.total == pytest.approx(header["total"], rel=1e-6)
    for nonsense in ("third", 5, None, ["half"]):
        with pytest.raises(ValueError, match="stride must be one of half, quarter, whole"):
            asked(app, ask="surprise", written=[], stride=nonsense)


def test_the_temperature_of_a_long_text_is_of_what_follows_its_last_tokens_that_fit() -> None:
    app = opened(text=LONG)
    app.get("button_group")[0].set_value("temperature").run()
    curves = charts(app)[-1][1]["curves"]
    loaded = library.checkpoint("stories")
    last = list(loaded.tokenizer.encode(LONG).ids)[-256:]
    logits = run(loaded.model, last, "logits")["logits"][0, -1]
    at_one = curves[curves["temperature"] == 1]["probability"].to_numpy()
    np.testing.assert_allclose(at_one[:8], logits.softmax(-1).topk(8).values, atol=1e-5)
    one = GenerationContext("stories", loaded, begin(loaded, LONG, longer=True), Call(repr(LONG)))
    script = temperature_lines(one, (), 2.0)
    torch.testing.assert_close(ran(script)["found"].probabilities, (logits / 2).softmax(-1), atol=1e-6, rtol=1e-4)
    assert set(charts(app)[0][1]["curves"]["row"]) == {0, 1, 2}


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ({"model": "translate-en-fr", "text": "the dog sleeps . " * 20}, "of a source, and this one has"),
        ({"model": "translate-en-fr", "text": "the dog sleeps .", "target": "le chien . " * 30}, "of a target, its"),
        ({"model": "infill", "text": "A [gMASK] sat. " + "The dog ran. " * 100, "span": ""}, "what fills its gap"),
    ],
)
def test_what_a_model_needs_whole_is_not_read_in_windows_and_the_page_stays(address: dict[str, str], said: str) -> None:
    app = opened(**address)
    header, _ = view(app)
    assert list(header["missing"]) == [*WRITING, "surprise"] and not header["fits"]
    assert said in header["notice"] and header["notice"].endswith("shorten it.")
    with pytest.raises(ValueError, match=r"at most .* shorten it\."):
        asked(app, ask="surprise", written=[])
    assert header["view"] == "temperature" and said in app.info[0].value
    ((_, data),) = charts(app)
    assert set(data["curves"]["row"]) == {0, 1, 2}
    app.get("button_group")[0].set_value("prompting").run()
    assert app.selectbox(key="p_model").options


def test_a_text_longer_than_surprise_is_measured_of_is_refused_with_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budget, "surprise_tokens", 300)
    app = opened(text=LONG)
    header, _ = view(app)
    assert list(header["missing"]) == [*WRITING, "surprise"]
    assert "at most 300 tokens" in header["notice"] and "LOUPE_SURPRISE_TOKENS" in header["notice"]
    with pytest.raises(ValueError, match="at most 300 tokens"):
        asked(app, ask="surprise", written=[])


def test_a_text_that_just_fits_is_written_behind_and_read_at_once() -> None:
    loaded = library.checkpoint("stories")
    text = loaded.tokenizer.decode(loaded.tokenizer.encode(LONG).ids[:256])
    prompt = begin(loaded, text)
    app = opened(text=text)
    header, _ = view(app)
    assert len(prompt.ids) == 256 and header["fits"] and not header["missing"] and "at most" not in header["notice"]
    assert len(whole(app)[0][0]["windows"]) == 1
