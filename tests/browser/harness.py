"""Starting Loupe and finding a browser, for tests and for scripts/screenshot.py."""

import os
import shutil
import socket
import subprocess
import sys
import time
from base64 import b64decode
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.error import URLError
from urllib.request import urlopen

import numpy as np

if TYPE_CHECKING:
    from playwright.sync_api import Locator, LocatorAssertions, Page

    from engine.runtime.trace import Trace

ROOT = Path(__file__).resolve().parents[2]
BROWSERS = ["chromium-headless-shell", "chromium", "chromium-browser"]  # the first costs two thirds of the second
BROWSERS += ["google-chrome", "google-chrome-stable", "chrome"]
BROWSERS += ["/Applications/Google Chrome.app/Contents/MacOS/Google Chrome"]
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"] + [
    f"--disable-{what}" for what in ("background-networking", "component-update", "sync")
]
UVICORN = ["asgi", "--port", "{port}"]  # as `make run` serves it
STARTUP = 90.0  # seconds until a server must answer
# In a page: numbers as the bytes of single precision, which hold infinities and cost little to hand over.
BYTES = """(numbers => { const bytes = new Uint8Array(Float32Array.from(numbers).buffer); let text = "";
for (let i = 0; i < bytes.length; i += 8192) text += String.fromCharCode(...bytes.subarray(i, i + 8192));
return btoa(text); })"""
# In a page: whether the store of its views (core/store.js) has no open question, and has none two frames later.
ANSWERED = """async () => {
  const script = performance.getEntriesByType("resource").find(({ name }) => name.endsWith("/views.js"));
  if (!script) return false;
  const store = (await import(script.name)).use("core/store"), open = () => store.pending().length > 0;
  if (open()) return false;
  for (let frame = 0; frame < 2; frame++) await new Promise((done) => requestAnimationFrame(done));
  return !open();
}"""
STILL = """() => {
  const roots = [document, ...[...document.querySelectorAll("*")].map((e) => e.shadowRoot).filter(Boolean)];
  const ends = ({ effect }) => effect && effect.getComputedTiming().endTime < Infinity;
  return !roots.some((root) => root.getAnimations().some((one) => one.playState === "running" && ends(one)));
}"""
PATIENCE = 20.0  # seconds until a page must show what a test waits for


@contextmanager
def same_program() -> Iterator[None]:
    """AppTest leaves its script behind as the main module, which processes that another test starts would then run."""
    before = sys.modules["__main__"]
    try:
        yield
    finally:
        sys.modules["__main__"] = before


def browser_path() -> str | None:
    return next((path for name in BROWSERS if (path := shutil.which(name))), None)


def streamlit_run(script: Path) -> list[str]:
    return ["streamlit", "run", str(script), "--server.port", "{port}"]


def train_shortly(folder: Path, steps: int, warmup: int, every: int) -> None:
    """A run of the task "reverse", of a model that a step takes milliseconds of."""
    from pytest import MonkeyPatch

    from engine.data.kinds.rewriting import Rewriting
    from engine.training import read_recipe, train

    recipe = read_recipe(ROOT / "assets" / "lab" / "reverse.toml")
    model, data = replace(recipe.model, d_model=16), replace(recipe.data.expect(Rewriting), documents=500)
    with MonkeyPatch.context() as patch:
        # What is watched has a line at each step that is kept, however fast it trains.
        patch.setattr("engine.training.probe.watcher.LINE_PACE", 0.0)
        list(
            train(
                replace(
                    recipe,
                    model=model,
                    data=replace(recipe.data, table=data),
                    schedule=replace(recipe.schedule, steps=steps, warmup=warmup),
                    batch=replace(recipe.batch, size=8),
                    log=replace(recipe.log, every=every),
                    machine=replace(recipe.machine, threads=1),
                ),
                folder,
            )
        )


@contextmanager
def served(command: list[str], health: str, log: Path, port: int = 0) -> Iterator[str]:
    """Runs a server on a port (`{port}` in the command), 0 for a free one, until the block ends; yields its address."""
    port = port or free_port()
    address = f"http://127.0.0.1:{port}"
    with log.open("w") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", *(part.format(port=port) for part in command)],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdout=output,
            stderr=subprocess.STDOUT,
        )
        try:
            wait_until_healthy(process, address + health, log)
            yield address
        finally:
            process.terminate()
            process.wait(20)


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def settle(page: "Page") -> None:
    """Waits until Streamlit is connected, has drawn something, and runs no script."""
    page.wait_for_selector(
        '[data-testid="stApp"][data-test-script-state="notRunning"][data-test-connection-state="CONNECTED"] '
        '[data-testid="stMainBlockContainer"]',
        state="attached",
    )


def answered(page: "Page") -> None:
    """Waits until every question of the page's views is answered, nothing follows from it, and no script runs."""
    settle(page)
    page.wait_for_function(ANSWERED)
    settle(page)


def still(page: "Page") -> None:
    """Waits until no transition goes on, in whatever component."""
    page.wait_for_function(STILL)


def addresses() -> list[str]:
    """The names of all pages, as they stand in an address."""
    from pages.controls.menu import entries

    return [entry.address for entry in entries()]


def turn_to(page: "Page", title: str) -> None:
    """Chooses another page in the menus of the header."""
    from pages.controls.menu import entries

    group = next(entry.group for entry in entries() if entry.title == title)
    page.get_by_test_id("stTopNavSection").filter(has_text=group).click()
    page.get_by_test_id("stTopNavDropdownLink").filter(has_text=title).click()


def shows(page: "Page", view: str, trace: "Trace", model: str = "stories") -> None:
    """Waits until a view has drawn the run of a trace, whose digest it names."""
    from views.core.lanes import digest

    page.wait_for_selector(f'.{view}[data-ready="{digest(model, trace)}"]')


def choose(page: "Page", label: str, option: str) -> None:
    """Chooses in one of Streamlit's menus."""
    box = page.get_by_role("combobox", name=label, exact=True)
    offered = page.get_by_role("option", name=option, exact=True)

    def search() -> bool:
        """Types again where the list has closed, or has other options by now: the server had not yet answered."""
        if box.input_value() != option or offered.count() == 0:
            box.fill(option)
        return offered.is_visible()

    settle(page)
    if box.input_value() != option:
        box.click()
        comes_to(page, search, True)
        offered.click()
    expect(box).to_have_value(option)


def expect(shown: "Locator", about: str | None = None) -> "LocatorAssertions":
    """Playwright's, with its waits as long as all others: five seconds are few on a machine that does much else."""
    from playwright.sync_api import expect

    expect.set_options(timeout=1000 * PATIENCE)
    return expect(shown, about)


def floats(handed: str) -> "np.ndarray":
    """What BYTES made of numbers."""
    return np.frombuffer(b64decode(handed), "<f4")


def comes_to(page: "Page", read: Callable[[], Any], expected: object) -> None:
    """Waits until `read` gives what is expected; for what `expect` has no words for."""
    deadline = time.monotonic() + PATIENCE
    while (found := read()) != expected and time.monotonic() < deadline:
        page.wait_for_timeout(50)
    assert found == expected, f"expected {expected!r}, got {found!r}"


def wait_until_healthy(process: subprocess.Popen[bytes], address: str, log: Path) -> None:
    deadline = time.monotonic() + STARTUP
    while True:
        try:
            with urlopen(address, timeout=5):
                return
        except (URLError, ConnectionError, TimeoutError) as error:
            if process.poll() is not None or time.monotonic() > deadline:
                said = log.read_text()[-4000:]
                raise RuntimeError(f"expected a server at {address}, got {error}; log:\n{said}") from error
            time.sleep(0.05)
