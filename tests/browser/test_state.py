"""What a link says of a page stands there whatever a browser does next: another page, Back, Forward, a reload, another
visitor. Each kind of page that declares its state is walked through."""

from typing import TYPE_CHECKING
from urllib.parse import parse_qsl

import pytest

from tests.browser.harness import answered, settle, turn_to

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.long

LINKS = {  # page -> link of it, and one of nonsense
    "generate": ("method=greedy&most=7", "method=blue&most=x"),
    "compare": ("a_text=One+dog&b_text=One+cat", "a_model=nowhere&a_text=One+dog"),
    "architecture": ("model=gpt2&length=64&batch=3", "length=-4&batch=1e9"),
    "long_sequences": ("k=8&window=64", "k=7&window=word"),
    "checkpoint": ("axes=3-D", "axes=4-D&head=99"),
    "walkthrough": ("text=One+dog&attention=2.0&top_k=5", "top_k=many&attention=99"),
    "train": ("task=copy", "task=nothing&run=gone"),
    "adapt": ("way=LoRA", "way=nowhere&run=gone"),
}
QUERY = """wanted => {
  const query = new URLSearchParams(location.search);
  return Object.entries(wanted).every(([name, said]) => query.get(name) === said);
}"""
ATTENTION = ".attention[data-ready]"


def stands(page: "Page", query: dict[str, str]) -> None:
    """Waits until the page's address says so, with no script left that could take it back."""
    page.wait_for_function(QUERY, arg=query)
    settle(page)
    page.wait_for_function(QUERY, arg=query)
    assert page.get_by_test_id("stException").count() == 0


def back(page: "Page") -> None:
    page.go_back()
    page.wait_for_selector(ATTENTION, state="detached")


@pytest.mark.parametrize("name", LINKS)
def test_what_a_link_says_stands_whatever_a_browser_does(
    name: str, server: str, page: "Page", browser: "Browser"
) -> None:
    said, nonsense = LINKS[name]
    query = dict(parse_qsl(said))
    page.goto(f"{server}/{name}?{said}")
    stands(page, query)
    turn_to(page, "Attention")
    page.wait_for_selector(ATTENTION)
    answered(page)  # what it still writes into its address would come after Back
    back(page)
    stands(page, query)
    page.go_forward()
    page.wait_for_selector(ATTENTION)
    answered(page)  # what it still writes into its address would come after Back
    back(page)
    stands(page, query)
    page.reload()
    stands(page, query)
    other = browser.new_context()
    visitor = other.new_page()
    visitor.goto(page.url)
    stands(visitor, query)
    visitor.goto(f"{server}/{name}?{nonsense}")
    settle(visitor)
    first = nonsense.partition("&")[0]
    visitor.wait_for_function("said => !location.search.includes(said)", arg=first)
    assert visitor.get_by_test_id("stException").count() == 0
    assert visitor.get_by_test_id("stAlert").filter(has_text=first.partition("=")[2]).count() > 0
    other.close()
