"""The page about attention with a long text in a browser: every number that is shown is the engine's, at every zoom."""

import os
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest
import torch

from engine.analysis.averages import by_norm
from engine.analysis.positional import positional
from engine.checkpoints import Checkpoint, load
from engine.data.stories import story
from engine.edits import AttentionTemperature, Edit, PaintMask, PaintPattern
from engine.edits.experiment import Experiment
from engine.model.config import MLP, Attention, ModelConfig, Positions
from engine.runtime.run import run
from engine.tokenizers import END, train
from pages.controls.what_if.experiment_link import from_link, to_link
from tests.browser.harness import UVICORN, answered, choose, comes_to, expect, served
from tests.browser.test_take import saved
from tests.engine import tiny

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Locator, Page

    from tests.conftest import Wire

pytestmark = pytest.mark.long

READY = ".attention.long[data-ready] .long-map canvas"
FIND = "[...document.querySelectorAll('*')].map(e => e.shadowRoot?.querySelector('.attention')).find(Boolean).loupe"
HERE = f"""() => {{ const page = {FIND}; const {{ map }} = page;
const same = (a, b) => `${{a.rows}} ${{a.columns}}` === `${{b.rows}} ${{b.columns}}`;
return map && !!page.row() && map.missing(map.window).every(one => map.tiles.some(tile => same(one, tile))); }}"""
COLOURED = """e => { const pen = document.createElement("canvas").getContext("2d");
pen.fillStyle = getComputedStyle(e).getPropertyValue("--edited");
const wanted = [1, 3, 5].map(at => parseInt(pen.fillStyle.slice(at, at + 2), 16));
const { canvas } = e.loupe.map, { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
let found = 0;
for (let i = 0; i < data.length; i += 4) found += data[i + 3] && wanted.every((x, n) => Math.abs(x - data[i + n]) < 64);
return found; }"""
LENGTH, SHOWN = 520, (1, 2)
HOT = AttentionTemperature(2.0)  # makes another run of it, of which nothing is scored yet


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A models folder with one small random model that reads long texts."""
    folder = tmp_path_factory.mktemp("models")
    tokenizer = train("bpe", [story(1, index) for index in range(40)], 400, special_tokens=(END,))
    config = ModelConfig(tokenizer.vocab_size, 1024, 32, 2, Attention(4), MLP(48), Positions("rotary"))
    Checkpoint(tiny.model(config), name="reader", tokenizer=tokenizer).save(folder / "reader")
    return folder


@pytest.fixture(scope="module")
def long_server(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(os.environ, "LOUPE_MODELS", str(folder))
        with served(UVICORN, "/health", tmp_path_factory.mktemp("long") / "log") as address:
            yield address


@pytest.fixture(scope="module")
def made(folder: Path) -> tuple[str, dict[str, Any]]:
    """A text of LENGTH tokens, and the patterns that the engine has of it, layer by layer."""
    checkpoint = load(folder / "reader")
    assert checkpoint.tokenizer is not None
    text, index = "", 0
    while len(checkpoint.tokenizer.encode(text)) < LENGTH:
        text, index = f"{text} {story(2, index)}".strip(), index + 1
    read = checkpoint.tokenizer.encode(text).truncate(LENGTH)
    text = checkpoint.tokenizer.decode(read.ids)
    read = checkpoint.tokenizer.encode(text)
    trace = run(checkpoint.model, read, keep="*.pattern")
    whole = run(checkpoint.model, read, keep=("*.pattern", "*.scores", "*.v"))
    moved = [by_norm(checkpoint.model, whole, SHOWN[0], share=share)[SHOWN[1]] for share in (False, True)]
    placed, hot = (positional(checkpoint.model, run(checkpoint.model, read, edits=one)) for one in ((), (HOT,)))
    more = {"whole": whole, "moved": moved, "positional": placed, "placed hot": hot}
    return text, {"patterns": trace.stack("attn.pattern")[:, 0], "ids": torch.tensor(read.ids), **more}


@pytest.fixture
def look(open_page: Callable[[str], "Page"], long_server: str, made: Any) -> Callable[..., "Page"]:
    def open_(hash: str = f"#layer={SHOWN[0]}&head={SHOWN[1]}", *edits: Edit) -> "Page":
        experiment = Experiment()
        for edit in edits:
            experiment = experiment.add(edit)
        link = f"&edits={quote(to_link(experiment))}" if edits else ""
        page = open_page(f"{long_server}/attention?model=reader&text={quote(made[0])}{link}{hash}")
        page.wait_for_selector(READY)
        page.wait_for_function(HERE)
        return page

    return open_


def root(page: "Page") -> "Locator":
    return page.locator(".attention")


def state(page: "Page") -> dict[str, Any]:
    found: dict[str, Any] = root(page).evaluate("e => JSON.parse(JSON.stringify(e.loupe.state))")
    return found


def place(page: "Page", row: float, col: float) -> dict[str, float]:
    """Where a weight's middle is on the map, in CSS pixels."""
    x, y = root(page).evaluate(
        """(e, [row, col]) => { const { top, left, wide, tall } = e.loupe.map.window;
        return [(col + 0.5 - left) * wide, (row + 0.5 - top) * tall]; }""",
        [row, col],
    )
    return {"x": x, "y": y}


def tip(page: "Page") -> tuple[int, int, float, str]:
    """Row and key that the bubble names, the weight, and the block it is the largest of."""
    row, col = (int(end.rsplit(" ", 1)[-1]) for end in page.locator(".tip bdi").inner_text().split(" → "))
    weight, _, block = page.locator(".tip strong").inner_text().partition("\u00a0%")
    return row, col, float(weight.replace("−", "-")) / 100, block.strip()


def checked(element: "Locator", expected: torch.Tensor) -> None:
    """Every tile that the map draws has the largest of each block."""
    tiles = element.evaluate(
        """e => e.loupe.map.tiles.map(({rows, columns, high, wide, weight}) =>
        ({rows, columns, high, wide, weight: weight && Array.from(weight, String)}))"""
    )
    assert tiles
    for tile in tiles:
        (top, bottom), (left, right), high, wide = tile["rows"], tile["columns"], tile["high"], tile["wide"]
        window = expected[top:bottom, left:right]
        largest = torch.nn.functional.max_pool2d(window[None], (high, wide), ceil_mode=True)[0]
        sent = torch.tensor([float(x) for x in tile["weight"]]) if tile["weight"] else torch.zeros(largest.numel())
        torch.testing.assert_close(sent.view_as(largest), largest)


def test_every_tile_holds_the_engines_weights_at_every_zoom(look: Callable[..., "Page"], made: Any) -> None:
    page, pattern = look(), made[1]["patterns"][SHOWN]
    for zoom in (1, 4, 30):
        root(page).evaluate("(e, zoom) => e.loupe.map.look(zoom, 300, 150)", zoom)
        page.wait_for_function(HERE)
        tiles = root(page).evaluate(
            """e => e.loupe.map.tiles.map(({rows, columns, high, wide, weight}) =>
            ({rows, columns, high, wide, weight: weight && Array.from(weight, String)}))"""
        )
        assert tiles
        for tile in tiles:
            (top, bottom), (left, right), high, wide = tile["rows"], tile["columns"], tile["high"], tile["wide"]
            window = pattern[top:bottom, left:right]
            largest = torch.nn.functional.max_pool2d(window[None], (high, wide), ceil_mode=True)[0]
            sent = torch.tensor([float(x) for x in tile["weight"]]) if tile["weight"] else torch.zeros(largest.numel())
            assert torch.equal(sent.view_as(largest), largest)


def test_the_pointer_names_the_largest_weight_of_a_block_and_near_by_every_weight(
    look: Callable[..., "Page"], made: Any
) -> None:
    page, pattern = look(), made[1]["patterns"][SHOWN]
    box = page.locator(".long-map")
    for zoom, rows in ((1, (500, 123)), (30, (307, 312))):
        root(page).evaluate("(e, zoom) => e.loupe.map.look(zoom, 300, 150)", zoom)
        page.wait_for_function(HERE)
        for row in rows:
            box.hover(position=place(page, row, 155 if zoom > 1 else row // 2))
            found, key, weight, block = tip(page)
            assert weight == pytest.approx(float(pattern[found, key]), rel=5e-3, abs=1e-9)
            if zoom > 1:
                assert (found, key, block) == (row, 155, "")
                continue
            top, left = row // 4 * 4, row // 2 // 4 * 4
            assert block == "largest of 4 × 4" and top <= found < top + 4 and left <= key < left + 4
            assert pattern[found, key] == pattern[top : top + 4, left : left + 4].max()


def test_a_row_lists_its_twenty_heaviest_keys_and_a_click_goes_to_one(look: Callable[..., "Page"], made: Any) -> None:
    page = look(f"#layer={SHOWN[0]}&head={SHOWN[1]}&query=400&zoom=20&from=[395,0]")
    pattern = made[1]["patterns"][SHOWN]
    best = pattern[400].topk(20)
    lines = page.locator("button.weight")
    shown = [text.removesuffix("\u00a0%") for text in lines.locator(".share").all_text_contents()]
    assert [int(x) for x in lines.locator(".place").all_text_contents()] == best.indices.tolist()
    assert [float(x.replace("−", "-")) / 100 for x in shown] == pytest.approx(best.values.tolist(), rel=5e-3)
    rest = page.locator(".weight.rest")
    assert rest.inner_text().startswith(f"{int((pattern[400] > 0).sum()) - 20} more")
    key = int(best.indices.max())
    page.locator(f'button.weight[data-key="{key}"]').click()
    assert (state(page)["query"], state(page)["key"]) == (400, key)
    left, across = root(page).evaluate("e => [e.loupe.map.window.left, e.loupe.map.window.across]")
    assert left <= key < left + across


def test_another_head_is_an_overview_at_once_and_tiles_and_row_come_in_one_message(
    look: Callable[..., "Page"], wire: "Wire", made: Any
) -> None:
    page = look("")
    sent = wire.reruns
    painted = root(page).evaluate(
        """e => { const { loupe } = e; loupe.go({ head: 1 }); loupe.go({ layer: 1 });
        const { data } = loupe.map.canvas.getContext('2d').getImageData(0, 0, 200, 200);
        return [loupe.map.tiles.length, data.some(x => x)]; }"""
    )
    assert painted == [0, True] and (state(page)["layer"], state(page)["head"]) == (1, 1)
    page.wait_for_function(HERE)
    assert wire.reruns == sent + 1, "tiles and row travel in one message"
    row = root(page).evaluate("e => Array.from(e.loupe.row().weights, String)")
    assert torch.equal(torch.tensor([float(x) for x in row]), made[1]["patterns"][1, 1, -1])
    for layer in (0, 1):
        root(page).evaluate("(e, layer) => e.loupe.go({ layer, head: layer })", layer)
        page.wait_for_function(HERE)
        answered(page)
    assert wire.reruns == sent + 1, "what was here was asked for again"


def test_keys_wheel_and_drag_look_closer_and_the_address_keeps_where(look: Callable[..., "Page"]) -> None:
    page = look(f"#layer={SHOWN[0]}&head={SHOWN[1]}&query=260&key=130")
    box = page.locator(".long-map")
    box.focus()
    page.keyboard.press("+")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowRight")
    assert (state(page)["query"], state(page)["key"]) == (261, 131)
    zoom = state(page)["zoom"]
    assert zoom == 1.5
    box.hover(position=place(page, 261, 131))
    before = root(page).evaluate("e => e.loupe.map.found(e.loupe.map.pointer.x, e.loupe.map.pointer.y).row")
    page.mouse.wheel(0, -400)
    page.wait_for_function(f"zoom => {FIND}.state.zoom > zoom", arg=zoom)
    after = root(page).evaluate("e => e.loupe.map.found(e.loupe.map.pointer.x, e.loupe.map.pointer.y).row")
    assert abs(after - before) <= 4, "what lies under the pointer moved"
    edge = box.bounding_box()
    assert edge is not None
    top = root(page).evaluate("e => e.loupe.map.window.top")
    page.mouse.move(edge["x"] + 200, edge["y"] + 200)
    page.mouse.down()
    page.mouse.move(edge["x"] + 200, edge["y"] + 120, steps=4)
    page.mouse.up()
    moved, tall = root(page).evaluate("e => [e.loupe.map.window.top, e.loupe.map.window.tall]")
    assert moved - top == pytest.approx(80 / tall, abs=0.1)
    assert (state(page)["query"], state(page)["key"]) == (261, 131), "a drag picked a cell"
    kept = state(page)
    page.wait_for_function("from => location.hash.includes(`from=${JSON.stringify(from)}`)", arg=kept["from"])
    page.reload()
    page.wait_for_selector(READY)
    page.wait_for_function(HERE)
    assert {name: state(page)[name] for name in ("zoom", "from", "query", "key")} == {
        name: kept[name] for name in ("zoom", "from", "query", "key")
    }
    box.focus()
    page.keyboard.press("0")
    assert "zoom" not in state(page)


@pytest.mark.parametrize("hash", ["#layer=99&query=1e9&zoom=x&from=[1]", "#zoom=9&from=[1e9,-5]&key=[2]"])
def test_a_senseless_address_opens_the_page_all_the_same(look: Callable[..., "Page"], hash: str) -> None:
    page = look(hash)
    window = root(page).evaluate("e => e.loupe.map.window")
    assert 0 <= window["top"] <= LENGTH - window["down"] and 0 <= window["left"] <= LENGTH - window["across"]
    assert page.locator("button.weight").count() > 0


def test_heads_are_measured_layer_by_layer_once_a_score_is_chosen(look: Callable[..., "Page"], made: Any) -> None:
    page = look()
    page.get_by_label("score of the heads").select_option("first")
    page.wait_for_function(f"() => !{FIND}.trace.arrays['scores.attn.first'].data.some(Number.isNaN)")
    shown = root(page).evaluate("e => Array.from(e.loupe.trace.arrays['scores.attn.first'].data)")
    first = made[1]["patterns"][:, :, 1:, 0].mean(-1).flatten()
    assert shown == pytest.approx(first.tolist(), rel=1e-4)
    captions = page.locator(".headgrid .caption")
    expect(captions).to_have_count(8)
    expect(captions.filter(has_text="–")).to_have_count(0)


def test_the_file_of_a_long_text_shows_any_weight_of_the_shown_head_and_says_what_it_has_not(
    look: Callable[..., "Page"], made: Any, browser: "Browser", tmp_path: Path
) -> None:
    page = look()
    page.get_by_label("score of the heads").select_option("positional")
    page.wait_for_function(f"() => !{FIND}.scoring('positional')")
    page.get_by_label("score of the heads").select_option("")
    page.get_by_role("button", name="Share & export").click()
    path = saved(page, "HTML", tmp_path)
    assert path.stat().st_size < 5_000_000
    picture = {text.strip() for text in ElementTree.parse(saved(page, "SVG", tmp_path)).getroot().itertext()}
    assert "pattern" in picture and not picture & {"whole", "−", "+", "wheel", "zoom · drag moves ·"}
    alone = browser.new_context(offline=True, viewport={"width": 1440, "height": 950}).new_page()
    alone.goto(f"{path.as_uri()}#layer={SHOWN[0]}&head={SHOWN[1]}&query=300")
    here = HERE.replace(FIND, "document.querySelector('.attention').loupe")  # in a file no component stands around it
    alone.wait_for_selector(READY)
    alone.wait_for_function(here)
    row = root(alone).evaluate("e => Array.from(e.loupe.row().weights, String)")
    assert torch.equal(torch.tensor([float(x) for x in row]), made[1]["patterns"][SHOWN][300])
    for _ in range(4):
        alone.locator(".long-map").press("+")
        alone.wait_for_function(here)
    for shares, expected in enumerate(made[1]["moved"]):
        root(alone).evaluate("(e, shares) => e.loupe.go({ shows: 'weighted', shares: Boolean(shares) })", shares)
        for zoom in (1, 30):
            root(alone).evaluate("(e, zoom) => e.loupe.map.look(zoom, 300, 150)", zoom)
            alone.wait_for_function(here)
            checked(root(alone), expected)
    alone.get_by_label("score of the heads").select_option("positional")
    alone.wait_for_function("() => !document.querySelector('.attention').loupe.scoring('positional')")
    placed = root(alone).evaluate("e => Array.from(e.loupe.trace.arrays['scores.attn.positional'].data)")
    assert placed == pytest.approx(made[1]["positional"].flatten().tolist(), abs=1e-4)
    assert alone.locator(".notice").inner_text() == ""
    root(alone).evaluate("e => e.loupe.go({ layer: 0, head: 0, query: 17 })")
    alone.locator(".notice").get_by_text("no server behind it").wait_for()
    alone.context.close()


def test_edited_heads_and_cells_are_marked_at_every_zoom(look: Callable[..., "Page"]) -> None:
    painted = PaintMask(cells=[[300, 40], [301, 40]], layer=SHOWN[0], heads=[SHOWN[1]])
    page = look(f"#layer={SHOWN[0]}&head={SHOWN[1]}&query=300&key=40", painted)
    expected = {(300, 40), (301, 40)}
    for zoom in (1, 4, 30):
        root(page).evaluate("(e, zoom) => e.loupe.map.zoomBy(zoom / e.loupe.map.window.zoom)", zoom)
        root(page).evaluate("e => e.loupe.map.reveal(300, 40)")
        page.wait_for_function(HERE)
        tiles = root(page).evaluate(
            """e => e.loupe.map.tiles.filter(t => t.edited).map(({ rows, columns, high, wide, across, edited }) => (
            { rows, columns, high, wide, across, at: Array.from(edited.keys()).filter(i => edited[i]) }))"""
        )
        for tile in tiles:
            high, wide = tile["high"], tile["wide"]
            places = {divmod(i, tile["across"]) for i in tile["at"]}
            starts = tile["rows"][0], tile["columns"][0]
            assert places == {((row - starts[0]) // high, (col - starts[1]) // wide) for row, col in expected}
        assert tiles and page.locator(".long-legend .edited-sign").is_visible()
    assert page.locator(".headgrid button.edited").count() == 1
    assert page.locator(".title .edited-tag").is_visible()
    drawn = root(page).evaluate(COLOURED)
    assert drawn > 20, "no line is drawn around the edited cells"
    root(page).evaluate("e => e.loupe.go({ head: 0 })")
    page.wait_for_function(HERE)
    assert root(page).evaluate(COLOURED) == 0
    assert page.locator(".title .edited-tag").is_hidden() and page.locator(".long-legend .edited-sign").is_hidden()


def test_a_text_that_grows_long_is_drawn_in_tiles_and_a_short_one_in_cells_again(look: Callable[..., "Page"]) -> None:
    page = look()
    field = page.get_by_label("text", exact=True)
    long = field.input_value()
    root(page).evaluate("e => { e.dataset.first = 'yes'; }")
    page.get_by_role("tab", name="Text").click()
    for text, ready in (("Max has a ball.", ".map-grid canvas"), (long, READY), ("Max ran.", ".map-grid canvas")):
        field.fill(text)
        field.press("Enter")
        page.wait_for_function(f"long => {FIND}.source.tiled === long && {FIND}.view?.line", arg=text == long)
        page.get_by_role("tab", name="Map").click()
        page.wait_for_selector(ready)
        assert page.locator(".attention[data-first]").count() == 1, "another view was mounted"
        assert (state(page)["layer"], state(page)["head"]) == (1, 2)
        page.get_by_role("tab", name="Text").click()


def test_a_long_text_is_painted_with_a_row_or_a_column_and_its_columns_are_told(
    look: Callable[..., "Page"], made: Any
) -> None:
    page, pattern = look(f"#layer={SHOWN[0]}&head={SHOWN[1]}&query=300&key=40"), made[1]["patterns"][SHOWN]
    page.get_by_role("tab", name="Text").click()
    for way, expected in (("what it looks at", pattern[300]), ("what looks at it", None)):
        page.get_by_role("button", name=way).click()
        key = state(page)["key"]
        line = pattern[:, key] if expected is None else expected
        page.wait_for_function(
            f"want => Math.abs({FIND}.view.line?.[want[0]] - want[1]) < 1e-9",
            arg=[
                int(line.argmax()),
                float(line.max()),
            ],
        )
        shown = root(page).evaluate("e => Array.from(e.loupe.view.line, String)")
        assert torch.equal(torch.tensor([float(x) for x in shown]), line)
    page.get_by_role("button", name="what it looks at").click()
    query = state(page)["query"]
    page.get_by_role("button", name="rollout").click()
    page.wait_for_selector("text=is mixed mostly from")
    mixed = [0.5 * one.mean(0) + 0.5 * torch.eye(LENGTH) for one in made[1]["patterns"]]
    rolled = torch.tensor(root(page).evaluate("e => Array.from(e.loupe.view.line)"))
    torch.testing.assert_close(rolled, (mixed[1] @ mixed[0])[query], atol=1e-6, rtol=1e-5)
    root(page).evaluate("e => e.loupe.go({ query: 519 })")
    page.get_by_role("button", name="flow").click()
    page.wait_for_selector("text=LOUPE_FLOW_WORK")
    assert page.locator(".over-text .texts").is_visible(), "another token can be chosen where this one is refused"
    root(page).evaluate("e => e.loupe.go({ query: 30 })")
    page.wait_for_selector("text=can get most from")
    page.wait_for_function(f"() => {FIND}.row()")  # which says the key that is looked at
    page.get_by_role("button", name="this head").click()
    page.get_by_role("button", name="say how much, and why").click()
    page.wait_for_selector(".long-row .why:not([hidden])")
    key = state(page)["key"]
    assert f"(key {key})" in page.locator(".long-row .why").inner_text()
    page.get_by_role("tab", name="Circuits").click()
    page.wait_for_selector(".promoted-row")
    page.get_by_role("tab", name="Map").click()
    page.wait_for_function(HERE)
    assert page.locator(".long-map canvas").is_visible() and page.locator(".view-circuits").is_hidden()


WINDOWED = f"""name => {{ const {{ view, state }} = {FIND};
const has = style => view?.root.classList.contains(style);
return state.view === name && view?.view && has(`view-${{name}}`) && view.shows() && !has('waiting') }}"""


def windowed(page: "Page", tab: str, name: str) -> tuple[list[int], list[int]]:
    """Opens a tab; the rows and the keys of its window."""
    page.get_by_role("tab", name=tab, exact=True).click()
    page.wait_for_function(WINDOWED, arg=name)
    rows, keys = root(page).evaluate("e => [e.loupe.view.trace.rows, e.loupe.view.trace.columns]")
    return rows, keys


def test_lines_product_and_steps_of_a_long_text_stand_in_a_window_of_the_engines_numbers(
    look: Callable[..., "Page"], wire: "Wire", made: Any
) -> None:
    page, whole = look(f"#layer={SHOWN[0]}&head={SHOWN[1]}&query=300"), made[1]["whole"]
    scores, pattern = (whole[f"blocks.{SHOWN[0]}.attn.{part}"][0, SHOWN[1]] for part in ("scores", "pattern"))
    rows, keys = windowed(page, "Lines", "lines")
    page.wait_for_function(f"() => {FIND}.view.view.drawn().curves.length > 0")
    curves = root(page).evaluate("e => e.loupe.view.view.drawn().curves.map(c => [c.query, c.key, String(c.weight)])")
    assert 300 in rows and int(pattern[300].argmax()) in keys and curves
    expected = [float(pattern[rows[row], keys[key]]) for row, key, _ in curves]
    assert [float(weight) for *_, weight in curves] == pytest.approx(expected, rel=1e-4)
    outside = 1 - float(pattern[300, keys].sum())
    said = page.locator(".window-note strong").inner_text().removesuffix("\u00a0%")
    assert float(said) / 100 == pytest.approx(outside, rel=5e-3, abs=1e-6)
    sent = wire.reruns
    windowed(page, "q·k", "product")
    verdict, key = page.locator(".attention-product .verdict"), state(page)["key"]
    score = float(scores[300, key])
    for said in ("stored", "recomputed"):
        assert float(verdict.get_attribute(f"data-{said}") or "") == pytest.approx(score, rel=1e-4)
    windowed(page, "Steps", "steps")
    page.locator('[data-step="weighted"] canvas').wait_for()
    listed, weights = root(page).evaluate(
        "e => { const { keys, row } = e.loupe.view.view.written; return [keys, Array.from(row.weights)]; }"
    )
    stored = pattern[300, keys]
    assert weights == pytest.approx(stored.tolist(), rel=1e-4), "the softmax runs over the keys that are not listed too"
    assert [keys[i] for i in listed] == [keys[i] for i in stored.argsort(descending=True)[: len(listed)]]
    assert wire.reruns == sent, "another view of the window asked for it again"
    page.locator('[data-step="pattern"] canvas').click(position={"x": 1, "y": 1})
    assert (state(page)["query"], state(page)["key"]) == (rows[0], keys[0])
    page.wait_for_function(WINDOWED, arg="steps")
    assert root(page).evaluate("e => e.loupe.view.trace.rows[0]") == rows[0] - 24, "the window did not follow"
    root(page).evaluate("e => e.loupe.go({ head: 0, query: 17 })")
    page.wait_for_function(WINDOWED, arg="steps")
    rows = root(page).evaluate("e => e.loupe.view.trace.rows")
    assert 17 in rows and "On its way" not in page.locator(".window-note").inner_text()


def test_lines_of_a_long_text_show_several_heads_each_in_its_colour_and_of_any_block(
    look: Callable[..., "Page"], made: Any
) -> None:
    page, patterns = look(f"#layer={SHOWN[0]}&head={SHOWN[1]}&query=300"), made[1]["patterns"]
    windowed(page, "Lines", "lines")
    for layer, head in ((0, 3), (1, 0)):
        page.locator(f'.headgrid button[data-layer="{layer}"][data-head="{head}"]').click(modifiers=["Shift"])
    page.wait_for_function(f"() => {FIND}.view.view.compared.length === 3 && {FIND}.view.view.drawn().curves.length")
    page.wait_for_function(WINDOWED, arg="lines")
    rows, keys = root(page).evaluate("e => [e.loupe.view.trace.rows, e.loupe.view.trace.columns]")
    heads = root(page).evaluate("e => e.loupe.view.view.compared")
    assert heads == [[0, 3], [1, 0], list(SHOWN)]
    curves = root(page).evaluate(
        "e => e.loupe.view.view.drawn().curves.map(c => [c.head, c.query, c.key, String(c.weight)])"
    )
    assert {head for head, *_ in curves} == {0, 1, 2}
    expected = [float(patterns[(*heads[head], rows[row], keys[key])]) for head, row, key, _ in curves]
    assert [float(weight) for *_, weight in curves] == pytest.approx(expected, rel=1e-4)
    colours = page.locator(".lines-colour").evaluate_all("all => all.map(e => e.style.background)")
    framed = page.locator(".among").evaluate_all("all => all.map(e => e.style.getPropertyValue('--chosen'))")
    assert set(colours) == set(framed) and len(set(colours)) == 3
    said = [text.split(" ") for text in page.locator(".window-note strong").all_text_contents()]
    outside = {f"{layer + 1}·{head + 1}": 1 - float(patterns[layer, head, 300, keys].sum()) for layer, head in heads}
    shares = {name: float(share.removesuffix("\u00a0%").replace("−", "-")) / 100 for name, share in said}
    assert shares == pytest.approx(outside, rel=5e-3, abs=1e-6)
    assert state(page)["heads"][0] == list(SHOWN)
    page.wait_for_function("location.hash.includes('heads=')")
    page.get_by_label("take block 1 · head 4 out").click()
    page.wait_for_function(f"() => {FIND}.view.view.compared.length === 2")
    windowed(page, "Steps", "steps")
    assert page.locator(".attention .sentence", has_text="could not").count() == 0


def test_the_long_map_shows_what_weights_move_at_every_zoom_and_the_pointer_its_length(
    look: Callable[..., "Page"], made: Any
) -> None:
    page, whole = look(f"#layer={SHOWN[0]}&head={SHOWN[1]}&query=300&key=7"), made[1]["moved"]
    sent = page.locator(".long-map canvas").screenshot()
    page.get_by_role("button", name="value-weighted").click()
    for shares, expected in ((False, whole[0]), (True, whole[1])):
        page.get_by_label("shares of the row").set_checked(shares)
        for zoom in (1, 30):
            root(page).evaluate("(e, zoom) => e.loupe.map.look(zoom, 300, 150)", zoom)
            page.wait_for_function(HERE)
            checked(root(page), expected)
        page.locator(".long-map").hover(position=place(page, 307, 155))
        value = page.locator(".tip strong").inner_text().removesuffix("\u00a0%").replace("−", "-")
        assert float(value) == pytest.approx(float(expected[307, 155]) * (100 if shares else 1), rel=5e-3)
        assert "p · v W_O" in page.locator(".long-cell").inner_text()
    assert page.locator(".long-map canvas").screenshot() != sent
    page.wait_for_function("location.hash.includes('shows=')")
    assert "the row’s lengths" in page.locator(".long-legend .legend-text").inner_text()


def test_the_positional_share_is_scored_step_by_step_and_sorted_once_every_head_has_it(
    look: Callable[..., "Page"], made: Any
) -> None:
    page, expected = look('#order="largest"', HOT), made[1]["placed hot"].flatten()
    root(page).evaluate(
        """({ loupe: { heads, element } }) => { window.seen = []; const real = heads.update;
        heads.update = () => { real();
        const all = [...element.querySelectorAll('.headgrid .caption')].map(e => e.textContent);
        const scoring = element.querySelector('.scoring');
        window.seen.push([all.filter(x => x === '…').length, scoring.hidden, scoring.textContent]); }; }"""
    )
    page.get_by_label("score of the heads").select_option("positional")
    page.wait_for_function(f"() => !{FIND}.scoring('positional')")
    found = root(page).evaluate("e => Array.from(e.loupe.trace.arrays['scores.attn.positional'].data)")
    assert found == pytest.approx(expected.tolist(), abs=1e-4)
    told = page.evaluate("window.seen")
    assert [8, 4, 0] == list(dict.fromkeys(count for count, *_ in told)), "heads show … until they have a score"
    assert told[-1][1] and any("0 of 2 blocks scored" in said and "sorted once" in said for *_, said in told)
    order = page.locator(".headgrid .which").all_text_contents()
    best = expected.argsort(descending=True).tolist()
    assert order == [f"{i // 4 + 1}·{i % 4 + 1}" for i in best]


def test_a_score_that_is_not_chosen_any_more_is_asked_for_no_further(look: Callable[..., "Page"]) -> None:
    page = look("#query=200", AttentionTemperature(1.5))  # a run of which nothing is scored yet
    root(page).evaluate(
        """({ loupe }) => loupe.scored = all => { Object.getPrototypeOf(loupe).scored.call(loupe, all);
        if (loupe.scores.of('positional').done === 5) loupe.go({ score: undefined }); }"""
    )
    page.get_by_label("score of the heads").select_option("positional")
    at_rest = f"() => !{FIND}.scores.of('positional').going && {FIND}.scores.of('positional').done"
    page.wait_for_function(at_rest)
    answered(page)
    assert root(page).evaluate("e => e.loupe.scores.of('positional').done") == 5
    root(page).evaluate("e => { delete e.loupe.scored; }")
    page.get_by_label("score of the heads").select_option("positional")
    page.wait_for_function(f"() => !{FIND}.scoring('positional')")
    assert page.locator(".headgrid .caption", has_text="…").count() == 0


def test_a_mask_and_a_pattern_of_a_long_text_are_painted_through_a_window(look: Callable[..., "Page"]) -> None:
    page = look(f"#layer={SHOWN[0]}&head={SHOWN[1]}")
    mask = PaintMask(cells=[[300, 40]], layer=SHOWN[0])
    weight = PaintPattern(SHOWN[0], [[300, 41]], [0.3], [SHOWN[1]])
    for kind, column, key in (("Mask", 40, " "), ("Pattern", 41, "3")):
        page.locator(".experiment .start").click()
        page.get_by_role("button", name=kind, exact=True).click()
        if key == "3":
            choose(page, "attend", "weights painted by hand")
        page.locator(".mask canvas").wait_for()
        page.locator('[data-name="go to row"]').fill("300")
        page.locator('[data-name="go to col"]').fill(str(column))
        page.locator(".painter .note").get_by_text(f"({column})").wait_for()
        page.locator(".mask canvas").focus()
        page.keyboard.press(key)
        if key == "3":
            page.locator(".painter .note").get_by_text("30.0").wait_for()
        page.get_by_role("button", name="Add", exact=True).click()
        page.get_by_role("button", name="Cancel").wait_for(state="detached")
    linked = "new URL(location).searchParams.get('edits') ?? ''"
    comes_to(page, lambda: from_link(page.evaluate(linked))[0].edits, (mask, weight))
    expect(page.locator(".took")).to_contain_text("block 2 of 2 computed again")
    page.locator(".effects .heads .cells canvas").wait_for()
