"""The page of long sequences without a browser: a finished picture at once, and nothing long unasked."""

from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from engine.long import measure, shared
from engine.long.material import Material
from engine.long.measure import KINDS, Point, Setup, cost

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
        app.session_state[name] = value
    app.run()
    assert not app.exception, app.exception
    return app


def test_first_open_shows_a_finished_picture_and_measures_only_short_texts(asked: list[tuple[str, int]]) -> None:
    app = opened()
    assert asked == [(kind, length) for length in (256, 512, 1024) for kind in KINDS]
    assert len(app.get("vega_lite_chart")) == 2
    assert len(app.get("plotly_chart")) == 5
    assert not app.button
    table = app.dataframe[0].value
    assert table["search"].tolist() == ["exact", "codes alone", "codes, best 4 k again"]
    found = shared.compared("stories", 1024, Setup())
    assert table["recall@16"].tolist() == [row.recall[16] for row in found]


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
    assert not app.button


def test_what_does_not_fit_into_memory_is_not_offered(
    asked: list[tuple[str, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (measure, shared):
        monkeypatch.setattr(module, "MOST_BYTES", 0)
    key = ("stories", "quantized", 256, *Setup().of("quantized"))
    monkeypatch.setitem(shared._points, key, point_of("quantized", 256))
    app = opened(length=2048)
    assert asked == [] and not app.button


def point_of(kind: str, length: int) -> Point:
    return Point(kind, length, 1.0, 1000, cost(kind, length, 4, 32, 128, Setup()))


def test_the_captions_say_what_the_chosen_head_keeps(asked: list[tuple[str, int]]) -> None:
    app = opened(head=(0, 1))
    kept = shared.kept("stories", 128, 0, 1, Setup())
    captions = [caption.value for caption in app.caption]
    for part in kept.values():
        assert any(f"keeps {part.mass:.1%} of the attention in {part.cells:.1%}" in text for text in captions)


def test_a_model_opened_elsewhere_is_measured_too_and_one_that_turns_its_queries_is_not_offered(
    asked: list[tuple[str, int]],
) -> None:
    app = opened(opened=["induction", "infill", "stories-bert", "nobody"])
    box = app.selectbox(key="model")
    assert box.options == ["stories", "induction"] and box.value == "stories"
    asked.clear()
    box.set_value("induction").run()
    assert not app.exception
    assert len(asked) == 3 * len(KINDS)
