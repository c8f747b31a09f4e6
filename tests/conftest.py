"""Servers and browsers for the tests that need the real thing.

A browser test fails on any console error or uncaught exception of its page. Without a browser those tests are
skipped, and one line says so at the end; with LOUPE_REQUIRE_BROWSER=1 they fail.
"""

import ctypes
import gc
import json
import os
import re
import sys
from collections import Counter
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING
from urllib.parse import urljoin

import pytest

from tests.browser.harness import (
    BROWSERS,
    FLAGS,
    PATIENCE,
    ROOT,
    UVICORN,
    browser_path,
    served,
    settle,
    streamlit_run,
)

if TYPE_CHECKING:
    from playwright.sync_api import (
        Browser,
        BrowserContext,
        ConsoleMessage,
        Page,
        Playwright,
        Request,
        Response,
        ViewportSize,
        WebSocket,
    )

# Opened at /walkthrough, Streamlit first asks below that path where its server is; the misses are no faults.
PROBE = re.compile(r"/[^/]+/_stcore/(health|host-config)$")

os.environ.setdefault("LOUPE_MODEL", "stories")  # browser/test_first_model.py has what visitors meet
os.environ.setdefault("LOUPE_TRACE_MEMORY_MIB", "192")  # of each process; a visitor's 1 GiB is not what is tried
os.environ.setdefault("LOUPE_MODELS_MEMORY_MIB", "256")
RUNS = TemporaryDirectory(prefix="loupe-runs-")  # of this process and the servers that it starts
os.environ["LOUPE_RUNS"] = RUNS.name
os.environ.setdefault("STREAMLIT_CLIENT_SHOW_ERROR_DETAILS", "full")  # an error on a page is one of the test
SIZE: "ViewportSize" = {"width": 1440, "height": 950}
PROGRAM = sys.modules["__main__"]
FAILED = pytest.StashKey[bool]()
REQUIRE_BROWSER = os.environ.get("LOUPE_REQUIRE_BROWSER") == "1"
NO_BROWSER = f"no browser found, looked for {', '.join(BROWSERS)}"
INSTALL = "apt install chromium-headless-shell (Debian) or brew install --cask google-chrome (macOS)"
DURATIONS = ROOT / "tests" / "durations.json"  # seconds of each file; test_house.py says how many there may be


def read_settings() -> None:
    """As a program of Loupe does, where the engine is imported; what imports none, such as test_house.py, is quick."""
    if "engine" in sys.modules:
        from server.settings import fill_budget

        fill_budget()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--record-durations", action="store_true", help=f"write the seconds of each file to {DURATIONS}")


def pytest_collection_finish() -> None:
    read_settings()
    gc.freeze()  # what is imported stays: no collection goes through it again


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    reports = [one for some in terminalreporter.stats.values() for one in some if isinstance(one, pytest.TestReport)]
    if left_out := sum(one.skipped and NO_BROWSER in str(one.longrepr) for one in reports):
        terminalreporter.write_line(f"{NO_BROWSER}: {left_out} tests were left out. To run them: {INSTALL}")
    if config.getoption("--record-durations"):
        spent: Counter[str] = Counter()
        for report in reports:
            spent[report.nodeid.partition("::")[0]] += report.duration  # type: ignore[assignment]
        table = {path: round(seconds, 1) for path, seconds in sorted(spent.items())}
        DURATIONS.write_text(json.dumps(table, indent=1) + "\n", encoding="utf-8")


@pytest.fixture(autouse=True)
def one_thread() -> None:
    """A training leaves as many threads behind as it took; sums are rounded otherwise with another number of them."""
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(1)


@pytest.hookimpl(tryfirst=True)
def pytest_fixture_setup() -> None:
    sys.modules["__main__"] = PROGRAM


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup() -> None:
    read_settings()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_call() -> None:
    """AppTest leaves its script behind as the main module, which processes that a test or a fixture starts would run
    as well."""
    sys.modules["__main__"] = PROGRAM


@pytest.fixture(autouse=True, scope="module")
def memory() -> Iterator[None]:
    """What a file of tests leaves behind goes back to the system: objects that hold each other, and what the C library
    of Linux would keep."""
    yield
    gc.collect()
    if sys.platform == "linux":
        ctypes.CDLL(None).malloc_trim(0)


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of Loupe, served as `make run` serves it."""
    with served(UVICORN, "/health", tmp_path_factory.mktemp("server") / "log") as address:
        yield address


@pytest.fixture(scope="session")
def stage() -> Iterator[str]:
    """The address of Loupe's pages in this process, of which a browser has the views alone (browser/stage.py)."""
    from tests.browser.stage import serve_stage

    with serve_stage() as address:
        yield address


@pytest.fixture(scope="module")
def empty_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The same, started for the tests of a file, where nobody has trained anything."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LOUPE_RUNS", str(tmp_path_factory.mktemp("runs")))
        with served(UVICORN, "/health", tmp_path_factory.mktemp("server") / "log") as address:
            yield address


@pytest.fixture(scope="session")
def streamlit_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of Loupe under `streamlit run app.py`."""
    log = tmp_path_factory.mktemp("streamlit") / "log"
    with served(streamlit_run(ROOT / "app.py"), "/_stcore/health", log) as address:
        yield address


@pytest.fixture(scope="session")
def app_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], str]]:
    """Serves tests/browser/apps/<name>/app.py once, on first demand, and gives its address."""
    running: dict[str, str] = {}
    with ExitStack() as stack:

        def address_of(name: str) -> str:
            if name not in running:
                command = streamlit_run(ROOT / "tests" / "browser" / "apps" / name / "app.py")
                log = tmp_path_factory.mktemp(name) / "log"
                running[name] = stack.enter_context(served(command, "/_stcore/health", log))
            return running[name]

        yield address_of


@pytest.fixture(scope="session")
def playwright() -> "Iterator[Playwright]":
    """One for a process, which cannot have two."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        yield playwright


@pytest.fixture(scope="session")
def browser(request: pytest.FixtureRequest) -> "Iterator[Browser]":
    executable = browser_path()
    if executable is None:
        pytest.fail(NO_BROWSER) if REQUIRE_BROWSER else pytest.skip(NO_BROWSER)
    browser = request.getfixturevalue("playwright").chromium.launch(executable_path=executable, args=FLAGS)
    yield browser
    browser.close()


@pytest.fixture(scope="session")
def context(browser: "Browser") -> "BrowserContext":
    """One for all tests, so that Streamlit's own scripts are fetched once."""
    context = browser.new_context(viewport=SIZE, color_scheme="light")
    context.set_default_timeout(1000 * PATIENCE)
    context.add_init_script(AT_ONCE)
    return context


# A part that opens pushes all below it down for half a second, in which a click hits what is there no longer.
AT_ONCE = """{ const animate = Element.prototype.animate;
Element.prototype.animate = function (frames) { return animate.call(this, frames, 0); }; }"""


class Wire:
    """What goes over the page's websocket, or to a stage; of what it sends, only the requests to rerun."""

    def __init__(self) -> None:
        self.reruns = 0
        self.received: list[int] = []  # bytes of each message, in order

    def listen(self, page: "Page") -> None:
        page.on("websocket", self._listen)
        page.on("request", self._requested)
        page.on("response", self._responded)

    def _requested(self, request: "Request") -> None:
        self.reruns += request.method == "POST" and "/run/" in request.url and request.post_data != "[]"

    def _responded(self, response: "Response") -> None:
        if "/run/" in response.url:
            self.received.append(int(response.headers["content-length"]))

    def _listen(self, websocket: "WebSocket") -> None:
        websocket.on("framesent", self._sent)
        websocket.on("framereceived", lambda payload: self.received.append(len(payload)))

    def _sent(self, payload: bytes | str) -> None:
        from streamlit.proto.BackMsg_pb2 import BackMsg

        if isinstance(payload, bytes):
            self.reruns += BackMsg.FromString(payload).WhichOneof("type") == "rerun_script"


class Tab:
    """One tab for all tests of a module: what only looks elsewhere on a page that is open need not open it again."""

    def __init__(self, context: "BrowserContext") -> None:
        self.context = context
        self.faults: list[str] = []
        self.page: Page | None = None
        self.wire = Wire()

    def begin(self) -> "Page":
        """The page for a test: 1440 x 950, light, and fresh where the test before failed."""
        if self.page is None:
            self.page = self.context.new_page()
            self.page.on("console", lambda message: _note(message, self.faults))
            self.page.on("pageerror", lambda error: self.faults.append(f"uncaught: {error}"))
            self.wire.listen(self.page)
        if self.page.viewport_size != SIZE:
            self.page.set_viewport_size(SIZE)
        self.page.emulate_media(color_scheme="light")
        self.page.unroute_all()
        self.faults.clear()
        return self.page

    def close(self) -> None:
        if self.page is not None:
            self.page.close()
        self.page = None


@pytest.fixture(scope="module")
def tab(context: "BrowserContext") -> Iterator[Tab]:
    tab = Tab(context)
    yield tab
    tab.close()


@pytest.fixture
def faults(tab: Tab) -> list[str]:
    """Console errors and uncaught exceptions so far; a test that causes one on purpose clears the list."""
    return tab.faults


@pytest.fixture
def page(tab: Tab, request: pytest.FixtureRequest) -> "Iterator[Page]":
    """The module's tab, where the test before left it; it must not have complained when the test ends."""
    yield tab.begin()
    if request.node.stash.get(FAILED, False) or tab.faults:
        tab.close()
    assert not tab.faults, "the page complained:\n" + "\n".join(tab.faults)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    item.stash[FAILED] = report.failed or item.stash.get(FAILED, False)
    return report


def _note(message: "ConsoleMessage", faults: list[str]) -> None:
    where = message.location.get("url", "")
    if message.type == "error" and not PROBE.search(where):
        faults.append(f"{message.text} ({where})")


@pytest.fixture
def wire(tab: Tab) -> Wire:
    return tab.wire


@pytest.fixture
def open_page(page: "Page") -> "Callable[..., Page]":
    """Opens an address and waits until Streamlit has run the script to its end. Where the page stands there already but
    for what is behind the #, its views follow that, without a reload; `anew` opens it as a visitor's new tab would."""

    def opened(address: str, anew: bool = False) -> "Page":
        place, _, fragment = address.partition("#")
        if anew or not fragment or page.url.partition("#")[0] != place:
            page.goto(urljoin(address, "/_stcore/health"))
            page.evaluate("sessionStorage.clear()")
        else:
            page.evaluate("dispatchEvent(new Event('pagehide'))")  # what waits to be written behind the # is, now
        page.goto(address)
        page.evaluate("new Promise((done) => setTimeout(done))")  # the views have heard of it
        settle(page)
        return page

    return opened
