"""The page Train in a real browser: from Play to the first live points, and the walkthrough beside two trainings."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from statistics import median, quantiles
from time import monotonic, sleep
from typing import TYPE_CHECKING
from unittest.mock import patch
from urllib.parse import quote

from bench.browser import CLOCK, TEXTS, changed, texts
from engine.training.launch.processes import Processes
from engine.training.recipe.recipe_file import read_recipe
from engine.training.run import control
from engine.training.run.status import read_status
from tests.browser.harness import FLAGS, ROOT, UVICORN, browser_path, served, settle

if TYPE_CHECKING:
    from playwright.sync_api import Page

PRESET = "induction"
FIRST_REACH = 3.0  # seconds
BESIDE_REACH = 2.0  # times the idle page's
STEPS = 100_000  # so that a training does not end while the page is measured
PATIENCE = 60.0  # seconds until a training must have begun

READY = "[...document.querySelectorAll('*')].some((e) => e.shadowRoot?.querySelector('.train')?.loupe)"
# The two first live points are what a curve begins with.
PLAYED = """() => new Promise((done) => {
  const find = () => [...document.querySelectorAll('*')]
    .map((e) => e.shadowRoot?.querySelector('.train')).find(Boolean);
  const begun = performance.now();
  [...find().querySelectorAll('button')].find((button) => button.textContent.trim() === 'Play').click();
  const look = () => { const view = find()?.loupe;
    if (view?.run && view.metrics.length > 1) requestAnimationFrame(() => done((performance.now() - begun) / 1000));
    else requestAnimationFrame(look); };
  look();
})"""


def played(page: Page, address: str) -> float:
    """Seconds."""
    page.goto(f"{address}/train?task={PRESET}")
    page.wait_for_function(READY)
    settle(page)
    page.wait_for_timeout(5000)  # the sizes and the speed of this machine are found beside the page
    return float(page.evaluate(PLAYED))


def walked(page: Page, address: str, first: int) -> list[float]:
    """Milliseconds of each change of the walkthrough's text, whose last tokens are those from `first` on."""
    page.goto(f"{address}/walkthrough?model=stories&text={quote(TEXTS[0])}")
    page.wait_for_selector(".walkthrough[data-ready]")
    settle(page)
    return [changed(page, text)["whole"] for text in texts(first)][3:]


@contextmanager
def trainings(count: int, runs: Path) -> Iterator[None]:
    """Keeps `count` trainings running, each at step 10 or later."""
    recipe = read_recipe(ROOT / "assets" / "lab" / f"{PRESET}.toml")
    long = replace(recipe, schedule=replace(recipe.schedule, steps=STEPS))
    folders = [Processes(runs).start(long, f"beside {number}") for number in range(count)]
    until = monotonic() + PATIENCE
    while any((status := read_status(folder / "status.json")) is None or status.step < 10 for folder in folders):
        if monotonic() > until:
            raise RuntimeError(f"expected {count} trainings to begin within {PATIENCE:g} s, and they have not.")
        sleep(0.2)
    try:
        yield
    finally:
        for folder in folders:
            control.stop(folder)


def lines() -> Iterator[str]:
    executable = browser_path()
    if executable is None:
        yield "live training: no browser found, not measured"
        return
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder, sync_playwright() as playwright:
        runs = Path(folder) / "runs"
        with patch.dict(os.environ, LOUPE_RUNS=str(runs)), served(UVICORN, "/health", Path(folder) / "log") as address:
            browser = playwright.chromium.launch(executable_path=executable, args=FLAGS)
            page = browser.new_page(viewport={"width": 1440, "height": 950})
            page.add_init_script(CLOCK)
            alone = walked(page, address, 300)
            with trainings(2, runs):
                beside = walked(page, address, 600)
            sleep(3)  # until they have stopped
            first = played(page, address)
            browser.close()
    idle, busy = (quantiles(times, n=20)[-1] for times in (alone, beside))
    yield (
        f"the walkthrough's text change beside two trainings: p95 {busy:.0f} ms, alone {idle:.0f} ms, ratio "
        f"{busy / idle:.2f} (reach < {BESIDE_REACH:g} {'yes' if busy < BESIDE_REACH * idle else 'NO'}); "
        f"medians {median(beside):.0f} and {median(alone):.0f} ms"
    )
    yield (
        f"from Play to the first live points ({PRESET}): {first:.1f} s "
        f"(reach < {FIRST_REACH:g} s {'yes' if first < FIRST_REACH else 'NO'})"
    )
