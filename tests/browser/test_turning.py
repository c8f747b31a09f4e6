"""Turning the page while an answer is on its way."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from tests.browser.harness import answered, settle

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = pytest.mark.long

ASK = "delay => { window.probe.request({size: Math.random(), delay}).catch(() => {}); }"
CLICK_AND_ASK = """wait => {
    const ask = () => window.probe.request({size: 2}).catch(() => {});
    document.querySelector('[data-testid="stTopNavLink"][href$="/other"]').click();
    if (wait < 0) ask();
    else setTimeout(ask, wait);
}"""
BACK_AND_ASK = """() => {
    addEventListener("popstate", () => window.probe.request({size: 3}).catch(() => {}), {once: true});
    history.back();
}"""


@pytest.fixture
def slow_page(app_server: Callable[[str], str], page: "Page") -> "Page":
    page.goto(app_server("turning"))
    page.wait_for_selector("text=the slow page")
    page.wait_for_selector("#probe")
    settle(page)
    return page


def other_page_stays(page: "Page") -> None:
    page.wait_for_selector("text=the other page", timeout=15000)
    # The server sees to one message after the other: what the old page may have sent is done with before this.
    assert page.evaluate("window.probe.request({size: 7}).then(one => one.size)") == 7
    answered(page)
    assert page.get_by_text("the other page").is_visible()
    assert page.locator("#probe").is_visible()


def test_a_page_turned_while_an_answer_is_slow_is_drawn(slow_page: "Page") -> None:
    slow_page.evaluate(ASK, 2)
    slow_page.wait_for_selector('[data-test-script-state="running"]')
    slow_page.get_by_role("link", name="Other").click()
    other_page_stays(slow_page)


@pytest.mark.parametrize("wait", [-1, 0, 5, 100])
def test_a_question_behind_the_click_does_not_empty_the_new_page(slow_page: "Page", wait: int) -> None:
    slow_page.evaluate(CLICK_AND_ASK, wait)
    other_page_stays(slow_page)


def test_a_question_behind_a_step_back_does_not_empty_the_page_before(slow_page: "Page") -> None:
    slow_page.get_by_role("link", name="Other").click()
    slow_page.wait_for_selector("text=the other page")
    slow_page.get_by_role("link", name="Slow").click()
    slow_page.wait_for_selector("text=the slow page")
    slow_page.wait_for_selector("#probe")
    settle(slow_page)
    slow_page.evaluate(BACK_AND_ASK)
    other_page_stays(slow_page)
