"""The page about attention: its frame, all heads, the map and the details show the engine's numbers."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import numpy as np
import pytest
import torch

from engine.analysis.sinks import BRIGHT
from engine.edits import PaintMask, SilenceHeads
from engine.edits.experiment import Experiment
from engine.inputs.readers import read_text
from engine.runtime import library
from engine.runtime.trace import Trace
from pages.controls.what_if.experiment_link import to_link
from tests.browser.harness import answered, expect, shows

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

    from tests.conftest import Wire

TEXT = 'Max gave the red ball to Anna. "Thank you," said'
LONG = "The dog was happy. " * 60
READY = ".attention[data-ready] .view canvas"
FIND = "[...document.querySelectorAll('*')].map(e => e.shadowRoot?.querySelector('.attention')).find(Boolean).loupe"
DRAWN = """e => { const { block, max } = e.loupe.view.found();
return Array.from({length: block.rows}, (_, r) => Array.from(block.data.subarray(block.offset + r * block.stride,
  block.offset + r * block.stride + block.cols), x => String(x / (block.data instanceof Uint8Array ? max : 1)))); }"""


@pytest.fixture
def look(open_page: Callable[[str], "Page"], stage: str) -> Callable[..., "Page"]:
    def open_(text: str | None = TEXT, hash: str = "", address: str = stage, **query: object) -> "Page":
        named = {**({} if text is None else {"text": text}), **query}
        page = open_page(
            f"{address}/attention?{'&'.join(f'{name}={quote(str(value))}' for name, value in named.items())}{hash}"
        )
        page.wait_for_selector(READY)
        return page

    return open_


def traced(text: str = TEXT, model: str = "stories") -> Trace:
    read = read_text(library.checkpoint(model), text, 256).read
    return library.traces.trace(model, read)


def root(page: "Page") -> "Locator":
    return page.locator(".attention")


def state(page: "Page") -> dict[str, Any]:
    found: dict[str, Any] = root(page).evaluate("e => JSON.parse(JSON.stringify(e.loupe.state))")
    return found


def drawn(page: "Page") -> np.ndarray:
    return np.array([[float(x.replace("Infinity", "inf")) for x in row] for row in root(page).evaluate(DRAWN)])


def complete(page: "Page") -> None:
    """Waits for the last of what the page asks for by itself: further scores, and why the column is bright."""
    page.locator(".score", has_text="Positional", has_not_text="…").wait_for()
    page.wait_for_function(f"() => {FIND}.details && {FIND}.element.querySelector('.why').textContent.length > 20")


def cell(page: "Page", row: int, col: int, count: int) -> dict[str, float]:
    box = page.locator(".map-grid canvas").bounding_box()
    assert box is not None
    return {"x": box["width"] * (col + 0.5) / count, "y": box["height"] * (row + 0.5) / count}


def test_the_map_draws_scores_masked_scores_and_pattern_of_every_head(look: Callable[..., "Page"]) -> None:
    page = look(hash="#layer=1&head=2")
    trace = traced()
    for title, part in (("pattern", "pattern"), ("raw scores", "scores"), ("masked", "masked_scores")):
        page.get_by_role("button", name=title, exact=True).click()
        for head in (2, 3):
            np.testing.assert_array_equal(drawn(page), trace[f"blocks.1.attn.{part}"][0, head].numpy(), part)
            page.locator("body").press("]" if head == 2 else "[")


def test_the_value_weighted_map_is_the_length_of_each_weighted_value_through_w_o(look: Callable[..., "Page"]) -> None:
    page = look(hash="#layer=2&head=1")
    page.get_by_role("button", name="value-weighted").click()
    page.locator(".legend-text", has_text="length of").wait_for()
    trace, attention = traced(), library.checkpoint("stories").model.blocks[2].attn
    value, width = trace["blocks.2.attn.v"][0, :, 1], trace["blocks.2.attn.v"].shape[-1]
    written = value @ attention.out.weight[:, width : 2 * width].T
    lengths = trace["blocks.2.attn.pattern"][0, 1] * written.norm(dim=-1)
    np.testing.assert_allclose(drawn(page), lengths.detach().numpy(), atol=1e-5)
    page.get_by_label("shares of the row").check()
    np.testing.assert_allclose(drawn(page).sum(-1), 1, atol=1e-5)


def test_it_opens_on_the_head_of_the_example_and_its_strongest_key(look: Callable[..., "Page"]) -> None:
    page = look(None)
    pattern = traced()["blocks.3.attn.pattern"][0, 3, -1]
    assert {name: state(page)[name] for name in ("layer", "head", "query", "key")} == {
        "layer": 3,
        "head": 3,
        "query": len(pattern) - 1,
        "key": int(pattern.argmax()),
    }


def test_the_details_list_the_rows_keys_from_the_largest_weight_and_what_is_left(look: Callable[..., "Page"]) -> None:
    page = look(hash="#layer=0&head=1&query=11")
    weights = traced()["blocks.0.attn.pattern"][0, 1, 11]
    best = weights.topk(8)
    pieces = traced().encoding.pieces
    row = page.locator(".details section").first
    assert row.locator("button.weight bdi").all_text_contents() == [pieces[i] for i in best.indices.tolist()]
    shares = [float(text.removesuffix("\u00a0%")) / 100 for text in row.locator(".weight .share").all_text_contents()]
    np.testing.assert_allclose(shares, [*best.values.tolist(), 1 - float(best.values.sum())], rtol=5e-3)


def test_hovering_switching_heads_and_picking_ask_no_server(look: Callable[..., "Page"], wire: "Wire") -> None:
    page = look()
    complete(page)
    sent = wire.reruns
    count = len(traced().encoding)
    canvas = page.locator(".map-grid canvas")
    for key in ("]", "}", "[", "{", "}"):
        page.locator("body").press(key)
    canvas.hover(position=cell(page, 5, 2, count))
    weight = float(traced()[f"blocks.{state(page)['layer']}.attn.pattern"][0, state(page)["head"], 5, 2])
    shown = page.locator(".tip strong").inner_text().removesuffix("\u00a0%")
    assert float(shown) / 100 == pytest.approx(weight, rel=5e-3)
    assert page.locator(".tip bdi").inner_text() == " → ".join(traced().encoding.pieces[i] for i in (5, 2))
    page.locator(".headgrid button").nth(5).click()
    assert (state(page)["layer"], state(page)["head"]) == (1, 1)
    answered(page)
    assert wire.reruns == sent
    page.get_by_role("button", name="say more").click()
    page.locator(".why", has_text="(key ").wait_for()
    canvas.click(position=cell(page, 7, 3, count))
    assert (state(page)["query"], state(page)["key"]) == (7, 3)
    page.locator(".why", has_text="(key 3)").wait_for()
    settled = wire.reruns
    canvas.click(position=cell(page, 9, 3, count))
    assert (state(page)["query"], state(page)["key"]) == (9, 3)
    answered(page)
    assert wire.reruns == settled, "the sentence about a column that is kept was asked for again"


def test_a_score_that_the_address_names_is_captioned_once_it_is_here_and_the_page_goes_on(
    look: Callable[..., "Page"],
) -> None:
    page = look(hash='#score="copying"')
    page.wait_for_function(f"() => {FIND}.trace.arrays['scores.attn.copying']")  # which comes later than the patterns
    captions = page.locator(".headgrid .caption")
    captions.first.wait_for()
    expect(captions.filter(has_text="–")).to_have_count(0)
    assert page.locator(".notice").inner_text() == ""
    before = state(page)["head"]
    page.keyboard.press("]")
    assert state(page)["head"] == (before + 1) % 4


def test_another_text_is_painted_into_the_thumbnails_that_are_there(look: Callable[..., "Page"]) -> None:
    page = look()
    thumbnails = page.locator(".headgrid button canvas")
    before = thumbnails.nth(5).evaluate("canvas => { canvas.kept = true; return canvas.toDataURL(); }")
    field = page.get_by_label("text", exact=True)
    field.fill("The dog saw a cat in the garden")
    field.press("Enter")
    shows(page, "attention", traced("The dog saw a cat in the garden"))
    after, kept = thumbnails.nth(5).evaluate("canvas => [canvas.toDataURL(), canvas.kept]")
    assert kept and after != before


def test_what_is_said_of_a_column_is_of_the_run_that_is_shown(look: Callable[..., "Page"], server: str) -> None:
    page = look(address=server, hash="#layer=3&head=3&key=0")
    why = page.locator(".why")
    expect(why).to_contain_text("(key 0)")
    before = why.inner_text()
    page.get_by_role("slider", name="attention temperature").press("ArrowRight")
    expect(why).not_to_have_text(before)
    expect(why).to_contain_text("(key 0)")


def test_heads_are_measured_sorted_and_dimmed_by_a_score(look: Callable[..., "Page"]) -> None:
    page = look()
    pattern = traced().stack("attn.pattern")[:, 0]
    previous = pattern.diagonal(-1, -2, -1).mean(-1).flatten()
    page.get_by_label("score of the heads").select_option("previous")
    page.get_by_label("order of the heads").select_option("largest")
    order = [f"{i // 4 + 1}·{i % 4 + 1}" for i in previous.argsort(descending=True).tolist()]
    assert page.locator(".headgrid .which").all_text_contents() == order
    least = float(previous.sort().values[5]) - 1e-6
    root(page).evaluate("(e, threshold) => e.loupe.go({threshold})", least)
    assert page.locator(".headgrid .dim").count() == 5
    assert "11 of 16" in page.locator(".least output").inner_text()
    assert "token just before" in page.locator(".meaning").inner_text()


def test_a_score_of_the_head_says_its_rank_and_what_it_means(look: Callable[..., "Page"]) -> None:
    page = look(hash="#layer=3&head=3")
    first = traced().stack("attn.pattern")[:, 0, :, 1:, 0].mean(-1)
    line = page.locator(".score", has_text="First-token sink")
    assert float(line.locator(".value").inner_text().removesuffix("\u00a0%")) / 100 == pytest.approx(
        float(first[3, 3]), rel=5e-3
    )
    assert line.locator(".rank").inner_text() == f"{1 + int((first > first[3, 3]).sum())} of 16"
    line.focus()
    assert "Xiao et al. 2024" in page.locator(".definition").inner_text()


def test_arrows_move_cell_head_and_tab_and_shift_keeps_heads_to_compare(look: Callable[..., "Page"]) -> None:
    page = look(hash="#layer=1&head=1&query=5&key=2")
    page.locator(".map-scroll").focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowRight")
    assert (state(page)["query"], state(page)["key"]) == (6, 3)
    pieces = traced().encoding.pieces
    assert page.locator(".live").inner_text().startswith(f"{pieces[6]} → {pieces[3]}: ")
    page.locator(".headgrid [aria-selected=true]").focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Shift+ArrowDown")
    assert state(page)["heads"] == [[2, 2], [1, 2]]
    page.locator(".headgrid button").nth(0).click(modifiers=["Control"])
    assert state(page)["heads"] == [[2, 2], [1, 2], [0, 0]]
    page.get_by_role("tab", name="Map").focus()
    page.keyboard.press("ArrowRight")
    assert state(page)["view"] == "lines"
    assert page.get_by_role("tab", name="Lines").get_attribute("aria-selected") == "true"


def test_every_tab_opens_a_view(look: Callable[..., "Page"]) -> None:
    page = look(None, model="translate-en-fr")
    for tab in page.get_by_role("tab").all():
        tab.click()
        name = tab.get_attribute("data-view")
        page.locator(f".view-{name} > *").first.wait_for(state="attached")
        assert "could not be loaded" not in page.locator(".room").inner_text()


def test_the_address_restores_what_is_looked_at(look: Callable[..., "Page"]) -> None:
    page = look()
    root(page).evaluate(
        "e => e.loupe.go({layer: 2, head: 1, query: 4, key: 1, score: 'entropy', order: 'smallest', threshold: 1})"
    )
    root(page).evaluate("e => e.loupe.go({heads: [[2, 1], [0, 3]]})")
    page.wait_for_function("() => location.hash.includes('heads')")
    before = state(page)
    page.reload()
    page.wait_for_selector(READY)
    names = ("layer", "head", "heads", "query", "key", "score", "order", "threshold")
    assert {name: state(page)[name] for name in names} == {name: before[name] for name in names}


@pytest.mark.parametrize(
    "hash",
    ["#layer=99&head=-1&query=1e9", "#heads=7&view=nothing&order=up", "#key=[1]&side=x", "#%%%", "#heads=[[9,9],[1]]"],
)
def test_a_senseless_address_opens_the_page_all_the_same(look: Callable[..., "Page"], hash: str) -> None:
    page = look("The dog sat", hash=hash)
    assert state(page)["query"] < 3 and state(page)["key"] < 3
    assert page.locator(".weight bdi").count() > 0


def test_each_attention_of_a_translator_has_its_own_maps(look: Callable[..., "Page"]) -> None:
    page = look(None, model="translate-en-fr")
    arrays = "(e, name) => Array.from(e.loupe.data.arrays[name].data, String)"
    for chip, hook in (
        ("encoder self", "encoder.blocks.0.attn"),
        ("decoder self", "decoder.blocks.0.attn"),
        ("cross", "decoder.blocks.0.cross_attn"),
    ):
        page.get_by_role("button", name=chip, exact=True).click()
        root(page).evaluate("e => e.loupe.go({layer: 0, head: 0})")
        values = np.array([float(x) for x in root(page).evaluate(arrays, f"{hook}.pattern")])
        np.testing.assert_array_equal(drawn(page).flatten(), values[: drawn(page).size])
        columns = page.locator(".map-top bdi").count()
        assert columns == drawn(page).shape[1]


def test_a_patch_of_the_picture_picks_its_row(look: Callable[..., "Page"]) -> None:
    page = look(None, model="digits-vit")
    canvas = page.locator(".map-picture .picture > canvas")
    box = canvas.bounding_box()
    assert box is not None
    canvas.click(position={"x": box["width"] * 0.9, "y": box["height"] * 0.1})
    assert state(page)["query"] == 4  # the start token, then the first row of four patches
    assert "1, 4" in page.locator(".map-picture h3").inner_text()


def test_a_row_that_may_attend_to_nothing_is_said(look: Callable[..., "Page"]) -> None:
    page = look(hash="#layer=0&head=0&query=3&key=0")
    root(page).evaluate(
        """e => { const { block } = e.loupe.pattern(0, 0);
        block.data.fill(0, block.offset + 3 * block.stride, block.offset + 4 * block.stride); e.loupe.refresh(); }"""
    )
    assert "the whole row is zero" in page.locator(".map-note").inner_text()
    assert "may attend to nothing" in page.locator(".details").inner_text()


def test_256_tokens_scroll_inside_and_an_exact_layer_is_fetched_once(look: Callable[..., "Page"], wire: "Wire") -> None:
    page = look(LONG, hash="#layer=0&head=0")
    complete(page)
    trace = traced(LONG)
    assert page.locator(".map-scroll").evaluate("e => e.scrollHeight > e.clientHeight")
    assert root(page).evaluate("e => e.scrollWidth <= e.clientWidth")
    sent = wire.reruns
    coarse = root(page).evaluate("e => { e.loupe.go({layer: 2}); return e.loupe.view.found().max; }")
    assert coarse == 255
    page.wait_for_function(f"() => {FIND}.view.found().exact")
    np.testing.assert_array_equal(drawn(page), trace["blocks.2.attn.pattern"][0, 0].numpy())
    root(page).evaluate("e => { e.loupe.go({layer: 0}); e.loupe.go({layer: 2}); }")
    np.testing.assert_array_equal(drawn(page), trace["blocks.2.attn.pattern"][0, 0].numpy())
    assert wire.reruns == sent + 1


def test_names_stand_beside_their_rows_in_a_window_of_another_height(look: Callable[..., "Page"]) -> None:
    page = look("The dog was happy. " * 6)
    for height in (1400, 700, 1400):
        page.set_viewport_size({"width": 1280, "height": height})
        tall = root(page).evaluate(
            "e => { e.loupe.go({head: 1 - e.loupe.state.head % 2});"
            " return [...e.querySelectorAll('.map-left, .map-grid canvas')].map((one) => one.offsetHeight); }"
        )
        assert tall[0] == pytest.approx(tall[1], abs=3)


def test_markup_in_a_text_is_shown_as_text(look: Callable[..., "Page"]) -> None:
    hostile = "<img src=x onerror=alert(1)><b>x</b> $x$"
    page = look(hostile)
    assert page.locator(".map-left bdi").all_text_contents() == list(traced(hostile).encoding.pieces)
    assert root(page).locator("img, b, script").count() == 0


def test_a_phone_in_the_dark_has_everything_below_one_another(browser, stage: str) -> None:  # type: ignore[no-untyped-def]
    context = browser.new_context(viewport={"width": 390, "height": 844}, color_scheme="dark")
    page = context.new_page()
    page.goto(f"{stage}/attention?text={quote(TEXT)}")
    page.wait_for_selector(READY)
    assert page.evaluate("() => document.documentElement.scrollWidth <= innerWidth")
    widest = root(page).evaluate(
        "e => Math.max(...[...e.querySelectorAll('.left *, .details *, .map-scroll, .choices, .tabs')]"
        ".map(x => x.getBoundingClientRect().right))"
    )
    assert widest <= 391
    assert page.locator(".loupe-view:has(> .attention)").get_attribute("data-theme") == "dark"
    context.close()


def test_a_token_of_any_length_stays_within_the_details(look: Callable[..., "Page"]) -> None:
    page = look()
    page.set_viewport_size({"width": 1280, "height": 900})
    beyond = root(page).evaluate(
        """e => { const { loupe } = e; loupe.trace.pieces[7] = "geometry_" + "prismatic_".repeat(6);
        loupe.go({ key: 7 });
        const edge = e.querySelector(".details").getBoundingClientRect().right;
        return [...e.querySelectorAll(".details :is(h3, .score, .weight, .rank)")].filter(
          (one) => one.getBoundingClientRect().right > edge + 1 || one.scrollWidth > one.clientWidth + 1).length; }"""
    )
    assert beyond == 0


def test_the_chart_over_all_layers_has_a_cell_of_its_height_for_each_block(
    look: Callable[..., "Page"], server: str
) -> None:
    page = look(address=server)
    page.get_by_text("Charts over all layers").click()
    cells = page.locator(".role-mark.mark-rect path")
    expect(cells).to_have_count(4 * len(traced().encoding))
    assert min(cells.evaluate_all("all => all.map((one) => one.getBoundingClientRect().height)")) > 15


def test_every_control_has_a_name(look: Callable[..., "Page"]) -> None:
    page = look()
    nameless = root(page).evaluate(
        """e => [...e.querySelectorAll('button, select, input, canvas[role=img]')]
        .filter(b => !(b.ariaLabel || b.textContent.trim() || b.title || b.labels?.length)).length"""
    )
    assert nameless == 0


def test_what_an_edit_put_into_a_head_is_marked_on_its_thumbnail_its_title_and_its_cells(
    look: Callable[..., "Page"],
) -> None:
    edits = [PaintMask(cells=[[9, 3], [6, 6]], layer=1, heads=[2]), SilenceHeads(2, [0])]
    experiment = Experiment()
    for edit in edits:
        experiment = experiment.add(edit)
    page = look(hash="#layer=1&head=2", edits=to_link(experiment))
    marked = page.locator(".headgrid button.edited").evaluate_all(
        "all => all.map(e => [Number(e.dataset.layer), Number(e.dataset.head)])"
    )
    assert marked == [[1, 2], [2, 0]]
    assert page.locator(".edited-tag").is_visible() and page.locator(".map-legend .edited-sign").is_visible()
    cells = root(page).evaluate(
        """e => { const { data, shape: [, rows, cols] } = e.loupe.trace.array('blocks.1.attn.edited');
        const place = (i) => [Math.floor(i / rows / cols), Math.floor(i / cols) % rows, i % cols];
        return Array.from(data).flatMap((one, i) => one ? [place(i)] : []); }"""
    )
    assert cells == [[2, 6, 6], [2, 9, 3]]
    pixels = page.locator(".map-grid canvas").first.evaluate(
        """canvas => { const hex = getComputedStyle(canvas).getPropertyValue('--edited').trim();
        const hue = hex.match(/\\w\\w/g).map((x) => parseInt(x, 16));
        const context = canvas.getContext('2d'), [wide, tall] = [canvas.width / 14, canvas.height / 14];
        return [[9, 3], [5, 1]].map(([row, col]) => {
          const { data } = context.getImageData(col * wide - 1, row * tall - 1, wide + 2, 3);
          return data.some((_, i) => i % 4 === 0 && hue.every((part, j) => Math.abs(data[i + j] - part) < 12)); }); }"""
    )
    assert pixels == [True, False]
    page.locator("body").press("]")
    assert page.locator(".edited-tag").is_hidden()


def test_only_a_column_above_an_even_row_is_called_bright(look: Callable[..., "Page"]) -> None:
    page = look(hash="#layer=1&head=2")
    pattern = traced()["blocks.1.attn.pattern"][0, 2]
    count = len(pattern)
    for key in (0, 2, 3, 9):
        seen = torch.arange(max(key, 1), count)  # the first query sees one key, and has no choice
        even = float((1 / (seen + 1)).mean())
        root(page).evaluate("(e, key) => e.loupe.go({ key })", key)
        asked = "Why is column" if float(pattern[seen, key].mean()) >= BRIGHT * even else "What looks at"
        page.locator(".details h3", has_text=asked).wait_for()
        column = page.locator(".details section").nth(1)
        best = [traced().encoding.pieces[row] for row in pattern[:, key].topk(3).indices.tolist()]
        assert column.locator("button.weight bdi").all_text_contents() == best
