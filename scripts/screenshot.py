"""Writes the README's picture: `python -m scripts.screenshot`, or `make screenshot`."""

import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

from tests.browser.harness import BROWSERS, FLAGS, ROOT, UVICORN, browser_path, served, settle

PICTURE = ROOT / "assets" / "readme" / "walkthrough.png"
LARGEST = 400_000  # bytes: it travels with every clone


def main() -> int:
    executable = browser_path()
    if executable is None:
        print(f"expected one of {', '.join(BROWSERS)} on the PATH, found none; install one", file=sys.stderr)
        return 1
    with (
        tempfile.TemporaryDirectory() as folder,
        served(UVICORN, "/health", Path(folder) / "log") as address,
        sync_playwright() as playwright,
    ):
        browser = playwright.chromium.launch(executable_path=executable, args=FLAGS)
        page = browser.new_page(viewport={"width": 1440, "height": 950}, color_scheme="light")
        page.goto(f"{address}/walkthrough")
        page.wait_for_selector('[data-ready]')
        settle(page)
        picture = page.screenshot(animations="disabled")
        browser.close()
    if len(picture) > LARGEST:
        print(f"expected at most {LARGEST} bytes, got {len(picture)}; nothing was written", file=sys.stderr)
        return 1
    PICTURE.parent.mkdir(exist_ok=True)
    PICTURE.write_bytes(picture)
    print(f"{PICTURE.relative_to(ROOT)}: {len(picture)} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
