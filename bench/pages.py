"""The first open of every page by a browser that has nothing of it yet, against a page of Streamlit in one line."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from bench.paired import Row
from tests.browser.harness import FLAGS, UVICORN, addresses, browser_path, served

if TYPE_CHECKING:
    from playwright.sync_api import Browser

BARE = "import streamlit as st; st.write('One line.')"
SERVED = ["streamlit", "run", "{file}", "--server.port", "{port}", "--server.headless", "true"]
REACH = 1.3
ROUNDS = 3
LOOKED = 1500  # ms in which the views of a page are drawn that its script has mounted

# Milliseconds since the page was asked for, once its script is over and as many views as it has hold something.
DRAWN = """(views) => {
  const app = document.querySelector(
    '[data-testid="stApp"][data-test-script-state="notRunning"][data-test-connection-state="CONNECTED"]');
  if (!app?.querySelector('[data-testid="stMainBlockContainer"] [data-testid="stElementContainer"]')) return false;
  return %s >= views && performance.now();
}"""
VIEWS = """[...document.querySelectorAll('*')]
  .filter((e) => e.shadowRoot?.querySelector('.loupe-view')?.childElementCount).length"""


def rows() -> Iterator[Row]:
    executable = browser_path()
    if executable is None:
        return
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory() as place, sync_playwright() as playwright:
        folder = Path(place)
        (folder / "bare.py").write_text(BARE)
        command = [part.replace("{file}", str(folder / "bare.py")) for part in SERVED]
        with (
            served(UVICORN, "/health", folder / "ours") as ours,
            served(command, "/_stcore/health", folder / "theirs") as theirs,
        ):
            browser = playwright.chromium.launch(executable_path=executable, args=FLAGS)
            for name in addresses():
                yield measure_page(browser, name, f"{ours}/{name}", theirs)
            browser.close()


def measure_page(browser: Browser, name: str, ours: str, theirs: str) -> Row:
    views = count_views(browser, ours)  # which opens it for the server's first time too
    times = [(time_open(browser, ours, views), time_open(browser, theirs)) for _ in range(ROUNDS)]
    mine, other = zip(*times, strict=True)
    ratio = median(a / b for a, b in times)
    return Row(f"first open: {name}", median(mine), median(other), ratio, ROUNDS, REACH, f"{views} views")


def count_views(browser: Browser, address: str) -> int:
    page = browser.new_page()
    page.goto(address)
    page.wait_for_function(DRAWN % VIEWS, arg=0)
    page.wait_for_timeout(LOOKED)
    found = int(page.evaluate(VIEWS))
    page.close()
    return found


def time_open(browser: Browser, address: str, views: int = 0) -> float:
    """Seconds, in a browser that keeps nothing of another time."""
    context = browser.new_context(viewport={"width": 1440, "height": 950})
    page = context.new_page()
    page.goto(address, wait_until="commit")
    took = float(page.wait_for_function(DRAWN % VIEWS, arg=views, timeout=60_000).json_value())
    context.close()
    return took / 1e3
