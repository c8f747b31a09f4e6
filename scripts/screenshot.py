"""Writes the pictures of README and docs/components.md: `python -m scripts.screenshot`, or `make screenshot`."""

import sys
import tempfile
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

from tests.browser.harness import BROWSERS, FLAGS, ROOT, UVICORN, browser_path, served, settle, streamlit_run

PICTURE = ROOT / "assets" / "readme" / "walkthrough.png"
COMPONENTS = ROOT / "docs" / "components"
FIGURES = ROOT / "tests" / "browser" / "apps" / "figures" / "app.py"
KINDS = ("matrix", "strip", "tokens", "heads", "bars")
LARGEST = 400_000  # bytes: it travels with every clone


def main() -> int:
    executable = browser_path()
    if executable is None:
        print(f"expected one of {', '.join(BROWSERS)} on the PATH, found none; install one", file=sys.stderr)
        return 1
    with (
        tempfile.TemporaryDirectory() as folder,
        served(UVICORN, "/health", Path(folder) / "log") as address,
        served(streamlit_run(FIGURES), "/_stcore/health", Path(folder) / "figures log") as figures,
        sync_playwright() as playwright,
    ):
        browser = playwright.chromium.launch(executable_path=executable, args=FLAGS)
        page = browser.new_page(viewport={"width": 1440, "height": 950}, color_scheme="light")
        page.goto(f"{address}/walkthrough")
        page.wait_for_selector('[data-ready]')
        settle(page)
        picture = page.screenshot(animations="disabled")
        take_components(browser, figures)
        browser.close()
    if len(picture) > LARGEST:
        print(f"expected at most {LARGEST} bytes, got {len(picture)}; nothing was written", file=sys.stderr)
        return 1
    PICTURE.parent.mkdir(exist_ok=True)
    PICTURE.write_bytes(picture)
    print(f"{PICTURE.relative_to(ROOT)}: {len(picture)} bytes")
    return 0


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
