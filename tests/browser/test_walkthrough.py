"""The walkthrough in a real browser: what is drawn is what the engine computed, and looking around asks no server."""

from collections.abc import Callable
from typing import TYPE_CHECKING
from urllib.parse import quote

import numpy as np
import pytest

from engine.edits import AttentionTemperature
from engine.runtime import library
from engine.runtime.trace import Trace
from tests.browser.harness import BYTES, expect, floats, settle, shows

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Browser, Locator, Page

    from tests.conftest import Wire

TEXT = "The little dog was sad because he lost his ball"
READY = ".walkthrough[data-ready]"
FIND = "[...document.querySelectorAll('*')].map(e => e.shadowRoot?.querySelector('.walkthrough')).find(Boolean)"
STAGES = [
    "embed",
    "position",
    "resid_pre",
    "norm1",
    "q",
    "k",
    "v",
    "attention",
    "z",
    "out",
    "resid_mid",
    "norm2",
    "mlp",
]
STAGES += ["resid_post", "final_norm"]

Open = Callable[[str], "Page"]


@pytest.fixture
def walk(open_page: Open, stage: str) -> Callable[..., "Page"]:
    def open_(text: str = TEXT, address: str = stage, **query: object) -> "Page":
        more = "".join(f"&{name}={value}" for name, value in query.items() if name != "hash")
        page = open_page(f"{address}/walkthrough?text={quote(text)}{more}{query.get('hash', '')}")
        page.wait_for_selector(READY)
        return page

    return open_


def traced(text: str = TEXT, model: str = "stories", temperature: float = 1.0) -> Trace:
    encoding = library.checkpoint(model).tokenizer.encode(text)
    return library.traces.trace(model, encoding, [] if temperature == 1 else [AttentionTemperature(temperature)])


def root(page: "Page") -> "Locator":
    return page.locator(".walkthrough")


def state(page: "Page") -> dict:
    return root(page).evaluate(
        "e => ({layer: e.loupe.state.layer, head: e.loupe.state.head, row: e.loupe.state.query})"
    )


def explained(page: "Page", title: str) -> tuple[float, float]:
    """Waits for the arithmetic whose title holds `title`; (recomputed, stored)."""
    page.locator(".arithmetic h3", has_text=title).wait_for()
    said = page.locator(".verdict").evaluate("({ dataset }) => [dataset.recomputed, dataset.stored]")
    return float(said[0]), float(said[1])


def assert_drawn_equals(page: "Page", trace: Trace, within: float = 0.0) -> set[str]:
    """Compares every panel's numbers with the trace; returns the hooks that were drawn."""
    drawn = root(page).evaluate(f"e => e.loupe.drawn().map(p => ({{...p, values: {BYTES}(p.values.flat())}}))")
    for panel in drawn:
        values = floats(panel["values"]).reshape(panel["rows"], panel["cols"])
        value = trace[panel["hook"]]
        value = value[0] if trace.dims(panel["hook"])[0] == "batch" else value
        head = panel["head"]
        if value.dim() == 3:
            square = trace.dims(panel["hook"])[-1] == "key"
            value = value.flatten(1) if head is None else value[head] if square else value[:, head]
        np.testing.assert_allclose(values, value.float().numpy(), rtol=0, atol=within, err_msg=panel["hook"])
    return {panel["hook"] for panel in drawn}


def test_every_stage_of_every_block_draws_the_elements_of_the_engines_tensors(walk: Callable[..., "Page"]) -> None:
    page = walk(hash="#open=" + quote(str(STAGES).replace("'", '"')))
    trace = traced()
    seen: set[str] = set()
    for layer in range(4):
        seen |= assert_drawn_equals(page, trace)
        page.locator("body").press("}")
        page.wait_for_function(f"layer => {FIND}.loupe.state.layer === layer", arg=(layer + 1) % 4)
    page.locator("body").press("]")
    assert_drawn_equals(page, trace)
    hidden = {"norm1.scale", "norm2.scale", "final_norm.scale", "attn.temperature", "logits"}
    assert {h for h in trace if not h.endswith(tuple(hidden))} == seen


def test_a_new_text_is_drawn_into_the_canvases_that_are_there(walk: Callable[..., "Page"]) -> None:
    page = walk("The cat sat")
    kept = ".stage-q canvas", ".stage-attention canvas >> nth=-1", ".headgrid canvas >> nth=0"
    for selector in kept:
        page.locator(selector).evaluate("c => c.was = true")
    page.get_by_label("text", exact=True).fill("The dog ran to a tree")
    page.get_by_label("text", exact=True).press("Enter")
    shows(page, "walkthrough", traced("The dog ran to a tree"))
    for selector in kept:
        assert page.locator(selector).evaluate("c => c.was === true")
    count = page.locator(".stage-attention canvas").last.get_attribute("aria-label")
    assert count is not None and count.endswith("6 rows by 6 columns")
    box = page.locator(".stage-q canvas").bounding_box()
    assert box
    page.locator(".stage-q canvas").click(position={"x": 5, "y": box["height"] - 4})  # a row that was not there before
    assert root(page).evaluate("e => e.loupe.state.cell.hook").endswith("attn.q")
    assert state(page)["row"] == 5


def test_the_canvas_shows_the_numbers_as_colour(walk: Callable[..., "Page"]) -> None:
    """The darkest cell of a row of the pattern is its largest weight, read back from the pixels."""
    page = walk()
    pattern = traced()["blocks.0.attn.pattern"][0, 0].numpy()
    darkness = page.locator(".stage-attention canvas").last.evaluate(
        """(canvas, n) => { const g = canvas.getContext('2d'), w = canvas.width / n, h = canvas.height / n;
        return Array.from({length: n}, (_, r) => Array.from({length: n}, (_, c) => {
          const [red] = g.getImageData((c + .5) * w, (r + .5) * h, 1, 1).data; return 255 - red; })); }""",
        len(pattern),
    )
    for row, (shades, weights) in enumerate(zip(darkness, pattern, strict=True)):
        assert weights[int(np.argmax(shades[: row + 1]))] >= weights.max() - 0.01, f"row {row}"


def test_the_listed_next_tokens_are_the_engines(walk: Callable[..., "Page"]) -> None:
    page = walk(temperature=0.5, top_k=5)
    logits = traced()["logits"][0, -1]
    best = (logits / 0.5).topk(5)
    expected = best.values.softmax(-1)
    pieces = [library.checkpoint("stories").tokenizer.piece(i) for i in best.indices.tolist()]
    assert page.locator(".bar-row .piece").all_text_contents()[:5] == pieces
    shares = [float(t.removesuffix("\u00a0%")) / 100 for t in page.locator(".bar-row .share").all_text_contents()[:5]]
    np.testing.assert_allclose(shares, expected.numpy(), rtol=5e-3)
    assert "5 of" in page.locator(".cuts").inner_text()


def test_clicking_a_cell_shows_arithmetic_that_ends_at_the_stored_value(walk: Callable[..., "Page"]) -> None:
    page = walk(hash="#layer=1&head=2")
    for stage, title in (
        ("embed", "embed.tokens["), ("position", "embed.positions["),
        ("resid_pre", "resid_pre["), ("norm1", "norm1.out["),
        ("q", "attn.q["), ("k", "attn.k["), ("v", "attn.v["), ("z", "attn.z["), ("out", "attn.out["),
        ("resid_mid", "resid_mid["), ("norm2", "norm2.out["), ("mlp", "mlp.out["), ("resid_post", "resid_post["),
        ("final_norm", "final_norm.out["),
    ):  # fmt: skip
        canvas = page.locator(f".stage-{stage} .column canvas").last
        box = canvas.bounding_box()
        assert box is not None
        canvas.click(position={"x": box["width"] * 0.6, "y": box["height"] * 0.45})
        recomputed, stored = explained(page, title)
        assert recomputed == pytest.approx(stored, abs=2e-5), stage


def test_every_matrix_of_attention_explains_its_cells(walk: Callable[..., "Page"]) -> None:
    page = walk(hash='#layer=2&open=["attention"]')
    trace = traced()
    for index, part in enumerate(["scores", "mask", "masked_scores", "pattern"]):
        canvas = page.locator(".stage-attention canvas").nth(index)
        box = canvas.bounding_box()
        assert box is not None
        canvas.click(
            position={"x": box["width"] * 2.5 / trace.ids.shape[1], "y": box["height"] * 5.5 / trace.ids.shape[1]}
        )
        recomputed, stored = explained(page, "came to give" if part == "pattern" else f"attn.{part}[")
        assert stored == pytest.approx(float(trace[f"blocks.2.attn.{part}"][0, 0, 5, 2]), abs=1e-6)
        assert recomputed == pytest.approx(stored, abs=2e-5)
        if part == "mask":
            assert page.locator(".verdict").inner_text() == "recomputed 0 (allowed) · stored 0 (allowed)"


def test_open_stages_explain_activations_and_the_heads_joined(walk: Callable[..., "Page"]) -> None:
    page = walk(hash='#open=["mlp","out"]')
    for stage, index, title in (
        ("mlp", 0, "mlp.pre["),
        ("mlp", 1, "mlp.post["),
        ("out", 0, "attn.z["),
        ("out", 1, "attn.out["),
    ):
        canvas = page.locator(f".stage-{stage} canvas").nth(index)
        canvas.scroll_into_view_if_needed()
        canvas.click(position={"x": 40, "y": 30})
        recomputed, stored = explained(page, title)
        assert recomputed == pytest.approx(stored, abs=2e-5)
        cell = root(page).evaluate("e => e.loupe.state.cell")
        drawn = traced()[cell["hook"].replace("{l}", "0")][0].flatten(1)[cell["row"], cell["col"]]
        assert stored == pytest.approx(float(drawn), abs=1e-6), f"the arithmetic of {stage} is that of another cell"


def test_a_candidates_probability_is_explained_from_its_logit(walk: Callable[..., "Page"]) -> None:
    page = walk(temperature=0.7, top_p=0.9)
    page.locator(".bar-row").nth(1).click()
    recomputed, stored = explained(page, "came to follow")
    assert recomputed == pytest.approx(stored, rel=1e-4)
    assert stored > 0
    link = page.locator(".arithmetic .why-link").get_attribute("href") or ""
    assert "/why_token?" in link and f"row={traced().ids.shape[1] - 1}&candidate=" in link
    page.locator(".arithmetic .why-link").click()
    page.get_by_text("the sum of").wait_for()


def test_looking_around_never_asks_the_server(walk: Callable[..., "Page"], wire: "Wire") -> None:
    page = walk()
    explained(page, "came to give")
    sent, received = wire.reruns, len(wire.received)
    for key in ("]", "]", "}", "}", "[", "{"):
        page.locator("body").press(key)
    page.locator(".headgrid button").nth(9).click()
    assert state(page) == {"layer": 2, "head": 1, "row": traced().ids.shape[1] - 1}
    page.locator(".headgrid button").nth(9).press("ArrowRight")
    page.locator(".headgrid button").nth(10).press("ArrowDown")
    assert state(page)["layer"] == 3 and state(page)["head"] == 2
    page.locator(".mini").first.click()
    assert state(page)["layer"] == 0
    explained(page, "block 1, head 3")
    for canvas in page.locator(".flow .cells canvas").all():
        canvas.hover()
    page.locator(".token").nth(3).hover()
    page.locator('button[data-stage="attention"]').click()
    explained(page, "came to give")
    assert (wire.reruns, len(wire.received)) == (sent, received)


def test_a_click_asks_one_question_and_the_panel_keeps_its_text_until_the_answer(
    walk: Callable[..., "Page"], wire: "Wire"
) -> None:
    page = walk()
    explained(page, "came to give")
    sent = wire.reruns
    page.locator(".arithmetic").evaluate(
        """e => { const verdicts = () => e.querySelectorAll('.verdict').length;
        window.seen = [verdicts()];
        new MutationObserver(() => seen.push(verdicts())).observe(e, {childList: true}); }"""
    )
    page.locator(".token").nth(3).click()
    assert state(page)["row"] == 3
    explained(page, f"How “{traced().encoding.pieces[3]}” came to give")
    seen = page.evaluate("seen")
    assert set(seen) == {1} and len(seen) > 1
    page.locator(".stage-attention canvas").last.click(position={"x": 10, "y": 60})
    recomputed, stored = explained(page, "came to give")
    assert recomputed == pytest.approx(stored, abs=2e-5)
    settle(page)
    assert wire.reruns <= sent + 2


def test_an_exported_file_explains_the_pattern_and_says_where_it_has_no_answer(
    walk: Callable[..., "Page"], browser: "Browser", tmp_path: "Path"
) -> None:
    page = walk()
    explained(page, "came to give")
    page.get_by_role("button", name="Share & export").click()
    with page.expect_download() as download:
        page.get_by_role("button", name="HTML", exact=True).click()
    download.value.save_as(tmp_path / "file.html")
    context = browser.new_context(offline=True, viewport={"width": 1280, "height": 900})
    alone = context.new_page()
    alone.goto((tmp_path / "file.html").as_uri())
    explained(alone, "came to give")
    alone.locator("body").press("]")
    recomputed, stored = explained(alone, "block 1, head 2")
    assert recomputed == pytest.approx(stored, abs=2e-5)
    alone.locator(".token").nth(4).click()
    recomputed, stored = explained(alone, "“·sad” came to give")
    assert stored == pytest.approx(float(traced()["blocks.0.attn.pattern"][0, 1, 4].max()), abs=1e-6)
    alone.locator(".stage-mlp canvas").last.click(position={"x": 8, "y": 60})
    alone.locator(".arithmetic h3", has_text="mlp.out[").wait_for()
    assert "no server" in alone.locator(".arithmetic .sentence").inner_text()
    context.close()


def test_the_legend_follows_the_head(walk: Callable[..., "Page"]) -> None:
    page = walk()
    trace = traced()
    assert page.locator(".stage-tokens .legend").inner_text() == "scales: ± 99th percentile"
    for head in (0, 1):
        sizes = trace["blocks.0.attn.q"][0, :, head].abs().flatten().sort().values
        reach = float(sizes[int(0.99 * len(sizes))])
        assert page.locator(".stage-q .legend-text").inner_text() == f"±{reach:.2f}"
        page.locator("body").press("]")


def test_hovering_a_token_lights_its_row_its_column_and_its_lines(walk: Callable[..., "Page"]) -> None:
    page = walk()
    page.locator(".token").nth(2).hover()
    assert page.locator(".token").nth(2).get_attribute("class") == "token as-query"
    assert page.locator(".band.hovered").is_visible()
    lit = page.locator(".lit-column:visible")
    assert lit.count() == 3  # scores, mask, pattern
    drawn = "e => { const l = e.loupe.lineData(); return [l.query, [...l.weights]]; }"
    query, weights = root(page).evaluate(drawn)
    assert query == 2
    np.testing.assert_array_equal(np.float32(weights), traced()["blocks.0.attn.pattern"][0, 0, 2].numpy())


def test_typing_another_sentence_redraws_it(walk: Callable[..., "Page"]) -> None:
    page = walk()
    page.get_by_label("text", exact=True).fill("She was happy")
    shows(page, "walkthrough", traced("She was happy"))
    assert_drawn_equals(page, traced("She was happy"))


def test_append_puts_the_drawn_token_into_the_text_and_the_picture(walk: Callable[..., "Page"]) -> None:
    page = walk("Once upon a", temperature=0)
    page.get_by_role("button", name="append").click()
    tokenizer = library.checkpoint("stories").tokenizer
    drawn = int(traced("Once upon a")["logits"][0, -1].argmax())
    page.locator(".token").nth(len(traced("Once upon a").encoding)).wait_for()
    expect(page.get_by_label("text", exact=True)).to_have_value("Once upon a" + tokenizer.decode([drawn]))


def test_clicks_on_append_that_come_too_fast_append_one_token(walk: Callable[..., "Page"]) -> None:
    page = walk("Once upon a", temperature=0)
    before = len(traced("Once upon a").encoding)
    page.get_by_role("button", name="append").evaluate("button => { button.click(); button.click(); button.click(); }")
    page.locator(".token").nth(before).wait_for()
    settle(page)
    assert page.locator(".token").count() == before + 1


def test_a_link_to_a_cell_brings_its_row_and_a_link_to_a_candidate_its_derivation(walk: Callable[..., "Page"]) -> None:
    page = walk(hash='#layer=2&head=3&cell=["attn.pattern",4,1,0]')
    weight = float(traced()["blocks.2.attn.pattern"][0, 3, 4, 1])
    assert state(page)["row"] == 4
    _, stored = explained(page, f"How “{traced().encoding.pieces[4]}” came to give")
    assert stored == pytest.approx(weight, abs=1e-7)
    page = walk(hash='#cell=["next",2]')
    explained(page, "came to follow")


def test_focus_stays_on_the_control_that_was_used(walk: Callable[..., "Page"]) -> None:
    page = walk()
    active = f"() => {FIND}.getRootNode().activeElement?.dataset"
    page.get_by_label("next head").focus()
    page.keyboard.press("Enter")
    page.keyboard.press("Enter")
    assert state(page)["head"] == 2
    page.locator('button[data-stage="q"]').focus()
    page.keyboard.press("Enter")
    assert page.evaluate(active)["stage"] == "q"


def test_attention_temperature_changes_the_maps_and_is_marked_as_an_edit(walk: Callable[..., "Page"]) -> None:
    page = walk(attention="2.0")
    shows(page, "walkthrough", traced(temperature=2.0))
    assert_drawn_equals(page, traced(temperature=2.0))
    assert page.locator(".stage-attention .role-edited").first.inner_text() == "edited"
    recomputed, stored = explained(page, "came to give")
    assert recomputed == pytest.approx(stored, abs=2e-5)


def test_the_address_restores_block_head_row_and_cell(walk: Callable[..., "Page"], page: "Page") -> None:
    walk(hash="#layer=2&head=3&row=4")
    assert state(page) == {"layer": 2, "head": 3, "row": 4}
    page.locator("body").press("]")
    page.wait_for_function("() => !location.hash.includes('head=3')")
    page.reload()
    page.wait_for_selector(READY)
    assert state(page)["head"] == 0 and state(page)["layer"] == 2


@pytest.mark.parametrize(
    "hash", ["#layer=99&head=-1", "#cell=[1,2]", "#open=7&row=x", "#%%%", '#cell=["attn.nothing",1,1,0]']
)
def test_a_senseless_address_opens_the_page_all_the_same(walk: Callable[..., "Page"], hash: str) -> None:
    page = walk(hash=hash)
    page.locator(".verdict").wait_for()
    assert page.locator(".verdict").count() == 1


def test_markup_in_a_prompt_and_in_a_vocabulary_is_shown_as_text(walk: Callable[..., "Page"]) -> None:
    hostile = "<img src=x onerror=alert(1)><script>window.pwned=1</script>**b** $x$ :red[y]"
    page = walk(hostile)
    tokenizer = library.checkpoint("stories").tokenizer
    assert page.locator(".token bdi").all_text_contents() == list(tokenizer.encode(hostile).pieces)
    root(page).evaluate(
        """e => { const page = e.loupe;
        for (const id in page.trace.names) page.trace.names[id] = '<img src=x onerror=window.pwned=1>';
        page.trace.pieces = page.trace.pieces.map(() => '<b onclick=window.pwned=1>x</b>'); page.build(); }"""
    )
    assert page.locator(".walkthrough img, .walkthrough script, .walkthrough b").count() == 0
    assert page.evaluate("() => window.pwned") is None
    assert page.locator(".token bdi").first.inner_text() == "<b onclick=window.pwned=1>x</b>"


def test_256_tokens_scroll_fetch_the_looked_at_layer_once_and_keep_it(
    walk: Callable[..., "Page"], wire: "Wire"
) -> None:
    text = "The dog was happy. " * 60
    page = walk(text)
    assert "this model reads 256" in page.locator(".notice").inner_text()
    flow = page.locator(".flow")
    assert flow.evaluate("e => e.scrollHeight > e.clientHeight")
    trace = library.traces.trace("stories", library.checkpoint("stories").tokenizer.encode(text).truncate(256))
    assert_drawn_equals(page, trace)
    explained(page, "came to give")
    sent = wire.reruns
    for layer in (1, 0, 1):
        page.locator("body").press("}" if layer else "{")
        page.wait_for_function(f"layer => {FIND}.loupe.state.layer === layer", arg=layer)
        assert_drawn_equals(page, trace)
    assert wire.reruns == sent + 1


def test_ten_thousand_characters_survive_a_reload(walk: Callable[..., "Page"], server: str) -> None:
    page = walk("A", server)
    text = "你" * 10_000  # 90,000 bytes in the address
    page.get_by_label("text", exact=True).fill(text)
    page.get_by_label("text", exact=True).press("Enter")
    page.locator(".notice", has_text="this model reads 256").wait_for()
    page.reload()
    page.wait_for_selector(READY)
    expect(page.get_by_label("text", exact=True)).to_have_value(text)


def test_one_token_and_a_phone_and_the_dark(browser, stage: str) -> None:  # type: ignore[no-untyped-def]
    context = browser.new_context(viewport={"width": 390, "height": 844}, color_scheme="dark")
    page = context.new_page()
    page.goto(f"{stage}/walkthrough?text=The")
    page.wait_for_selector(READY)
    assert root(page).get_attribute("class") == "shell walkthrough narrow"
    assert page.evaluate("() => document.documentElement.scrollWidth <= innerWidth")
    widest = root(page).evaluate(
        "e => Math.max(...[...e.querySelectorAll('*')].map(x => x.getBoundingClientRect().right))"
    )
    assert widest <= 391
    assert "one token only" in page.locator(".facts").inner_text()
    assert page.locator(".loupe-view:has(> .walkthrough)").get_attribute("data-theme") == "dark"
    assert_drawn_equals(page, traced("The"))
    context.close()


def test_every_control_of_the_picture_has_a_name_and_arrows_move_the_cell(walk: Callable[..., "Page"]) -> None:
    page = walk()
    nameless = root(page).evaluate(
        """e => [...e.querySelectorAll('button, canvas[role=img]')]
        .filter(b => !(b.ariaLabel || b.textContent.trim() || b.title)).length"""
    )
    assert nameless == 0
    page.locator(".flow").focus()
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowLeft")
    assert state(page)["row"] == traced().ids.shape[1] - 2
    assert "came to give" in page.locator(".live").inner_text()


def assert_explained(page: "Page", models: str) -> None:
    """Every title says in two sentences, and in a formula, what its stage does."""
    said = root(page).evaluate(
        """e => Array.from(e.querySelectorAll(".flow .stage-head button, .stage-tokens .title"), (title) => {
        title.focus();
        const about = e.querySelector(".about"), read = (one) => about.querySelector(one)?.innerText ?? "";
        return [about.innerText, read("span"), read("code")]; })"""
    )
    for _, text, formula in said:
        assert formula and len(text.split(". ")) == 2 and text.endswith("."), (models, text)
    assert len({whole for whole, _, _ in said}) > 10


@pytest.mark.parametrize(
    "model", ["stories", "tales-bert", "translate-en-fr", "digits-vit", "digits-imagegpt", "infill"]
)
def test_every_stage_is_explained_while_it_has_the_focus(open_page: Open, stage: str, model: str) -> None:
    page = open_page(f"{stage}/walkthrough?model={model}")
    page.wait_for_selector(READY)
    before = page.locator(".about").inner_text()
    assert_explained(page, model)
    page.keyboard.press("Tab")
    page.locator(".flow").focus()
    assert page.locator(".about").inner_text() == before
    page.locator(".stage-attention .stage-head button").first.click()
    assert_explained(page, model)


def test_titles_do_not_touch_while_a_stage_is_open(browser: "Browser", stage: str) -> None:
    page = browser.new_page(viewport={"width": 1280, "height": 720})
    for opened in ("q", "attention", "mlp", "next"):
        page.goto("about:blank")
        page.goto(f'{stage}/walkthrough?text={quote(TEXT)}#open=["{opened}"]')
        page.wait_for_selector(f"{READY} .stage-{opened}" + (".opened" if opened != "next" else ""))
        apart = f"""() => {{
          const titles = [...{FIND}.querySelectorAll('.stage:not(.stage-next) .stage-head button')];
          const boxes = titles.map((title) => title.getBoundingClientRect()).filter(({{ width }}) => width);
          boxes.sort((one, other) => one.left - other.left);
          return boxes.every((box, i) => !i || box.left - boxes[i - 1].right >= 2);
        }}"""
        page.wait_for_function(apart)  # once it stands: it is laid out again for a scroll bar
    page.close()


def test_a_phone_has_the_prediction_first_and_a_sheet_that_closes(browser: "Browser", stage: str) -> None:
    page = browser.new_page(viewport={"width": 390, "height": 844})
    page.goto(f"{stage}/walkthrough?text={quote(TEXT)}")
    page.wait_for_selector(READY)
    assert page.locator(".stage-next").bounding_box()["y"] < page.locator(".stage-tokens").bounding_box()["y"]
    sheet = page.locator(".panel-arithmetic")
    expect(sheet).to_be_hidden()
    page.locator(".jumps button", has_text="value").click()
    page.wait_for_function(f"() => {FIND}.querySelector('.stage-v').getBoundingClientRect().top < 200")
    page.locator(".stage-v canvas").first.click(position={"x": 30, "y": 30})
    expect(sheet).to_be_visible()
    expect(sheet).to_contain_text("attn.v[")
    sheet.get_by_label("close the arithmetic").click()
    expect(sheet).to_be_hidden()
    page.close()


@pytest.mark.parametrize("hidden", ["", "text"])
def test_a_hidden_text_is_not_appended_to_whatever_a_browser_sends(walk: Callable[..., "Page"], hidden: str) -> None:
    page = walk(hide=hidden)
    root(page).evaluate("""e => { const { emit, trace } = e.loupe;
      emit("append", { id: 5, length: trace.length }); emit("again", true); }""")
    page.wait_for_url("**seed=1**")  # what was sent first has been carried out
    settle(page)
    text = page.locator(".st-key-text input").input_value()
    assert (text == TEXT) is bool(hidden) and text.startswith(TEXT)
