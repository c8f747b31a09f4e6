"""What a visitor meets: the model, its text, and what follows it, in a browser and without an address."""

from typing import TYPE_CHECKING

import pytest

from engine.runtime import library
from engine.runtime.run import run
from tests.browser.harness import UVICORN, served, settle

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Page

READY = ".walkthrough[data-ready]"


def test_the_first_page_is_that_of_everyday(tmp_path: "Path", monkeypatch: pytest.MonkeyPatch, page: "Page") -> None:
    monkeypatch.delenv("LOUPE_MODEL")
    with served(UVICORN, "/_stcore/health", tmp_path / "server.log") as address:
        page.goto(f"{address}/walkthrough")  # the very first visitor may come by a deep link
        page.wait_for_selector(READY)
        settle(page)
        assert page.get_by_role("dialog").count() == 0 and page.url == f"{address}/walkthrough"
        page.goto(address)
        page.wait_for_selector(".home-columns .next .line")
        text = page.get_by_label("text", exact=True).input_value()
        checkpoint = library.checkpoint("everyday")
        trace = run(checkpoint.model, checkpoint.tokenizer.encode(text), keep="probs")
        best = trace["probs"][0, -1].topk(3)
        rows = page.locator(".home-columns .next .line").all_inner_texts()[:3]
        for row, share, token in zip(rows, best.values.tolist(), best.indices.tolist(), strict=True):
            assert checkpoint.tokenizer.piece(token) in row and f"{100 * share:.1f}" in row
