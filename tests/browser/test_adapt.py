"""The page Adapt in a real browser: a checkpoint is taken further, and what has changed of it is measured."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from tests.browser.harness import choose, expect, settle

if TYPE_CHECKING:
    from playwright.sync_api import Page


def test_a_head_learns_on_a_body_that_stays_and_both_are_compared(
    open_page: "Callable[..., Page]", empty_server: str
) -> None:
    page = open_page(f"{empty_server}/checkpoint?model=stories-bert")
    page.get_by_role("link", name="Fine-tune this").click()
    page.wait_for_url("**/adapt*")
    page.wait_for_selector(".lab[data-state=finished]")  # the recorded run
    expect(page.get_by_role("combobox", name="base", exact=True)).to_have_value("stories-bert")
    choose(page, "what learns", "the head alone")
    page.get_by_role("button", name="Play").click()
    page.wait_for_url("**run=stories-bert+sentiment*")
    ended = page.locator("[data-testid=stDataFrame] [role=gridcell]").get_by_text("finished", exact=True)
    ended.wait_for(state="attached", timeout=120_000)  # the table has heard of it, and draws the page once more
    page.wait_for_selector(".lab[data-state=finished]")
    settle(page)
    page.get_by_text("Before and after: what has changed of the base").click()
    page.get_by_text("71 taken over, 2 new (head.weight, head.bias), 7 left behind").wait_for()
    expect(page.get_by_text("its held-out loss under its own head was")).to_contain_text("+0.0000 nats")
    page.get_by_text("No matrix of the blocks has changed: only the head learns.").wait_for()
    page.get_by_role("link", name="Compare stories-bert with stories-bert sentiment").click()
    page.wait_for_selector(".compare[data-ready]")
    expect(page.get_by_label("model of B")).to_have_value("run: stories-bert sentiment")
