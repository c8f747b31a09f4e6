"""One head from three sides in a real browser: its lines, the product behind a score, the steps to its weights."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import numpy as np
import pytest

from engine import load, run
from engine.budget import budget
from engine.checkpoints import Checkpoint
from engine.data.stories import story
from engine.model.config import MLP, Attention, ModelConfig, Norm, Positions
from engine.model.transformer import Transformer, initialise
from engine.runtime import library
from engine.runtime.trace import Trace
from engine.tokenizers import train

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Locator, Page

pytestmark = pytest.mark.long

TEXT = 'Max gave the red ball to Anna. "Thank you," said'
SETTLED = {  # when a view shows what the address asks for
    "lines": ".attention-lines .lines-note strong",
    "product": ".attention-product .verdict[data-stored]",
    "steps": ".attention-steps .ledger",
}

Look = Callable[..., "Page"]


@pytest.fixture
def look(open_page: Callable[[str], Page], stage: str) -> Look:
    def opened(view: str, text: str = TEXT, model: str = "", state: str = "layer=1&head=2") -> Page:
        named = f"&model={model}" if model else ""
        page = open_page(f"{stage}/attention?text={quote(text)}{named}#view={view}&{state}")
        page.wait_for_selector(SETTLED[view])
        return page

    return opened


def traced(text: str = TEXT) -> Trace:
    return library.traces.trace("stories", library.checkpoint("stories").tokenizer.encode(text), [])


def view(page: Page) -> Locator:
    return page.locator(".attention-lines, .attention-product, .attention-steps")


def drawn(page: Page) -> list[dict[str, float]]:
    """The curves of the view Lines, as head (an index among the compared), query, key and weight."""
    curves: list[dict[str, float]] = view(page).evaluate("e => e.loupe.drawn().curves")
    return curves


def listen(page: Page) -> None:
    """Writes down from now on what is asked of the server."""
    view(page).evaluate(
        """e => { const { page } = e.loupe, ask = page.request.bind(page); e.asked = [];
        page.request = (query) => (e.asked.push(query.ask), ask(query));
        page.trace.fetch = async (layer) => e.asked.push(`layer ${layer}`); }"""
    )


def asked(page: Page) -> set[str]:
    """What these views asked; the details beside them ask for their own."""
    return {ask for ask in view(page).evaluate("e => e.asked") if ask == "weighted" or ask.startswith("layer")}


def grid(page: Page, step: str) -> np.ndarray[Any, Any]:
    """What one panel of the view Steps holds, query key."""
    rows = view(page).evaluate(
        """(e, step) => { const { block: b } = e.loupe.list.find(({ id }) => id === step);
        return Array.from({ length: b.rows }, (_, r) => Array.from({ length: b.cols }, (_, c) =>
          String(b.data[b.offset + r * b.stride + c]))); }""",
        step,
    )
    return np.array([[float(x.replace("Infinity", "inf")) for x in row] for row in rows], np.float32)


def test_the_lines_are_the_weights_of_the_compared_heads_from_the_least_on(look: Look) -> None:
    page = look("lines", state="layer=1&head=2&heads=[[1,2],[0,1],[3,3]]")
    for head, (layer, index) in enumerate([(0, 1), (1, 2), (3, 3)]):
        pattern = traced()[f"blocks.{layer}.attn.pattern"][0, index].numpy()
        shown = {(c["query"], c["key"]): np.float32(c["weight"]) for c in drawn(page) if c["head"] == head}
        assert shown == {(q, k): pattern[q, k] for q, k in zip(*np.nonzero(pattern >= 0.01), strict=True)}
    left = sum(
        int(((p := traced()[f"blocks.{layer}.attn.pattern"][0, i]) > 0).sum() - (p >= 0.01).sum())
        for layer, i in [(0, 1), (1, 2), (3, 3)]
    )
    assert f"{left} left out: weaker than 1.00" in page.locator(".lines-note").inner_text()


def test_a_token_keeps_its_own_lines_only_and_its_weights_stand_beside_the_others(look: Look) -> None:
    page = look("lines")
    pattern = traced()["blocks.1.attn.pattern"][0, 2]
    page.locator(".of-query .lines-token").nth(5).hover()
    page.locator(".lines-note", has_text="reads drawn").wait_for()
    assert {c["query"] for c in drawn(page)} == {5}
    page.locator(".of-key .lines-token").nth(1).click()
    assert {c["key"] for c in drawn(page)} == {1}
    assert len(drawn(page)) == int((pattern[:, 1] >= 0.01).sum())
    page.locator(".of-key .lines-token").nth(1).press("Escape")
    page.mouse.move(5, 5)
    page.locator(".lines-note", has_text=f"{int((pattern >= 0.01).sum())} lines drawn").wait_for()


def test_the_legend_takes_heads_in_and_out_and_keeps_their_colours(look: Look) -> None:
    page = look("lines")
    listen(page)
    page.get_by_role("button", name="all heads of block 2").click()
    chips = page.locator(".lines-head")
    assert chips.count() == 4
    colour = chips.nth(3).locator(".lines-colour").get_attribute("style")
    page.get_by_role("button", name="take block 2 · head 1 out").click()
    assert chips.count() == 3 and chips.nth(2).locator(".lines-colour").get_attribute("style") == colour
    page.get_by_role("button", name="block 2 · head 4: make it the shown one").click()
    assert "shown" in (chips.nth(2).get_attribute("class") or "")
    page.locator("body").press("[")
    page.get_by_role("button", name="only the shown one").click()
    assert chips.count() == 1
    assert asked(page) == set()


def test_more_lines_than_can_be_told_apart_are_counted_and_said(look: Look) -> None:
    page = look("lines", text="The dog was happy. " * 60, state="layer=0&head=0&least=0")
    pattern = traced_long()["blocks.0.attn.pattern"][0, 0]
    curves = drawn(page)
    assert 0 < len(curves) <= 4000 < int((pattern > 0).sum())
    weakest = min(c["weight"] for c in curves)
    assert int((pattern > weakest).sum()) < len(curves)
    assert "the most that can be told apart" in page.locator(".lines-note").inner_text()


def traced_long() -> Trace:
    encoding = library.checkpoint("stories").tokenizer.encode("The dog was happy. " * 60)
    return library.traces.trace("stories", encoding.truncate(256), [])


def test_the_product_of_query_and_key_is_summed_to_the_stored_score(look: Look) -> None:
    page = look("product", state="layer=1&head=2&query=9&key=4")
    listen(page)
    trace = traced()
    for head in (2, 3):
        q, k = (trace[f"blocks.1.attn.{name}"][0, :, head].double() for name in "qk")
        verdict = page.locator(".attention-product .verdict")
        score = float((q[9] @ k[4]) / q.shape[1] ** 0.5)
        assert float(verdict.get_attribute("data-recomputed") or "nan") == pytest.approx(score, abs=1e-12)
        stored = float(trace["blocks.1.attn.scores"][0, head, 9, 4])
        assert float(verdict.get_attribute("data-stored") or "nan") == stored
        found = view(page).evaluate("e => e.loupe.found.all.map(({ products }) => [...products])")
        np.testing.assert_allclose(found, (q[9] * k).numpy(), rtol=0, atol=1e-14)
        page.locator("body").press("]")
    assert asked(page) == set()


def test_components_are_sorted_by_the_size_of_their_product_and_arrows_walk_the_keys(look: Look) -> None:
    page = look("product", state="layer=1&head=2&query=9&key=4")
    page.get_by_role("button", name="largest |q × k| first").click()
    q, k = (traced()[f"blocks.1.attn.{name}"][0, :, 2].double() for name in "qk")
    expected = (q[9] * k[4]).abs().argsort(descending=True).tolist()
    assert view(page).evaluate("e => e.loupe.found.order") == expected
    page.locator(".keys-name").nth(4).press("ArrowDown")
    assert "chosen" in (page.locator(".keys-name").nth(5).get_attribute("class") or "")
    assert view(page).evaluate("e => e.loupe.page.state.key") == 5


def test_every_step_holds_the_engines_tensor_and_what_keys_hand_over_is_multiplied(look: Look) -> None:
    page = look("steps", state="layer=1&head=2&query=9&key=4")
    page.wait_for_selector('.steps-panel[data-step="weighted"] canvas')
    trace, prefix = traced(), "blocks.1.attn."
    for step, name in (("scores", "scores"), ("masked", "masked_scores"), ("pattern", "pattern")):
        np.testing.assert_array_equal(grid(page, step), trace[prefix + name][0, 2].numpy())
    q, k, v = (trace[prefix + name][0, :, 2].double() for name in "qkv")
    np.testing.assert_allclose(grid(page, "raw"), (q @ k.T).numpy(), rtol=0, atol=2e-5)
    layer = library.checkpoint("stories").model.blocks[1].attn
    share = layer.out.weight.double().unflatten(1, (layer.heads, layer.d_head))[:, 2]
    lengths = trace[prefix + "pattern"][0, 2].double() * (v @ share.T).norm(dim=-1)
    np.testing.assert_allclose(grid(page, "weighted"), lengths.detach().numpy(), rtol=1e-5, atol=1e-6)


def test_the_row_in_numbers_ends_at_the_stored_weights(look: Look) -> None:
    page = look("steps", state="layer=1&head=2&query=9&key=0")
    page.wait_for_selector('.steps-panel[data-step="weighted"] canvas')
    listen(page)
    page.locator(".steps-panels").press("ArrowUp")
    page.locator(".steps-panels").press("ArrowRight")
    page.locator("body").press("]")
    row, keys, stored = view(page).evaluate(
        "e => { const w = e.loupe.written; return [[...w.row.weights], w.keys, [...w.stored]]; }"
    )
    masked = traced()["blocks.1.attn.masked_scores"][0, 3, 8].double()
    np.testing.assert_allclose(row, masked.softmax(-1).numpy(), rtol=0, atol=1e-12)
    np.testing.assert_array_equal(np.float32(stored), traced()["blocks.1.attn.pattern"][0, 3, 8].numpy())
    assert 1 in keys and keys[0] == int(masked.argmax())
    page.locator('[data-step="pattern"] canvas').hover(position={"x": 4, "y": 4})
    assert page.locator('[data-step="pattern"] .steps-value').inner_text() == "100.0\u00a0%"
    assert (
        page.locator('[data-step="masked"] .steps-value').inner_text()
        == page.locator('[data-step="scores"] .steps-value').inner_text()
    )
    assert asked(page) == set()


@pytest.fixture(scope="module")
def variants(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Grouped queries, normed and turned and soft-capped; and a position bias."""
    folder = tmp_path_factory.mktemp("variants")
    tokenizer = train("bpe", [story(1, index) for index in range(40)], 400)
    grouped = Attention(4, kv_heads=2, softcap=2.0, qk_norm="head")
    for name, attention, positions in (
        ("grouped", grouped, Positions("rotary")),
        ("biased", Attention(4), Positions("alibi")),
    ):
        config = ModelConfig(tokenizer.vocab_size, 64, 32, 2, attention, MLP(48), positions, Norm("rms"))
        model = initialise(Transformer(config), 0).requires_grad_(False).eval()
        Checkpoint(model, name=name, tokenizer=tokenizer).save(folder / name)
    return folder


@pytest.fixture(scope="module")
def offered(variants: Path) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(budget, "models_folder", str(variants))
        yield


def test_grouped_turned_and_capped_heads_show_what_their_scores_are_made_of(
    look: Look, variants: Path, offered: None
) -> None:
    page = look("product", model="grouped", state="layer=1&head=2&query=9&key=4")
    checkpoint = load(variants / "grouped")
    trace = run(checkpoint.model, checkpoint.tokenizer.encode(TEXT))
    prefix = "blocks.1.attn."
    q, k = trace[prefix + "q_rotated"][0, :, 2].double(), trace[prefix + "k_rotated"][0, :, 1].double()
    found = view(page).evaluate("e => e.loupe.found.all.map(({ products }) => [...products])")
    np.testing.assert_allclose(found, (q[9] * k).numpy(), rtol=0, atol=1e-6)
    assert "Head 3 reads key head 2 of 2, which heads 3 to 4 share." in page.locator(".product-note").inner_text()
    assert page.locator(".component-name").count() == 7  # q and k: projected, normed, turned; and their product
    page.get_by_role("tab", name="Steps").click()
    page.wait_for_selector(SETTLED["steps"])
    np.testing.assert_array_equal(grid(page, "capped"), trace[prefix + "capped"][0, 2].numpy())


def test_a_position_bias_is_a_step_of_its_own(look: Look, variants: Path, offered: None) -> None:
    page = look("steps", model="biased", state="layer=1&head=2")
    checkpoint = load(variants / "biased")
    trace = run(checkpoint.model, checkpoint.tokenizer.encode(TEXT))
    expected = trace["blocks.1.attn.scores"][0, 2] + trace["blocks.1.attn.bias"][2]
    np.testing.assert_array_equal(grid(page, "biased"), expected.numpy())


def test_every_control_of_the_three_views_has_a_name_and_a_phone_holds_them(browser: Browser, stage: str) -> None:
    context = browser.new_context(viewport={"width": 390, "height": 844}, color_scheme="dark")
    page = context.new_page()
    for name, selector in SETTLED.items():
        page.goto(f"{stage}/attention?text={quote(TEXT)}#view={name}&layer=1&head=2")
        page.wait_for_selector(selector)
        nameless = view(page).evaluate(
            """e => [...e.querySelectorAll('button, input, canvas[role=img]')]
            .filter(b => !(b.ariaLabel || b.textContent.trim() || b.title)).length"""
        )
        assert nameless == 0
        assert page.evaluate("() => document.documentElement.scrollWidth <= innerWidth")
        page.goto("about:blank")
    context.close()
