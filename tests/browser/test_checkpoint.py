"""The page about a checkpoint in a real browser: what is pointed at, searched, compared, uploaded and carried away."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import torch

from engine import Checkpoint, load
from engine.analysis.weights import by_head, neighbours, spectrum
from engine.checkpoints.parity import available
from engine.model.config import MLP, Attention, ModelConfig
from engine.model.transformer import Transformer, initialise
from engine.runtime import library
from tests.browser.harness import comes_to, expect, settle

if TYPE_CHECKING:
    from playwright.sync_api import Page

READY = ".projected[data-ready='true']"
Open = Callable[..., "Page"]


@pytest.fixture
def show(page: "Page", server: str) -> Open:
    def shown(fragment: str = "", **query: str) -> "Page":
        given = "&".join(f"{name}={value}" for name, value in query.items())
        page.goto(f"{server}/checkpoint?{given}{fragment}")
        page.wait_for_selector(READY)
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


def test_first_open_is_a_finished_picture(show: Open) -> None:
    page = show()
    expect(page.locator(".card h2")).to_have_text("stories")
    expect(page.locator(".account")).to_contain_text("✓ 53 tensors, every one accounted for")
    expect(page.locator(".parts h3")).to_have_text("957,184 parameters")
    expect(page.locator(".chart .area, .chart .line")).to_have_count(2)
    drawn = page.locator(".frame-of canvas").evaluate(
        """canvas => canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data.some(x => x)"""
    )
    assert drawn
    expect(page.locator(".near-row")).to_have_count(10)


def test_pointing_at_a_block_takes_it_apart_and_moves_nothing(show: Open) -> None:
    page = show()
    before = page.locator(".weights").bounding_box()
    for row in page.locator(".parts .row").all():
        row.hover()
        assert page.locator(".detail-of h4").inner_text()
        assert page.locator(".weights").bounding_box() == before
    page.locator('.drawn g.target[data-block="attn"]').hover()
    assert page.locator(".parts .row.looked .what").inner_text() == "Attention"


def test_a_matrix_a_head_and_its_circuit_are_chosen_and_stay_in_the_link(show: Open) -> None:
    page = show()
    page.locator('.weights .cell[aria-label^="blocks.2.attn.out.weight"]').click()
    page.wait_for_selector('.shown h3:has-text("output, W_O · layer 3")')
    page.locator(".chip", has_text=re.compile("^2$")).click()
    page.wait_for_selector('.shown h3:has-text("head 2")')
    head = by_head(library.checkpoint("stories").model, "blocks.2.attn.out.weight")[1]
    expect(page.locator(".figures-of").nth(1)).to_contain_text(f"{spectrum(head).rank:.1f} of 32")
    page.locator(".chip.circuit").click()
    page.wait_for_selector('.shown h3:has-text("OV circuit · layer 3 · head 2")')
    page.wait_for_function("location.hash.includes('circuit=true')")
    page.reload()
    page.wait_for_selector('.shown h3:has-text("OV circuit · layer 3 · head 2")')
    page.locator(".weights .cell.chosen").focus()
    page.keyboard.press("ArrowLeft")
    page.wait_for_selector('.shown h3:has-text("OV circuit · layer 2 · head 2")')


def test_while_a_head_is_asked_for_the_picture_is_named_as_what_it_is_still_of(show: Open) -> None:
    page = show("#matrix=blocks.0.attn.q.weight")
    heading = page.locator(".shown h3")
    expect(heading).to_contain_text("128 × 128")
    said = page.locator(".weights").evaluate(
        """element => {
            [...element.querySelectorAll(".chip")].find(({ textContent }) => textContent === "3").click();
            [...element.querySelectorAll("button")].find(({ textContent }) => textContent === "log counts").click();
            return element.querySelector(".shown h3").textContent; }"""
    )
    assert "head 3" not in said and "128 × 128" in said
    expect(heading).to_contain_text("head 3 32 × 128")
    expect(page.get_by_role("button", name="log counts")).to_have_attribute("aria-pressed", "true")


def test_a_token_is_found_with_its_nearest(show: Open) -> None:
    page = show()
    page.locator(".search-of").fill("dog")
    page.keyboard.press("Enter")
    page.wait_for_selector('.chosen-of:has-text("·dog")')
    expect(page.locator(".near-row")).to_have_count(10)
    checkpoint = library.checkpoint("stories")
    assert checkpoint.tokenizer is not None
    table = checkpoint.model.get_parameter("embed.tokens.weight")
    (id,) = (i for i, piece in enumerate(checkpoint.tokenizer.pieces) if piece == "·dog")
    found = neighbours(table, id)
    assert page.locator(".near-row bdi").all_inner_texts() == [checkpoint.tokenizer.piece(int(i)) for i in found.ids]
    assert page.locator(".cosine").first.inner_text() == f"{found.similarity[0]:.3f}"


def test_the_table_of_tensors_is_searched_and_filtered(show: Open) -> None:
    page = show()
    page.locator(".status.tied").click()
    assert page.locator(".tensor-rows .tensor-row").count() == 1
    page.locator(".status.all").click()
    page.locator(".tensor-search").fill("h.3.mlp")
    assert page.locator(".tensor-rows .c1").all_inner_texts() == [
        f"transformer.h.3.mlp.{part}" for part in ("c_fc.weight", "c_fc.bias", "c_proj.weight", "c_proj.bias")
    ]


@pytest.mark.skipif(not available(), reason="transformers is not installed")
def test_the_badge_compares_with_transformers(show: Open) -> None:
    page = show(model="stories-bert")
    page.locator(".compare").click()
    page.wait_for_selector(".badge .figures", timeout=120_000)
    logits, attention = (float(text.replace("−", "-")) for text in page.locator(".badge strong").all_inner_texts())
    assert logits < 1e-4 and attention < 1e-5
    assert "transformers" in page.locator(".badge").inner_text()


def test_uploaded_files_are_shown_carried_and_taken_away(show: Open, folder: Path) -> None:
    page = show()
    page.get_by_role("button", name="Your files").click()
    page.locator('input[type="file"]').set_input_files(
        [folder / "model.safetensors", folder / "config.json", folder / "card.json"]
    )
    page.wait_for_selector('.card h2:has-text("model")')
    name = page.locator(".card h2").inner_text()
    assert re.fullmatch(r"model~[0-9a-f]{10}", name)
    assert "onerror" in page.locator(".card .says").inner_text() and page.title() == "Checkpoint · Loupe"
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Export").click()
    with page.expect_download() as download:
        page.get_by_role("button", name="One safetensors file").click()
    expected = load(folder).model.state_dict()
    taken = folder.parent / "taken.safetensors"
    download.value.save_as(taken)
    assert all(torch.equal(tensor, expected[key]) for key, tensor in load(taken).model.state_dict().items())
    page.keyboard.press("Escape")
    page.get_by_role("link", name="Walkthrough").last.click()
    page.wait_for_selector(".walkthrough[data-ready='true']")
    page.wait_for_function("name => new URL(location).searchParams.get('model') === name", arg=name)
    page.get_by_role("link", name="Architecture").first.click()
    page.wait_for_selector(".architecture[data-ready='true']")
    page.get_by_role("combobox", name=re.compile("model")).first.click()
    page.keyboard.type(name[:8])
    expect(page.get_by_role("option", name=name)).to_have_count(1)


@pytest.mark.parametrize("model", ["stories", "translate-en-fr", "digits-vit"])
def test_nothing_leaves_the_page_on_a_phone(page: "Page", show: Open, model: str) -> None:
    page.set_viewport_size({"width": 390, "height": 800})
    show(model=model)
    parts = page.locator(".card, .weights, .projected, .tensors")
    expect(parts).to_have_count(4)
    page.wait_for_function("document.documentElement.scrollWidth <= window.innerWidth")
    wider = "all => all.filter(one => one.scrollWidth > one.clientWidth + 1).map(one => one.className)"
    comes_to(page, lambda: parts.evaluate_all(wider), [])
