"""From Python to a view module and back: the host, the courier with its store, the address."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.browser.harness import expect, settle
from tests.conftest import Wire

if TYPE_CHECKING:
    from playwright.sync_api import Page

ASK = """sizes => Promise.allSettled(sizes.map(size => window.probe.request({size}))).then(all => all.map(
    one => one.value ? `${one.value.size}: ${one.value.arrays.filled.data.length}` : one.reason.message))"""


# Collects the parts of a stream that begins again behind what has come; `most` of them are wanted.
STREAM = """([query, most]) => {
  window.came = [];
  const wanted = new AbortController();
  const take = ({count}) => window.came.push(count) === most && wanted.abort();
  window.streaming = window.probe.stream(() => ({...query, begun: window.came.length}), take, wanted.signal)
    .then(() => window.came, (error) => [...window.came, error.message]);
}"""


@pytest.fixture
def fresh(app_server: Callable[[str], str], wire: Wire, page: "Page") -> "Page":
    page.goto(app_server("plumbing"))
    page.wait_for_selector("#probe")
    settle(page)
    return page


@pytest.fixture
def plumbing(page: "Page", request: pytest.FixtureRequest) -> "Page":
    """As the test before left it: each asks for sizes of its own, which the store does not have."""
    if page.locator("#probe").count():
        settle(page)
        return page
    return request.getfixturevalue("fresh")


def probe(page: "Page") -> str:
    return page.locator("#probe").inner_text()


def streamed(page: "Page") -> list[int]:
    """Where the streams that were asked for so far began."""
    settle(page)
    said = page.get_by_text(re.compile(r"^run \d+$")).inner_text()
    page.get_by_role("button", name="rerun").click()
    expect(page.get_by_text(f"run {int(said.removeprefix('run ')) + 1}", exact=True)).to_be_visible()
    return json.loads(page.get_by_text("streamed from: ").inner_text().removeprefix("streamed from: "))


def turn_up(page: "Page") -> None:
    page.get_by_role("slider", name="count").press("ArrowRight")


def test_a_view_gets_the_header_the_arrays_and_the_tokens_and_new_ones_without_being_mounted_again(
    fresh: "Page",
) -> None:
    assert probe(fresh) == "3 [0,1,2] pos light #2563c9"
    turn_up(fresh)
    fresh.wait_for_selector("#probe:text('4 [0,1,2,3] pos')")
    assert fresh.locator("#probe").get_attribute("data-mounts") == "1"


def test_the_same_data_again_does_not_reach_the_view(fresh: "Page") -> None:
    fresh.get_by_text("run 1", exact=True).wait_for()
    fresh.get_by_role("button", name="rerun").click()
    fresh.get_by_text("run 2", exact=True).wait_for()
    settle(fresh)
    assert fresh.locator("#probe").get_attribute("data-updates") == "0"


def test_rapid_changes_end_at_the_last_one(fresh: "Page") -> None:
    for _ in range(6):
        turn_up(fresh)
    fresh.wait_for_selector("#probe:text('9 [0,1,2,3,4,5,6,7,8] pos')")


def test_dark_reaches_the_view(plumbing: "Page") -> None:
    plumbing.emulate_media(color_scheme="dark")
    plumbing.wait_for_selector("#probe:text('dark #7aa7ff')")


def test_an_event_reaches_python_once(plumbing: "Page") -> None:
    plumbing.evaluate("window.probe.emit('pick', {head: 2})")
    plumbing.wait_for_selector("text=picked: {'head': 2}")
    plumbing.get_by_role("button", name="rerun").click()
    plumbing.wait_for_selector("text=picked: None")


def test_a_module_that_fails_says_so_and_spares_the_others(fresh: "Page", faults: list[str]) -> None:
    fresh.get_by_text("show broken").click()
    fresh.wait_for_selector("text=could not be drawn: expected nothing, got on purpose. Reload the page")
    turn_up(fresh)
    fresh.wait_for_selector("#probe:text('4 [0,1,2,3] pos')")
    assert faults and all("expected nothing, got on purpose" in fault for fault in faults)
    faults.clear()


def test_a_module_that_cannot_be_fetched_says_so_in_one_sentence(
    app_server: Callable[[str], str], page: "Page", faults: list[str]
) -> None:
    page.route("**/views.js", lambda route: route.abort())
    page.goto(app_server("plumbing"))
    page.wait_for_selector('text=This view ("probe/probe") could not be loaded')
    assert faults
    faults.clear()


def test_a_view_that_leaves_the_page_is_destroyed_and_the_courier_stays(fresh: "Page") -> None:
    fresh.get_by_text("without probe").click()
    fresh.wait_for_function("window.probe.destroyed")
    assert fresh.evaluate(ASK, [13]) == ["13: 13"]
    fresh.get_by_text("without probe").click()
    fresh.wait_for_selector("#probe[data-mounts='2']")


def test_the_courier_answers_each_question_with_its_own_arrays(plumbing: "Page") -> None:
    assert plumbing.evaluate(ASK, [105, 106]) == ["105: 105", "106: 106"]


def test_many_questions_in_one_go_are_one_rerun(plumbing: "Page", wire: Wire) -> None:
    before = wire.reruns
    sizes = list(range(201, 221))
    assert plumbing.evaluate(ASK, sizes) == [f"{size}: {size}" for size in sizes]
    assert wire.reruns - before == 1


def test_more_questions_than_one_rerun_answers_are_all_answered(plumbing: "Page") -> None:
    sizes = list(range(301, 371))
    assert plumbing.evaluate(ASK, sizes) == [f"{size}: {size}" for size in sizes]


def test_a_question_asked_again_costs_no_message(plumbing: "Page", wire: Wire) -> None:
    plumbing.evaluate("window.probe.request({size: 400, delay: 0})")
    before = wire.reruns
    plumbing.evaluate("window.probe.request({delay: 0, size: 400})")
    assert wire.reruns == before


def test_an_answer_brings_its_own_bytes_and_not_the_payload(plumbing: "Page", wire: Wire) -> None:
    before = len(wire.received)
    plumbing.evaluate(ASK, [10_000])
    heavy = [size for size in wire.received[before:] if size > 20_000]
    assert len(heavy) == 1 and 40_000 < heavy[0] < 45_000


def test_a_refused_question_rejects_and_may_be_asked_again(plumbing: "Page", wire: Wire) -> None:
    sentence = "expected a size of at most 100000, got 200000; ask for less"
    assert plumbing.evaluate(ASK, [200_000, 107]) == [sentence, "107: 107"]
    before = wire.reruns
    assert plumbing.evaluate(ASK, [200_000]) == [sentence]
    assert wire.reruns == before + 1


def test_a_stream_brings_its_parts_while_the_next_are_made(plumbing: "Page", tmp_path: Path) -> None:
    plumbing.evaluate(STREAM, [{"size": 4, "held": 2, "until": str(tmp_path / "go on")}, 9])
    plumbing.wait_for_function("came.length === 2")
    (tmp_path / "go on").touch()
    assert plumbing.evaluate("streaming") == [0, 1, 2, 3]
    plumbing.evaluate(STREAM, [{"size": 3}, 9])
    assert plumbing.evaluate("streaming") == [0, 1, 2]
    assert plumbing.evaluate(ASK, [501]) == ["501: 501"]


def test_a_question_asked_while_parts_come_is_answered_behind_them(plumbing: "Page", wire: Wire) -> None:
    before = wire.reruns
    plumbing.evaluate(STREAM, [{"size": 3, "delay": 0.2}, 9])
    plumbing.wait_for_function("came.length")
    assert plumbing.evaluate(ASK, [502]) == ["502: 502"]
    assert plumbing.evaluate("came") == [0, 1, 2]
    assert wire.reruns - before == 2


def test_a_question_that_parts_hold_up_may_break_them_off_and_they_go_on_behind_it(plumbing: "Page") -> None:
    plumbing.evaluate("""() => {
        window.held = 0;
        window.probe.onHeldUp(() => {
            window.held += 1;
            Array.from(document.querySelectorAll("button")).find((one) => one.textContent === "rerun").click();
        });
    }""")
    plumbing.evaluate(STREAM, [{"size": 300, "delay": 0.2}, 400])
    plumbing.wait_for_function("came.length")
    assert plumbing.evaluate("held") == 0
    plumbing.evaluate("""() => {
        for (const size of [503, 504]) probe.request({size}).then(() => (window.before = came.length));
    }""")
    plumbing.wait_for_function("window.before && came.length > before")
    assert plumbing.evaluate("[before < 300, held, came.every((count, i) => count === i)]") == [True, 1, True]
    plumbing.goto("about:blank")  # parts would come for a minute


def test_a_fault_in_a_stream_is_said_behind_the_parts_before_it(plumbing: "Page") -> None:
    plumbing.evaluate(STREAM, [{"size": 9, "refused": 2}, 9])
    assert plumbing.evaluate("streaming") == [0, 1, "expected a count below 2, got 2; ask for less"]


def test_a_rerun_of_the_whole_page_breaks_a_stream_off_and_it_goes_on_behind_what_came(plumbing: "Page") -> None:
    before = streamed(plumbing)
    plumbing.evaluate(STREAM, [{"size": 100, "delay": 0.2, "once": True}, 200])
    plumbing.wait_for_function("came.length >= 2")
    turn_up(plumbing)
    assert plumbing.evaluate("streaming") == [*range(100)]
    first, *again = streamed(plumbing)[len(before) :]
    assert first == 0 and again and 1 <= again[-1]  # a slow machine may have been asked more often


def test_a_stream_that_is_not_wanted_any_more_is_not_asked_for_again(plumbing: "Page") -> None:
    before = streamed(plumbing)
    plumbing.evaluate(STREAM, [{"size": 6, "delay": 0.1}, 2])
    assert plumbing.evaluate("streaming") == [0, 1]
    turn_up(plumbing)  # breaks it off
    assert plumbing.evaluate(ASK, [505]) == ["505: 505"]
    assert plumbing.evaluate("came") == [0, 1]
    assert streamed(plumbing) == [*before, 0]


def test_a_rerun_of_the_whole_page_does_not_lose_a_question(plumbing: "Page") -> None:
    plumbing.evaluate("""() => {
        window.first = window.probe.request({size: 511, delay: 0.4});
        Array.from(document.querySelectorAll("button")).find(one => one.textContent === "rerun").click();
        window.second = window.probe.request({size: 512});
    }""")
    turn_up(plumbing)
    assert plumbing.evaluate("Promise.all([first, second]).then(all => all.map(one => one.size))") == [511, 512]


@pytest.mark.parametrize("picked", [5, 6])
def test_what_a_view_says_in_the_tick_of_a_question_is_heard(plumbing: "Page", picked: int) -> None:
    first, second = f"emit('pick', {picked})", f"request({{size: 52{picked}}})"
    if picked == 6:
        first, second = second, first
    plumbing.evaluate(f"""async () => {{
        window.probe.{first};
        await null; await null; // the courier takes a question to Streamlit in a later turn of the same tick
        window.probe.{second};
    }}""")
    plumbing.wait_for_selector(f"text=picked: {picked}")
    plumbing.wait_for_function(f"window.probe.request({{size: 52{picked}}}).then(({{size}}) => size === 52{picked})")


def test_the_courier_takes_no_room(plumbing: "Page") -> None:
    assert plumbing.locator(".st-key-courier").bounding_box() is None
    above, below = (plumbing.locator(f"#{place}").bounding_box() for place in ("above", "below"))
    gap = "parseFloat(getComputedStyle(document.querySelector('[data-testid=stVerticalBlock]')).rowGap)"
    assert above and below
    assert below["y"] - above["y"] == pytest.approx(plumbing.evaluate(gap), abs=1)


def test_the_store_forgets_the_least_recently_used_answer(plumbing: "Page", wire: Wire) -> None:
    plumbing.evaluate(ASK, list(range(601, 665)))
    plumbing.evaluate(ASK, [601])  # used again: 602 is now the oldest
    plumbing.evaluate(ASK, [665])
    before = wire.reruns
    plumbing.evaluate(ASK, [601])
    assert wire.reruns == before
    plumbing.evaluate(ASK, [602])
    assert wire.reruns == before + 1


def hash_of(page: "Page") -> str:
    return page.evaluate("location.hash")


def test_the_address_keeps_what_a_view_writes_and_asks_no_server(plumbing: "Page", wire: Wire) -> None:
    before = wire.reruns
    plumbing.evaluate("probe.address.write({layer: 2, cell: [5, 7], word: '12', name: 'a&b=c', gone: 1})")
    plumbing.evaluate("probe.address.write({layer: 3, gone: null})")
    plumbing.wait_for_function("location.hash.startsWith('#layer=3')")
    assert hash_of(plumbing) == "#layer=3&cell=[5,7]&word=%2212%22&name=a%26b%3Dc"
    assert plumbing.evaluate("probe.address.read()") == {
        "layer": 3,
        "cell": [5, 7],
        "word": "12",
        "name": "a&b=c",
    }
    assert wire.reruns == before


def test_the_address_outlives_streamlits_query_params(fresh: "Page") -> None:
    fresh.evaluate("probe.address.write({layer: 3})")
    fresh.wait_for_url("**/#layer=3")
    turn_up(fresh)  # a widget bound to the query string
    fresh.wait_for_url("**/?count=4#layer=3")
    fresh.get_by_role("button", name="param").click()  # st.query_params
    fresh.wait_for_url("**/?count=4&text=*#layer=3")
    fresh.evaluate("probe.address.write({head: 1})")
    fresh.wait_for_url("**/?count=4&text=*#layer=3&head=1")


def test_a_link_opens_the_view_state_and_the_widgets_it_was_taken_from(fresh: "Page") -> None:
    home = fresh.url
    fresh.goto("about:blank")
    fresh.goto(f"{home}?count=6#layer=1&cell=[2,3]")
    fresh.wait_for_selector("#probe:text('6 [0,1,2,3,4,5] pos')")
    assert fresh.evaluate("probe.address.read()") == {"layer": 1, "cell": [2, 3]}


def test_going_back_tells_the_view(plumbing: "Page") -> None:
    plumbing.evaluate("void probe.address.follow(now => { window.told = now; })")
    plumbing.evaluate("location.hash = 'layer=1'")
    plumbing.wait_for_function("window.told?.layer === 1")
    plumbing.evaluate("location.hash = 'layer=2'")
    plumbing.wait_for_function("window.told?.layer === 2")
    plumbing.go_back()
    plumbing.wait_for_function("window.told?.layer === 1")


def test_a_malformed_address_gives_an_object(plumbing: "Page") -> None:
    for malformed in ["#%", "#=&=&", "#layer=%ZZ", "#__proto__=1&layer={", "#" + "x" * 5000]:
        plumbing.evaluate("hash => { location.hash = hash; }", malformed)
        assert isinstance(plumbing.evaluate("probe.address.read()"), dict)
    assert plumbing.evaluate("({}).layer === undefined && typeof probe.address.read().toString") == "function"
