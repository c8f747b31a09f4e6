"""The tabs Prompting and Surprise in a browser: asked, measured, taken away, and the numbers are the engine's."""

import math
from collections.abc import Callable
from typing import TYPE_CHECKING
from urllib.parse import quote

import pytest
from torch.nn import functional

from engine.analysis.surprise import surprise
from engine.generation import few_shot as prompting
from engine.generation.prompt import begin
from engine.runtime import library
from tests.browser.test_generate import FIND, told

if TYPE_CHECKING:
    from playwright.sync_api import Page

Open = Callable[[str], "Page"]
TEXT = "Max gave the red ball to Anna."


def test_a_few_shot_prompt_is_answered_and_measured_and_a_row_is_asked(open_page: Open, server: str) -> None:
    page = open_page(f"{server}/generate#view=prompting&prompting=toString&p_table=reverse&p_k=2&p_seed=1e99&p_n=10")
    page.locator(".answer").wait_for()  # nonsense is passed over
    loaded, table = library.checkpoint("in-context"), prompting.tables()["reverse"]
    query = page.get_by_label("query", exact=True)
    query.fill("carry")
    query.press("Enter")
    found = prompting.answer(loaded, table, 2, "carry", 0)
    page.locator(".shots > div:last-child", has_text="carry:").wait_for()
    assert page.locator(".answer").inner_text() == found.written
    page.get_by_text("Right." if found.right else "Wrong: “yrrac” was expected.").wait_for()
    page.get_by_role("button", name="Measure", exact=True).click()
    page.get_by_role("button", name="Measure again").wait_for()
    page.get_by_role("button", name="Share & export").click()
    page.get_by_role("button", name="Copy lines").click()
    page.get_by_text("accuracy(checkpoint, table, (0, 1, 2, 4, 8), 0, n=10)").wait_for()


def test_an_instruction_is_followed_and_asking_can_be_stopped_and_begun_again(open_page: Open, server: str) -> None:
    page = open_page(f"{server}/generate#view=prompting&prompting=instructed")
    page.locator(".answer").nth(1).wait_for()
    assert page.locator(".answer").nth(1).inner_text() == "the black cat sleeps"
    page.get_by_role("button", name="Measure 60 of them").click()
    page.get_by_test_id("stMain").get_by_role("button", name="Stop", exact=True).click()  # Streamlit has one, too
    page.get_by_role("button", name="Measure again").wait_for()


def test_a_surprise_is_painted_as_computed_and_adds_up_to_the_loss_of_training(open_page: Open, server: str) -> None:
    page = open_page(f"{server}/generate?model=stories&text={quote(TEXT)}&view=surprise#surprise_at=-1")
    loaded = library.checkpoint("stories")
    found = surprise(loaded, begin(loaded, TEXT).ids)
    page.locator(".tok.surprising").first.wait_for()
    blind = f"{math.log2(loaded.config.vocab_size):.1f} bits or more"
    assert blind in page.locator(".s-text").inner_text()
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
    page.wait_for_function(f"() => {FIND}.loupe.data.looked === {FIND}.loupe.tab.at")  # the curve shows the same token
    page.locator(".s-addition .term").last.click()
    page.locator(".s-token .where", has_text=f"token {last + 1} of {last + 1}").wait_for()
    shown = float(page.locator(".s-addition .term").last.inner_text())
    assert shown == pytest.approx(-float(found.log_probabilities[last]), rel=1e-3)
