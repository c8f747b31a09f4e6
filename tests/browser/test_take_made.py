"""What pages that run no model give away in a browser: pictures of shapes, a file without a network, any matrix."""

import json
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

import numpy as np
import pytest

from engine import load
from engine.analysis.weights import neighbours
from engine.attention_variants import shared
from engine.attention_variants.measure import Setup
from tests.browser.harness import comes_to, expect
from tests.browser.test_take import SVG, saved

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page


def test_an_architecture_is_taken_as_shapes_and_as_a_file_that_is_alive_without_a_network(
    open_page: Callable[[str], "Page"], server: str, browser: "Browser", tmp_path: Path
) -> None:
    page = open_page(f"{server}/architecture?model=gpt2")
    page.wait_for_selector(".architecture svg")
    page.get_by_role("button", name="Share & export").first.click()
    texts = [text.text for text in ElementTree.parse(saved(page, "SVG", tmp_path)).getroot().iter(f"{SVG}text")]
    assert "124,439,808 parameters" in texts and "Radford et al. 2019, table 2." in texts
    path = saved(page, "HTML", tmp_path)
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


def test_the_charts_of_sizes_are_exported_as_a_file_that_is_read_without_a_network(
    open_page: Callable[[str], "Page"], server: str, browser: "Browser", tmp_path: Path
) -> None:
    page = open_page(f"{server}/architecture?model=gpt2&length=512")
    page.get_by_role("button", name="Share & export").last.click()
    file = alone(browser, saved(page, "HTML", tmp_path))
    expect(file.locator("#view canvas, #view svg.marks")).to_have_count(3)
    expect(file.get_by_text("gpt2 · a batch of 1, 512 tokens chosen, numbers of 2 bytes")).to_be_visible()
    box = file.locator("#view canvas, #view svg.marks").nth(1).bounding_box()
    assert box is not None
    file.mouse.move(box["x"] + box["width"] / 2, box["y"] + 150)
    tooltip = file.locator("#vg-tooltip-element.visible")
    expect(tooltip).to_contain_text("keys and values")
    rows = dict(row.split("\t") for row in tooltip.inner_text().replace("\t\n", "\t").split("\n") if "\t" in row)
    length = int(rows["tokens"].replace(",", ""))
    assert rows["all"] == f"{2 * 2 * 12 * length * 768:,} bytes"
    file.context.close()


def test_the_matrix_that_is_looked_at_is_taken(
    open_page: Callable[[str], "Page"], server: str, tmp_path: Path
) -> None:
    page = open_page(f"{server}/checkpoint#matrix=blocks.1.attn.q.weight&head=2")
    page.wait_for_selector('.weights[data-ready="true"]')
    bars = page.locator(".loupe-take")
    bars.nth(1).get_by_role("button", name="Share & export").click()
    path = saved(page, "npz", tmp_path)
    assert path.name == "loupe-weights-stories-blocks-1-attn-q-weight-head-2-its-numbers.npz"
    weight = load("stories").model.get_parameter("blocks.1.attn.q.weight").detach().numpy()
    with np.load(path) as file:
        np.testing.assert_array_equal(file["values"], weight.reshape(4, 32, 128)[2])
    bars.nth(1).get_by_role("button", name="SVG", exact=True).click()
    page.locator("output.said").nth(1).get_by_text("loupe-weights-stories.svg").wait_for()


def alone(browser: "Browser", path: Path) -> "Page":
    """A file in a browser without a network."""
    page = browser.new_context(offline=True).new_page()
    page.goto(path.as_uri())
    return page


def test_patterns_are_exported_as_shapes_and_as_a_file_in_which_every_head_is_there(
    open_page: Callable[[str], "Page"], server: str, browser: "Browser", tmp_path: Path
) -> None:
    page = open_page(f"{server}/long_sequences#layer=1&head=2&query=90")
    page.wait_for_selector('.kept-patterns[data-ready="true"] .panels canvas')
    page.locator(".loupe-take").get_by_role("button", name="Share & export").click()
    picture = ElementTree.parse(saved(page, "SVG", tmp_path)).getroot()
    texts = [text.text or "" for text in picture.iter(f"{SVG}text")]
    assert "What each keeps" in texts and "k nearest, PQ" in texts
    assert any("Patterns of block 2, head 3." in text for text in texts)
    path = saved(page, "HTML", tmp_path)
    assert path.stat().st_size < 5_000_000
    file = alone(browser, path)
    file.wait_for_selector('.kept-patterns[data-ready="true"] .panels canvas')
    file.get_by_label("head", exact=True).select_option(label="block 1, head 4")
    kept = shared.kept("stories", 128, 0, 3, Setup())
    share = f"keeps {100 * kept['quantized'].mass:.1f}\u00a0% of the attention"
    file.get_by_text(share).wait_for()
    pattern = kept["full"].pattern[90]
    shown = file.locator(".pattern .weight").first.inner_text().removesuffix("\u00a0%")
    assert float(shown) == pytest.approx(100 * pattern.max().item(), rel=5e-3)
    file.context.close()


def test_the_tables_of_a_checkpoint_are_taken_as_files_that_answer_and_all_tensors_as_one_picture(
    open_page: Callable[[str], "Page"], server: str, browser: "Browser", tmp_path: Path
) -> None:
    page = open_page(f"{server}/checkpoint#token=300")
    page.locator(".projected").scroll_into_view_if_needed()
    page.wait_for_selector('.projected[data-ready="true"] .near-row')
    bars = page.locator(".loupe-take")
    bars.nth(2).get_by_role("button", name="Share & export").click()
    path = saved(page, "HTML", tmp_path)
    bars.nth(2).get_by_role("button", name="Share & export").click()
    bars.nth(3).get_by_role("button", name="Share & export").click()
    picture = ElementTree.parse(saved(page, "SVG", tmp_path)).getroot()
    texts = {text.text for text in picture.iter(f"{SVG}text")}
    checkpoint = load("stories")
    assert {row.name for row in checkpoint.report.rows} <= texts
    assert page.locator(".scroller").evaluate("e => e.clientHeight") < 400
    file = alone(browser, path)
    file.locator(".near-row").first.wait_for()
    file.get_by_label("find a token").fill("dog")
    file.get_by_label("find a token").press("Enter")
    id = next(i for i in range(1024) if checkpoint.tokenizer and checkpoint.tokenizer.piece(i).strip("·▁Ġ") == "dog")
    near = neighbours(checkpoint.model.get_parameter("embed.tokens.weight").detach(), id)
    file.locator(".chosen-of small").get_by_text(f"id {id}", exact=True).wait_for()
    file.locator(".cosine").get_by_text(f"{near.similarity[9].item():.3f}").last.wait_for()
    file.context.close()


def test_what_a_link_says_of_the_views_and_is_not_there_is_said(
    open_page: Callable[[str], "Page"], server: str
) -> None:
    page = open_page(f"{server}/long_sequences?hide=window#layer=9")
    page.locator(".loupe-lost").get_by_text("block 10 is not here, there are 4").wait_for()
    expect(page.locator(".st-key-window")).to_be_hidden()
    expect(page.locator(".st-key-k")).to_be_visible()
    page = open_page(f"{server}/checkpoint#matrix=nothing")
    page.locator(".loupe-lost").get_by_text('there is no matrix "nothing" here').wait_for()


def test_a_link_to_a_checkpoint_opens_on_all_that_was_chosen_there(
    open_page: Callable[[str], "Page"], server: str
) -> None:
    page = open_page(f"{server}/checkpoint?model=translate-en-fr")
    page.locator(".projected").scroll_into_view_if_needed()
    page.wait_for_selector('.projected[data-ready="true"] .near-row')
    page.locator('[aria-label^="decoder.blocks.1.cross_attn.k.weight"]').click()
    page.locator(".weights .chip", has_text="3").click()
    page.get_by_role("button", name="log counts").click()
    page.locator(".chip-of", has_text="all").click()
    page.locator(".kind-of").nth(1).click()
    page.locator(".near-row").nth(3).click()
    page.locator(".status.loaded").click()
    page.get_by_label("find a tensor by its name").fill("norm")
    page.locator(".card .row[data-block]").nth(1).click()
    seen = """() => {
        const roots = [...document.querySelectorAll('*')].map(({ shadowRoot }) => shadowRoot).filter(Boolean);
        const all = (names) => roots.flatMap((root) => [...root.querySelectorAll(names)]);
        const pressed = all('[aria-pressed]').map((one) => one.textContent + one.getAttribute('aria-pressed'));
        const said = all('.shown h3, .chosen-of, .card .looked, .tensor-search').map((e) => e.value ?? e.textContent);
        return [...pressed, ...said]; }"""
    page.locator(".shown h3", has_text="head 3 32 × 128").wait_for()
    page.locator(".near-row").first.wait_for()
    comes_to(page, lambda: "log countstrue" in page.evaluate(seen), True)
    before = page.evaluate(seen)
    bar = page.locator(".loupe-take").first
    bar.get_by_role("button", name="Share & export").click()
    bar.get_by_role("button", name="Copy link").click()
    page.locator("input.made:visible").wait_for()
    link = page.locator("input.made:visible").input_value()
    page = open_page(link)
    page.locator(".projected").scroll_into_view_if_needed()
    page.wait_for_selector('.projected[data-ready="true"] .near-row')
    page.locator(".shown h3").get_by_text("head 3").wait_for()
    comes_to(page, lambda: page.evaluate(seen), before)
    assert any("normtrue" in one or one == "norm" for one in before) and "log countstrue" in before


def test_an_address_that_is_too_long_to_be_read_says_so(open_page: Callable[[str], "Page"], server: str) -> None:
    edits = quote(json.dumps([{"edit": "SilenceHeads", "layer": 0, "heads": [1]}] * 10_000))
    page = open_page(f"{server}/attention?text=the+dog&edits={edits}")
    said = page.locator(".loupe-lost")
    expect(said).to_contain_text("at most 524,288 are read, so all that stood there")
    page.wait_for_function("!new URL(location).searchParams.has('edits')")
