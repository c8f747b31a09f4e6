"""The architecture page in a real browser: every part is drawn, and pointing at it shows its counts and formulas."""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import pytest

from engine.analysis.sizes import envelope, forward, parameters
from engine.model.presets import NAMED
from tests.browser.harness import choose, comes_to, expect

if TYPE_CHECKING:
    from playwright.sync_api import Page

READY = ".architecture[data-ready]"
OUTSIDE = """all => all.flatMap(target => {
    const face = target.querySelector(".face").getBoundingClientRect();
    const out = box => box.left < face.left - 1 || box.right > face.right + 1;
    const texts = [...target.querySelectorAll("text")];
    return texts.filter(text => out(text.getBoundingClientRect())).map(text => text.textContent);
})"""
CHARTS = "canvas.marks, .vega-embed svg"
Show = Callable[..., "Page"]


@pytest.fixture
def show(open_page: Callable[[str], "Page"], page: "Page", server: str) -> Show:
    """The page as it stands, opened where it is not, with models chosen in its two menus."""

    def shown(model: str, against: str = "nothing") -> "Page":
        if "/architecture" not in page.url:
            open_page(f"{server}/architecture")
        page.wait_for_selector(READY)
        for menu, name in (("model", model), ("compare with", against)):
            choose(page, menu, name)
        named = [name for name in (model, against) if name != "nothing"]
        expect(page.locator(".model figcaption strong")).to_have_text(named)
        return page

    return shown


def test_every_block_that_has_parameters_is_drawn_and_shows_them(show: Show) -> None:
    for name in ("bert-base", "t5-small", "gpt-j-6b", "gemma-2-2b", "chatglm-6b", "vit-b-16"):
        page = show(name)
        blocks: dict[str, int] = {}
        for part in parameters(NAMED[name].config):
            if not part.block.endswith("relative"):  # a table beside the blocks, which the bar shows
                blocks[part.block] = blocks.get(part.block, 0) + part.count
        drawn = page.locator("g.target").evaluate_all("all => all.map(one => one.dataset.block)")
        assert set(blocks) <= set(drawn)
        for block, count in blocks.items():
            page.locator(f'g.target[data-block="{block}"]').focus()
            expect(page.locator(".panel .big"), f"{name} {block}").to_have_text(f"{count:,}")


def test_a_formula_is_written_with_its_numbers(show: Show) -> None:
    page = show("llama-3-8b")
    page.locator('g.target[data-block="attn"]').focus()
    line = page.locator(".panel .arithmetic-line").nth(1)
    assert line.inner_text().replace("\n", "") == "L·d·Hkv·dh=32·4,096·8·128"
    assert line.locator("sub").all_inner_texts() == ["kv", "h"]


def test_nothing_of_the_drawing_leaves_the_page_or_its_box_and_the_charts_stand_in_a_narrow_window(show: Show) -> None:
    page = show("t5-small")
    for width in (1280, 390):
        page.set_viewport_size({"width": width, "height": 800})
        page.wait_for_function("width => innerWidth === width", arg=width)
        page.wait_for_function("document.documentElement.scrollWidth <= innerWidth")
        comes_to(page, partial(page.locator("g.target").evaluate_all, OUTSIDE), [])
    ends = "all => all.map(one => one.getBoundingClientRect().right <= 390)"
    comes_to(page, lambda: page.locator(f"{CHARTS}, .js-plotly-plot").evaluate_all(ends), [True] * 4)


def test_a_block_is_reached_by_the_keyboard_and_stays_in_the_link(show: Show) -> None:
    page = show("gpt2")
    page.locator('g.target[data-block="norm1"]').focus()
    page.keyboard.press("ArrowUp")
    expect(page.locator(".panel h3")).to_have_text("Attention")
    page.keyboard.press("ArrowDown")
    page.wait_for_function("location.hash === '#block=norm1'")


def test_two_models_stand_side_by_side_with_what_differs_marked(show: Show) -> None:
    page = show("gpt2", "vit-b-16")
    expect(page.locator(".model figcaption strong")).to_have_text(["gpt2", "vit-b-16"])
    first, second = (page.locator(".model").nth(i) for i in (0, 1))
    assert first.bounding_box()["x"] + first.bounding_box()["width"] <= second.bounding_box()["x"]
    assert first.locator(".marked").count() == 4  # tokens, attention, MLP, head
    assert first.locator(".marked text", has_text="≠").count() == 4


def test_the_charts_read_the_step_and_the_length_that_are_pointed_at(show: Show) -> None:
    page = show("gpt2")
    config = NAMED["gpt2"].config
    second = envelope(config)[1]
    bars = page.locator(".js-plotly-plot .waterfalllayer .point path")
    expect(bars).to_have_count(len(envelope(config)) + 1)
    bars.nth(1).hover(force=True)  # the layer that pans lies over the bars
    hover = page.locator(".js-plotly-plot .hovertext")
    expect(hover).to_contain_text(f"{second.count:,}: ")
    expect(hover).to_contain_text("reached: ")
    chart = page.locator(CHARTS).first
    chart.scroll_into_view_if_needed()
    box = chart.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 200)
    tooltip = page.locator("#vg-tooltip-element.visible")
    tooltip.wait_for()
    rows = dict(row.split("\t") for row in tooltip.inner_text().replace("\t\n", "\t").split("\n") if "\t" in row)
    length = int(rows["tokens"].replace(",", ""))
    work = forward(config, length)
    assert rows["all"] == f"{sum(one.flops for one in work) / length:,.0f} operations a token"
    attention = sum(one.flops for one in work if one.quadratic) / length
    assert rows["attention, × length"].startswith(f"{attention:,.0f} · ")
