"""The page of long sequences without a browser: a finished picture at once, and nothing long unasked."""

import json
from pathlib import Path

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from engine.attention_variants import measure, shared
from engine.attention_variants.material import Material
from engine.attention_variants.measure import KINDS, Point, Setup, cost
from engine.runtime import library
from pages.controls.learn.cross_nearest import TRANSLATOR, compute_cross_attention, read_source
from pages.controls.long_sequences.parameters import LONG_CONTEXT
from pages.controls.model_input.model_input import example
from tests.pages.test_take import view
from views.core.payload import unpack
from views.core.questions import STALE

APP = str(Path(__file__).parents[2] / "app.py")
PAGE = str(Path(__file__).parents[2] / "pages" / "inspect" / "long_sequences.py")


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """What the page has measured, each point a second long by a clock of its own."""
    calls: list[tuple[str, int]] = []

    def counted(kind: str, part: Material, setup: Setup) -> Point:
        length = len(part.states)
        calls.append((kind, length))
        return Point(kind, length, 1.0, 1000, cost(kind, length, 4, 32, 128, setup))

    monkeypatch.setattr(shared, "_points", {})
    monkeypatch.setattr(shared, "point", counted)
    return calls


def opened(**state: object) -> AppTest:
    app = AppTest.from_file(PAGE, default_timeout=60)
    for name, value in state.items():
        if name in LONG_CONTEXT.parameters:
            app.query_params[name] = str(value)
        else:
            app.session_state[name] = value
    app.run()
    assert not app.exception, app.exception
    return app


def offered(app: AppTest) -> list[str]:
    return [button.label for button in app.button if button.label.startswith("Measure")]


def test_first_open_shows_a_finished_picture_and_measures_only_short_texts(asked: list[tuple[str, int]]) -> None:
    app = opened()
    assert asked == [(kind, length) for length in (256, 512, 1024) for kind in KINDS]
    assert not offered(app)
    assert len(app.get("vega_lite_chart")) == 2
    header, arrays = view(app, "patterns")
    assert len(arrays) == len(header["kept"]) == 5
    (searches,) = (frame.value for frame in app.dataframe)
    assert searches["search"].tolist() == ["exact", "codes alone", "codes, best 4 k again"]
    found = shared.compare_searches("stories", 1024, Setup())
    assert searches["recall@16"].tolist() == [row.recall[16] for row in found]
    measured = opened(measurements=True, formulas=True).dataframe[0].value  # what stands in a part that is opened
    assert measured["length"].tolist()[:: len(KINDS)] == [256, 512, 1024]


def test_both_charts_show_the_kinds_that_are_chosen(asked: list[tuple[str, int]]) -> None:
    app = opened()
    app.get("button_group")[0].set_value(["window", "fused"]).run()
    charts = app.get("vega_lite_chart")
    assert len(charts) == 2
    for chart in charts:
        encoding = json.loads(chart.proto.spec)["layer"][1]["encoding"]
        assert encoding["color"]["scale"]["domain"] == ["full, fused", "window"]


def test_what_is_measured_once_is_not_measured_again(asked: list[tuple[str, int]]) -> None:
    app = opened()
    asked.clear()
    app.run()
    assert asked == []
    app.select_slider(key="window").set_value(64).run()
    assert asked == [("window", length) for length in (256, 512, 1024)]


def test_long_texts_are_measured_when_asked_for(asked: list[tuple[str, int]]) -> None:
    app = opened(length=2048)
    assert {length for _, length in asked} == {256, 512, 1024}
    assert app.button(key="measure").label.startswith("Measure up to 2,048 positions, about ")
    asked.clear()
    app.button(key="measure").click().run()
    assert asked == [(kind, 2048) for kind in KINDS]
    assert not offered(app)


def test_what_does_not_fit_into_memory_is_not_offered(
    asked: list[tuple[str, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (measure, shared):
        monkeypatch.setattr(module, "MOST_BYTES", 0)
    key = ("stories", "quantized", 256, *Setup().part_for("quantized"))
    monkeypatch.setitem(shared._points, key, point_of("quantized", 256))
    app = opened(length=2048)
    assert asked == [] and not offered(app)


def point_of(kind: str, length: int) -> Point:
    return Point(kind, length, 1.0, 1000, cost(kind, length, 4, 32, 128, Setup()))


def test_every_head_that_the_view_turns_to_is_answered_with_what_it_keeps(asked: list[tuple[str, int]]) -> None:
    app = opened()
    trace = view(app, "patterns")[0]["trace"]
    kept = shared.kept_patterns("stories", 128, 0, 1, Setup())
    app.session_state["courier asked"] = [
        {"id": 1, "query": {"trace": trace, "ask": "kept", "layer": 0, "head": 1}},
        {"id": 2, "query": {"trace": trace, "ask": "kept", "layer": 4, "head": 0}},
        {"id": 3, "query": {"trace": "another", "ask": "kept", "layer": 0, "head": 1}},
    ]
    app.run()
    answers, packed = view(app, "courier")
    assert [one.get("sentence", "") for one in answers["answers"]] == ["", "layer must be in 0..3, got 4.", STALE]
    header, arrays = unpack(packed["1"].data.tobytes())
    for said, (name, part) in zip(header["kept"], kept.items(), strict=True):
        assert (said["name"], said["mass"], said["cells"]) == (name, part.mass, part.cells)
        shown = arrays[f"pattern.{name}"].data
        np.testing.assert_array_equal(shown[part.allowed], part.pattern[part.allowed])
        assert np.isnan(shown[~part.allowed]).all()


def test_a_link_hides_controls_and_says_what_it_could_not_restore(asked: list[tuple[str, int]]) -> None:
    app = AppTest.from_file(APP, default_timeout=60)  # which hears what a link hides
    for name, value in {"window": "33", "k": "8", "model": "nobody", "v": "1", "hide": "window,measuring,x"}.items():
        app.query_params[name] = value
    app.switch_page("pages/inspect/long_sequences.py").run()
    (said,) = [one.value for one in app.info]
    assert "'nobody' is not here" in said and "window is '33' and must be one of 8, 16" in said and "'x'" in said
    assert app.select_slider(key="k").value == 8
    styles = "".join(one.proto.body for one in app.get("html"))
    assert ".st-key-window, .st-key-measuring { display: none !important; }" in styles
    offered = [key for key, _ in view(app, "patterns")[0]["take"]["controls"]]
    assert {"model", "window", "measuring"} <= set(offered)


@pytest.mark.parametrize(
    ("name", "why"),
    [("infill", "uses rotary positions"), ("compiled-brackets", "has no norm before attention")],
)
def test_a_link_to_a_model_that_cannot_be_measured_says_why(name: str, why: str, asked: list[tuple[str, int]]) -> None:
    app = AppTest.from_file(PAGE, default_timeout=60)
    app.query_params["model"] = name
    app.run()
    (said,) = [one.value for one in app.info]
    assert f"the model '{name}' {why}, which this page cannot read" in said
    assert app.selectbox(key="model").value == "stories"


def test_a_model_opened_elsewhere_is_measured_too_and_one_that_turns_its_queries_is_not_offered(
    asked: list[tuple[str, int]],
) -> None:
    app = opened(opened=["induction", "infill", "tales-bert", "nobody"])
    box = app.selectbox(key="model")
    assert box.options == ["stories", "induction"] and box.value == "stories"
    asked.clear()
    box.set_value("induction").run()
    assert not app.exception
    assert len(asked) == 3 * len(KINDS)


def test_a_text_of_ones_own_stands_before_the_stories_in_patterns_searches_and_the_script(
    asked: list[tuple[str, int]],
) -> None:
    app = opened(long_text="Zelda the zebra danced on a zeppelin.")
    header, arrays = view(app, "patterns")
    tokenizer = library.checkpoint("stories").tokenizer
    assert tokenizer is not None
    own = tokenizer.encode("Zelda the zebra danced on a zeppelin.", special=False).pieces
    assert tuple(header["pieces"][: len(own)]) == own and len(header["pieces"]) == 128
    kept = shared.kept_patterns("stories", 128, 3, 2, Setup(), "Zelda the zebra danced on a zeppelin.")
    shown = arrays["pattern.nearest"].data
    np.testing.assert_array_equal(shown[kept["nearest"].allowed], kept["nearest"].pattern[kept["nearest"].allowed])
    found = shared.compare_searches("stories", 1024, Setup(), "Zelda the zebra danced on a zeppelin.")
    assert app.dataframe[0].value["recall@16"].tolist() == [row.recall[16] for row in found]


def test_the_translator_finds_its_k_nearest_states_of_a_text_of_ones_own(asked: list[tuple[str, int]]) -> None:
    app = opened(across=True)
    app.text_input(key="long_sequences-source").set_value("I am very tired.").run()
    best = library.checkpoint(TRANSLATOR).card["measured"]["alignment"]
    found = compute_cross_attention(tuple(read_source("I am very tired.")), 4, best["layer"])
    share = float(found.kept[best["head"]])
    assert any(f"4 of 5 states hold {share:.0%} of this head's attention" in one.value for one in app.markdown)
    app.button(key="example of long_text").click().run()
    assert app.session_state["long_text"] == example("stories")["text"]
