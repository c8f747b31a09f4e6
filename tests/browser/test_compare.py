"""The page about comparisons: both maps and their difference are the engine's numbers, under one cursor."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import numpy as np
import pytest

from engine.analysis.alignment import by_characters, shared
from engine.inputs.readers import pictures, read_picture, read_text
from engine.runtime import library
from engine.runtime.trace import Trace

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

    from tests.conftest import Wire

FIRST, SECOND = "Max gave the red ball to Anna.", "Max gave the small red ball to Lily."
READY = ".compare[data-ready] .maps canvas"
DRAWN = """(e, [letter, differs]) => { const block = e.loupe.maps.drawn(letter, differs);
return Array.from({length: block.rows}, (_, r) => Array.from(block.data.subarray(block.offset + r * block.stride,
  block.offset + r * block.stride + block.cols), String)); }"""


@pytest.fixture
def look(open_page: Callable[[str], "Page"], stage: str) -> Callable[..., "Page"]:
    def open_(hash: str = "", **query: str) -> "Page":
        named = {"a_text": FIRST, "b_text": SECOND, **query}
        said = "&".join(f"{name}={quote(value)}" for name, value in named.items())
        page = open_page(f"{stage}/compare?{said}{hash}")
        page.wait_for_selector(READY)
        return page

    return open_


def traced(text: str, model: str = "stories") -> Trace:
    return library.traces.trace(model, read_text(library.checkpoint(model), text, 256).read)


def root(page: "Page") -> "Locator":
    return page.locator(".compare")


def state(page: "Page") -> dict[str, Any]:
    found: dict[str, Any] = root(page).evaluate("e => JSON.parse(JSON.stringify(e.loupe.state))")
    return found


def drawn(page: "Page", letter: str, differs: bool = False) -> np.ndarray:
    return np.array([[float(x) for x in row] for row in root(page).evaluate(DRAWN, [letter, differs])])


def cell(canvas: "Locator", row: int, col: int, rows: int, cols: int) -> dict[str, float]:
    box = canvas.bounding_box()
    assert box is not None
    return {"x": box["width"] * (col + 0.5) / cols, "y": box["height"] * (row + 0.5) / rows}


def test_both_maps_are_the_engines_and_they_differ_by_b_less_a_where_tokens_meet(look: Callable[..., "Page"]) -> None:
    page = look("#layer=1&head=2")
    first, second = (traced(text)["blocks.1.attn.pattern"][0, 2].numpy() for text in (FIRST, SECOND))
    np.testing.assert_array_equal(drawn(page, "A"), first)
    np.testing.assert_array_equal(drawn(page, "B"), second)
    pieces = [list(traced(text).encoding.pieces) for text in (FIRST, SECOND)]
    small, anna = pieces[1].index("·small"), pieces[0].index("·Anna")
    found = drawn(page, "B", True)
    assert len(found) == len(pieces[1]) == len(pieces[0]) + 1
    assert np.isnan(found[small]).all() and np.isnan(found[:, small]).all()
    left = np.delete(np.delete(second, small, 0), small, 1)
    np.testing.assert_allclose(np.delete(np.delete(found, small, 0), small, 1), left - first, atol=1e-7)
    assert page.locator(".map-of").nth(2).locator(".map-left bdi").nth(anna + 1).inner_text() == "·Anna | ·Lily"


def test_one_cursor_moves_in_all_maps_and_asks_no_server(look: Callable[..., "Page"], wire: "Wire") -> None:
    page = look("#layer=3&head=3")
    sent = wire.reruns
    first, second = traced(FIRST), traced(SECOND)
    pieces = second.encoding.pieces
    row, col = pieces.index("·Lily"), pieces.index("·ball")
    canvas = page.locator(".map-of").nth(1).locator("canvas").first
    canvas.hover(position=cell(canvas, row, col, len(pieces), len(pieces)))
    assert page.locator(".map-of").nth(0).locator(".map-left .lit").inner_text() == "·Anna"
    assert page.locator(".map-of").nth(2).locator(".map-left .lit").inner_text() == "·Anna | ·Lily"
    names = first.encoding.pieces
    values = [
        float(first["blocks.3.attn.pattern"][0, 3, names.index("·Anna"), names.index("·ball")]),
        float(second["blocks.3.attn.pattern"][0, 3, row, col]),
    ]
    said = [text.replace("\u00a0", " ").split() for text in page.locator(".pointed b").all_inner_texts()]
    expected = [100 * value for value in (*values, values[1] - values[0])]
    for (text, _), value in zip(said, expected, strict=True):
        assert float(text.replace("−", "-").replace("e--", "e-")) == pytest.approx(value, rel=5e-3, abs=1e-4)
    for key in ("]", "}", "[", "{"):
        page.locator("body").press(key)
    small = pieces.index("·small")
    canvas.hover(position=cell(canvas, small, 0, len(pieces), len(pieces)))
    assert "no partner" in page.locator(".pointed").inner_text()
    assert "no partner" in page.locator(".predictions-of").inner_text()
    before = state(page)["cursor"]
    page.locator(".map-of").nth(0).locator(".map-scroll").focus()
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowLeft")
    assert state(page)["cursor"] == {"letter": "A", "row": before["row"] - 1, "col": before["col"] - 1}
    assert wire.reruns == sent


def test_heads_stand_from_the_one_that_differs_most_and_a_click_shows_it(look: Callable[..., "Page"]) -> None:
    other = FIRST.replace("Anna", "Max")
    page = look(b_text=other)
    assert len(traced(other).encoding) == len(traced(FIRST).encoding)
    patterns = [traced(text).stack("attn.pattern")[:, 0] for text in (FIRST, other)]
    change = ((patterns[1] - patterns[0]).abs().sum(-1) / 2)[..., 1:].mean(-1).flatten()
    order = [f"{i // 4 + 1}·{i % 4 + 1}" for i in change.argsort(descending=True).tolist()]
    assert page.locator(".heads-of .which").all_text_contents() == order
    page.locator(".heads-of .headgrid button").nth(2).click()
    assert f"{state(page)['layer'] + 1}·{state(page)['head'] + 1}" == order[2]


def test_the_most_alike_head_is_named_and_shown(look: Callable[..., "Page"]) -> None:
    page = look(b_model="tales-bert", b_text=FIRST)
    block = np.array(root(page).evaluate("e => Array.from(e.loupe.similarity('B').data, Number)")).reshape(16, 36)
    best = block[15].argmax()
    assert page.get_by_role("button", name="most alike").get_attribute("aria-pressed") == "true"
    first, second = traced(FIRST), traced(FIRST, "tales-bert")
    aligned = by_characters(first.encoding, second.encoding)
    assert any(len(group.first) > 1 for group in aligned.groups)
    one = shared(first["blocks.3.attn.pattern"][0, 3], aligned.first, aligned.first)
    other = shared(second[f"blocks.{best // 6}.attn.pattern"][0, best % 6], aligned.second, aligned.second)
    root(page).evaluate("e => e.loupe.go({layer: 3, head: 3})")
    found = drawn(page, "B", True)
    np.testing.assert_allclose(found[~np.isnan(found)], (other - one).flatten().numpy(), atol=1e-6)
    word = next(i for i, group in enumerate(aligned.groups) if len(group.first) > 1)
    last, key = aligned.groups[-1].first[0], aligned.groups[word].first[-1]
    root(page).evaluate(f"e => e.loupe.go({{cursor: {{letter: 'A', row: {last}, col: {key}}}}})")
    said = page.locator(".pointed .more").inner_text()
    assert f"tokens together ({100 * one[-1, word].item():.3g}" in said and "points" in said
    page.locator(".match").nth(15).click()
    assert (state(page)["layer"], state(page)["head"]) == (3, 3)
    assert state(page)["other"] == [best // 6, best % 6]
    assert page.locator(".map-of").nth(1).locator(".head-of").inner_text() == f"{best // 6 + 1}·{best % 6 + 1}"
    page.get_by_role("button", name="on 24 other texts").click()
    page.locator(".similarity-of .about", has_text="885 rows").wait_for()


def test_a_head_is_silenced_in_one_run_and_heard_again(look: Callable[..., "Page"]) -> None:
    page = look("#layer=3&head=3", b_text=FIRST)
    page.locator(".belongs", has_text="is the same run as A").wait_for()
    page.get_by_role("button", name="silence this head: block 4, head 4 in B: its z is 0").click()
    page.locator(".map-of .head-of", has_text="1 edit").wait_for()
    assert page.locator(".predictions-of .apart b").first.inner_text() != "0 bits"
    page.get_by_role("button", name="hear this head again: block 4, head 4 in B: its z is 0").click()
    page.locator(".belongs", has_text="is the same run as A").wait_for()


def test_the_address_restores_runs_and_what_is_looked_at(look: Callable[..., "Page"]) -> None:
    page = look("#layer=1&head=1", c_model="stories", c_text="A cat sat.")
    root(page).evaluate("e => e.loupe.go({cursor: {letter: 'B', row: 4, col: 2}, beside: 'C', match: 'alike'})")
    page.wait_for_function("() => location.hash.includes('alike')")
    before = state(page)
    page.reload()
    page.wait_for_selector(READY)
    for name in ("layer", "head", "cursor", "beside", "match"):
        assert state(page)[name] == before[name], name
    assert page.locator(".map-of:not(.none)").count() == 5


@pytest.mark.parametrize(
    "hash", ["#layer=99&head=-1&at=[1]", "#with=Z&attention=7&other=[9,9]", '#at=["B",999,0]&match=x&%%']
)
def test_a_senseless_address_opens_the_page_all_the_same(look: Callable[..., "Page"], hash: str) -> None:
    page = look(hash)
    assert page.locator(".pointed b").count() == 3


def test_markup_in_a_text_is_shown_as_text(look: Callable[..., "Page"]) -> None:
    hostile = "<img src=x onerror=alert(1)><b>x</b>"
    page = look(a_text=hostile)
    named = page.locator(".map-of").first.locator(".map-left bdi").all_text_contents()
    assert named == list(traced(hostile).encoding.pieces)
    assert root(page).locator("img, script").count() == 0


def test_a_phone_in_the_dark_has_everything_below_one_another(browser, stage: str) -> None:  # type: ignore[no-untyped-def]
    context = browser.new_context(viewport={"width": 390, "height": 844}, color_scheme="dark")
    page = context.new_page()
    page.goto(f"{stage}/compare")
    page.wait_for_selector(READY)
    assert page.evaluate("() => document.documentElement.scrollWidth <= innerWidth")
    widest = root(page).evaluate(
        "e => Math.max(...[...e.querySelectorAll('.map-scroll, .said, .matches, .headgrid')]"
        ".map(x => x.getBoundingClientRect().right))"
    )
    assert widest <= 391 and page.locator(".loupe-view").first.get_attribute("data-theme") == "dark"
    nameless = root(page).evaluate(
        """e => [...e.querySelectorAll('button, select, input, canvas[role=img]')]
        .filter(b => !(b.ariaLabel || b.textContent.trim() || b.title || b.labels?.length)).length"""
    )
    assert nameless == 0
    context.close()


def width(page: "Page", number: int) -> float:
    """Of one map, without what stands around it."""
    box = page.locator(".map-of").nth(number).locator("canvas").first.bounding_box()
    assert box is not None
    return box["width"]


def test_a_short_text_beside_a_long_one_has_cells_that_can_be_read(look: Callable[..., "Page"]) -> None:
    long = " ".join([FIRST] * 9)
    page = look(a_text=long, b_text="Max has a ball.")
    assert len(traced(long).encoding) > 60
    columns = [len(traced(text).encoding) for text in (long, "Max has a ball.")]
    wide = [width(page, i) / count for i, count in enumerate(columns)]
    assert wide[0] < 7 and wide[1] >= 13
    same = look(a_text=FIRST, b_text=FIRST.replace("red", "blue"))
    assert width(same, 0) == pytest.approx(width(same, 1), abs=0.5)


def test_pictures_of_all_runs_are_coloured_by_one_scale(look: Callable[..., "Page"]) -> None:
    page = look(hash="#layer=1&head=2", a_model="digits-vit", a_picture="0", b_model="digits-vit", b_picture="1")
    said_under = page.locator(".map-of .picture-note", has_text="in every picture")
    said_under.nth(1).wait_for()
    notes = said_under.all_inner_texts()
    row = state(page)["cursor"]["row"]
    checkpoint = library.checkpoint("digits-vit")
    patterns = [library.traces.trace("digits-vit", read_picture(checkpoint, pictures()[0][i]).read) for i in (0, 1)]
    most = [float(trace["blocks.1.attn.pattern"][0, 2, row, 1:].max()) for trace in patterns]
    said = {float(note.split("0 to ")[1].split("\u00a0")[0]) for note in notes}
    assert len(said) == 1 and said.pop() == pytest.approx(100 * max(most), rel=5e-3)
    assert most[0] != pytest.approx(most[1], rel=0.02)
