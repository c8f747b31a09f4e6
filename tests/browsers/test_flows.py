"""What people do, in each of the browsers that Loupe is for: `make browsers`; `make test-long` does it in Chromium."""

import os
from collections.abc import Iterator

import pytest

from tests.browser.harness import addresses
from tests.browsers.driver import Visit, missing_packages, open_driver
from tests.conftest import REQUIRE_BROWSER

BROWSERS = [pytest.param("chromium", marks=pytest.mark.long)]
if os.environ.get("LOUPE_BROWSERS") == "all":
    BROWSERS += [pytest.param("firefox"), pytest.param("webkit")]

TEXT = "/attention?model=stories&text=Max+gave+the+red+ball+to+Anna."
CHOSEN = "(({query, key}) => `${query},${key}`)(all('.attention')[0].loupe.state)"


@pytest.fixture(scope="module", params=BROWSERS)
def visit(request: pytest.FixtureRequest, server: str) -> Iterator[Visit]:
    if lacking := missing_packages(request.param):
        pytest.fail(lacking) if REQUIRE_BROWSER else pytest.skip(lacking)
    with open_driver(request.param, lambda: request.getfixturevalue("playwright")) as driver:
        yield Visit(driver, server)


@pytest.fixture(params=["usual", "projector"])
def size(request: pytest.FixtureRequest, visit: Visit) -> Iterator[str]:
    """A page at its usual size, and as a projector shows it."""
    visit.open("/glossary")
    if request.param == "projector":
        visit.click("button.projector")
        visit.until("document.documentElement.hasAttribute('data-projector')")
    yield request.param
    if request.param == "projector":
        visit.driver.press("Escape")
        visit.until("document.documentElement.hasAttribute('data-projector')", False)


def test_every_page_opens_and_draws(visit: Visit) -> None:
    failed = "all('.loupe-sentence').map((one) => one.textContent).filter((said) => said.includes('could not be'))"
    for name in addresses():
        visit.open(f"/{name}")
        visit.until("all('[data-testid=stException]').length", 0)
        visit.until(failed, [])
        visit.until("all('.loupe-view').some((one) => one.getBoundingClientRect().height > 0)")


def test_what_is_typed_is_read(visit: Visit) -> None:
    visit.open("/walkthrough")
    visit.until("all('.walkthrough[data-ready]').length", 1)
    before = visit.ask("all('.walkthrough')[0].dataset.ready")
    visit.fill("[data-testid=stTextInput] input", "The cat sat on the mat")
    visit.until(f"all('.walkthrough')[0].dataset.ready !== {before!r}")
    read = "all('.walkthrough')[0].loupe.trace.pieces.join('').replaceAll('·', ' ').trim()"
    visit.until(read, "The cat sat on the mat")


def test_a_cell_that_is_pressed_is_the_one_that_is_chosen(visit: Visit, size: str) -> None:
    visit.open(TEXT)
    visit.until("all('.attention[data-ready]').length", 1)
    rows = visit.ask("all('.attention')[0].loupe.trace.length")
    for row, column in ((1, 0), (4, 3), (rows - 2, 1), (rows - 1, rows - 2)):
        visit.click(".room .cells canvas", at=((column + 0.5) / rows, (row + 0.5) / rows))
        visit.until(CHOSEN, f"{row},{column}")
        near = "((tip, [x, y]) => Math.abs(tip[0] - x) < 60 && Math.abs(tip[1] - y) < 60)"
        left, top, width, height = visit.box(".room .cells canvas")
        pointed = [left + (column + 0.5) / rows * width, top + (row + 0.5) / rows * height]
        visit.until(f"{near}(box(all('.tip:not([hidden])')[0]), {pointed})")


def test_a_curve_goes_to_the_step_that_is_pressed_and_follows_a_drag(visit: Visit, size: str) -> None:
    visit.open("/train")
    visit.until("all('.curves-plot')[0]?._fullLayout !== undefined")
    visit.until("all('.train[data-ready]').length", 1)
    visit.until("all('.train')[0].loupe.data.plan.seconds > 0")  # the last that comes by itself after a first start
    step = "all('.train')[0].loupe.shown"
    for wanted, parts in ((500, [(0.5, 0.3)]), (250, [(0.5, 0.3), (0.25, 0.3)])):
        visit.drag(".curves-plot .nsewdrag", parts)
        visit.until(f"Math.abs({step} - {wanted}) <= 20")
    zoomed = 1.3 if size == "projector" else 1
    scale = "all('.curves-plot')[0]._fullLayout._invScaleX"  # by which Plotly's hover goes
    visit.until(f"Math.abs({scale} * {zoomed} - 1) < 0.01")


def test_a_mask_is_painted_where_it_is_dragged(visit: Visit, size: str) -> None:
    visit.open(TEXT)
    visit.until("all('.attention[data-ready]').length", 1)
    visit.click("button", "What if …")
    visit.click("button", "Maskwho may see whom")
    rows = visit.ask("all('.attention')[0].loupe.trace.length")
    visit.drag(".mask canvas", [((column + 0.5) / rows, (rows - 0.5) / rows) for column in (1, 4)])
    visit.click("button", "Add")
    visit.until("all('.edit .words').length", 1)
    row = "(({trace, state}) => [...trace.row(`blocks.${state.layer}.attn.pattern`, trace.length - 1, state.head)])"
    visit.until(f"{row}(all('.attention')[0].loupe).flatMap((weight, key) => weight ? [] : [key])", [1, 2, 3, 4])


def test_a_token_of_home_is_looked_from(visit: Visit) -> None:
    visit.open("/")
    visit.until("all('.home-columns .piece.chosen').length", 1)
    visit.click(".home-columns .piece", nth=2)
    visit.until("all('.home-columns .piece').findIndex((one) => one.matches('.chosen'))", 2)
    visit.until("all('.home-columns .looks .number').length", 3)


def test_a_lesson_is_answered(visit: Visit) -> None:
    visit.open("/course?lesson=averaging")
    visit.fill(".st-key-experiment input[type=number]", "0.311")
    visit.click(".st-key-experiment button", "Check")
    visit.until("document.body.textContent.includes('Right: 0.311')")


def test_a_picture_and_a_class_link_are_taken_away(visit: Visit) -> None:
    visit.open(TEXT)
    visit.until("all('.attention[data-ready]').length", 1)
    visit.ask("(globalThis.saved = [], URL.createObjectURL = (blob) => (saved.push(blob.type), 'data:,'), 0)")
    visit.click("button.open")
    visit.click(".loupe-take button", "SVG")
    visit.until("saved.includes('image/svg+xml')")
    visit.click(".loupe-take button", "Copy class link")
    visit.until("/Copied the link for the class|no way to the clipboard/.test(all('.loupe-take')[0].textContent)")
    visit.until("all('.loupe-take input.made').some((one) => one.value.startsWith('http'))")


def test_a_training_is_played(visit: Visit) -> None:
    visit.open("/train")
    visit.until("all('.curves-plot')[0]?._fullLayout !== undefined")
    visit.click("button", "Play")
    visit.until("all('.train')[0].dataset.state", "running")
    visit.click("button", "Stop")
    visit.until("['stopped', 'finished'].includes(all('.train')[0].dataset.state)")
