"""Attention over the words of a text, as points, circuits and an alignment: every number is the engine's."""

import re
from collections.abc import Callable
from typing import TYPE_CHECKING
from urllib.parse import quote

import numpy as np
import pytest
import torch

from engine.analysis.circuits import qk, top_outputs
from engine.analysis.points import head_points
from engine.inputs.readers import read_translation
from engine.runtime import library
from engine.runtime.run import run
from engine.runtime.trace import Trace
from tests.browser.harness import comes_to

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

TEXT = "The little dog was sad because he lost his ball"
ENGLISH = "I want to drink a glass of cold water."
READY = ".attention[data-ready]"

Open = Callable[[str], "Page"]
Show = Callable[..., "Page"]


@pytest.fixture
def show(open_page: Open, stage: str) -> Show:
    def open_(view: str, address: str = "", model: str = "", text: str = TEXT) -> "Page":
        which = f"&model={model}" if model else ""
        page = open_page(f"{stage}/attention?text={quote(text)}{which}#view={view}{address}")
        page.wait_for_selector(READY)
        return page

    return open_


def traced() -> Trace:
    return library.traces.trace("stories", library.checkpoint("stories").tokenizer.encode(TEXT), [])


def shell(page: "Page") -> "Locator":
    return page.locator(".attention")


def line(page: "Page") -> list[float]:
    """The weights that are painted over the text now."""
    found: list[float] = shell(page).evaluate("e => [...e.loupe.view.line]")
    return found


def wait_for_line(page: "Page", expected: torch.Tensor) -> None:
    shown = "w => [...document.querySelectorAll('*')].some(e => e.shadowRoot?.querySelector('.attention')?.loupe.view"
    shown += "?.line?.every((x, i) => Math.abs(x - w[i]) < 1e-5))"
    page.wait_for_function(shown, arg=expected.tolist())


def test_the_text_is_painted_with_the_rows_and_columns_of_the_pattern_and_asks_nothing(show: Show) -> None:
    page = show("text", "&layer=2&head=1&query=6")
    patterns = [traced()[f"blocks.{layer}.attn.pattern"][0] for layer in range(4)]
    page.wait_for_selector(".piece.chosen")
    shell(page).evaluate(
        "e => { const ask = e.loupe.request; window.asks = [];"
        "e.loupe.request = function (query) { window.asks.push(query.ask); return ask.call(this, query); }; }"
    )
    np.testing.assert_array_equal(np.float32(line(page)), patterns[2][1, 6].numpy())
    page.locator("body").press("]")
    np.testing.assert_array_equal(np.float32(line(page)), patterns[2][2, 6].numpy())
    page.get_by_role("button", name="what looks at it").click()
    np.testing.assert_array_equal(np.float32(line(page)), patterns[2][2, :, 6].numpy())
    page.locator(".piece").nth(3).click()
    np.testing.assert_array_equal(np.float32(line(page)), patterns[2][2, :, 3].numpy())
    page.locator(".prose").press("ArrowLeft")
    np.testing.assert_array_equal(np.float32(line(page)), patterns[2][2, :, 2].numpy())
    page.get_by_role("button", name="what it looks at").click()
    page.get_by_role("button", name="mean of heads").click()
    np.testing.assert_allclose(line(page), patterns[2][:, 2].mean(0).numpy(), atol=1e-7)
    page.get_by_role("button", name="mean of layers").click()
    np.testing.assert_allclose(line(page), torch.stack(patterns).mean((0, 1))[2].numpy(), atol=1e-7)
    assert set(page.evaluate("window.asks")) <= {"scores", "sink"}  # neither is asked by the painting


def test_the_painting_is_the_weight_as_colour_and_the_hover_says_it(show: Show) -> None:
    page = show("text", "&layer=1&head=0&query=8")
    page.wait_for_selector(".piece.chosen")
    row = traced()["blocks.1.attn.pattern"][0, 0, 8]
    shades = page.locator(".piece").evaluate_all(
        "all => all.map(e => Number(getComputedStyle(e).backgroundColor.match(/\\d+/)[0]))"
    )
    order = np.argsort(-row[:9].numpy())
    assert all(shades[a] <= shades[b] for a, b in zip(order, order[1:], strict=False))
    assert all("quiet" in (page.locator(".piece").nth(i).get_attribute("class") or "") for i in range(9, len(row)))
    best = int(order[0])
    page.locator(".piece").nth(best).hover()
    assert f"{100 * float(row[best]):.3g}" in page.locator(".tip strong").inner_text()


def test_rollout_is_the_product_of_half_attention_and_half_identity(show: Show) -> None:
    page = show("text", "&over=rollout&query=9")
    itself = torch.eye(traced().ids.shape[1])
    mixed = [(traced()[f"blocks.{layer}.attn.pattern"][0].mean(0) + itself) / 2 for layer in range(4)]
    wait_for_line(page, (mixed[3] @ mixed[2] @ mixed[1] @ mixed[0])[9])
    page.get_by_label("from block").select_option(index=1)
    page.get_by_label("to block").select_option(index=2)
    wait_for_line(page, (mixed[2] @ mixed[1])[9])
    assert "block 2 to block 3" in page.locator(".over-meaning").inner_text()


def test_an_average_over_texts_shows_how_many_stand_behind_each_row(show: Show) -> None:
    page = show("text", "&over=sentences&layer=1&head=2")
    page.wait_for_selector(".average canvas")
    counts = page.locator(".average .counts span").all_text_contents()
    assert re.fullmatch(r"\d+", counts[0]) and int(counts[0]) > 1
    page.locator(".average canvas").hover(position={"x": 3, "y": 3})
    assert page.locator(".tip").inner_text().startswith("position 1 → position 1, mean of")
    assert "100" in page.locator(".tip strong").inner_text()  # the first position can look at itself only


def test_points_are_the_projection_of_queries_and_keys(show: Show) -> None:
    page = show("points", "&layer=3&head=2&query=5")
    page.locator(".points-axes", has_text="variance").wait_for()
    found = head_points(traced(), 3, 2)
    drawn = shell(page).evaluate("e => ['queries', 'keys'].map(n => [...e.loupe.view.answer[n].data])")
    np.testing.assert_allclose(drawn[0], found.queries.flatten(), atol=1e-5)
    np.testing.assert_allclose(drawn[1], found.keys.flatten(), atol=1e-5)
    plot = page.locator(".points-plot")
    plot.locator(".main-svg").first.wait_for()
    weights = traced()["blocks.3.attn.pattern"][0, 2]
    plot.press("ArrowRight")
    assert shell(page).evaluate("e => e.loupe.state.query") == 6
    assert f"{100 * float(weights[6].max()):.3g}" in (plot.get_attribute("aria-label") or "")
    stands = "e => { const [x, y] = e.loupe.view.pixels[3]; return { x, y }; }"
    plot.hover(position=shell(page).evaluate(stands))
    comes_to(page, lambda: shell(page).evaluate("e => e.loupe.hover?.row"), 3)
    lines = """e => e.loupe.view.plot.layout.shapes.filter(one => one.type === "path")
        .flatMap(({ path, line }) => [...path.matchAll(/L([^,]+)/g)].map(([, x]) => [Number(x), line.width]))"""
    read = [key for key, weight in enumerate(weights[3].tolist()) if weight >= 0.005]
    expected = [(float(found.keys[key, 0]), 1.1 * max(1, round(10 * float(weights[3, key])))) for key in read]
    np.testing.assert_allclose(sorted(shell(page).evaluate(lines)), sorted(expected), atol=1e-5)
    assert shell(page).evaluate("e => e.loupe.hover.row") == 3  # what is drawn anew stays under the pointer


def test_circuits_list_what_a_token_promotes_and_say_where_there_are_none(show: Show) -> None:
    page = show("circuits", "&layer=1&head=3")
    checkpoint = library.checkpoint("stories")
    ids = list(dict.fromkeys(traced().ids[0].tolist()))
    best = top_outputs(checkpoint.model, 1, 3, ids, 8)
    page.wait_for_selector(".promoted-row")
    pieces = [checkpoint.tokenizer.piece(i) for i in best.tokens[0].tolist()]
    first = page.locator(".promoted-row").first.locator(".candidate")
    shown = first.locator("bdi").all_text_contents()
    assert shown == pieces[: len(shown)] and len(shown) >= 4
    values = [float(text.replace("−", "-")) for text in first.locator(".logit").all_text_contents()]
    np.testing.assert_allclose(values, best.values[0, : len(shown)].numpy(), rtol=5e-3, atol=5e-3)
    page.wait_for_selector(".written span")
    scores = [float(text.replace("−", "-")) for text in page.locator(".written span").all_text_contents()]
    np.testing.assert_allclose(scores, qk(checkpoint.model, 1, 3, ids, ids).flatten().numpy(), rtol=5e-3, atol=6e-3)


def test_a_model_of_pictures_has_no_circuits_but_a_sentence(show: Show) -> None:
    page = show("circuits", model="digits-vit", text="")
    page.locator(".circuit-note", has_text="pictures").first.wait_for()
    assert page.locator(".promoted-row").count() == 0


def test_an_alignment_joins_each_word_by_the_row_that_wrote_it(show: Show) -> None:
    page = show("alignment", "&layer=2&head=4", model="translate-en-fr", text=ENGLISH)
    checkpoint = library.checkpoint("translate-en-fr")
    read = read_translation(checkpoint, ENGLISH, "", 64)
    assert read.target is not None
    pattern = run(checkpoint.model, read.read, target=read.target)["decoder.blocks.2.cross_attn.pattern"][0, 4]
    page.wait_for_selector(".word-of")
    assert page.locator(".source-words bdi").all_text_contents() == list(read.read.pieces)
    assert page.locator(".target-words bdi").all_text_contents() == list(read.target.pieces)
    words = page.locator(".target-words .word-of")

    def said(word: int, row: int) -> None:
        best = int(pattern[row].argmax())
        label = words.nth(word).get_attribute("aria-label") or ""
        found = re.search(r"most from (.+), ([\d.]+)\u00a0%$", label)
        assert found is not None and found[1] == read.read.pieces[best]
        assert float(found[2]) / 100 == pytest.approx(float(pattern[row, best]), abs=5e-4)

    for word in range(1, len(read.target)):
        said(word, word - 1)
    page.get_by_role("button", name="by its own row").click()
    said(2, 2)
    page.get_by_role("button", name="by the row that wrote it").click()
    words.nth(2).hover()
    shares = page.locator(".source-words .share").all_text_contents()
    np.testing.assert_allclose(
        [float(text.split("\u00a0")[0] or 0) / 100 for text in shares],
        pattern[1].where(pattern[1] >= 0.01, 0.0).numpy(),
        atol=5e-4,
    )
    words.nth(4).click()
    page.locator(".aligned").press("ArrowLeft")
    assert shell(page).evaluate("e => e.loupe.state.query") == 2
    assert "chosen" in (words.nth(3).get_attribute("class") or "")


@pytest.mark.parametrize("view", ["text", "points", "circuits", "alignment"])
def test_nothing_sticks_out_of_a_phone(show: Show, page: "Page", view: str) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    show(view, model="translate-en-fr", text=ENGLISH)
    page.wait_for_selector(f".view-{view} > *")
    room = shell(page).evaluate("e => { const v = e.querySelector('.view'); return [v.scrollWidth, v.clientWidth]; }")
    assert room[0] <= room[1] + 1
