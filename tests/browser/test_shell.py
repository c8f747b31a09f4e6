"""What every page shares: how it is served, opened by a link, framed and coloured."""

from typing import TYPE_CHECKING
from urllib.parse import quote
from urllib.request import urlopen

import pytest

from tests.browser.harness import comes_to, expect, settle, turn_to
from tests.browser.test_walkthrough import TEXT, assert_drawn_equals, traced
from views.core.theme import tokens

if TYPE_CHECKING:
    from playwright.sync_api import Page

VIEW = "[data-ready]"
PASTE = """(e, text) => { e.focus(); e.setSelectionRange(3, 3);
const clipboardData = new DataTransfer(); clipboardData.setData("text/plain", text);
e.dispatchEvent(new ClipboardEvent("paste", { clipboardData, bubbles: true, cancelable: true })); }"""


def rgb(color: str) -> str:
    return "rgb({}, {}, {})".format(*(int(color[i : i + 2], 16) for i in (1, 3, 5)))


def background(page: "Page") -> str:
    return page.evaluate("getComputedStyle(document.querySelector('[data-testid=stApp]')).backgroundColor")


def open_walkthrough(page: "Page", address: str) -> None:
    page.goto(address)
    page.wait_for_selector(VIEW)
    settle(page)


@pytest.mark.parametrize("path", ["/", "/home"])
def test_the_first_page_opens_at_the_root_and_at_its_name(server: str, page: "Page", path: str) -> None:
    page.goto(server + path)
    tokens = page.locator(".home-columns .piece")
    expect(tokens.last).to_have_attribute("aria-pressed", "true")
    settle(page)
    assert page.get_by_role("dialog").count() == 0
    assert page.url == server + path
    assert page.title() == "Home · Loupe"


def test_a_token_of_the_first_page_is_looked_from_by_key_and_a_column_opens_the_rest(server: str, page: "Page") -> None:
    page.goto(server)
    tokens = page.locator(".home-columns .piece")
    tokens.last.click()
    told = page.locator(".home-said")
    before = told.inner_text()
    page.keyboard.press("ArrowUp")
    expect(tokens.nth(tokens.count() - 2)).to_be_focused()
    expect(told).not_to_have_text(before)
    later = page.locator(".home-columns .looks .line").last  # which the chosen token does not see
    expect(later).to_be_empty()
    page.locator(".home-columns .looks .open").click()
    page.wait_for_url("**/attention?**")


def test_an_older_link_to_the_root_opens_the_walkthrough_with_all_it_holds(server: str, page: "Page") -> None:
    page.goto(f'{server}/?model=stories&text=The+cat+sat#open=["q"]&layer=1')
    page.wait_for_url("**/walkthrough?**")
    page.wait_for_selector(VIEW)
    expect(page.get_by_label("text", exact=True)).to_have_value("The cat sat")
    assert page.locator(VIEW).evaluate("e => [...e.loupe.state.open, e.loupe.state.layer]") == ["q", 1]


def test_an_unknown_page_says_so(server: str, page: "Page", faults: list[str]) -> None:
    page.goto(f"{server}/nowhere")
    page.wait_for_selector("text=Page not found")
    assert all("does not seem to exist" in fault for fault in faults)
    faults.clear()


def test_nothing_of_streamlits_own_stands_in_the_header(server: str, page: "Page") -> None:
    open_walkthrough(page, f"{server}/walkthrough")
    header = page.get_by_test_id("stHeader")
    assert "Deploy" not in header.inner_text()
    box = header.bounding_box()
    assert box and box["height"] <= 50


@pytest.mark.parametrize("width", [1160, 1280])
def test_what_a_page_says_in_the_header_leaves_the_words_of_the_pages_alone(
    server: str, page: "Page", width: int
) -> None:
    page.set_viewport_size({"width": width, "height": 700})
    open_walkthrough(page, f"{server}/walkthrough?model=digits-imagegpt")
    expect(page.locator(".looked-at")).to_contain_text("picture")
    page.get_by_test_id("stTopNavSection").last.wait_for()
    said = page.locator(".st-key-headline").bounding_box()
    words = [link.bounding_box() for link in page.get_by_test_id("stTopNavSection").all()]
    assert said and max(box["x"] + box["width"] for box in words if box) <= said["x"]


def test_another_page_opens_on_what_was_looked_at_says_so_and_names_itself_in_its_menu(
    server: str, page: "Page"
) -> None:
    text = "It began to [MASK]."
    open_walkthrough(page, f"{server}/walkthrough?model=tales-bert&text={quote(text)}#layer=1&head=2")
    pages = {"Attention": ".attention", "Generate": "", "Compare": ".compare", "Train a model": "", "Anatomy": ""}
    pages |= {"Walkthrough": ".walkthrough", "Open a model": "", "Attention ": ".attention"}
    for title, root in pages.items():
        turn_to(page, title.strip())
        bar = page.locator(".looked-at")
        comes_to(page, lambda: bar.locator(".place").all_inner_texts(), ["block 2 · head 3"])  # noqa: B023
        expect(bar.locator(".model")).to_contain_text("tales-bert")
        if title != "Compare":
            expect(bar.locator(".text")).to_have_text(text)
        if not root:
            continue
        page.wait_for_selector(f"{root}[data-ready]")
        looked = page.locator(root).evaluate("e => [e.loupe.state.layer, e.loupe.state.head]")
        assert looked == [1, 2], title
        group = page.get_by_test_id("stTopNavSection").filter(has_text="Explore")
        named = group.locator("p").evaluate("p => getComputedStyle(p, '::after').content")
        assert title.strip() in named
    expect(page.get_by_role("combobox").first).to_have_value("tales-bert")


def test_the_header_names_the_head_that_attention_chose_by_itself(server: str, page: "Page") -> None:
    page.goto(f"{server}/attention?text=the+cat+sat+on+the+mat")
    page.wait_for_selector(".attention[data-ready]")
    layer, head = page.locator(".attention").evaluate("e => [e.loupe.state.layer, e.loupe.state.head]")
    assert (layer, head) != (0, 0) and "#" not in page.url
    expect(page.locator(".looked-at .place")).to_have_text(f"block {layer + 1} · head {head + 1}")


def test_on_a_phone_the_list_of_pages_closes_over_the_page_that_is_chosen(server: str, page: "Page") -> None:
    page.set_viewport_size({"width": 390, "height": 800})
    open_walkthrough(page, f"{server}/walkthrough")
    page.get_by_test_id("stExpandSidebarButton").click()
    page.get_by_test_id("stSidebarNav").get_by_role("link", name="Compare").click()
    page.wait_for_selector(".compare[data-ready]")
    page.get_by_test_id("stExpandSidebarButton").click()
    page.get_by_test_id("stSidebarNav").wait_for()
    page.reload()  # which opens the page and not the list, whatever stood open before
    expect(page.get_by_test_id("stExpandSidebarButton")).to_be_visible()


def test_the_way_back_leads_at_once_to_the_page_before_as_it_was_left(server: str, page: "Page") -> None:
    page.goto(f"{server}/attention?model=induction#layer=1&head=1&query=9&key=2")
    page.wait_for_selector(".attention[data-ready]")
    turn_to(page, "Compare")
    page.wait_for_url("**b_text=*")
    page.wait_for_selector(".compare[data-ready]")
    page.evaluate("dispatchEvent(new Event('pagehide'))")  # what waits to be written behind the # is, now
    assert "query" not in page.url, "a page's link has what the page before looked at"
    page.get_by_label("text of B").fill("Anna laughed")
    page.wait_for_url("**b_text=Anna+laughed*")
    settle(page)
    page.go_back()
    page.wait_for_url(lambda url: "/compare" in url and "Anna+laughed" not in url)
    expect(page.get_by_label("text of B")).not_to_have_value("Anna laughed")
    settle(page)
    page.go_back()
    page.wait_for_selector(".attention[data-ready]")
    page.wait_for_function("location.search.includes('induction') && location.hash === '#layer=1&head=1&query=9&key=2'")
    for _ in range(2):  # as it was come back to, and opened anew
        expect(page.get_by_label("text", exact=True)).to_have_value("b7Kx2qmTb7Kx2qm")
        page.wait_for_function("() => [...document.querySelectorAll('input')].some((one) => one.value === 'induction')")
        page.reload()
        page.wait_for_selector(".attention[data-ready]")


def test_back_and_forward_lead_over_all_pages_of_a_text_to_each_with_its_own(server: str, page: "Page") -> None:
    texts = {"Walkthrough": "One dog sat", "Attention": "Another cat ran", "Generate": "A bird flew"}
    page.goto(f"{server}/walkthrough")
    before = ""
    for title, text in texts.items():
        if before:
            turn_to(page, title)
            page.wait_for_url(f"**/{title.lower()}*{before.replace(' ', '+')}*")  # an entry of its own, to come back to
        before = text
        page.wait_for_selector(f".{title.lower()}[data-ready]")
        page.get_by_label("text", exact=True).fill(text)
        page.wait_for_url(f"**{text.replace(' ', '+')}*")
    turn_to(page, "Compare")
    page.wait_for_selector(".compare[data-ready]")
    back, forward = page.go_back, page.go_forward
    first, second, third = texts
    steps = [(first, first), (second, first), (second, second), (third, second), (third, third)]  # page, whose text
    ways = [(back, step) for step in steps[::-1]] + [(forward, step) for step in steps[1:]]
    for go, (title, whose) in [*ways, *[(back, step) for step in steps[-2::-1]]]:
        settle(page)
        go()
        page.wait_for_selector(f".{title.lower()}[data-ready]")
        expect(page.get_by_label("text", exact=True)).to_have_value(texts[whose])
        assert page.get_by_test_id("stException").count() == 0


def test_back_takes_back_what_was_typed_and_an_edit_and_forward_brings_it_again(server: str, page: "Page") -> None:
    page.goto(f"{server}/attention?text=One+dog+sat")
    page.wait_for_selector(".attention[data-ready]")
    field, edit = page.get_by_label("text", exact=True), page.locator(".experiment .edit .words")
    for text in ("A cat ran", "Two birds flew"):
        field.fill(text)
        field.press("Enter")
        page.wait_for_url(f"**text={text.replace(' ', '+')}*")
        settle(page)
    page.get_by_role("button", name="What if …").click()
    page.get_by_role("group", name="what to change").get_by_role("button", name="Heads").click()
    page.get_by_role("button", name="Add", exact=True).click()
    page.wait_for_url("**edits=*")
    expect(edit).to_have_count(1)
    steps = [("Two birds flew", 1), ("Two birds flew", 0), ("A cat ran", 0), ("One dog sat", 0)]
    ways = [(page.go_back, step) for step in steps[1:]] + [(page.go_forward, step) for step in steps[2::-1]]
    for go, (text, count) in ways:
        settle(page)
        go()
        expect(field).to_have_value(text)
        expect(edit).to_have_count(count)


def test_several_lines_are_begun_or_pasted_in_a_line_and_outlive_a_reload(server: str, page: "Page") -> None:
    page.goto(f"{server}/attention?text=one")
    page.wait_for_selector(".attention[data-ready]")
    found = "[...document.querySelectorAll('*')].map(e => e.shadowRoot?.querySelector('.attention')).find(Boolean)"
    line, area = page.locator(".st-key-text input"), page.locator(".st-key-text textarea")
    height = line.evaluate("e => e.parentElement.offsetHeight")
    line.press("End")
    line.press("Shift+Enter")
    page.keyboard.type("two")
    page.wait_for_url("**text=one%0Atwo*")
    expect(area).to_have_value("one\ntwo")
    expect(line).to_be_hidden()
    page.reload()
    page.wait_for_function(f"() => {found}?.loupe.data.lanes[''].pieces.includes('\\\\n')")
    expect(area).to_have_value("one\ntwo")
    area.fill("three")
    area.press("Control+Enter")
    page.wait_for_url("**text=three*")
    area.blur()
    expect(line).to_have_value("three")
    expect(area).to_have_count(0)
    assert line.evaluate("e => e.parentElement.offsetHeight") == height, "a line has got taller"
    line.evaluate(PASTE, "!\r\n")
    expect(line).to_have_value("thr!ee")  # the end of a line that was copied begins no other one
    line.press("Backspace")
    line.evaluate(PASTE, "\r\nfour\r\n")
    page.wait_for_url("**text=thr%0Afour%0Aee*")
    comes_to(page, lambda: area.evaluate("e => [e.value, e.selectionStart]"), ["thr\nfour\nee", 9])


def test_light_and_dark_reach_the_page_and_its_views(server: str, page: "Page") -> None:
    open_walkthrough(page, f"{server}/walkthrough")
    view = page.locator(".loupe-view[data-theme]").first
    assert background(page) == rgb(tokens()["colors"]["light"]["ground"])
    assert view.get_attribute("data-theme") == "light"
    page.emulate_media(color_scheme="dark")
    page.wait_for_selector('.loupe-view[data-theme="dark"]')
    comes_to(page, lambda: background(page), rgb(tokens()["colors"]["dark"]["ground"]))
    page.get_by_role("button", name="Main menu").click()
    page.get_by_test_id("stMainMenuItem-theme-Light").click()
    page.wait_for_selector('.loupe-view[data-theme="light"]')
    page.evaluate("localStorage.clear()")


def test_nothing_is_wider_than_the_page(server: str, page: "Page") -> None:
    open_walkthrough(page, f"{server}/walkthrough")
    for width in (1440, 1280, 390):
        page.set_viewport_size({"width": width, "height": 900})
        page.wait_for_function("width => innerWidth === width", arg=width)
        page.wait_for_function("width => document.documentElement.scrollWidth <= width", arg=width)


def test_modules_are_served_as_scripts_that_may_be_kept_for_ever(server: str, page: "Page") -> None:
    with page.expect_response("**/views.js") as found:
        page.goto(server)
    response = found.value
    assert response.headers["content-type"].startswith("text/javascript")
    assert response.headers["cache-control"] == "public, max-age=31536000, immutable"


def test_only_the_browsers_folder_is_served(server: str, page: "Page") -> None:
    with page.expect_response("**/views.js") as found:
        page.goto(server)
    folder = found.value.url.rsplit("/", 1)[0]
    for path in ("../theme/tokens.json", "..%2f..%2fapp.py", "../../app.py"):
        assert page.request.get(f"{folder}/{path}").text().find("import") == -1


def test_health_answers(server: str) -> None:
    with urlopen(f"{server}/health") as response:
        assert response.status == 200 and response.read() == b'{"status":"ok"}'


def test_streamlit_run_serves_the_same_page(streamlit_server: str, page: "Page") -> None:
    page.goto(f"{streamlit_server}/?text={quote(TEXT)}")
    page.wait_for_selector(VIEW, timeout=60_000)  # the first visitor waits for what `make run` has imported ahead
    settle(page)
    assert_drawn_equals(page, traced(), within=1e-5)  # torch's own choice of threads there: sums in another order
    assert background(page) == rgb(tokens()["colors"]["light"]["ground"])
    header = page.get_by_test_id("stHeader").bounding_box()
    assert header and header["height"] <= 50
    assert "Deploy" not in page.get_by_test_id("stHeader").inner_text()
