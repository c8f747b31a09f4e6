"""A class with a teacher's browser and a learner's: joined, led to the step, answered, revealed, and known again."""

import re
from typing import TYPE_CHECKING

from playwright.sync_api import expect

from tests.browser.harness import PATIENCE, settle

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

READ = '{"model":"stories","text":"Once upon a time"}'
STEPS = f'[{{"page":"walkthrough","query":{READ},"kind":"next","sentence":"Guess."}},'
STEPS += f'{{"page":"attention","query":{READ},"kind":"words","sentence":"What do you see?"}}]'
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
    expect(teacher.get_by_role("button", name=re.compile("^[0-9]"))).to_have_count(2)  # each once
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
    expect(field).to_have_value("Once upon a time")  # the step's, and not what stood there before
    settle(learner)
    for page in (teacher, learner):
        page.context.close()
