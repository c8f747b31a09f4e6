"""LTI 1.3 in a browser: a course of another site registers Loupe, a teacher chooses for it, a learner is graded."""

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.browser.harness import PATIENCE, UVICORN, choose, comes_to, expect, free_port, served
from tests.server.http.lti_platform import Platform, served_platform

if TYPE_CHECKING:
    from playwright.sync_api import Browser, FrameLocator, Page, Route

STEPS = '[{"page": "glossary"}]'
LESSON, CHOOSE = "From averaging to attention", "Choose"


def course(browser: "Browser", platform: Platform) -> "Page":
    """The course in a browser of somebody else."""
    context = browser.new_context()
    context.set_default_timeout(1000 * PATIENCE)
    page = context.new_page()
    page.goto(f"{platform.address}/course")
    return page


def follow(page: "Page", link: str) -> "FrameLocator":
    """The frame in which a link of the course opens."""
    page.get_by_role("button", name=link, exact=True).click()
    return page.frame_locator("iframe")


def answer(frame: "FrameLocator", number: str, said: str) -> None:
    frame.get_by_role("spinbutton").fill(number)
    frame.get_by_role("spinbutton").press("Tab")
    frame.get_by_role("button", name="Check").click()
    expect(frame.get_by_text(said)).to_be_visible()


@pytest.mark.long
def test_a_course_of_another_site_has_loupe_in_its_frame(
    browser: "Browser", tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    port, settings = free_port(), tmp_path / "lti.toml"
    monkeypatch.setenv("LOUPE_LTI", str(settings))
    monkeypatch.setenv("LOUPE_CLASSES", str(tmp_path / "classes.sqlite"))
    with served_platform("localhost") as platform:  # another site than 127.0.0.1
        settings.write_text(
            f'address = "http://127.0.0.1:{port}"\nplatforms = []\nmay_register = ["{platform.address}"]\n'
        )
        with served(UVICORN, "/health", tmp_path / "log", port) as platform.loupe:
            register(browser, platform)
            choose_links(browser, platform)
            learn(browser, platform)
            begin_anew(browser, platform)


def register(browser: "Browser", platform: Platform) -> None:
    """By one address, in a window that closes once Loupe says so."""
    page = browser.new_page()
    platform.answer = {"https://purl.imsglobal.org/spec/lti-tool-configuration": {"deployment_id": "7"}}
    page.goto(f"{platform.address}/registering")
    with page.expect_popup() as opened:
        page.get_by_role("button").click()
    comes_to(page, opened.value.is_closed, True)
    assert platform.tool["client_name"] == "Loupe"
    page.close()


def choose_links(browser: "Browser", platform: Platform) -> None:
    """A lesson, and a session that the teacher starts for it."""
    platform.links = {CHOOSE: platform.choosing()}
    page = course(browser, platform)
    for wanted in (LESSON, "Class session"):
        with page.expect_popup() as opened:
            follow(page, CHOOSE).get_by_role("link", name="Choose in Loupe").click()
        window = opened.value
        window.wait_for_url("**/teach?*")  # it begins as an empty one
        if wanted != LESSON:
            window.goto(f"{window.url}&steps={STEPS}")
            window.get_by_role("button", name="Start the session").click()
            code = window.locator(".st-key-class-head h1").inner_text().strip()
            wanted = f"Class session {code}"
        choose(window, "opens in the course", wanted)
        window.get_by_role("button", name="Place in the course").click()
        expect(page.frame_locator("iframe").get_by_text("Placed")).to_be_visible()
        assert list(platform.links)[-1] == wanted
        window.close()
    page.context.close()


def learn(browser: "Browser", platform: Platform) -> None:
    """In the frame, where the browser keeps cookies of another site; and what is refused there."""
    page = course(browser, platform)
    frame = follow(page, LESSON)
    answer(frame, "5", "You said 5; it is 0.311")
    frame.get_by_role("button", name="Try another one").click()
    answer(frame, "0.314", "Right: 0.314")
    comes_to(page, lambda: [body["scoreGiven"] for _address, _bearer, body in platform.heard], [0.0, 1.0])
    times = [body["timestamp"] for _address, _bearer, body in platform.heard]
    assert times == sorted(times) and all(re.fullmatch(r"[-\d]{10}T[:\d]{8}\.\d{3}\+00:00", one) for one in times)
    code = list(platform.links)[-1]
    expect(follow(page, code).get_by_role("textbox").first).to_have_value(code.rpartition(" ")[2])

    platform.links["Elsewhere"] = {"deployment_id": "8"}
    page.reload()
    expect(follow(page, "Elsewhere").get_by_text("a deployment that Loupe knows, got '8'")).to_be_visible()
    platform.slow = True
    again = follow(page, LESSON).get_by_role("button", name="Go on")
    again.wait_for()
    page.context.clear_cookies(name=re.compile("^loupe_lti_"))
    again.click()
    expect(page.frame_locator("iframe").get_by_text("began in this browser within ten minutes")).to_be_visible()
    platform.slow = False
    page.context.close()


def begin_anew(browser: "Browser", platform: Platform) -> None:
    """In a window, where the browser keeps no cookie of another site in a frame."""
    page = course(browser, platform)

    def forget(route: "Route") -> None:
        page.context.clear_cookies()
        route.continue_()

    page.route("**/lti/kept*", forget)
    with page.expect_popup() as opened:
        follow(page, LESSON).get_by_role("link", name="open it in a window of its own").click()
    expect(opened.value.get_by_role("heading", name=LESSON)).to_be_visible()
    page.context.close()
