"""A server that is started anew under a browser: what stood in the page stands there still."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from engine.generation.generate import generate
from engine.runtime import library
from tests.browser.harness import UVICORN, comes_to, expect, free_port, served, settle
from tests.browser.test_generate import FIND, IDLE, told

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

    from tests.conftest import Wire

pytestmark = pytest.mark.long

MODEL = "in-context"
ADDRESS = f"/generate?model={MODEL}&text=lion&method=greedy&repetition_penalty=1.2"
LOOKS = "**/_stcore/*"  # for whether a server is there
CONNECTED = '[data-test-connection-state="CONNECTED"]'


def field(page: "Page", name: str) -> "Locator":
    return page.locator(f".st-key-{name} input")


def typed(page: "Page", name: str, value: str) -> None:
    field(page, name).fill(value)
    field(page, name).press("Enter")


def test_text_model_and_settings_outlive_the_server_and_the_numbers_come(
    page: "Page", wire: "Wire", faults: list[str], tmp_path: Path
) -> None:
    port = free_port()
    with served(UVICORN, "/health", tmp_path / "before", port) as address:
        page.goto(address + ADDRESS)
        page.locator(".generate[data-ready]").wait_for()
        settle(page)  # the first run of a server takes its time
        typed(page, "text", "plant")
        page.wait_for_url("**text=plant")
        settle(page)
        typed(page, "most", "5")
        page.wait_for_function(f"() => {FIND}.loupe.data.settings.most === 5")
        page.wait_for_url("**most=5*text=plant")
    page.locator(f"[data-testid=stApp]:not({CONNECTED})").wait_for()
    dialog = page.locator("section[role=dialog] > h2")
    expect(dialog).to_have_text("Connection error")  # which Loupe tells in words of its own
    assert "connection to Loupe is lost" in dialog.evaluate("title => getComputedStyle(title, '::after').content")
    page.route(LOOKS, lambda route: None)  # they wait: a browser looks ever more rarely
    sent = wire.reruns
    with served(UVICORN, "/health", tmp_path / "after", port):
        page.unroute(LOOKS)  # which lets those that wait go on
        comes_to(page, lambda: wire.reruns > sent, True)
        settle(page)
        page.locator(".write-button.go").click()
        page.wait_for_function(f"() => {FIND}.loupe.written.length")
        page.wait_for_function(IDLE)
        steps = generate(library.checkpoint(MODEL), "plant", 5, greedy=True, repetition_penalty=1.2)
        assert told(page, "page.written") == [step.id for step in steps]
        expect(field(page, "text")).to_have_value("plant")
        expect(field(page, "most")).to_have_value("5")
        assert told(page, "page.data.model") == MODEL
    faults.clear()  # the server was away
