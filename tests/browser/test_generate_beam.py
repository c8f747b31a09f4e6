"""The tabs Beam and Cache in a browser: the tree is walked and played, the grid grows, the numbers are the engine's."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

import pytest

from engine.generation.prompt import begin
from engine.runtime import library
from tests.browser.harness import answered, expect
from tests.browser.test_generate import ESCAPE, FIND, IDLE, at_next_part, open_tab, told
from tests.browser.test_take import saved
from views.generate.beam_search import EXAMPLES, BeamOptions, search_to
from views.generate.kv_cache import CachedPrompt, cache_arrays
from views.generate.session import Call, GenerationContext

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.long

Open = Callable[[str], "Page"]


def writing(model: str, text: str) -> GenerationContext:
    checkpoint = library.checkpoint(model)
    return GenerationContext(model, checkpoint, begin(checkpoint, text), Call(repr(text)))


def test_the_tree_of_the_example_is_walked_played_and_written_on_from(open_page: Open, server: str) -> None:
    example = EXAMPLES[0]
    said = "&".join(f"{name}={quote(example[name])}" for name in ("model", "text", "stop_at"))
    page = open_page(f"{server}/generate?{said}#view=beam&beam_tokens={example['tokens']}")
    nodes = page.locator(".beam-node")
    nodes.first.wait_for()
    search = search_to(writing(example["model"], example["text"]), BeamOptions(tokens=12, stop_at=example["stop_at"]))
    apart = sum(at < 0 for at in search.on_greedy)
    assert nodes.count() == len(search.nodes) + apart
    assert nodes.evaluate_all("all => all.filter((one) => one.classList.contains('is-pruned')).length") == sum(
        search.state(one) == "pruned" for one in search.nodes
    )
    assert "The paths part at token 1: greedy takes “outside”" in page.locator(".beam-why").inner_text()
    assert page.locator(".beam-row .beam-text").first.inner_text() == "for a walk."

    pruned = next(one for one in search.nodes if len(one.ids) == 3 and search.state(one) == "pruned")
    page.locator(f'[data-node="3:{pruned.rank}"]').click()
    assert f"Rank {pruned.rank} of the 8 candidates of step 3: pruned" in page.locator(".beam-state").inner_text()
    assert page.locator(".beam-node.is-lit").count() == 3
    page.keyboard.press("ArrowLeft")
    assert told(page, "page.tab.picked.key") == f"2:{search.nodes[search.parent(pruned)].rank}"

    page.locator(".beam-slider").fill("4")
    assert page.locator(".beam-column.is-later").count() == len(search.steps) - 4
    assert page.locator(".beam-found h3").inner_text() == "Finished so far, the best first"
    page.get_by_role("button", name="play the steps").click()
    page.locator(".beam-where", has_text="step 5 of").wait_for()
    page.locator(f'[data-node="3:{pruned.rank}"]').click()
    page.get_by_role("button", name="Continue from here").click()
    page.locator('.generate[data-ready="write"]').wait_for()
    page.wait_for_function(f"() => {FIND}.loupe.written.length > 3")
    page.wait_for_function(IDLE)
    assert told(page, "page.written.slice(0, 3)") == list(pruned.ids)


def test_the_search_follows_its_controls(open_page: Open, server: str) -> None:
    page = open_page(f"{server}/generate?model=stories#view=beam&beam_tokens=6&beam_beams=99&beam_step=%22x%22")
    page.locator(".beam-node").first.wait_for()
    assert told(page, "page.tab.search.query.wanted.beams") == 4  # nonsense is passed over
    page.get_by_label("beams", exact=True).fill("2")
    page.get_by_label("beams", exact=True).press("Enter")
    page.wait_for_function(f"() => {FIND}.loupe.tab.search?.query.wanted.beams === 2")
    page.locator(".st-key-beam_early button", has_text="yes").click()
    page.wait_for_function(f"() => {FIND}.loupe.tab.search?.query.wanted.early === 'yes'")
    for entry in ("beam_early=yes", "beam_beams=2"):
        page.wait_for_function("entry => location.search.includes(entry)", arg=entry)
    expect(page.locator(".beam-row .beam-text")).to_have_count(3)  # two texts and the greedy one


def test_a_search_is_seen_step_by_step_stopped_and_gone_on_with(
    open_page: Open, server: str, browser: "Browser", tmp_path: Path
) -> None:
    text = "Max gave the red ball to"
    page = open_page(f"{server}/generate?model=stories&text={quote(text)}#view=beam&beam_tokens=30&beam_beams=1")
    page.locator(".beam-why").wait_for()
    assert page.locator(".beam-act:visible").count() == 0
    for beams in (3, 4, 5, 6):  # on a busy machine all of one may have come while the page was run again
        at_next_part(page, f"window.going = page.tab.now.textContent; {ESCAPE}")
        page.get_by_label("beams", exact=True).fill(str(beams))
        page.get_by_label("beams", exact=True).press("Enter")
        page.wait_for_function(f"""() => {{
          const {{ search }} = {FIND}.loupe.tab;
          return search?.query.wanted.beams === {beams} && search.state !== "going";
        }}""")
        if told(page, "page.tab.search.state") == "stopped":
            break
    page.locator(".beam-now", has_text="Stopped").wait_for()
    assert page.evaluate("going") == "Searching, at most 30 steps …"
    count = told(page, "page.tab.search.count")
    page.locator(".beam-now", has_text=f"Stopped after {count} of 30 steps.").wait_for()
    whole = search_to(writing("stories", text), BeamOptions(beams=beams, tokens=30))
    some = [one for one in whole.nodes if len(one.ids) <= count]
    answered(page)  # what was on its way, too
    assert told(page, "page.tab.search.nodes.map((node) => node.id)") == [one.id for one in some]
    assert page.locator(".beam-node[data-node]").count() >= len(some) and page.locator(".beam-why").count() == 0

    open_tab(page, "cache")
    open_tab(page, "beam")
    page.locator(".beam-now", has_text=f"Stopped after {count} of 30 steps.").wait_for()
    page.get_by_role("button", name="Share & export").click()
    path = saved(page, "HTML", tmp_path)
    alone = browser.new_page()
    alone.goto(path.as_uri())
    alone.locator(".beam-now", has_text=f"after {count} of 30 steps").wait_for()
    assert told(alone, "page.tab.search.nodes.length") == len(some)
    assert alone.locator(".beam-act:visible").count() == 0
    alone.close()

    page.evaluate(f"""() => {{
      const page = {FIND}.loupe;
      page.stream = (query, ...more) => {{
        delete page.stream;
        return page.stream(() => ({{ ...query(), came: 99 }}), ...more); // no search has so many steps
      }};
    }}""")
    page.get_by_role("button", name="Continue", exact=True).click()
    page.locator(".beam-now", has_text="Unknown request from the page").wait_for()
    assert told(page, "page.tab.search.nodes.length") == len(some)
    page.evaluate(f"() => {{ const page = {FIND}.loupe; page.tab.goOn(); page.openTab('cache'); }}")  # at once
    page.locator(".cache-frame canvas").first.wait_for()
    open_tab(page, "beam")
    page.locator(".beam-why").wait_for()
    assert told(page, "page.tab.search.nodes.map((node) => node.id)") == [one.id for one in whole.nodes]
    best = [page.locator(".beam-place", has_text=f"#{place}").count() for place in (1, 2, 3)]
    assert best == [1, 1, 1] and page.locator(".beam-node.is-best").count() == len(whole.best[0].ids)
    assert page.locator(".beam-now").inner_text() == ""


def test_the_cache_grows_with_what_is_written(open_page: Open, server: str) -> None:
    text = "Max gave the red ball to"
    page = open_page(f"{server}/generate?model=stories&text={quote(text)}&most=6&method=greedy#view=cache")
    page.locator(".cache-frame canvas").first.wait_for()
    given = told(page, "page.tab.found.pieces.length")
    page.get_by_role("button", name="Write", exact=True).click()
    page.wait_for_function(f"() => {FIND}.loupe.tab.found.pieces.length === {given + 6}")
    page.wait_for_function(IDLE)
    ids = tuple(told(page, "page.written"))
    arrays = cache_arrays(CachedPrompt(writing("stories", text), ids))
    page.locator(".cache-frame canvas").first.focus()
    page.keyboard.press("ArrowRight")  # the newest position
    k, v = (float(arrays[name][0, 0, -1]) for name in "kv")
    said = page.locator(".cache-said").inner_text()
    assert said.startswith(f"block 1, head 1, position {given + 6} ")
    shown = [float(part.split(",")[0]) for part in said.replace("|v| ", "|k| ").split("|k| ")[1:]]
    assert shown == pytest.approx([k, v], rel=1e-4)
    page.locator(".cache-slider").fill("2")
    assert f"{given + 2} positions" in page.locator(".cache-sums").first.inner_text()
    page.get_by_role("button", name="Measure", exact=True).click()
    page.get_by_role("button", name="Measure again").wait_for()
    assert page.locator(".stVegaLiteChart").count() == 3
