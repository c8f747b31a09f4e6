"""What pages that run no model give away in a browser: pictures of shapes, a file without a network, any matrix."""

import html
import json
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote, urlsplit

import numpy as np
import pytest

from engine import load, run
from engine.analysis.weights import neighbours
from engine.attention_variants import shared
from engine.attention_variants.measure import Setup
from tests.browser.harness import ROOT, expect
from tests.browser.test_take import SVG, saved
from views.notebook import show

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Locator, Page


def test_an_architecture_is_taken_as_shapes_and_as_a_file_that_is_alive_without_a_network(
    open_page: Callable[[str], "Page"], server: str, browser: "Browser", tmp_path: Path
) -> None:
    page = open_page(f"{server}/architecture?model=gpt2")
    page.wait_for_selector(".architecture svg")
    panel = page.locator(".loupe-take").first
    panel.get_by_role("button", name="Share & export").click()
    texts = [text.text for text in ElementTree.parse(saved(panel, "SVG", tmp_path)).getroot().iter(f"{SVG}text")]
    assert "124,439,808 parameters" in texts and "Radford et al. 2019, table 2." in texts
    path = saved(panel, "HTML", tmp_path)
    context = browser.new_context(offline=True)
    alone, faults = context.new_page(), []
    alone.on("pageerror", lambda error: faults.append(str(error)))
    alone.on("console", lambda message: faults.append(message.text) if message.type == "error" else None)
    alone.goto(path.as_uri())
    alone.locator('[data-block="mlp"]').first.click()
    parameters = alone.locator(".architecture .panel").get_by_text("56,669,184")  # 12 (2 · 768 · 3072 + 3840)
    expect(parameters).to_have_count(1)
    context.close()
    assert not faults


@pytest.mark.long
def test_the_charts_of_sizes_are_exported_as_a_file_that_is_read_without_a_network(
    open_page: Callable[[str], "Page"], server: str, browser: "Browser", tmp_path: Path
) -> None:
    page = open_page(f"{server}/architecture?model=gpt2&length=512")
    page.locator("canvas.marks, .vega-embed svg").nth(2).wait_for()  # they move what stands below them
    file = alone(browser, saved(open_panel(page, "costs"), "HTML", tmp_path))
    expect(file.locator("#view canvas, #view svg.marks")).to_have_count(3)
    expect(file.get_by_text("gpt2 · a batch of 1, 512 tokens chosen, numbers of 2 bytes")).to_be_visible()
    cache = file.locator("#view canvas, #view svg.marks").nth(1)
    cache.scroll_into_view_if_needed()
    box = cache.bounding_box()
    assert box is not None
    file.mouse.move(box["x"] + box["width"] / 2, box["y"] + 150)
    tooltip = file.locator("#vg-tooltip-element.visible")
    expect(tooltip).to_contain_text("keys and values")
    rows = dict(row.split("\t") for row in tooltip.inner_text().replace("\t\n", "\t").split("\n") if "\t" in row)
    length = int(rows["tokens"].replace(",", ""))
    assert rows["all"] == f"{2 * 2 * 12 * length * 768:,} bytes"
    file.context.close()


@pytest.mark.long
def test_the_matrix_that_is_looked_at_is_downloaded_and_its_charts_open_without_a_network(
    open_page: Callable[[str], "Page"], server: str, browser: "Browser", tmp_path: Path
) -> None:
    page = open_page(f"{server}/checkpoint#matrix=blocks.1.attn.q.weight&head=2")
    page.get_by_text("queries, W_Q · layer 2 · head 3").wait_for()
    panel = open_panel(page, "weights")
    path = saved(panel, "npz", tmp_path)
    assert path.name == "loupe-weights-stories-blocks-1-attn-q-weight-head-2-its-numbers.npz"
    weight = load("stories").model.get_parameter("blocks.1.attn.q.weight").detach().numpy()
    with np.load(path) as file:
        np.testing.assert_array_equal(file["values"], weight.reshape(4, 32, 128)[2])
    file = alone(browser, saved(panel, "HTML", tmp_path))
    expect(file.locator(".vega-embed canvas, .vega-embed svg.marks")).to_have_count(2)
    expect(file.get_by_text("effective rank", exact=False).first).to_be_visible()
    file.context.close()
    panel.get_by_role("checkbox", name="precision").check()
    panel.get_by_role("textbox", name="question or instruction").fill("Which row is longest?")
    panel.get_by_role("button", name="Class session with it").click()
    expect(page.get_by_text("Which row is longest?").first).to_be_visible()
    assert urlsplit(page.url).path.endswith("/teach")


def open_panel(page: "Page", section: str) -> "Locator":
    panel = page.locator(f".st-key-{section}-share")
    panel.get_by_role("button", name="Share & export").click()
    return panel


def alone(browser: "Browser", path: Path) -> "Page":
    """A file in a browser without a network."""
    page = browser.new_context(offline=True).new_page()
    page.goto(path.as_uri())
    return page


def test_patterns_are_exported_as_shapes_and_as_a_file_in_which_every_head_is_there(
    open_page: Callable[[str], "Page"], server: str, browser: "Browser", tmp_path: Path
) -> None:
    page = open_page(f"{server}/long_sequences#layer=1&head=2&query=90")
    page.wait_for_selector(".kept-patterns[data-ready] .panels canvas")
    panel = page.locator(".loupe-take").first
    panel.get_by_role("button", name="Share & export").click()
    picture = ElementTree.parse(saved(panel, "SVG", tmp_path)).getroot()
    texts = [text.text or "" for text in picture.iter(f"{SVG}text")]
    assert "What each keeps" in texts and "k nearest, PQ" in texts
    assert any("Patterns of block 2, head 3." in text for text in texts)
    path = saved(panel, "HTML", tmp_path)
    assert path.stat().st_size < 5_000_000
    file = alone(browser, path)
    file.wait_for_selector(".kept-patterns[data-ready] .panels canvas")
    file.get_by_label("head", exact=True).select_option(label="block 1, head 4")
    kept = shared.kept_patterns("stories", 128, 0, 3, Setup())
    share = f"keeps {100 * kept['quantized'].mass:.1f}\u00a0% of the attention"
    file.get_by_text(share).wait_for()
    pattern = kept["full"].pattern[90]
    shown = file.locator(".pattern .weight").first.inner_text().removesuffix("\u00a0%")
    assert float(shown) == pytest.approx(100 * pattern.max().item(), rel=5e-3)
    file.context.close()


@pytest.mark.long
def test_the_embedding_of_a_checkpoint_is_a_file_in_which_every_token_has_its_nearest(
    open_page: Callable[[str], "Page"], server: str, browser: "Browser", tmp_path: Path
) -> None:
    page = open_page(f"{server}/checkpoint#token=300")
    page.locator("p", has_text="nearest by cosine").get_by_text("id 300").wait_for()
    file = alone(browser, saved(open_panel(page, "embedding"), "HTML", tmp_path))
    file.locator(".js-plotly-plot .main-svg").first.wait_for(state="attached")
    said = file.evaluate(
        """() => document.querySelector('.js-plotly-plot')._fullData.filter(({ type }) => type === 'scattergl')
            .flatMap((one) => [...one.x.keys()].map((i) => [one.customdata[i], one.hovertext[i]]))"""
    )
    checkpoint = load("stories")
    table = checkpoint.model.get_parameter("embed.tokens.weight").detach()
    assert len(said) == len(table) and checkpoint.tokenizer is not None
    near = neighbours(table, 17, 5)
    pairs = zip(near.ids.tolist(), near.similarity.tolist(), strict=True)
    expected = [f"{checkpoint.tokenizer.piece(id)} {cosine:.3f}" for id, cosine in pairs]
    assert html.unescape(dict(said)[17]).split("<br>") == expected
    cells = [f"{cosine:.3f}" for cosine in neighbours(table, 300).similarity.tolist()]
    assert file.locator("tbody td:last-child").all_inner_texts() == cells
    file.context.close()


def test_what_a_link_says_of_the_views_and_is_not_there_is_said(
    open_page: Callable[[str], "Page"], server: str
) -> None:
    page = open_page(f"{server}/long_sequences?hide=window#layer=9")
    page.locator(".loupe-lost").get_by_text("block 10 is not here, there are 4").wait_for()
    expect(page.locator(".st-key-window")).to_be_hidden()
    expect(page.locator(".st-key-k")).to_be_visible()
    page = open_page(f"{server}/checkpoint#matrix=nothing")
    page.get_by_text("matrix is 'nothing' and must be one of the").wait_for()


@pytest.mark.long
def test_a_link_to_a_checkpoint_opens_on_all_that_was_chosen_there(
    open_page: Callable[[str], "Page"], server: str
) -> None:
    former = 'matrix=decoder.blocks.1.cross_attn.k.weight&head=2&counts=log&frame=all&without=["special"]'
    former += "&status=loaded&named=norm&token=30"
    page = open_page(f"{server}/checkpoint?model=translate-en-fr#{former}")
    names = [row.name for row in load("translate-en-fr").report.rows]
    norms = sum("norm" in name for name in names)

    def opened(page: "Page") -> None:
        page.get_by_text("cross keys, W_K · decoder · layer 2 · head 3").wait_for()
        page.locator("p", has_text="nearest by cosine").get_by_text("id 30").wait_for()
        expect(page.get_by_role("switch", name="log counts")).to_be_checked()
        expect(page.get_by_role("radio", name="all", exact=True)).to_be_checked()
        expect(page.get_by_label("find a tensor by its name")).to_have_value("norm")
        expect(page.locator(".st-key-without")).to_contain_text("special")
        expect(page.get_by_text(f"{norms} of {len(names)} tensors")).to_be_visible()

    opened(page)
    panel = open_panel(page, "embedding")
    panel.get_by_role("button", name="Copy link").click()
    made = panel.locator("input.made:visible")
    made.wait_for()
    opened(open_page(made.input_value()))


def test_an_address_that_is_too_long_to_be_read_says_so(open_page: Callable[[str], "Page"], server: str) -> None:
    edits = quote(json.dumps([{"edit": "SilenceHeads", "layer": 0, "heads": [1]}] * 10_000))
    page = open_page(f"{server}/attention?text=the+dog&edits={edits}")
    said = page.locator(".loupe-lost")
    expect(said).to_contain_text("at most 524,288 are read, so all that stood there")
    page.wait_for_function("!new URL(location).searchParams.has('edits')")


CELL = """html => {
  const [kept, heard] = [{ html, height: 640, look: {} }, {}];
  window.model = {
    get: (name) => kept[name], set: (name, value) => (kept[name] = value),
    save_changes: () => (window.told = kept.look),
    on: (name, callback) => (heard[name] = callback), off: (name) => delete heard[name],
    say: (look) => { kept.look = look; heard["change:look"](); },
  };
  window.end = render({ model, el: document.body });
}"""


def test_a_picture_in_a_notebook_says_what_is_clicked_and_looks_where_it_is_told(server: str, page: "Page") -> None:
    checkpoint = load("stories")
    shown = show(checkpoint, run(checkpoint.model, checkpoint.tokenizer.encode("The cat sat").ids), layer=1, head=2)
    page.goto(f"{server}/health")  # a frame has the address of the page around it
    page.set_content("<!doctype html>")
    module = (ROOT / "assets" / "notebook" / "widget.js").read_text()
    page.add_script_tag(content=f"{module.replace('export default { render };', '')}; window.render = render;")
    page.evaluate(CELL, shown.html)
    frame = page.frame_locator("iframe")
    frame.locator(".attention[data-ready]").wait_for()
    assert page.evaluate("[window.told.layer, window.told.head]") == [1, 2]
    frame.get_by_role("button").filter(has_text="›").first.click()
    page.wait_for_function("window.told.layer === 2")
    page.evaluate("model.say({ layer: 3, head: 0 })")
    frame.get_by_text("block 4 of 4").wait_for()
    frame.get_by_text("head 1 of 4").wait_for()
    page.evaluate("end()")
