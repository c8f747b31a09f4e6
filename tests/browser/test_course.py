"""The course in a browser: from the home page through every lesson by its keys, on a projector and on a phone."""

import re
from typing import TYPE_CHECKING

import pytest

from pages.controls.learn import course
from pages.controls.words import CATALOGUE, LANG, messages, parse_text
from tests.browser.harness import answered, comes_to, expect, settle
from tests.browser.test_access import AXE, FIND

if TYPE_CHECKING:
    from playwright.sync_api import Page

TITLE = ".st-key-lesson-head h3"
KEYS = ".learn-keys"  # which are heard from now on
ASKED = ".st-key-experiment [class*=question-question] >> nth=0"  # what the lesson asks, before its views
VIEWS = '.st-key-experiment [class*="-view"] [role=radio]'  # of a lesson
# Charts that have no place to be read in, or are not drawn yet.
FLAT = """() => Array.from(
  document.querySelectorAll(".st-key-experiment :is([data-testid=stVegaLiteChart], [data-testid=stPlotlyChart])"),
  (chart) => chart.querySelector("svg, canvas")?.getBoundingClientRect().height ?? 0,
).filter((height) => height < 150)"""
MOST_TABS = 150
SIZE = {"width": 1280, "height": 720}


@pytest.mark.long
def test_the_course_is_walked_by_its_keys_and_every_lesson_fits_a_laptop_and_a_phone(page: "Page", server: str) -> None:
    page.set_viewport_size(SIZE)
    page.goto(server)
    page.evaluate("() => localStorage.clear()")  # another test in this browser may have answered a question
    lessons = course.lessons()
    page.goto(f"{server}/course?lesson={lessons[0].name}")
    for at, lesson in enumerate(lessons):
        expect(page.locator(TITLE)).to_contain_text(lesson.title)
        page.wait_for_url(f"**lesson={lesson.name}*")
        settle(page)
        if not at:
            page.evaluate(AXE.read_text(encoding="utf-8"))
        assert page.evaluate(FIND, None) == [], lesson.name
        show = page.locator(ASKED).get_by_role("button", name="Show me")
        show.click()
        expect(show).to_have_count(0)
        expect(page.locator(TITLE)).not_to_contain_text("check_circle")  # it was shown and not found
        settle(page)
        for view in range(page.locator(VIEWS).count()):
            page.locator(VIEWS).nth(view).click()
            expect(page.locator(VIEWS).nth(view)).to_be_checked()
            answered(page)  # what a view asks just now may reach the server in place of the next press
            assert page.get_by_test_id("stException").count() == 0
            comes_to(page, lambda: page.evaluate(FLAT), [])
        page.set_viewport_size({"width": 390, "height": 844})
        assert page.evaluate("() => document.documentElement.scrollWidth <= innerWidth"), lesson.name
        page.set_viewport_size(SIZE)
        if at + 1 < len(lessons):
            page.locator(TITLE).click()
            page.keyboard.press("ArrowRight")
    page.locator(TITLE).click()
    page.keyboard.press("ArrowLeft")
    expect(page.locator(TITLE)).to_contain_text(lessons[-2].title)
    page.goto(f"{server}/course?lesson=residual")
    page.get_by_test_id("stButtonGroup").get_by_text("block 1", exact=True).click()
    page.get_by_role("button", name="Check").click()
    expect(page.locator(TITLE)).to_contain_text("check_circle")
    page.wait_for_function("localStorage.getItem('loupe.course')?.includes('residual')")
    page.goto(f"{server}/course")  # the browser knows what is done
    page.get_by_text("1 done").wait_for()


@pytest.mark.long
def test_the_whole_course_is_walked_by_keyboard_in_french(page: "Page", server: str) -> None:
    page.set_viewport_size(SIZE)
    names = course.names()
    lessons = [parse_text(course.LESSONS / name / f"{LANG}.md", "fr")[0] | {"name": name} for name in names]
    said = messages(CATALOGUE, "fr")
    page.goto(f"{server}/course?lang=fr&lesson={lessons[0]['name']}")
    page.locator(KEYS).wait_for(state="attached")
    for at, lesson in enumerate(lessons):
        expect(page.locator(TITLE)).to_contain_text(lesson["title"])
        settle(page)
        focus_by_tab(page, str(said["Show me"]))
        page.keyboard.press("Enter")
        expect(page.locator(ASKED).get_by_role("button", name=str(said["Show me"]))).to_have_count(0)
        settle(page)
        assert page.get_by_test_id("stException").count() == 0
        focus_by_tab(page, str(said["For teachers"]))
        page.keyboard.press("Enter")
        expect(page.get_by_text("Idée fausse")).to_be_visible()
        if at + 1 < len(lessons):
            page.evaluate("document.activeElement.blur()")  # as Escape leaves a field
            page.keyboard.press("ArrowRight")
            page.wait_for_url(f"**lesson={lessons[at + 1]['name']}*")
    assert page.url.count("lang=fr") == 1


def focus_by_tab(page: "Page", name: str) -> None:
    """Goes on by the key Tab until it is on what is called so: not on the page itself, which ends with that."""
    for _ in range(MOST_TABS):
        page.keyboard.press("Tab")
        if page.evaluate("() => document.activeElement?.closest('button, summary')?.innerText ?? ''").endswith(name):
            return
    raise AssertionError(f"no {name} within {MOST_TABS} tabs")


def test_a_term_in_a_title_leads_to_its_meaning(page: "Page", server: str) -> None:
    page.goto(f"{server}/walkthrough")
    term = page.locator(".about > strong > a.glossary")  # of the stage in focus
    expect(term).to_have_attribute("href", re.compile("/glossary.term="))
    stage = page.locator(".stage-head button", has_text="MLP").first
    expect(stage).to_have_attribute("title", re.compile("open MLP.*\n."))
    stage.hover()
    expect(term).to_have_text("MLP")
    expect(term).to_have_attribute("title", re.compile("."))
    term.focus()
    with page.context.expect_page() as opened:
        page.keyboard.press("Enter")
    expect(opened.value.get_by_role("combobox")).to_have_value(re.compile("."))


def test_an_arrow_stands_whatever_is_said_before_the_server_has_heard_of_it(page: "Page", server: str) -> None:
    page.set_viewport_size(SIZE)
    first, second, third = course.lessons()[:3]
    page.goto(f"{server}/course?lesson={first.name}")
    page.locator(KEYS).wait_for(state="attached")
    settle(page)
    # Of one moment: the arrow, and a control of the lesson that is still shown, whose message has the address with it.
    page.evaluate("""() => {
      document.body.dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowRight", bubbles: true }));
      document.querySelector(".st-key-experiment button").click(); }""")
    expect(page.locator(TITLE)).to_contain_text(second.title)
    page.locator(".st-key-lesson-next a").first.click()
    expect(page.locator(TITLE)).to_contain_text(third.title)


def test_enter_answers_and_the_projector_shows_the_lesson_alone(page: "Page", server: str) -> None:
    page.set_viewport_size(SIZE)
    page.goto(f"{server}/course?lesson=averaging&large=1")
    page.get_by_role("radio", name="own numbers").click()
    page.get_by_label("x, one row a token").wait_for()
    settle(page)
    field = page.locator(".st-key-experiment input[type=number]")
    field.fill("1.667")
    field.press("Tab")
    expect(page.get_by_role("button", name="Check")).to_be_enabled()
    page.locator(TITLE).click()
    page.keyboard.press("Enter")
    page.get_by_text("Right: 1.667").wait_for()
    expect(page.locator('[class*="question-answer"] [data-testid="stAlertContainer"]')).to_be_focused()
    page.get_by_role("radio", name="a matrix").click()
    weights = page.locator(".figure", has=page.get_by_label("weights, pos key")).locator(".numbers span")
    expect(weights).to_have_text(["1", "0", "0", "0.5", "0.5", "0", "?", *["0.33"] * 2])
    assert not page.get_by_test_id("stHeader").is_visible()
    page.get_by_role("button", name="leave").click()
    expect(page.get_by_test_id("stHeader")).to_be_visible()


def test_a_query_is_dragged_and_its_weights_follow(page: "Page", server: str) -> None:
    page.set_viewport_size(SIZE)
    page.goto(f"{server}/course?lesson=query_key_value")
    page.get_by_role("radio", name="own numbers").click()
    page.get_by_label("keys, x and y of each").wait_for()
    settle(page)
    page.get_by_role("button", name="Show me").click()
    plane = page.locator(".plane svg:not(.covered)")
    settle(page)
    plane.hover()  # which waits until nothing above pushes it down any more
    box = plane.bounding_box()
    assert box
    before = page.get_by_text("out = Σ").inner_text()
    page.mouse.move(box["x"] + box["width"] * 0.7, box["y"] + box["height"] * 0.3)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.2, box["y"] + box["height"] * 0.7, steps=5)
    page.mouse.up()
    comes_to(page, lambda: page.get_by_text("out = Σ").inner_text() != before, True)
    expect(plane).to_have_attribute("aria-label", "query at -1.80, -1.20")


def test_a_word_gathers_and_a_token_walks_through_the_block_by_the_arrow_keys(page: "Page", server: str) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(f"{server}/course?lesson=query_key_value")
    question = page.locator(ASKED)
    question.get_by_role("button", name="Show me").click()
    arrows = page.locator(".arrows svg")
    before = page.locator(".arrows .told").inner_text()
    arrows.press("ArrowLeft")
    expect(page.locator(".arrows .told")).to_have_text(re.compile(r"^dog: \("))
    assert before.startswith("and: (") and "dog" in str(arrows.get_attribute("aria-label"))
    text = page.get_by_text("Think of a filing cabinet")
    boxes = [one.bounding_box() for one in (question, arrows, text)]
    assert [box and box["y"] for box in boxes] == sorted(
        box["y"] for box in boxes if box
    )  # a phone asks before it tells
    page.goto(f"{server}/course?lesson=block")
    figure, title = page.locator(".block-figure svg.whole"), page.locator(".block-figure .title strong")
    expect(title).to_have_text("add")
    for name in ("norm", "MLP", "add", "last norm", "next token"):
        figure.press("ArrowRight")
        expect(title).to_have_text(name)
    expect(figure).to_be_focused()


def test_start_here_leads_through_eight_stages_by_the_readers_own_clicks(page: "Page", server: str) -> None:
    page.goto(f"{server}/walkthrough?model=stories")
    page.wait_for_selector(".walkthrough[data-ready]")
    expect(page.locator(".tour-text")).to_contain_text("one run of a trained model")
    page.get_by_role("button", name="Start here").click()
    clicks = (".token", *[".stage-head button"] * 6, "[data-index]")
    for number, place in enumerate(clicks, 1):
        expect(page.locator(".tour-text")).to_contain_text(f"{number} of {len(clicks)}")
        page.locator(f".tour-next {place}").first.click()
    expect(page.locator(".tour-text")).to_contain_text("That was the whole way")
    opened = page.locator(".walkthrough").evaluate("e => [...e.loupe.state.open].sort()")
    assert opened == ["attention", "embed", "mlp", "out", "q", "z"]
    page.get_by_role("button", name="Close").click()
    expect(page.locator(".tour")).to_have_class("tour quiet")
