"""The tab Surprise in a browser, of a text that is longer than its model reads, and of a model that masks tokens."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

import pytest

from engine.analysis.pseudo import pseudo_surprise
from engine.analysis.surprise import surprise
from engine.runtime import library
from tests.browser.test_generate import ESCAPE, FIND, at_next_part, told
from tests.browser.test_take import saved

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

Open = Callable[[str], "Page"]
SAID = "Once upon a time there was a girl. She liked to play in the park with her dog. "
PATIENCE = 60_000  # ms, for thousands of tokens that are drawn where others work too
TAB = f"{FIND}?.loupe.tab"
LOGS = "page.tab.tokens.map(({log}) => log)"
WHOLE = f"() => {TAB}?.found?.whole"


@pytest.mark.long
def test_a_long_text_is_read_in_windows_can_be_stopped_and_is_taken_along_whole(
    open_page: Open, server: str, browser: "Browser", tmp_path: Path
) -> None:
    # What keeps a fast server from having it all in the first part, which may come late: a rerun of the page breaks off
    # what is measured and not yet sent.
    slow, text = library.checkpoint("everyday"), SAID * 850
    page = open_page(f"{server}/generate?model=everyday&text={quote(text)}&surprise_stride=quarter#view=temperature")
    page.locator('.generate[data-ready="temperature"]').wait_for()
    at_next_part(page, ESCAPE)
    page.locator(".st-key-view button", has_text="surprise").click()
    page.get_by_text("Stopped after").wait_for(timeout=PATIENCE)
    count = told(page, "page.tab.tokens.length")
    ids = slow.tokenizer.encode(text).ids  # type: ignore[union-attr]
    assert 0 < count < len(ids) - 1
    assert page.locator(".tok.surprising").count() == count == len(ids) - 1 - page.locator(".tok.unread").count()
    assert page.locator(".st-key-view button", has_text="write").count() == 0
    assert f"at most 256 tokens at a time, and the text has {len(ids):,}" in page.locator(".notice").inner_text()
    at_next_part(page, ESCAPE)
    page.get_by_role("button", name="Continue").click()
    page.wait_for_function(f"() => {TAB}.tokens.length > {count} && !{TAB}.measuring")
    loaded, text = library.checkpoint("stories"), SAID * 60
    page = open_page(f"{server}/generate?model=stories&text={quote(text)}#view=surprise")
    page.wait_for_function(WHOLE)
    ids = loaded.tokenizer.encode(text).ids  # type: ignore[union-attr]
    found = surprise(loaded, ids)
    assert told(page, "page.tab.tokens.map(({at}) => at)") == [*range(1, len(ids))]
    assert told(page, LOGS) == pytest.approx(found.log_probabilities.tolist(), abs=1e-4)
    assert told(page, "page.tab.found.perplexity") == pytest.approx(found.perplexity, rel=1e-5)
    assert page.locator(".tok.unread").count() == 0
    assert page.locator(".tok.opens").count() == len(found.windows) - 1
    third = found.windows[2]
    page.evaluate(f"() => {TAB}.look({third.asked + 4 - 1})")
    page.wait_for_function(f"() => {TAB}.parts[0].before.length")
    assert page.locator(".tok.before").count() == third.asked + 4 - third.begin
    assert f"{third.asked + 4 - third.begin} tokens, window 3" in page.locator(".s-token").inner_text()
    page.locator(".st-key-surprise_stride button", has_text="side by side").click()
    page.wait_for_function(f"() => {TAB}.found?.windows[1][0] === 255 && {TAB}.found.whole")
    apart = surprise(loaded, ids, stride=255)
    assert told(page, LOGS) == pytest.approx(apart.log_probabilities.tolist(), abs=1e-4)
    page.locator(".st-key-surprise_stride button", has_text="a quarter apart").click()
    page.wait_for_function(f"() => {TAB}.found?.windows[1][0] === 64 && {TAB}.found.whole")
    page.locator(".st-key-surprise_stride button", has_text="side by side").click()
    page.wait_for_function(f"() => {TAB}.found?.windows[1][0] === 255 && {TAB}.found.whole")
    page.get_by_role("button", name="Share & export ▾").click()  # not that of the chart
    file = saved(page, "HTML", tmp_path)
    context = browser.new_context(offline=True)
    alone = context.new_page()
    alone.goto(file.as_uri())
    alone.wait_for_function(WHOLE)
    assert alone.evaluate(f"() => {TAB}.tokens.length") == len(ids) - 1
    assert alone.evaluate(f"() => {TAB}.found.windows[1][0]") == 255
    context.close()


def test_tokens_that_are_masked_in_turn_are_painted_and_nothing_sticks_out_on_a_phone(
    open_page: Open, server: str, page: "Page"
) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    open_page(f"{server}/generate?model=tales-bert&text={quote('Max gave the red ball to Anna.')}")
    page.locator(".tok.surprising").first.wait_for()
    loaded = library.checkpoint("tales-bert")
    read = loaded.tokenizer.encode("Max gave the red ball to Anna.")  # type: ignore[union-attr]
    found = pseudo_surprise(loaded, read.ids, read.segments)
    assert told(page, LOGS) == pytest.approx(found.log_probabilities.tolist(), abs=1e-4)
    assert page.locator(".tok.given").all_inner_texts() == ["[CLS]", "[SEP]"]
    assert "pseudo-perplexity" in page.locator(".s-facts").inner_text()
    assert "pseudo-log-likelihood" in page.locator(".s-windows").inner_text()
    room = page.locator(".view-surprise")
    assert room.evaluate("(one) => one.scrollWidth <= one.clientWidth")
    edge = room.evaluate("(one) => one.getBoundingClientRect().right")
    assert page.locator(".s-text .text-of").evaluate("(one) => one.getBoundingClientRect().right") <= edge
