"""A class with a teacher's browser and a learner's: joined, led to the step, answered, revealed, and known again."""

import json
import re
from typing import TYPE_CHECKING

from tests.browser.harness import PATIENCE, expect, settle

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

READ, CAT, DAY = ({"model": "stories", "text": text} for text in ("Once upon a time", "A cat ran", "One day"))
STEPS = json.dumps(
    [
        {"page": "walkthrough", "query": READ, "kind": "next", "sentence": "Guess."},
        {"page": "attention", "query": CAT, "kind": "words", "sentence": "What do you see?"},
        {"page": "attention", "query": DAY, "kind": "share", "sentence": "How sure?"},
        {"page": "attention", "query": READ, "kind": "hand in", "sentence": "Change something."},
    ]
)
BANNER = ".st-key-class-step"


def visitor(browser: "Browser", width: int) -> "Page":
    context = browser.new_context(viewport={"width": width, "height": 800})
    context.set_default_timeout(1000 * PATIENCE)
    return context.new_page()


def test_a_class_is_led_guesses_and_hears_what_is_right(browser: "Browser", server: str) -> None:
    teacher, learner = visitor(browser, 1280), visitor(browser, 390)
    teacher.goto(f"{server}/teach?steps={STEPS}")
    teacher.get_by_role("button", name="Start the session").click()
    code = teacher.locator(".st-key-class-head h1").inner_text().strip()
    expect(teacher.get_by_role("button", name=re.compile("^[0-9]"))).to_have_count(4)  # each once
    learner.goto(f"{server}/join?code={code}")
    learner.locator(".st-key-class-name input").fill("Ada")
    learner.locator(".st-key-class-name input").press("Tab")
    learner.get_by_role("button", name="Join", exact=True).click()
    learner.wait_for_url("**/walkthrough*")
    expect(learner.locator(BANNER)).to_contain_text("Guess.")
    picture = learner.locator(".st-key-walkthrough [data-testid^=stBidiComponent]").first
    expect(picture).to_have_css("filter", re.compile("blur"))  # it shows what is to be guessed
    learner.locator(BANNER).get_by_role("button", name="Answer").click()
    learner.get_by_role("radio").first.check(force=True)
    learner.get_by_role("button", name="Hand in").click()
    expect(teacher.get_by_text(re.compile("1.* of 1 handed in"))).to_be_visible()
    expect(learner.locator(BANNER)).to_contain_text("handed in: ")
    learner.reload()  # who comes back is who they were, and has handed in what they have
    expect(learner.locator(BANNER)).to_contain_text("handed in: ")
    teacher.get_by_role("button", name="Reveal").click()
    expect(learner.locator(BANNER)).to_contain_text(re.compile("right: |; it is "))
    expect(picture).to_have_css("filter", "none")
    field = learner.locator(".st-key-text").get_by_role("textbox").first
    field.fill("A dog")
    field.press("Tab")
    learner.wait_for_url("**text=A+dog*")
    teacher.get_by_role("button", name="Lock").click()
    expect(learner.locator(".st-key-model")).to_have_css("pointer-events", "none")
    teacher.get_by_role("button", name=re.compile("^2")).click()
    learner.wait_for_url("**/attention*")
    expect(learner.locator(BANNER)).to_contain_text("What do you see?")
    expect(field).to_have_value("A cat ran")  # the step's, and not what stood there before
    settle(learner)
    teacher.get_by_role("button", name=re.compile("^3")).click()
    expect(learner.locator(BANNER)).to_contain_text("How sure?")
    teacher.get_by_role("button", name="Unlock").click()
    expect(field).to_have_value("One day")
    learner.wait_for_url("**text=One+day*")  # a reload shows it too
    settle(learner)
    field.fill("A dog sat")
    field.press("Tab")
    learner.wait_for_url("**text=A+dog+sat*")
    settle(learner)
    learner.locator(BANNER).get_by_role("button", name="Answer").click()
    expect(learner.get_by_text("shows another text than the step")).to_be_visible()
    learner.get_by_role("spinbutton").last.fill("0.5")
    learner.get_by_role("spinbutton").last.press("Tab")
    learner.get_by_role("button", name="Hand in").click()
    expect(learner.locator(BANNER)).to_contain_text("it is about another text and does not count")
    expect(teacher.get_by_text("1 answer about another text")).to_be_visible()
    teacher.get_by_role("button", name=re.compile("^4")).click()
    expect(learner.locator(BANNER)).to_contain_text("Change something.")
    expect(field).to_have_value("Once upon a time")
    field.fill("The cat sat")
    field.press("Tab")
    learner.wait_for_url("**text=The+cat+sat*")
    settle(learner)
    learner.locator(BANNER).get_by_role("button", name="Answer").click()
    learner.get_by_role("button", name="Hand in").click()
    teacher.get_by_role("button", name="Ask to show").click()
    learner.get_by_role("button", name="Show it").click()
    teacher.get_by_role("button", name="Show to all").click()
    shown = teacher.frame_locator("iframe")
    expect(shown.locator(".st-key-text").get_by_role("textbox").first).to_have_value("The cat sat")
    expect(learner.locator(BANNER)).to_contain_text("From the class: The cat sat")
    teacher.get_by_text("Afterwards").click()
    close = teacher.get_by_role("button", name="Close the session")
    settle(teacher)
    close.press("Enter")  # what is above it is still being drawn, and moves it
    expect(close).to_be_disabled()
    expect(learner.get_by_text(f"The class {code} is over")).to_be_visible()
    learner.get_by_role("link", name="my answers").click()
    learner.get_by_test_id("stExpander").get_by_text(code, exact=True).first.click()
    expect(learner.get_by_text("it is about another text and does not count")).to_be_visible()
    for page in (teacher, learner):
        page.context.close()
