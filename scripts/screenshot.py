"""Writes the pictures of README and docs/components.md: `python -m scripts.screenshot`, or `make screenshot`."""

import io
import os
import sys
import tempfile
from itertools import pairwise
from pathlib import Path

from PIL import Image, ImageDraw
from playwright.sync_api import Browser, FloatRect, Locator, Page, ViewportSize, sync_playwright

from tests.browser.harness import (
    BROWSERS,
    FLAGS,
    ROOT,
    UVICORN,
    answered,
    browser_path,
    served,
    settle,
    still,
    streamlit_run,
)

README = ROOT / "assets" / "readme"
COMPONENTS = ROOT / "docs" / "components"
FIGURES = ROOT / "tests" / "browser" / "apps" / "figures" / "app.py"
KINDS = ("matrix", "strip", "tokens", "heads", "bars")
TEXT = "The boy was tired, so he went to"  # one head, block 5, head 2, makes the difference between "bed" and "the"
HEAD = 'button[aria-label="block 5, head 2"]'
FILM: ViewportSize = {"width": 1200, "height": 750}
SHOWN = (960, 600)  # pixels of the film
STILLS: ViewportSize = {"width": 1140, "height": 900}
PART: ViewportSize = {"width": 1120, "height": 700}  # pixels of a page that a still shows
SMALL = (720, 450)  # pixels of the still
BELOW = "60px"  # of the bar at the top of a page
ARROW = ((0, 0), (0, 17), (4, 13), (7, 20), (10, 19), (7, 12), (12, 12))
QUALITY = 75


def main() -> int:
    executable = browser_path()
    if executable is None:
        print(f"expected one of {', '.join(BROWSERS)} on the PATH, found none; install one", file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory() as folder:
        os.environ |= {"LOUPE_RUNS": f"{folder}/runs", "LOUPE_MODELS": f"{folder}/models"}  # as a new visitor finds it
        with (
            served(UVICORN, "/health", Path(folder) / "log") as address,
            served(streamlit_run(FIGURES), "/_stcore/health", Path(folder) / "figures log") as figures,
            sync_playwright() as playwright,
        ):
            browser = playwright.chromium.launch(executable_path=executable, args=FLAGS)
            README.mkdir(exist_ok=True)
            take_film(browser, address)
            take_stills(browser, address)
            take_components(browser, figures)
            browser.close()
    for path in sorted(README.iterdir()):
        print(f"{path.relative_to(ROOT)}: {path.stat().st_size} bytes")
    return 0


class Film:
    """Screenshots of a page, with a pointer that moves between what is clicked, and how long each is shown."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.at = (FILM["width"] * 0.6, FILM["height"] * 0.6)
        self.frames: list[Image.Image] = []
        self.lasting: list[int] = []  # ms

    def keep(self, lasting: int) -> None:
        picture = Image.open(io.BytesIO(self.page.screenshot(animations="disabled"))).convert("RGB")
        corners = [(self.at[0] + x, self.at[1] + y) for x, y in ARROW]
        ImageDraw.Draw(picture).polygon(corners, fill="black", outline="white")
        self.frames.append(picture.resize(SHOWN, Image.Resampling.LANCZOS))
        self.lasting.append(lasting)

    def click(self, place: Locator) -> None:
        """Moves there in five frames."""
        place.scroll_into_view_if_needed()
        box = place.bounding_box()
        assert box is not None
        (x, y), there = self.at, (box["x"] + min(box["width"] / 2, 150), box["y"] + box["height"] / 2)
        for part in (0.3, 0.6, 0.85, 0.97, 1.0):
            self.at = (x + part * (there[0] - x), y + part * (there[1] - y))
            self.page.mouse.move(*self.at)
            self.keep(60)
        self.lasting[-1] = 200
        self.page.mouse.click(*self.at)

    def calm(self, lasting: int) -> None:
        """The page once it has answered."""
        answered(self.page)
        still(self.page)
        self.keep(lasting)

    def save(self, path: Path) -> None:
        first, *others = self.frames
        first.save(path, save_all=True, append_images=others, duration=self.lasting, loop=0, quality=QUALITY, method=6)
        print(f"{path.name}: {sum(self.lasting) / 1000:.1f} s, {len(self.frames)} frames")


def take_film(browser: Browser, address: str) -> None:
    """A text is typed, a head looked at, and silenced."""
    page = browser.new_page(viewport=FILM, color_scheme="light")
    page.goto(f"{address}/walkthrough")
    page.locator("[data-ready]").first.wait_for()
    film = Film(page)
    film.calm(500)
    text = page.get_by_label("text", exact=True)
    film.click(text)
    text.select_text()
    film.keep(200)
    for before, after in pairwise([*range(0, len(TEXT), 2), len(TEXT)]):
        page.keyboard.type(TEXT[before:after])
        film.keep(80)
    page.keyboard.press("Enter")
    page.locator(".walkthrough").get_by_text("·tired").first.wait_for()
    film.calm(1500)
    film.click(page.get_by_test_id("stTopNavSection").filter(has_text="Explore"))
    attention = page.get_by_test_id("stTopNavDropdownLink").filter(has_text="Attention")
    attention.wait_for()
    film.calm(200)
    film.click(attention)
    page.locator(".attention[data-ready]").wait_for()
    film.calm(800)
    film.click(page.locator(HEAD))
    film.calm(1300)
    film.click(page.get_by_role("button", name="What if …"))
    silence = page.get_by_role("button", name="Silence heads")
    silence.wait_for()
    film.calm(400)
    film.click(silence)
    add = page.get_by_role("button", name="Add", exact=True)
    add.wait_for()
    film.calm(400)
    film.click(add)
    page.locator(".effects .candidates").wait_for()
    film.calm(2200)
    film.save(README / "loupe.webp")
    page.close()


def take_stills(browser: Browser, address: str) -> None:
    """One picture for each thing that README says one can do, from the corner of what it is about."""
    page = browser.new_page(viewport=STILLS, color_scheme="light")

    def take(name: str, corner: Locator) -> None:
        corner.wait_for()
        answered(page)
        still(page)
        page.mouse.move(0, 0)
        corner.evaluate("(one, below) => { one.style.scrollMarginTop = below; one.scrollIntoView(); }", BELOW)
        box = corner.bounding_box()
        assert box is not None
        left, top = (max(0.0, box[side] - 10) for side in ("x", "y"))
        top = min(top, STILLS["height"] - PART["height"])
        clip: FloatRect = {"x": left, "y": top, "width": PART["width"], "height": PART["height"]}
        picture = page.screenshot(animations="disabled", clip=clip)
        small = Image.open(io.BytesIO(picture)).convert("RGB").resize(SMALL, Image.Resampling.LANCZOS)
        small.save(README / f"{name}.webp", quality=QUALITY, method=6)

    page.goto(f"{address}/attention?text={TEXT}")
    page.locator(HEAD).click()
    take("look", page.locator(".attention"))
    page.get_by_role("button", name="What if …").click()
    page.get_by_role("button", name="Silence heads").click()
    page.get_by_role("button", name="Add", exact=True).click()
    page.locator(".effects .candidates").wait_for()
    take("change", page.locator(".experiment"))
    page.goto(f"{address}/train")
    plot = page.locator(".curves-plot .nsewdrag").first
    plot.wait_for()
    box = plot.bounding_box()
    assert box is not None
    page.mouse.click(box["x"] + 0.25 * box["width"], box["y"] + 0.3 * box["height"])
    take("train", page.locator(".train"))
    page.goto(f"{address}/checkpoint")
    take("open", page.get_by_role("heading", name="everyday"))
    page.goto(f"{address}/why_token?text={TEXT}")
    take("why", page.get_by_text("What each part adds to the logit"))
    page.goto(f"{address}/course?lesson=query_key_value")
    take("teach", page.locator(".st-key-experiment"))
    page.close()


def take_components(browser: Browser, address: str) -> None:
    """One picture of each kind, and of a question that was answered."""
    page = browser.new_page(viewport={"width": 1280, "height": 1400}, color_scheme="light")
    page.goto(address)
    page.locator(".figure.bars .bar-row").first.wait_for()
    settle(page)
    page.get_by_role("radio", name="gave").or_(page.get_by_role("button", name="gave")).last.click()
    page.get_by_role("button", name="Check").first.click()
    page.get_by_text("You said").or_(page.get_by_text("Right:")).wait_for()
    settle(page)
    COMPONENTS.mkdir(exist_ok=True)
    for kind in KINDS:
        page.locator(f".figure.{kind}").screenshot(path=COMPONENTS / f"{kind}.png", animations="disabled")
    page.locator(".st-key-most-question").screenshot(path=COMPONENTS / "question.png", animations="disabled")


if __name__ == "__main__":
    sys.exit(main())
