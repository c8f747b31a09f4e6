"""Texts of others as a browser draws them: no request to another host, no icon, no link, no formula."""

from collections.abc import Callable
from typing import TYPE_CHECKING
from urllib.parse import quote, urlparse

import pytest

from tests.browser.harness import settle
from tests.views.test_markdown import PAYLOADS
from views.core.markdown import JOINER

if TYPE_CHECKING:
    from playwright.sync_api import Page

PICTURE = "![x](http://elsewhere.example/p.png) http://elsewhere.example :material/home: $x$"
MARKUP = 'a[href*="elsewhere"], img, [data-testid="stIconMaterial"], .katex, '
MARKUP += "h1, h2, h3, li, hr, table, del, em, blockquote, pre"
ADDRESSES = [
    f"compare?a_model={quote(PICTURE)}",
    f"generate?view=temperature&numbers={quote(PICTURE)}",
    f"attention?instruction={quote(PICTURE)}&model={quote(PICTURE)}&edits={quote(PICTURE)}",
    f"adapt?run={quote(PICTURE)}&base={quote(PICTURE)}",
    f"course?lesson={quote(PICTURE)}",
    f"checkpoint?model={quote(PICTURE)}",
]


def note_hosts(page: "Page") -> list[str]:
    asked: list[str] = []
    page.on("request", lambda request: asked.append(urlparse(request.url).netloc))
    return asked


def test_every_payload_is_drawn_as_it_is_written(app_server: Callable[[str], str], page: "Page") -> None:
    asked = note_hosts(page)
    address = app_server("markdown")
    page.goto(address)
    page.get_by_text("all drawn", exact=True).wait_for(timeout=60_000)
    page.wait_for_load_state("networkidle")
    assert {host for host in asked if host} == {urlparse(address).netloc}
    for number, payload in enumerate(PAYLOADS):
        own = page.locator(f".st-key-payload-{number}")
        texts = own.locator('[data-testid="stMarkdownContainer"]')
        found = texts.evaluate_all("(all, markup) => all.map((e) => e.querySelectorAll(markup).length)", MARKUP)
        assert not any(found), f"{payload!r} is drawn as markup: {texts.all_inner_texts()}"
        read = " ".join(texts.nth(0).inner_text().replace(JOINER, "").split())
        assert read == " ".join(payload.split()), f"{payload!r} reads {read!r}"


@pytest.mark.parametrize("path", ADDRESSES)
def test_no_address_asks_another_host_or_draws_an_icon(server: str, page: "Page", path: str) -> None:
    asked = note_hosts(page)
    page.goto(f"{server}/{path}")
    page.wait_for_selector('[data-testid="stMain"] [data-testid="stMarkdownContainer"]', state="attached")
    settle(page)
    assert {host for host in asked if host} == {urlparse(server).netloc}
    # A link of our own carries the address of the page, with the text in it; what counts is the host it leads to.
    read = "all => all.map((e) => new URL(e.getAttribute('href') ?? e.getAttribute('src'), location.href).host)"
    assert "elsewhere.example" not in page.locator("a[href], img[src]").evaluate_all(read)
    echoes = page.locator('[data-testid="stAlert"], .st-key-instruction')
    drawn = '[data-testid="stMarkdownContainer"] [data-testid="stIconMaterial"], .katex, a, img'
    assert not echoes.locator(drawn).count()
