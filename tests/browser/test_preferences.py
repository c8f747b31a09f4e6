"""Learning from preferences in a browser: answers are ranked by keys, and a policy learns from them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from playwright.sync_api import expect

from tests.browser.harness import settle

if TYPE_CHECKING:
    from playwright.sync_api import Page


def test_answers_are_ranked_by_keys_and_a_policy_learns_from_them(
    open_page: Callable[..., Page], empty_server: str
) -> None:
    page = open_page(f"{empty_server}/adapt?way=Preferences&stage=Rank")
    page.get_by_role("button", name="Draw answers").click()
    progress = page.get_by_test_id("stProgress")
    pairs = page.get_by_text("Your pairs").locator("..")
    expect(progress).to_contain_text("1 of ")
    for key, asked, made in (("1", 2, 1), ("2", 3, 2), ("3", 4, 2), ("u", 3, 2), ("1", 4, 3)):
        page.keyboard.press(key)
        expect(progress).to_contain_text(f"{asked} of ")
        expect(pairs).to_contain_text(f"Your pairs {made}")
    settle(page)  # the label of the next part counts what is left, and another label is another part
    page.get_by_text("that are left by a rule").click()
    page.get_by_text("def happy_words(prompt: str, answer: str)").wait_for()
    page.get_by_role("button", name="Rank by this rule").press("Enter")  # it moves while the part opens
    page.get_by_text("All of these are ranked.").wait_for()
    page.reload()
    page.get_by_text("All of these are ranked.").wait_for()  # as it was left
    page.goto(f"{empty_server}/adapt?way=Preferences&stage=Policy&learner=DPO&pairs=mine")
    page.wait_for_selector(".train[data-state=finished]")  # the recorded run
    page.get_by_text("Answers to held-out prompts").wait_for()
    page.get_by_role("button", name="Play").click()
    page.wait_for_url("**run=stories+dpo*")
    page.wait_for_selector(".train[data-state=running]", timeout=60_000)
    beta = page.get_by_role("slider", name="β of this run, from its next step on")
    beta.wait_for()
    page.locator(".train").get_by_role("button", name="Stop").click()  # Streamlit has one of that name too
    page.wait_for_selector(".train[data-state=stopped]", timeout=60_000)
    settle(page)
    page.get_by_text("Before and after: what has changed of the base").click()
    page.get_by_text("How far the next token moved").wait_for()
    page.get_by_role("link", name="Compare stories with stories dpo").click()
    page.wait_for_selector(".compare[data-ready]")
    expect(page.get_by_label("model of B")).to_have_value("run: stories dpo")
