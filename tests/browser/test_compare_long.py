"""Two texts too long to be sent whole, side by side: every number is the engine's, under one cursor and one zoom."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import numpy as np
import pytest
from torch import Tensor

from engine.analysis.alignment import by_pieces
from engine.analysis.similarity import PatternPair, head_changes
from engine.checkpoints import load
from engine.runtime.run import run
from tests.browser.harness import expect
from tests.browser.test_attention_long import folder, long_server, made  # noqa: F401

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Locator, Page

pytestmark = pytest.mark.long

READY = ".compare[data-ready] .long-map canvas"
FIND = "[...document.querySelectorAll('*')].map(e => e.shadowRoot?.querySelector('.compare')).find(Boolean).loupe"
HERE = f"""() => {{ const {{ maps }} = {FIND};
const same = (a, b) => `${{a.rows}} ${{a.columns}}` === `${{b.rows}} ${{b.columns}}`;
return maps.maps.length === 3 && maps.maps.every(({{ map }}) => map.missing(map.window).every(
  one => map.tiles.some(tile => same(one, tile)))); }}"""
PEAKS = """(e, number) => e.loupe.maps.maps[number].map.tiles.flatMap(({ rows, columns, high, wide, across, weight }) =>
  weight ? Array.from(weight, (value, i) =>
    [rows[0] + Math.floor(i / across) * high, columns[0] + (i % across) * wide, high, wide, String(value)]) : [])"""

SHOWN = {
    "Lines": ".view-lines canvas",
    "q·k": ".view-product canvas",
    "Steps": ".view-steps canvas",
    "Text": ".view-text .texts bdi",
    "Points": ".view-points .main-svg",
    "Circuits": ".view-circuits .promoted",
}


@pytest.fixture(scope="module")
def texts(folder: "Path", made: Any) -> tuple[list[str], list[list[str]], list[Tensor]]:  # noqa: F811
    """Two texts, their pieces, and their patterns, layer head pos key: the second has other words in two places."""
    checkpoint = load(folder / "reader")
    words = made[0].split(" ")
    given = [made[0], " ".join([*words[:60], "purple", *words[60:150], *words[152:]])]
    assert checkpoint.tokenizer is not None
    reads = [checkpoint.tokenizer.encode(text) for text in given]
    patterns = [run(checkpoint.model, read, keep="*.pattern").stack("attn.pattern")[:, 0] for read in reads]
    return given, [list(read.pieces) for read in reads], patterns


@pytest.fixture
def look(open_page: Callable[[str], "Page"], long_server: str, texts: Any) -> Callable[..., "Page"]:  # noqa: F811
    def open_(hash: str = "#layer=1&head=2") -> "Page":
        first, second = map(quote, texts[0])
        said = f"a_model=reader&a_text={first}&b_model=reader&b_text={second}"
        page = open_page(f"{long_server}/compare?{said}{hash}")
        page.wait_for_selector(READY)
        page.wait_for_function(HERE)
        return page

    return open_


def root(page: "Page") -> "Locator":
    return page.locator(".compare")


def said(page: "Page") -> list[float]:
    """The numbers of the cell under the cursor: in A, in B, and their difference in points."""
    page.wait_for_function(f"() => !{FIND}.pointed.said().includes('…')")
    texts = [text.replace("\u00a0", " ").split()[0] for text in page.locator(".pointed b").all_inner_texts()]
    return [float(text.replace("−", "-").replace("e--", "e-")) / 100 for text in texts]


def test_maps_and_their_difference_hold_every_peak_and_the_cursor_reads_exact_numbers(
    look: Callable[..., "Page"], texts: Any
) -> None:
    page = look()
    _, pieces, patterns = texts
    first, second = (pattern[1, 2] for pattern in patterns)
    aligned = by_pieces(*pieces)
    for number, pattern in enumerate((first, second)):
        cells = root(page).evaluate(PEAKS, number)
        assert len(cells) > 5000
        whole = pattern.numpy()
        peaks = [whole[row : row + high, col : col + wide].max() for row, col, high, wide, _ in cells]
        np.testing.assert_allclose([float(value) for *_, value in cells], peaks, rtol=1e-6, atol=1e-7)
    mine, theirs = ([places[0] for places in side] for side in (aligned.first, aligned.second))
    expected = second[theirs][:, theirs] - first[mine][:, mine]
    found = [float(value) for *_, value in root(page).evaluate(PEAKS, 2)]
    assert np.nanmax(np.abs(found)) == pytest.approx(float(expected.abs().max()), abs=1e-6)
    a, b = int(expected.abs().argmax()) // len(expected), int(expected.abs().argmax()) % len(expected)
    row, col = aligned.first[a][0], aligned.first[b][0]
    root(page).evaluate(f"e => e.loupe.go({{cursor: {{letter: 'A', row: {row}, col: {col}}}}})")
    other = float(second[aligned.second[a][0], aligned.second[b][0]])
    numbers = said(page)
    assert numbers == pytest.approx([float(first[row, col]), other, other - float(first[row, col])], rel=6e-3, abs=1e-6)
    page.locator(".long-map").nth(2).hover(position={"x": 60, "y": 160})
    page.locator(".tip strong", has_text="points").wait_for()
    change = head_changes(PatternPair(list(patterns[0]), list(patterns[1]), aligned, aligned)).flatten()
    order = [f"{i // 4 + 1}·{i % 4 + 1}" for i in change.argsort(descending=True).tolist()]
    page.locator(".heads-of").scroll_into_view_if_needed()
    page.locator(".heads-of .which").nth(len(order) - 1).wait_for()
    assert page.locator(".heads-of .which").all_text_contents() == order


def test_every_map_follows_where_one_is_looked_at_and_the_address_restores_it(look: Callable[..., "Page"]) -> None:
    page = look()
    window = f"() => {FIND}.maps.maps.map(({{ map }}) => [map.window.wide, map.window.top, map.window.left])"
    root(page).evaluate("e => e.loupe.maps.maps[1].map.zoomBy(12, 100, 150)")
    page.wait_for_function(HERE)
    before = page.evaluate(window)
    wide, top, left = zip(*before, strict=True)
    assert max(wide) == pytest.approx(min(wide), rel=0.02) and min(top) > 50 and min(left) > 20
    places = root(page).evaluate(
        "e => e.loupe.maps.maps.map(({ page, map: { window } }) =>"
        " e.loupe.nearest('A', page.cell(window.top, window.left)))"
    )
    assert len({(one["row"], one["col"]) for one in places}) == 1
    page.wait_for_function("() => location.hash.includes('zoom')")
    page.reload()
    page.wait_for_selector(READY)
    page.wait_for_function(HERE)
    assert np.allclose(page.evaluate(window), before, atol=0.05)


def test_every_tab_shows_both_long_texts(look: Callable[..., "Page"]) -> None:
    page = look()
    for tab, shown in SHOWN.items():
        page.get_by_role("tab", name=tab, exact=True).click()
        for run_of in (0, 1):
            view = page.locator(".run-of").nth(run_of)
            view.locator(shown).first.wait_for()
            if tab in ("Lines", "q·k", "Steps"):
                expect(view.locator(".window-note")).to_contain_text("Rows ")


def test_a_comparison_that_grows_long_is_drawn_in_tiles_and_a_short_one_in_cells_again(
    look: Callable[..., "Page"], texts: Any
) -> None:
    page = look()
    root(page).evaluate("e => { e.dataset.first = 'yes'; }")
    page.get_by_role("tab", name="Text").click()
    for words, ready in ((["Max ran."] * 2, ".map-scroll canvas"), (texts[0], ".long-map canvas")):
        for number, text in enumerate(words):
            field = page.get_by_label(f"text of {'AB'[number]}", exact=True)
            field.fill(text)
            field.press("Enter")
            page.wait_for_function(
                f"([number, long]) => {FIND}.sides[number].trace.length > 99 === long", arg=[number, len(text) > 99]
            )
        long = ready.startswith(".long")
        page.wait_for_function(f"long => {FIND}.source.tiled === long", arg=long)
        page.locator(".run-of .view-text .texts bdi").first.wait_for()
        page.get_by_role("tab", name="Map").click()
        page.wait_for_selector(f".maps {ready}")
        assert page.locator(".compare[data-first]").count() == 1, "another view was mounted"
        assert page.locator(".map-of").count() == 3
        assert (page.locator(".long-map").count() == 3) == long
        assert root(page).evaluate("e => [e.loupe.state.layer, e.loupe.state.head]") == [1, 2]
        assert len(said(page)) == 3
        page.get_by_role("tab", name="Text").click()
    page.get_by_role("tab", name="Map").click()
    page.wait_for_function(HERE)
