"""The views of one head side by side, of every run of a comparison: the engine's numbers, under one cursor."""

from collections.abc import Callable
from typing import TYPE_CHECKING
from urllib.parse import quote

import numpy as np
import pytest

from engine.analysis.circuits import top_outputs
from engine.analysis.points import head_points
from engine.inputs.readers import read_translation
from engine.runtime import library
from tests.browser.harness import answered, expect
from tests.browser.test_compare import FIRST, SECOND, root, state, traced
from tests.browser.test_take import saved

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Browser, Locator, Page

    from tests.conftest import Wire

pytestmark = pytest.mark.long

TABS = ["lines", "product", "steps", "text", "points", "circuits"]
LAYER, HEAD = 3, 3
BLOCK = "(({data, offset, rows, cols}) => data.subarray(offset, offset + rows * cols))(%s)"


@pytest.fixture
def look(open_page: Callable[[str], "Page"], stage: str) -> Callable[..., "Page"]:
    def open_(view: str, more: str = "", **query: str) -> "Page":
        named = {"a_text": FIRST, "b_text": SECOND, **query}
        said = "&".join(f"{name}={quote(value)}" for name, value in named.items())
        page = open_page(f"{stage}/compare?{said}#layer={LAYER}&head={HEAD}&view={view}{more}")
        for run in range(2):
            page.locator(f".run-of >> nth={run} >> .view-{view} > *").first.wait_for(state="attached")
        return page

    return open_


def run_of(page: "Page", number: int) -> "Locator":
    return page.locator(".run-of").nth(number)


def numbers(page: "Page", number: int, expression: str) -> np.ndarray:
    """`expression` of what the view of a run holds, as numbers."""
    view = run_of(page, number).locator(".view")
    return np.array(view.evaluate(f"e => Array.from({expression}, Number)"), float)


def text(number: int) -> str:
    return (FIRST, SECOND)[number]


def test_each_run_has_its_own_products_and_steps_and_the_same_cursor(look: Callable[..., "Page"]) -> None:
    page = look("product")
    page.locator(".product-sum").nth(1).wait_for()
    second = list(traced(SECOND).encoding.pieces)
    query, key = second.index("·Lily"), second.index("·ball")
    change = f"{{cursor: {{letter: 'B', row: {query}, col: {key}}}}}"
    root(page).evaluate(f"e => e.loupe.go({change})")
    for number in range(2):
        pieces = list(traced(text(number)).encoding.pieces)
        row, col = pieces.index(("·Anna", "·Lily")[number]), pieces.index("·ball")
        trace = traced(text(number))
        q, k = trace["blocks.3.attn.q"][0, row, HEAD], trace["blocks.3.attn.k"][0, col, HEAD]
        found = numbers(page, number, "e.loupe.found.chosen.products")
        np.testing.assert_allclose(found, (q.double() * k.double()).numpy(), rtol=1e-6)
    page.get_by_role("tab", name="Steps").click()
    page.locator(".ledger").nth(1).wait_for()
    for number in range(2):
        for i, part in ((1, "scores"), (3, "pattern")):
            found = numbers(page, number, BLOCK % f"e.loupe.list[{i}].block")
            expected = traced(text(number))[f"blocks.3.attn.{part}"][0, HEAD].double().flatten()
            np.testing.assert_array_equal(found, expected)
    assert [run_of(page, i).locator(".steps-title").inner_text() for i in (0, 1)] == [
        "·Anna reads ·ball",
        "·Lily reads ·ball",
    ]


def test_the_same_colour_is_the_same_number_in_every_run(look: Callable[..., "Page"]) -> None:
    page = look("steps")
    page.locator(".ledger").nth(1).wait_for()
    scores = [traced(text(i))["blocks.3.attn.scores"][0, HEAD].abs().flatten().sort().values for i in (0, 1)]
    own = [one[min(len(one) - 1, int(0.99 * len(one)))].item() for one in scores]  # 1 in 100 lies beyond
    legends = [run_of(page, i).locator('[data-step="scores"] .legend-text').inner_text() for i in (0, 1)]
    assert legends[0] == legends[1] and own[0] != pytest.approx(own[1], rel=0.02)
    assert float(legends[0].removeprefix("±").removesuffix(", 99th percentile")) == pytest.approx(max(own), rel=0.005)
    page.get_by_role("tab", name="Text").click()
    page.locator(".said-of").nth(1).wait_for()
    cursor = state(page)["cursor"]
    assert cursor["letter"] == "A"
    row = traced(FIRST)["blocks.3.attn.pattern"][0, HEAD, cursor["row"]]
    last = traced(SECOND)["blocks.3.attn.pattern"][0, HEAD, -1]
    assert cursor["row"] == len(row) - 1
    ends = [run_of(page, i).locator(".key-of").inner_text() for i in (0, 1)]
    assert ends[0] == ends[1] and f"{100 * max(row.max(), last.max()):.3g}" in ends[0]
    assert "same number in every run" in page.locator(".one-scale").inner_text()


def test_points_and_circuits_of_each_run_are_those_of_its_own_trace(look: Callable[..., "Page"]) -> None:
    page = look("points")
    page.locator(".points-axes", has_text="variance").nth(1).wait_for()
    sums = page.locator(".points-axes").all_inner_texts()
    for number, said in enumerate(sums):
        share = head_points(traced(text(number)), LAYER, HEAD).explained
        assert share is not None and f"{100 * share[0]:.1f}" in said
    page.get_by_role("tab", name="Circuits").click()
    page.locator(".promoted").nth(1).wait_for()
    model = library.checkpoint("stories").model
    pieces = library.checkpoint("stories").tokenizer.pieces
    for number in range(2):
        ids = list(dict.fromkeys(traced(text(number)).encoding.ids))
        best = [pieces[i] for i in top_outputs(model, LAYER, HEAD, ids, 1).tokens[:, 0].tolist()]
        rows = run_of(page, number).locator(".promoted-row")
        assert [rows.nth(i).locator(".candidate bdi").first.inner_text() for i in range(len(ids))] == best


def test_a_token_that_is_pointed_at_is_lit_in_the_other_run_and_heads_turn_without_the_server(
    look: Callable[..., "Page"], wire: "Wire"
) -> None:
    page = look("lines")
    sent = wire.reruns
    run_of(page, 0).locator(".of-query .lines-token", has_text="·Anna").hover()
    expect(run_of(page, 1).locator(".of-query .lit")).to_have_text("·Lily")
    expect(page.locator(".pointed")).to_contain_text("·Anna | ·Lily")
    run_of(page, 1).locator(".of-key .lines-token", has_text="·red").hover()
    expect(run_of(page, 0).locator(".of-key .lit")).to_have_text("·red")
    run_of(page, 1).locator(".of-key .lines-token", has_text="·small").hover()
    expect(page.locator(".pointed")).to_contain_text("no partner")
    run_of(page, 1).get_by_role("button", name="all heads of block 4").click()
    for i in (0, 1):
        expect(run_of(page, i).locator(".lines-head")).to_have_count(4)
    for key in ("]", "}", "[", "{"):
        page.locator("body").press(key)
    run_of(page, 1).locator(".of-query .lines-token", has_text="·small").click()
    expect(run_of(page, 0)).to_contain_text("No partner of ·small in A: the query here is ·the.")
    for run, weights in ((0, traced(FIRST)), (1, traced(SECOND))):
        drawn = numbers(page, run, "e.loupe.patterns().map(({block}) => block.data[block.offset + block.stride])")
        expected = sorted(weights["blocks.3.attn.pattern"][0, :, 1, 0].tolist())
        assert sorted(drawn) == expected
    assert wire.reruns == sent


def test_the_address_restores_the_tab_and_what_stands_in_it(look: Callable[..., "Page"]) -> None:
    page = look("text")
    run_of(page, 1).get_by_role("button", name="what looks at it").click()
    run_of(page, 1).get_by_role("button", name="mean of heads").click()
    page.wait_for_function("() => location.hash.includes('heads')")
    page.reload()
    page.locator(".view-text .said-of").nth(1).wait_for()
    assert state(page)["view"] == "text" and state(page)["cursor"]["letter"] == "B"
    assert state(page)["own"] == {"way": "in", "over": "heads"}
    for number in range(2):
        mean = traced(text(number))["blocks.3.attn.pattern"][0].double().mean(0)
        piece = traced(SECOND).encoding.pieces[state(page)["cursor"]["col"]]
        column = mean[:, list(traced(text(number)).encoding.pieces).index(piece)]
        assert f"{100 * column.max():.3g}" in run_of(page, number).locator(".said-of").inner_text()


def test_an_alignment_is_there_where_attention_crosses_and_says_elsewhere_why_not(look: Callable[..., "Page"]) -> None:
    texts = {"a_text": "She has a black dog.", "b_text": "My father has a red car."}
    page = look("alignment", "&layer=2&head=4", a_model="translate-en-fr", b_model="translate-en-fr", **texts)
    for number, given in enumerate(texts.values()):
        read = read_translation(library.checkpoint("translate-en-fr"), given, "", 256)
        assert read.target is not None
        expect(run_of(page, number).locator(".target-words bdi")).to_have_text(list(read.target.pieces))
    page.get_by_role("button", name="encoder self").click()
    tab = page.get_by_role("tab", name="Alignment")
    expect(tab).to_have_attribute("aria-disabled", "true")
    assert "cross-attention" in (tab.get_attribute("title") or "")
    page.locator(".maps canvas").first.wait_for()
    assert state(page)["view"] == "map"


@pytest.mark.parametrize("view", TABS)
def test_markup_and_a_run_alone_and_rubbish_in_the_address_harm_no_tab(look: Callable[..., "Page"], view: str) -> None:
    page = look(view, '&heads={"A":[[9,9],[0,0]],"B":7}&shows=[1]&at=["B",999,1]', a_text="<b>x</b>", b_text="x")
    answered(page)
    expect(run_of(page, 1).locator(".view > *")).not_to_have_count(0)
    assert root(page).locator("b b, img, script").count() == 0
    assert page.evaluate("() => document.documentElement.scrollWidth <= innerWidth")


def test_the_file_of_a_comparison_has_every_tab_without_a_network(
    look: Callable[..., "Page"], browser: "Browser", tmp_path: "Path"
) -> None:
    page = look("steps")
    page.get_by_role("button", name="Share & export").click()
    picture = saved(page, "SVG", tmp_path).read_text()
    assert "Compare: Steps" in picture and picture.count("weighted ") == 2  # behind it a link to a term
    path = saved(page, "HTML", tmp_path)
    assert path.stat().st_size < 5_000_000
    context = browser.new_context(offline=True, viewport={"width": 1280, "height": 900})
    alone, faults = context.new_page(), []
    alone.on("pageerror", lambda error: faults.append(str(error)))
    alone.goto(path.as_uri())
    alone.locator(".view-steps .ledger").nth(1).wait_for()
    alone.keyboard.press("{")
    shows = {"q·k": ".product-sum", "Points": ".points-axes", "Circuits": ".promoted", "Lines": "canvas"}
    for tab, shown in shows.items():
        alone.get_by_role("tab", name=tab).click()
        alone.locator(f".run-of {shown}").nth(1).wait_for()
        assert "no server" not in alone.locator(".beside-runs").inner_text(), tab
    alone.get_by_role("tab", name="Text").click()
    run_of(alone, 0).get_by_role("button", name="rollout").click()
    alone.locator(".said-of", has_text="This file has no server behind it").first.wait_for()
    context.close()
    assert not faults
