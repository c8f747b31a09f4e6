"""What a page gives away in a browser: pictures made of shapes, a file that needs no network, links that come back."""

import struct
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, quote, urlsplit

import numpy as np
import pytest
import torch

from engine.analysis.points import head_points
from engine.analysis.rollout import rollout
from engine.edits import SilenceHeads
from engine.edits.experiment import Experiment
from engine.inputs.readers import read_text
from engine.inputs.samples import samples
from engine.runtime import library
from engine.runtime.run import run
from engine.runtime.trace import Trace
from pages.controls.what_if.experiment_link import to_link
from tests.browser.harness import comes_to, expect

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Locator, Page

TEXT = 'Max gave the red ball to Anna. "Thank you," said'
SVG = "{http://www.w3.org/2000/svg}"
Look = Callable[..., "Page"]


@pytest.fixture
def look(open_page: Callable[[str], "Page"], stage: str) -> Look:
    def open_(view: str = "attention", hash: str = "", anew: bool = False, **query: object) -> "Page":
        named = {"text": TEXT, **query}
        address = "&".join(f"{name}={quote(str(value))}" for name, value in named.items())
        page = open_page(f"{stage}/{view}?{address}{hash}", anew)
        page.wait_for_selector(f".{view}[data-ready] canvas")
        panel = page.get_by_role("button", name="Share & export")
        if panel.get_attribute("aria-expanded") != "true":
            panel.click()
        return page

    return open_


def traced() -> Trace:
    return library.traces.trace("stories", read_text(library.checkpoint("stories"), TEXT, 256).read)


def saved(place: "Page | Locator", name: str, folder: Path) -> Path:
    """What a button downloads."""
    button = place.get_by_role("button", name=name, exact=True)
    with button.page.expect_download() as download:
        button.click()
    path = folder / download.value.suggested_filename
    download.value.save_as(path)
    return path


@pytest.mark.parametrize("view", ["attention", "walkthrough"])
def test_a_picture_is_made_of_shapes_and_text_and_says_what_it_shows(look: Look, view: str, tmp_path: Path) -> None:
    page = look(view, hash="#layer=1&head=2")
    path = saved(page, "SVG", tmp_path)
    picture = ElementTree.parse(path).getroot()
    texts = [element.text or "" for element in picture.iter(f"{SVG}text")]
    assert set(traced().encoding.pieces) <= set(texts)
    assert not list(picture.iter(f"{SVG}image"))
    assert any("block 2 of 4, head 3 of 4" in text for text in texts) and "Loupe" in texts and TEXT in texts
    assert picture.get("width") == "17cm"
    assert path.name == f"loupe-{view}-stories.svg"


def test_a_picture_of_an_edited_run_says_what_was_edited_and_marks_the_heads(look: Look, tmp_path: Path) -> None:
    page = look(edits=to_link(Experiment().add(SilenceHeads(1, [2]))), hash="#layer=1&head=2")
    expect(page.locator(".headgrid button.edited").first).to_be_visible()
    picture = ElementTree.parse(saved(page, "SVG", tmp_path)).getroot()
    said = " ".join(element.text or "" for element in picture.iter(f"{SVG}text"))
    assert "edited: block 2, head 3: silenced" in said
    edited = page.locator(".headgrid button.edited").count()
    assert len(list(picture.iter(f"{SVG}polygon"))) == edited + 1  # and that of the legend


def test_one_plot_is_a_picture_whose_letters_are_legible_on_paper(look: Look, tmp_path: Path) -> None:
    page = look(hash="#layer=1&head=2")
    size = "e => [e.clientWidth, e.clientHeight]"
    expect(page.locator(".why")).to_contain_text("(key ")  # the last sentence of the column, which comes by itself
    before = page.locator(".attention").evaluate(size)
    for part, own, others in (("Map alone", "key→", "Allheads"), ("all heads", "Allheads", "key→")):
        page.get_by_label("which part").select_option(label=part)
        picture = ElementTree.parse(saved(page, "SVG", tmp_path)).getroot()
        texts = "".join("".join((element.text or "").split()) for element in picture.iter(f"{SVG}text"))
        assert own in texts and others not in texts, part  # a term in a title is a text of its own
        wide = float((picture.get("viewBox") or "").split()[2])
        sizes = [float(element.get("font-size") or "nan") for element in picture.iter(f"{SVG}text")]
        assert min(sizes) * 17 / 2.54 * 72 / wide >= 7, part  # points, at 17 cm
    assert page.locator(".attention").evaluate(size) == before  # the page is as it was


def test_the_cells_of_a_picture_have_the_colours_of_the_canvas(look: Look, tmp_path: Path) -> None:
    """Every cell of the map is a rectangle with the colour that its pixels have on the screen."""
    page = look()
    count = len(traced().encoding)
    on_screen = page.locator(".map-grid canvas").evaluate(
        """(canvas, n) => { const g = canvas.getContext('2d'), w = canvas.width / n, h = canvas.height / n;
        const pixel = r => g.getImageData((r + .5) * w - w * .35, (r + .5) * h, 1, 1).data.subarray(0, 3);
        return Array.from({length: n}, (_, r) => Array.from(pixel(r), x => x.toString(16).padStart(2, '0')).join(''));
        }""",
        count,
    )
    picture = ElementTree.parse(saved(page, "SVG", tmp_path)).getroot()
    fills = {rect.get("fill") for rect in picture.iter(f"{SVG}rect")}
    assert {f"#{one}" for one in on_screen} <= fills and len(set(on_screen)) > 5


def test_a_png_has_300_dots_an_inch_at_the_width_that_was_asked_for(look: Look, tmp_path: Path) -> None:
    page = look()
    page.get_by_label("width in centimetres").fill("10")
    raw = saved(page, "PNG", tmp_path).read_bytes()
    assert raw[:8] == b"\x89PNG\r\n\x1a\n"
    assert struct.unpack(">I", raw[16:20]) == (round(10 / 2.54 * 300),)
    at = raw.index(b"pHYs")
    assert struct.unpack(">IIB", raw[at + 4 : at + 13]) == (11811, 11811, 1)


def test_the_file_is_alive_without_a_network(look: Look, browser: "Browser", tmp_path: Path) -> None:
    page = look(hash="#layer=1&head=2")
    path = saved(page, "HTML", tmp_path)
    assert path.stat().st_size < 5_000_000
    context = browser.new_context(offline=True, viewport={"width": 1280, "height": 900})
    alone, faults, requests = context.new_page(), [], []
    alone.on("pageerror", lambda error: faults.append(str(error)))
    alone.on("console", lambda message: faults.append(message.text) if message.type == "error" else None)
    alone.on("request", lambda request: requests.append(request.url[:60]))
    alone.goto(path.as_uri())
    alone.wait_for_selector(".attention[data-ready] .view canvas")
    trace = traced()
    for head in (2, 3):
        drawn = alone.locator(".attention").evaluate(
            """e => { const { data, offset, stride, rows, cols } = e.loupe.view.found().block;
            const row = r => Array.from(data.subarray(offset + r * stride, offset + r * stride + cols));
            return Array.from({length: rows}, (_, r) => row(r)); }"""
        )
        np.testing.assert_array_equal(np.float32(drawn), trace["blocks.1.attn.pattern"][0, head].numpy())
        alone.keyboard.press("]")
    box = alone.locator(".map-grid canvas").bounding_box()
    assert box is not None
    alone.mouse.move(box["x"] + box["width"] * 0.5 / 14, box["y"] + box["height"] * 5.5 / 14)
    weight = 100 * trace["blocks.1.attn.pattern"][0, 0, 5, 0].item()
    assert float(alone.locator(".tip strong").inner_text().split("\u00a0")[0]) == pytest.approx(weight, rel=0.01)
    alone.get_by_role("button", name="light or dark").click()
    expect(alone.locator(".loupe-view")).to_have_attribute("data-theme", "dark")
    context.close()
    assert not faults and all(url.startswith(("file:", "data:", "blob:")) for url in requests)


def test_a_link_opens_on_what_was_looked_at_and_hides_what_a_teacher_chose(
    look: Look, open_page: Callable[[str], "Page"]
) -> None:
    page = look(hash="#layer=1&head=2", attention=0.5)
    page.get_by_role("checkbox", name="the model").check()
    page.get_by_role("checkbox", name="keep light or dark").check()
    page.get_by_role("button", name="Copy class link").click()
    page.locator("input.made:visible").wait_for()
    link = page.locator("input.made:visible").input_value()
    query = parse_qs(urlsplit(link).query)
    assert query == {"v": ["1"], "model": ["stories"], "text": [TEXT], "attention": ["0.5"], "hide": ["model"]} | {
        "embed_options": ["light_theme"]
    }
    expect(page.locator(".loupe-take .code svg")).to_be_visible()
    here = urlsplit(page.url).netloc  # the link names the network's address, where no server listens
    page = open_page(urlsplit(link)._replace(scheme="http", netloc=here).geturl())
    page.wait_for_selector(".attention[data-ready] canvas")
    state = page.locator(".attention").evaluate("e => [e.loupe.state.layer, e.loupe.state.head]")
    assert state == [1, 2]
    expect(page.locator(".st-key-model")).to_be_hidden()
    expect(page.locator(".st-key-text")).to_be_visible()


def test_what_a_tab_shows_in_place_of_the_pattern_is_what_is_taken(look: Look, tmp_path: Path) -> None:
    page = look(hash="#view=text&over=rollout&last=1&layer=1&head=2&query=5&key=2")
    page.locator(".said-of bdi").first.wait_for()
    rolled = rollout(traced(), "", 0, 2)[-1].numpy()
    with np.load(saved(page, "npz", tmp_path), allow_pickle=False) as file:
        np.testing.assert_allclose(file["values"], rolled, atol=1e-6)
    texts = [one.text or "" for one in ElementTree.parse(saved(page, "SVG", tmp_path)).iter(f"{SVG}text")]
    (said,) = [text for text in texts if text.startswith("rollout, ")]
    assert float(said.split(": ")[-1].split("\u00a0")[0]) == pytest.approx(100 * rolled[5, 2], abs=0.06)
    assert "stories, blocks 1 to 2 of 4, all 4 heads" in texts
    page.locator('[data-view="points"]').click()
    page.locator('[aria-label="Data"] button', has_text="npz").wait_for()
    with np.load(saved(page, "npz", tmp_path), allow_pickle=False) as file:
        found = head_points(traced(), 1, 2)
        expected = torch.cat([found.queries, found.keys])
        np.testing.assert_allclose(np.stack([file["x"], file["y"]], -1), expected, atol=1e-5)


def test_a_link_to_a_head_that_is_not_here_says_so(look: Look) -> None:
    page = look(hash="#layer=9&head=1", anew=True)
    expect(page.locator(".loupe-lost")).to_contain_text("block 10 is not here, there are 4")


def test_no_link_is_made_that_no_page_could_read(look: Look) -> None:
    said = look().evaluate(
        """async () => {
        const loaded = performance.getEntriesByType('resource').map(({ name }) => name);
        const { use } = await import(loaded.find((name) => name.endsWith('/views.js')));
        const { link } = use('share/link');
        const made = link({ text: 'x'.repeat(500000) }, '#layer=1');
        try {
          return [made.length, link({ text: '\u65e5'.repeat(60000) }, '')];
        } catch (error) {
          return [made.length, error.message];
        }
        }"""
    )
    sizes = "the address would have 540,005 characters after the ?, and at most 524,288 are read"
    assert said[0] > 500_000 and said[1].startswith(f"The text is too long for a link: {sizes}.")


@pytest.mark.long
def test_a_text_that_no_address_can_hold_is_said_once_and_stays_until_the_reload(look: Look) -> None:
    """An address that long is not read: what stood there would be gone with a reload, and the model with it."""
    page = look(model="tales-bert", text="It began to [MASK].")
    field = page.get_by_label("text", exact=True)
    long = "\u65e5\u672c\u8a9e " * 20_000
    field.fill(long)
    field.press("Enter")
    said = page.locator(".loupe-lost")
    said.get_by_text("The text is too long for a link").wait_for()
    assert "560,0" in said.inner_text() and said.inner_text().endswith("paste it again then.")
    assert urlsplit(page.url).query == "model=tales-bert" and field.input_value() == long
    page.get_by_role("button", name="Copy link").click()
    page.locator("output.said").get_by_text(said.inner_text()).wait_for()
    page.reload()
    page.wait_for_selector(".attention[data-ready] canvas")
    model = page.locator(".attention")
    comes_to(page, lambda: model.evaluate("e => e.loupe.data.model.name"), "tales-bert")
    expect(page.get_by_text("too long for a link")).to_have_count(0)
    field.fill("It was a [MASK] day.")
    field.press("Enter")
    page.wait_for_url("**text=It+was+a*")


def test_no_control_stands_in_a_picture_and_what_is_chosen_does(look: Look, tmp_path: Path) -> None:
    page = look(hash="#view=lines&layer=0&head=1&heads=[[0,1],[2,3]]")
    hidden = {"+ compare heads", "‹", "›", "×", " ×", "Map", "Steps", "only the shown one"}

    def texts() -> set[str]:
        picture = ElementTree.parse(saved(page, "SVG", tmp_path)).getroot()
        return {text.text or "" for text in picture.iter(f"{SVG}text")}

    drawn = {"lines": ".lines-note strong", "map": ".map-grid canvas", "points": ".points-axes:has-text('variance')"}
    for tab, there in (("lines", "block 3 · head 4"), ("map", "pattern"), ("points", "PCA")):
        page.locator(f'[data-view="{tab}"]').click()
        page.locator(drawn[tab]).first.wait_for()
        found = texts()
        assert there in found and not found & hidden
        assert not found & {"raw scores", "value-weighted", "t-SNE"}
    assert page.get_by_role("button", name="+ compare heads").is_visible()
    page = look("walkthrough")
    assert page.get_by_role("button", name="append").is_visible()
    assert page.locator(".hint").is_visible()
    found = texts()
    assert not found & {"append", "draw again"} and not any(text.startswith("Click any cell") for text in found)


def test_a_picture_is_no_taller_than_a_page_and_says_what_became_of_its_width(look: Look, tmp_path: Path) -> None:
    page = look(hash="#view=circuits", text=" ".join("the dog saw a cat and ran to her mother in town".split() * 3))
    page.set_viewport_size({"width": 700, "height": 900})
    page.locator(".scored").wait_for()
    picture = ElementTree.parse(saved(page, "SVG", tmp_path)).getroot()
    wide, tall = (float((picture.get(side) or "").removesuffix("cm")) for side in ("width", "height"))
    assert tall == pytest.approx(25, abs=0.05) and wide < 17
    said = page.locator("output.said").inner_text()
    assert f"{wide:.1f}".removesuffix(".0") in said and "so that it fits a page: it would be" in said


def test_a_picture_of_a_mean_over_many_texts_says_of_how_many_and_the_value(look: Look, tmp_path: Path) -> None:
    page = look(hash="#view=text&over=sentences&layer=1&head=2&query=5&key=2")
    page.locator(".average canvas").wait_for()
    texts = [one.text or "" for one in ElementTree.parse(saved(page, "SVG", tmp_path)).iter(f"{SVG}text")]
    checkpoint = library.checkpoint("stories")
    rows = [run(checkpoint.model, one.read)["blocks.1.attn.pattern"][0, 2, 5, 2] for one in samples(checkpoint, 24, 48)]
    (said,) = [text for text in texts if "position 6 → position 3" in text]
    value = said.split("position 3: ")[1].split("\u00a0")[0]
    assert float(value) == pytest.approx(100 * torch.stack(rows).mean().item(), rel=5e-3)
    assert said.endswith("mean of the 24 texts that reach it") and "24 texts made for the model" in texts
    assert "stories, block 2 of 4, head 3 of 4" in texts and TEXT not in texts


def test_the_lines_that_are_drawn_are_what_is_taken(look: Look, tmp_path: Path) -> None:
    page = look(hash="#view=lines&layer=1&head=2&heads=[[1,2],[0,1]]&least=0.05")
    page.locator(".lines-note strong").wait_for()
    drawn = page.locator(".attention-lines").evaluate(
        """({ loupe }) => loupe.drawn().curves.map(
            ({ head, query, key, weight }) => [...loupe.compared[head], query, key, weight])"""
    )
    with np.load(saved(page, "npz", tmp_path), allow_pickle=False) as file:
        taken = np.stack([file[name] for name in ("layer", "head", "query", "key", "weight")], -1)
    np.testing.assert_allclose(sorted(map(tuple, taken.tolist())), sorted(map(tuple, drawn)))
    assert len(drawn) > 10


def test_the_lines_are_those_of_the_cell_that_is_looked_at_and_escape_closes(look: Look) -> None:
    page = look(hash="#layer=2&head=1&query=5&key=3")
    page.get_by_role("button", name="Copy lines").click()
    page.locator("pre.made:visible").wait_for()
    lines = page.locator("pre.made").inner_text()
    assert 'trace["blocks.2.attn.pattern"][0, 1]' in lines and "values[5, 3]" in lines
    page.keyboard.press("Escape")
    expect(page.locator(".loupe-take .panel")).to_be_hidden()
