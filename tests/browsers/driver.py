"""Chromium, Firefox and WebKit behind one small interface: a place in the window is pressed, keys are typed, and a
script is asked.

Playwright drives the first two (Firefox by WebDriver BiDi), Selenium the third: MiniBrowser of WebKitGTK, in Xvfb where
there is no screen. Elements are found in the shadow trees of views too, and places are those of the window, under CSS
zoom as well.
"""

import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from tests.browser.harness import FLAGS, PATIENCE, browser_path

if TYPE_CHECKING:
    from playwright.sync_api import Page, Playwright

Place = tuple[float, float]  # in the window, CSS pixels of it
SIZE = (1280, 720)
STILL = 4  # times in a row that an element is found in one place
MINIBROWSER = sorted(Path("/usr/lib").glob("*/webkit2gtk-4*/MiniBrowser"))

# all(selector): what is found in the document and in every shadow tree; box(element): where that is in the window.
FIND = """
const all = (selector, root = document) => [
  ...root.querySelectorAll(selector),
  ...[...root.querySelectorAll("*")].flatMap((one) => one.shadowRoot ? all(selector, one.shadowRoot) : []),
];
const named = (selector, text) => all(selector).filter((one) => text === null || one.textContent.trim() === text);
const zoom = (one) => !one || one.currentCSSZoom !== undefined ? 1
  : (Number(getComputedStyle(one).zoom) || 1) * zoom(one.parentElement ?? one.getRootNode().host);
const box = (one) => {
  const [{ left, top, width, height }, by] = [one.getBoundingClientRect(), zoom(one)];
  return [left * by, top * by, width * by, height * by];
};
"""
SETTLED = """all('[data-testid="stApp"][data-test-script-state="notRunning"][data-test-connection-state="CONNECTED"] '
+ '[data-testid="stMainBlockContainer"]').length > 0"""


class Driver(Protocol):
    name: str

    def open(self, address: str) -> None: ...
    def ask(self, script: str) -> Any: ...
    def drag(self, places: Sequence[Place]) -> None: ...
    def type(self, text: str) -> None: ...
    def press(self, key: str) -> None: ...
    def resize(self, width: int, height: int) -> None: ...


class PlaywrightDriver:
    """Chromium or Firefox, by Playwright."""

    def __init__(self, name: str, page: "Page") -> None:
        self.name, self.page = name, page

    def open(self, address: str) -> None:
        self.page.goto(address)

    def ask(self, script: str) -> Any:
        return self.page.evaluate(f"() => {{ {script} }}")

    def drag(self, places: Sequence[Place]) -> None:
        mouse = self.page.mouse
        mouse.move(*places[0])
        mouse.down()
        for place in places[1:]:
            mouse.move(*place)
        mouse.up()

    def type(self, text: str) -> None:
        self.page.keyboard.type(text)

    def press(self, key: str) -> None:
        self.page.keyboard.press(key)

    def resize(self, width: int, height: int) -> None:
        self.page.set_viewport_size({"width": width, "height": height})


class SeleniumDriver:
    """WebKit, by Selenium."""

    name = "webkit"

    def __init__(self, driver: Any) -> None:
        self.driver = driver

    def open(self, address: str) -> None:
        self.driver.get(address)

    def ask(self, script: str) -> Any:
        return self.driver.execute_script(script)

    def drag(self, places: Sequence[Place]) -> None:
        from selenium.webdriver.common.actions.action_builder import ActionBuilder

        actions = ActionBuilder(self.driver, duration=0)
        pointer = actions.pointer_action
        first, *rest = [(round(x), round(y)) for x, y in places]
        pointer.move_to_location(*first)
        pointer.pointer_down()
        for place in rest:
            pointer.move_to_location(*place)
        pointer.pointer_up()
        actions.perform()

    def type(self, text: str) -> None:
        from selenium.webdriver.common.action_chains import ActionChains

        ActionChains(self.driver).send_keys(text).perform()

    def press(self, key: str) -> None:
        from selenium.webdriver.common.action_chains import ActionChains
        from selenium.webdriver.common.keys import Keys

        *held, last = [getattr(Keys, part.upper(), part) for part in key.split("+")]
        chain = ActionChains(self.driver)
        for one in held:
            chain.key_down(one)
        chain.send_keys(last)
        for one in held:
            chain.key_up(one)
        chain.perform()

    def resize(self, width: int, height: int) -> None:
        self.driver.set_window_size(width, height)
        inner = self.ask("return [innerWidth, innerHeight]")
        self.driver.set_window_size(2 * width - inner[0], 2 * height - inner[1])


def missing_packages(name: str) -> str | None:
    """What is not on this machine of what a browser needs, in a sentence."""
    needed = {
        "chromium": {"chromium": browser_path()},
        "firefox": {"firefox-esr": shutil.which("firefox-esr")},
        "webkit": {
            "webkit2gtk-driver": shutil.which("WebKitWebDriver") and MINIBROWSER,
            "xvfb": os.environ.get("DISPLAY") or shutil.which("Xvfb"),
        },
    }[name]
    lacking = [package for package, found in needed.items() if not found]
    return f"{name} needs {' and '.join(lacking)}; install it from Debian." if lacking else None


@contextmanager
def open_driver(name: str, playwright: "Callable[[], Playwright]") -> Iterator[Driver]:
    with ExitStack() as stack:
        if name == "webkit":
            from selenium.webdriver import WebKitGTK, WebKitGTKOptions, WebKitGTKService

            stack.enter_context(screen())
            options = WebKitGTKOptions()
            options.binary_location = str(MINIBROWSER[-1])
            options.add_argument("--automation")
            driver: Any = WebKitGTK(options=options, service=WebKitGTKService(shutil.which("WebKitWebDriver")))
            stack.callback(driver.quit)
            one: Driver = SeleniumDriver(driver)
        else:
            if name == "firefox":
                found = shutil.which("firefox-esr")
                browser = playwright().firefox.launch(channel="moz-firefox", executable_path=found)
            else:
                browser = playwright().chromium.launch(executable_path=browser_path(), args=FLAGS)
            stack.callback(browser.close)
            one = PlaywrightDriver(name, browser.new_page())
        one.resize(*SIZE)
        yield one


@contextmanager
def screen() -> Iterator[None]:
    """A display for a browser that cannot do without, where there is none; as root its processes cannot be confined."""
    with ExitStack() as stack:
        if not os.environ.get("DISPLAY"):
            read, write = os.pipe()
            server = subprocess.Popen(
                ["Xvfb", "-displayfd", str(write), "-screen", "0", "1600x1200x24", "-nolisten", "tcp"],
                pass_fds=[write],
                stderr=subprocess.DEVNULL,
            )
            stack.callback(server.wait)
            stack.callback(server.terminate)
            with open(read) as number:
                os.close(write)
                os.environ["DISPLAY"] = f":{number.readline().strip()}"
            stack.callback(os.environ.pop, "DISPLAY")
        if os.getuid() == 0:
            os.environ["WEBKIT_DISABLE_SANDBOX_THIS_IS_DANGEROUS"] = "1"
        yield


# --- what flows say ---


class Visit:
    """A page in one of the browsers, in the words of a flow; `server` is Loupe's address."""

    def __init__(self, driver: Driver, server: str) -> None:
        self.driver, self.server = driver, server
        self.name = driver.name

    def open(self, path: str) -> None:
        self.driver.open(self.server + path)
        self.settle()

    def settle(self) -> None:
        self.until(SETTLED)

    def ask(self, expression: str) -> Any:
        return self.driver.ask(f"{FIND} return {expression};")

    def until(self, expression: str, expected: object = True) -> None:
        deadline = time.monotonic() + 2 * PATIENCE
        while (found := self.ask(expression)) != expected:
            assert time.monotonic() < deadline, f"{self.name}: expected {expression} to be {expected!r}, got {found!r}"
            time.sleep(0.05)

    def box(self, selector: str, text: str | None = None, nth: int = 0) -> tuple[float, float, float, float]:
        """Of the nth that is in view: left, top, width and height in the window, once it no longer moves."""
        which = f"named({json.dumps(selector)}, {json.dumps(text)}).filter((one) => one.checkVisibility())[{nth}]"
        self.until(f"!!{which}")
        self.driver.ask(f'{FIND} {which}.scrollIntoView({{ block: "center", behavior: "instant" }});')
        last: list[list[float]] = []
        while len(last) < STILL or any(one != last[-1] for one in last[-STILL:]):
            last.append(self.ask(f"box({which})"))
            time.sleep(0.1)
        left, top, width, height = last[-1]
        return left, top, width, height

    def click(self, selector: str, text: str | None = None, at: Place = (0.5, 0.5), nth: int = 0) -> None:
        """Presses an element at a part of its width and height."""
        self.drag(selector, [at], text, nth)

    def drag(self, selector: str, parts: Sequence[Place], text: str | None = None, nth: int = 0) -> None:
        left, top, width, height = self.box(selector, text, nth)
        places = [(left + x * width, top + y * height) for x, y in parts]
        between = [
            (x0 + (x1 - x0) * i / 8, y0 + (y1 - y0) * i / 8)
            for (x0, y0), (x1, y1) in pairwise(places)
            for i in range(1, 9)
        ]
        self.driver.drag([places[0], *between])

    def fill(self, selector: str, text: str) -> None:
        self.click(selector)
        self.driver.press("Control+a")
        self.driver.type(text)
        self.driver.press("Enter")
        self.settle()

    def parameter(self, name: str) -> str | None:
        found: str | None = self.ask(f"new URL(location).searchParams.get({json.dumps(name)})")
        return found
