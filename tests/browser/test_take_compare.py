"""What the page about comparisons gives away in a browser: a picture of all its maps, a file without a network."""

import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

import numpy as np
import pytest

from tests.browser.harness import comes_to
from tests.browser.test_compare import DRAWN, FIRST, READY, SECOND, cell, traced
from tests.browser.test_take import SVG, saved
from views.core.export import packed_plotly

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

SIZE = 2_000_000  # bytes of the file of two short texts, with what their tabs ask, without plotly.js


@pytest.fixture
def page(open_page: Callable[..., "Page"], stage: str) -> "Page":
    page = open_page(f"{stage}/compare?a_text={quote(FIRST)}&b_text={quote(SECOND)}#layer=1&head=2", anew=True)
    page.wait_for_selector(READY)
    page.get_by_role("button", name="Share & export").click()
    return page


def test_a_picture_of_a_comparison_has_the_tokens_of_both_texts_and_says_which_heads(
    page: "Page", tmp_path: Path
) -> None:
    path = saved(page, "SVG", tmp_path)
    texts = [element.text or "" for element in ElementTree.parse(path).getroot().iter(f"{SVG}text")]
    pieces = {piece for text in (FIRST, SECOND) for piece in traced(text).encoding.pieces}
    assert pieces <= set(texts)
    assert any("A block 2, head 3; B block 2, head 3" in text for text in texts)
    assert any(FIRST in text and SECOND in text for text in texts) and path.name == "loupe-compare-stories.svg"


def test_the_matrix_that_is_chosen_is_the_one_that_is_saved(page: "Page", tmp_path: Path) -> None:
    page.get_by_label("which table").select_option("B")
    path = saved(page, "npz", tmp_path)
    with np.load(path) as file:
        np.testing.assert_array_equal(file["values"], traced(SECOND)["blocks.1.attn.pattern"][0, 2].numpy())
        assert file["key_tokens"].tolist() == list(traced(SECOND).encoding.pieces)


def test_the_lines_are_those_of_the_heads_that_are_shown(page: "Page") -> None:
    page.get_by_role("button", name="Copy lines").click()
    page.locator("pre.made:visible").wait_for()
    lines = page.locator("pre.made").inner_text()
    assert 'pattern_a = a["blocks.1.attn.pattern"][0, 2]' in lines and "difference_b" in lines
    page.get_by_label("B: edits").check()
    page.get_by_role("button", name="Copy class link").click()
    page.locator("input.made:visible").wait_for()
    assert "hide=b_edits" in page.locator("input.made:visible").input_value()


def test_the_file_of_a_comparison_is_alive_without_a_network(page: "Page", browser: "Browser", tmp_path: Path) -> None:
    path = saved(page, "HTML", tmp_path)
    assert path.stat().st_size - len(packed_plotly()) < SIZE
    context = browser.new_context(offline=True, viewport={"width": 1280, "height": 900})
    alone, faults, requests = context.new_page(), [], []
    alone.on("pageerror", lambda error: faults.append(str(error)))
    alone.on("console", lambda message: faults.append(message.text) if message.type == "error" else None)
    alone.on("request", lambda request: requests.append(request.url[:60]))
    alone.goto(path.as_uri())
    alone.wait_for_selector(READY)
    for head in (2, 3):
        drawn = alone.locator(".compare").evaluate(DRAWN, ["B", False])
        expected = traced(SECOND)["blocks.1.attn.pattern"][0, head].numpy()
        np.testing.assert_array_equal(np.float32([[float(x) for x in row] for row in drawn]), expected)
        alone.keyboard.press("]")
    weights = traced(FIRST)["blocks.1.attn.pattern"][0, 0]  # heads go round
    canvas = alone.locator(".maps canvas").first
    canvas.hover(position=cell(canvas, 5, 0, *weights.shape))
    near = pytest.approx(100 * weights[5, 0].item(), rel=0.01)
    comes_to(alone, lambda: float(alone.locator(".pointed b").first.inner_text().split("\u00a0")[0]), near)
    context.close()
    assert not faults and all(url.startswith(("file:", "data:", "blob:")) for url in requests)
