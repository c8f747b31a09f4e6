"""The page Generate in a browser: a text is written and stopped, branches stay, and the numbers are the engine's."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest

from engine.budget import budget
from engine.generation.generate import generate
from engine.runtime import library
from tests.browser.harness import answered, comes_to, turn_to
from tests.browser.test_take import saved
from tests.pages.test_conversation import save_talker
from views.generate.beam_search import BeamOptions

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Locator, Page

TEXT = "Max gave the red ball to"
FIND = "[...document.querySelectorAll('*')].map((e) => (e.shadowRoot ?? e).querySelector?.('.generate')).find(Boolean)"
IDLE = f"() => !{FIND}?.loupe.run.active"
ESCAPE = "dispatchEvent(new KeyboardEvent('keydown', {key: 'Escape'}))"


@pytest.fixture
def look(open_page: Callable[[str], "Page"], server: str) -> Callable[..., "Page"]:
    def open_(more: str = "", **query: str) -> "Page":
        said = "&".join(f"{name}={quote(value)}" for name, value in {"text": TEXT, **query}.items())
        page = open_page(f"{server}/generate?{said}{more}")
        page.locator(".generate[data-ready]").wait_for(state="attached")  # some tabs have nothing of it
        return page

    return open_


def told(page: "Page", expression: str) -> Any:
    return page.evaluate(f"() => {{ const page = {FIND}.loupe; return {expression}; }}")


def open_tab(page: "Page", name: str) -> None:
    page.locator(".st-key-view button", has_text=name).click()
    page.locator(f'.generate[data-ready="{name}"]').wait_for(state="attached")


def at_next_part(page: "Page", work: str) -> None:
    """Runs `work` as soon as the view that stands takes the next part of an answer, which no browser can miss."""
    page.evaluate(f"""() => {{
      const view = Object.getPrototypeOf({FIND}.loupe); // that of a view which is mounted anew, too
      const {{ stream }} = view;
      view.stream = function (query, take, signal) {{
        const page = this;
        return stream.call(page, query, (part) => {{
          take(part);
          if (view.stream === stream || page !== {FIND}?.loupe) return;
          view.stream = stream;
          {work};
        }}, signal);
      }};
    }}""")


def write(page: "Page", start: Callable[[], object]) -> None:
    """Until nothing is written any more."""
    start()
    page.wait_for_function(IDLE)


def go(page: "Page") -> "Locator":
    return page.locator(".write-button.go")


def written(ids: list[int], count: int, **settings: Any) -> list[int]:
    checkpoint = library.checkpoint("stories")
    return [step.id for step in generate(checkpoint, TEXT, count, begun=ids, **settings)]


def test_a_text_is_written_branches_and_outlives_the_page(look: Callable[..., "Page"]) -> None:
    page = look(most="12", seed="7")
    write(page, lambda: page.keyboard.press("Enter"))
    first = written([], 12, seed=7)
    assert told(page, "page.written") == first
    assert page.locator(".write-told").inner_text() == "Reached the 12-token limit."
    page.locator(".tok.written").nth(3).click()
    row = page.locator("button.step-row:not(.is-chosen)").first
    other = told(page, "page.tab.step.rows.find(({id}) => id !== page.tree.path()[3].id).id")
    write(page, row.click)
    branch = [*first[:3], other]
    assert told(page, "page.written") == branch + written(branch, 16, seed=7)
    assert told(page, "page.run.told") == "Reached the 12-token limit."
    assert page.locator(".branch").count() == 2 and page.locator(".tok.chosen").count() == 1
    turn_to(page, "Attention")
    page.locator(".attention").wait_for()
    turn_to(page, "Generate")
    page.locator(".branch").nth(1).wait_for()
    page.locator(".branch").nth(0).click()
    assert told(page, "page.written") == first
    page.reload()
    page.locator(".branch").nth(1).wait_for()
    page.get_by_role("button", name="delete the branch").first.click()
    assert page.locator(".branch").count() == 1
    page.get_by_role("button", name="Delete all").click()
    assert told(page, "page.tree.isEmpty") and page.locator(".tok.written").count() == 0


def test_what_is_written_after_a_conversation_becomes_its_next_turn(
    open_page: Callable[[str], "Page"], stage: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(budget, "models_folder", str(tmp_path))
    page = open_page(f"{stage}/generate?model={save_talker(tmp_path)}&reads=conversation&most=6&method=greedy")
    page.locator(".generate[data-ready]").wait_for(state="attached")
    keep = page.get_by_role("button", name="Keep as a turn")
    assert not keep.is_visible()
    write(page, lambda: page.keyboard.press("Enter"))
    ids, before = told(page, "page.written"), told(page, "page.data.prompt.ids")
    keep.click()
    page.wait_for_function(f"() => {FIND}?.loupe.data.prompt.ids.length > {len(before)}")
    tokenizer = library.checkpoint("stories").tokenizer
    assert tokenizer is not None
    turns = f"user: Hello.<|endoftext|>assistant: {tokenizer.decode(ids)}<|endoftext|>user: <|endoftext|>assistant: "
    assert told(page, "page.data.prompt.ids") == tokenizer.ids(turns, special=False) and not keep.is_visible()


def test_the_step_of_a_token_shows_the_engines_numbers(look: Callable[..., "Page"]) -> None:
    page = look(most="6", temperature="0.7", top_k="5")
    write(page, go(page).click)
    page.locator(".tok.written").nth(2).click()
    ids = told(page, "page.written")
    step = next(generate(library.checkpoint("stories"), TEXT, 3, begun=ids[:2], temperature=0.7, top_k=5))
    rows = told(page, "page.tab.step.rows.map(({id, logits, probabilities}) => [id, logits, probabilities])")
    for id, logit, probability in rows:
        assert logit == pytest.approx(float(step.logits[id]), abs=1e-4)
        assert probability == pytest.approx(float(step.distribution.probabilities[id]), abs=1e-5)
    before = step.logits.double().log_softmax(-1)
    bits = float(-(before.exp() * before).sum()) / math.log(2)
    assert f"{bits:.2f} bits" in page.locator(".step-facts").inner_text()
    assert page.locator(".step-row.heading").inner_text().split("\n").count("5 left") >= 1
    chosen = page.locator(".step-row.is-chosen .piece").inner_text()
    assert chosen == library.checkpoint("stories").tokenizer.piece(ids[2])


def test_escape_stops_it_where_it_stands(look: Callable[..., "Page"]) -> None:
    page = look(most="240", method="greedy", text="One day", repetition_penalty="1.4")
    go(page).click()
    page.locator(".tok.written").first.wait_for()
    page.keyboard.press("Escape")
    count = page.locator(".tok.written").count()
    said = page.locator(".write-told").inner_text()
    assert said.startswith(("Stopped after", "The end token", "Reached", "It stopped"))
    answered(page)  # what was on its way, too
    assert page.locator(".tok.written").count() == count == len(told(page, "page.written"))


def test_what_was_written_when_the_page_is_reloaded_meanwhile_stays(look: Callable[..., "Page"]) -> None:
    page = look(most="240", method="greedy", text="One day", repetition_penalty="1.4")
    go(page).click()
    # The mark outlives the reload, by which the browser may end this call before it answers.
    begun = f"() => {{ const page = {FIND}?.loupe; return page?.run.active && page.written.length"
    reload = "(sessionStorage.setItem('reloaded', ''), location.reload(), true)"
    page.wait_for_function(f"{begun} && {reload} || 'reloaded' in sessionStorage; }}")
    page.locator(".branch").wait_for()
    assert told(page, "page.written.length") > 0 and not told(page, "page.run.active")


def test_a_setting_holds_for_what_is_written_from_then_on(look: Callable[..., "Page"]) -> None:
    page = look(most="3", method="greedy")
    write(page, go(page).click)
    before = told(page, "page.written")
    page.locator("input[aria-label='maximum tokens']").fill("5")
    page.keyboard.press("Enter")
    page.wait_for_function(f"() => {FIND}.loupe.data.settings.most === 5")
    assert told(page, "page.written") == before
    write(page, go(page).click)
    assert told(page, "page.written") == written([], 8, greedy=True)
    assert told(page, "page.tree.path().map((node) => page.tree.settingsOf(node).most)") == [3] * 3 + [5] * 5


def test_a_picture_a_target_and_a_gap_are_written_where_they_stand(look: Callable[..., "Page"]) -> None:
    page = look(model="digits-imagegpt", given="50", most="60", text="")
    write(page, go(page).click)
    assert page.locator(".write-told").inner_text() == "The picture is complete, with all its 64 pixels."
    assert page.locator(".pixel-frame canvas").is_visible()
    page.locator(".st-key-view button", has_text="surprise").click()
    page.locator(".s-pixel").first.wait_for()  # it has a size
    page = look(model="translate-en-fr", text="The dog is under the table.", method="greedy")
    write(page, go(page).click)
    assert page.locator(".part").count() == 2 and page.locator(".part").nth(1).locator(".tok.written").count() > 3
    page = look(model="infill", text="Max gave the red [gMASK] to Anna.", method="greedy")
    write(page, go(page).click)
    assert page.locator(".gap-of .tok.written").count() == len(told(page, "page.written"))
    page = look(model="in-context", text="town: place\nlion:", stop_at="\\n")
    write(page, go(page).click)
    lines = "(one) => new Set(Array.from(one.querySelectorAll('.tok'), (tok) => tok.offsetTop)).size"
    assert page.locator(".flow-of").evaluate(lines) == 2


def test_the_slider_of_a_temperature_redraws_its_chart_without_a_message(look: Callable[..., "Page"]) -> None:
    page = look()
    sent = list[object]()
    page.on("websocket", lambda socket: socket.on("framesent", lambda frame: sent.append(frame)))
    page.goto(page.url + "&view=temperature&t=1")
    slider = page.locator(".st-key-panel-of-numbers .vega-bind input")
    slider.wait_for()
    assert float(slider.input_value()) == 1
    chart = page.locator(".st-key-panel-of-numbers .stVegaLiteChart")
    answered(page)
    before, count = chart.screenshot(), len(sent)
    assert count > 0
    slider.fill("4.5")
    comes_to(page, lambda: chart.screenshot() != before, True)
    answered(page)
    assert len(sent) == count
    page.get_by_role("button", name="T = 5").click()
    page.wait_for_function("() => [...document.querySelectorAll('.vega-bind input')].every((one) => one.value === '5')")


def test_the_file_holds_what_was_written_and_every_step_of_it(
    look: Callable[..., "Page"], browser: "Browser", tmp_path: Path
) -> None:
    page = look(most="5", method="greedy")
    write(page, go(page).click)
    page.get_by_role("button", name="Share & export").click()
    path = saved(page, "HTML", tmp_path)
    alone = browser.new_page()
    alone.goto(path.as_uri())
    alone.locator(".tok.written").nth(2).click()
    alone.locator(".step-row.is-chosen").wait_for()
    assert told(alone, "page.written") == written([], 5, greedy=True)
    assert not go(alone).is_visible()
    piece = library.checkpoint("stories").tokenizer.piece(told(alone, "page.written")[2])
    assert alone.locator(".step-row.is-chosen .piece").inner_text() == piece
    alone.close()


def test_an_older_link_opens_the_tab_that_stands_after_the_hash_with_its_controls(look: Callable[..., "Page"]) -> None:
    page = look("#view=beam&beam_tokens=6&beam_beams=2")
    page.locator('.generate[data-ready="beam"]').wait_for()
    page.wait_for_function(f"() => {FIND}.loupe.tab.search?.state === 'whole'")
    assert told(page, "page.tab.search.query.wanted") == vars(BeamOptions(beams=2, best=2, tokens=6))
    page.wait_for_function("() => !location.hash.includes('beam_')")
    page = look("#view=temperature&t=2&numbers=[1,2]")
    page.locator(".st-key-panel-of-numbers .vega-bind input").wait_for()
    page.wait_for_function("() => [...document.querySelectorAll('.vega-bind input')].every((one) => one.value === '2')")
    assert page.get_by_label("numbers", exact=True).input_value() == "1, 2"


def test_what_somebody_typed_into_the_address_breaks_nothing(look: Callable[..., "Page"]) -> None:
    page = look('#view={"x":1}&t="hot"&numbers=[1,"2x"]&at=-5', method="beam", temperature="-9", seed="x")
    page.locator('.generate[data-ready="write"]').wait_for()
    open_tab(page, "temperature")
    page.locator(".vega-bind input").first.wait_for()
    assert page.get_by_label("numbers", exact=True).input_value() == "2, 4, 5"


@pytest.mark.parametrize("width", [390, 853, 1100, 1280])
def test_the_text_keeps_its_width_on_every_screen(browser: "Browser", server: str, width: int) -> None:
    page = browser.new_page(viewport={"width": width, "height": 720})
    page.goto(f"{server}/generate?text=One%20day")
    page.locator(".write-body .tok").first.wait_for()
    texts = page.locator(".write-body .tok").first.locator("xpath=ancestor::*[contains(@class, 'text')][1]")
    assert texts.bounding_box()["width"] >= min(320, width - 60)
    assert page.evaluate("() => document.documentElement.scrollWidth <= innerWidth")
    page.close()
