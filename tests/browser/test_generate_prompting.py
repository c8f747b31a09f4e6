"""The tabs Prompting and Surprise in a browser: asked, measured, taken away, and the numbers are the engine's."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

import pytest
from torch.nn import functional

from engine.analysis.surprise import surprise
from engine.generation import few_shot as prompting
from engine.generation.prompt import begin
from engine.runtime import library
from tests.browser.test_generate import FIND, told
from tests.browser.test_take import saved

if TYPE_CHECKING:
    from playwright.sync_api import Page

Open = Callable[[str], "Page"]
TEXT = "Max gave the red ball to Anna."


def test_a_few_shot_prompt_is_answered_measured_and_taken_away(open_page: Open, server: str, tmp_path: Path) -> None:
    page = open_page(f"{server}/generate#view=prompting&prompting=toString&p_table=reverse&p_k=2&p_seed=1e99&p_n=10")
    page.locator(".p-answer").wait_for()  # nonsense is passed over
    loaded, table = library.checkpoint("in-context"), prompting.tables()["reverse"]
    page.get_by_label("query", exact=True).fill(" carry ")
    page.get_by_label("query", exact=True).press("Enter")
    found = prompting.answer(loaded, table, 2, "carry", 0)
    page.wait_for_function(f"() => {FIND}.loupe.tab.part.found?.prompt === {found.prompt!r}")
    assert page.locator(".p-answer").inner_text() == found.written
    assert page.locator(".p-said").inner_text() == ("Right." if found.right else "Wrong: “yrrac” belongs there.")
    page.get_by_role("button", name="Measure", exact=True).click()
    page.get_by_role("button", name="Measure again").wait_for()
    wanted = [(one.k, one.n, one.share) for one in prompting.accuracy(loaded, table, seed=0, n=10)]
    assert told(page, "page.tab.part.accuracy.points.map(({k, n, share}) => [k, n, share])") == [
        [k, n, pytest.approx(share)] for k, n, share in wanted
    ]
    page.get_by_role("button", name="Share & export").click()
    assert page.get_by_label("which matrix").input_value() == "Prompting: answer"
    assert "in-context" in saved(page, "SVG", tmp_path).read_text(encoding="utf-8")


def test_an_instruction_is_followed_and_asking_can_be_stopped_and_begun_again(open_page: Open, server: str) -> None:
    page = open_page(f"{server}/generate#view=prompting&prompting=instructed")
    page.locator(".p-column .p-answer").nth(1).wait_for()
    assert page.locator(".p-column .p-answer").nth(1).inner_text() == "the black cat sleeps"
    page.get_by_role("button", name="Ask it 60 of them").click()
    page.locator(".p-pair").first.wait_for()
    page.locator(".p-measure .p-button").last.click()
    page.get_by_role("button", name="Measure again").last.wait_for()


def test_a_surprise_is_painted_as_computed_and_adds_up_to_the_loss_of_training(open_page: Open, server: str) -> None:
    page = open_page(f"{server}/generate?model=stories&text={quote(TEXT)}#view=surprise&surprise_at=-1")
    loaded = library.checkpoint("stories")
    found = surprise(loaded, begin(loaded, TEXT).ids)
    page.locator(".tok.surprising").first.wait_for()
    logs = told(page, "page.tab.tokens.map(({log}) => log)")
    assert logs == pytest.approx(found.log_probabilities.tolist(), abs=1e-5)
    tint = "(one) => parseInt(one.style.getPropertyValue('--tint'))"
    tints = page.locator(".tok.surprising").evaluate_all(f"(all) => all.map({tint})")
    assert tints.index(max(tints)) == int(found.log_probabilities.argmin()) == told(page, "page.tab.at")
    assert told(page, "page.tab.found.total") == pytest.approx(found.total, rel=1e-6)
    examples = found.examples[0]
    plain = functional.cross_entropy(loaded.model(examples.ids)[0], examples.targets[0], reduction="sum")
    assert told(page, "page.tab.found.training * page.tab.tokens.length") == pytest.approx(float(plain), rel=1e-6)
    last = len(found.ids) - 1
    page.locator(".s-addition .term").last.click()
    assert page.locator(".s-token .where").inner_text().startswith(f"token {last + 1} of {last + 1}")
    shown = float(page.locator(".s-addition .term").last.inner_text())
    assert shown == pytest.approx(-float(found.log_probabilities[last]), rel=1e-3)
