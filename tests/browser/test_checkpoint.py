"""The page about a checkpoint in a real browser: what is pointed at, searched, compared, uploaded and carried away."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, urlsplit

import pytest
import torch

from engine import Checkpoint, load
from engine.analysis.weights import by_head, spectrum
from engine.model.config import MLP, Attention, ModelConfig
from engine.model.transformer import Transformer, initialise
from engine.runtime import library
from tests.browser.harness import comes_to, expect, settle, turn_to

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

READY = ".js-plotly-plot .main-svg"
Open = Callable[..., "Page"]


@pytest.fixture
def show(open_page: Callable[[str], "Page"], page: "Page", server: str) -> Open:
    """The page of a model: as the test before left it, where that was of the same one."""

    def shown(model: str = "stories") -> "Page":
        asked = dict(parse_qsl(urlsplit(page.url).query)).get("model", "stories")
        if not urlsplit(page.url).path == "/checkpoint" or asked != model:
            open_page(f"{server}/checkpoint?model={model}")
        page.wait_for_selector(READY, state="attached")
        page.wait_for_selector(".card[data-ready]")
        settle(page)
        return page

    return shown


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A checkpoint whose card is written to do harm."""
    model = initialise(Transformer(ModelConfig(40, 16, 16, 2, Attention(4), MLP(24))), 0)
    card = {"about": "<img src=x onerror='document.title=\"harmed\"'> $x$ [a](b)"}
    Checkpoint(model, card=card, name="mine").save(tmp_path / "mine")
    return tmp_path / "mine"


def chart(page: "Page", place: int) -> "Locator":
    """A chart of Altair, as it is drawn."""
    return page.locator('[data-testid="stVegaLiteChart"]').nth(place).locator("canvas, svg.marks").first


def click(shown: "Locator", across: float, down: float) -> None:
    """At shares of its width and height."""
    shown.scroll_into_view_if_needed()
    box = shown.bounding_box()
    assert box
    shown.click(position={"x": across * box["width"], "y": down * box["height"]})


def test_first_open_is_a_finished_picture(show: Open) -> None:
    page = show()
    expect(page.locator("h2")).to_contain_text("stories")
    expect(page.get_by_text("53 tensors, every one accounted for")).to_be_visible()
    expect(page.locator(".parts h3")).to_have_text("957,184 parameters")
    expect(page.locator('[data-testid="stVegaLiteChart"]')).to_have_count(4)
    count = "document.querySelector('.js-plotly-plot')._fullData.filter(one => one.type === 'scattergl')"
    comes_to(page, lambda: page.evaluate(f"{count}.reduce((sum, one) => sum + one.x.length, 0)"), 1024)
    expect(page.get_by_text("nearest by cosine")).to_be_visible()


def test_pointing_at_a_block_takes_it_apart_and_moves_nothing(show: Open) -> None:
    page = show()
    below = page.get_by_text("Matrices", exact=True)
    before = below.bounding_box()
    for row in page.locator(".parts .row").all():
        row.hover()
        assert page.locator(".detail-of h4").inner_text()
        assert below.bounding_box() == before
    page.locator('.drawn g.target[data-block="attn"]').hover()
    assert page.locator(".parts .row.looked .what").inner_text() == "Attention"


def test_a_matrix_a_head_and_its_circuit_are_chosen_and_stay_in_the_link(show: Open) -> None:
    page = show()
    chosen = page.locator("h5")
    click(chart(page, 0), 0.75, 0.56)
    expect(chosen.nth(1)).to_contain_text("output, W_O · layer 3")
    page.get_by_role("radio", name="2", exact=True).click()
    expect(chosen.nth(1)).to_contain_text("head 2 32 × 128")
    head = by_head(library.checkpoint("stories").model, "blocks.2.attn.out.weight")[1]
    expect(page.get_by_text(f"{spectrum(head).rank:.1f} of 32")).to_be_visible()
    page.get_by_text("OV circuit", exact=True).click()
    expect(chosen.nth(1)).to_contain_text("OV circuit · layer 3 · head 2")
    page.wait_for_function("new URL(location).searchParams.get('circuit') === 'true'")
    page.reload()
    expect(chosen.nth(1)).to_contain_text("OV circuit · layer 3 · head 2")
    click(chart(page, 1), 0.9, 0.5)
    expect(chosen.nth(1)).to_contain_text("OV circuit · layer 3 · head 4")


def test_a_token_is_found_with_its_nearest_and_chosen_in_the_picture(show: Open) -> None:
    page = show()
    page.get_by_label("find a token").fill("dog")
    page.keyboard.press("Enter")
    said = page.locator("p", has_text="nearest by cosine")
    expect(said).to_contain_text("·dog id")
    expect(page.locator(".js-plotly-plot")).to_have_count(1)  # a moment ago the one before it stood there, too
    page.locator(".js-plotly-plot").scroll_into_view_if_needed()
    place = page.evaluate(
        """() => {
            const plot = document.querySelector('.js-plotly-plot'), { _size, xaxis, yaxis } = plot._fullLayout;
            const trace = plot._fullData.find(({ type }) => type === 'scattergl');
            const at = plot.getBoundingClientRect(), far = [...trace.x.keys()].sort((a, b) => trace.y[a] - trace.y[b]);
            const i = far.find((i) => trace.y[i] > yaxis.range[0] && trace.x[i] > xaxis.range[0]);
            return { x: at.x + _size.l + xaxis.l2p(trace.x[i]), y: at.y + _size.t + yaxis.l2p(trace.y[i]),
                     id: trace.customdata[i] }; }"""
    )
    page.mouse.move(place["x"], place["y"])
    page.locator(".hoverlayer .hovertext").first.wait_for()
    page.mouse.click(place["x"], place["y"])
    expect(said).to_contain_text(f"id {place['id']}")
    page.wait_for_function("id => new URL(location).searchParams.get('token') === String(id)", arg=place["id"])


def test_the_table_of_tensors_is_searched_and_filtered(show: Open) -> None:
    page = show()
    page.locator(".st-key-status button", has_text="tied").click()
    expect(page.get_by_text("1 of 53 tensors")).to_be_visible()
    page.locator(".st-key-status button", has_text="tied").click()
    page.get_by_label("find a tensor by its name").fill("h.3.mlp")
    page.keyboard.press("Enter")
    expect(page.get_by_text("4 of 53 tensors")).to_be_visible()
    page.wait_for_function("new URL(location).searchParams.get('named') === 'h.3.mlp'")
    table = page.locator(".st-key-tensors canvas").first
    table.scroll_into_view_if_needed()
    box = table.bounding_box()
    assert box is not None
    page.mouse.click(box["x"] + 18, box["y"] + 1.5 * 35)  # the box of the first row
    expect(page.locator("h5").nth(1)).to_contain_text("layer 4")


@pytest.mark.long
def test_the_badge_compares_with_transformers(show: Open) -> None:
    page = show(model="tales-bert")
    page.get_by_role("button", name="Compare with transformers").click()
    figures = page.locator('[data-testid="stMetricValue"]')
    figures.nth(1).wait_for(timeout=120_000)
    logits, attention = (float(text.replace("−", "-")) for text in figures.all_inner_texts())
    assert logits < 1e-4 and attention < 1e-5
    expect(page.get_by_text("of transformers").first).to_be_visible()


def test_uploaded_files_are_shown_carried_and_taken_away(show: Open, folder: Path) -> None:
    page = show()
    page.get_by_role("button", name="Your files").click()
    page.locator('input[type="file"]').set_input_files(
        [folder / "model.safetensors", folder / "config.json", folder / "card.json"]
    )
    page.wait_for_selector('h2:has-text("model")')
    name = page.locator("h2").first.inner_text().strip().replace(" ", "")
    assert re.fullmatch(r"model~[0-9a-f]{10}", name)
    expect(page.locator(".st-key-facts").get_by_text("onerror")).to_be_visible()
    assert page.title() == "Open a model · Loupe"
    page.keyboard.press("Escape")
    settle(page)  # until then, what stood there before stands beside what comes
    page.get_by_role("button", name="Export", exact=True).click()
    with page.expect_download() as download:
        page.get_by_role("button", name="One safetensors file").click()
    expected = load(folder).model.state_dict()
    taken = folder.parent / "taken.safetensors"
    download.value.save_as(taken)
    assert all(torch.equal(tensor, expected[key]) for key, tensor in load(taken).model.state_dict().items())
    page.keyboard.press("Escape")
    turn_to(page, "Walkthrough")
    page.wait_for_selector(".walkthrough[data-ready]")
    page.wait_for_function("name => new URL(location).searchParams.get('model') === name", arg=name)
    turn_to(page, "Anatomy")
    page.wait_for_selector(".architecture[data-ready]")
    page.get_by_role("combobox", name=re.compile("model")).first.click()
    page.keyboard.type(name[:8])
    expect(page.get_by_role("option", name=name)).to_have_count(1)


@pytest.mark.parametrize("model", ["stories", "translate-en-fr", "digits-vit"])
def test_nothing_leaves_the_page_on_a_phone(page: "Page", show: Open, model: str) -> None:
    page.set_viewport_size({"width": 390, "height": 800})
    show(model)
    parts = page.locator(".card, [data-testid='stVegaLiteChart'], [data-testid='stPlotlyChart']")
    expect(parts).to_have_count(6)
    page.wait_for_function("document.documentElement.scrollWidth <= window.innerWidth")
    wider = "all => all.filter(one => one.scrollWidth > one.clientWidth + 1).map(one => one.className)"
    comes_to(page, lambda: parts.evaluate_all(wider), [])
