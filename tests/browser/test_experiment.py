"""What if, in a browser: an edit is made by hand, its effects are the engine's numbers, its link and the way back."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest
import torch

from engine.edits import AttentionTemperature, PaintMask, PaintPattern, Patch, Replace, SetPattern, SilenceHeads, Source
from engine.edits.experiment import Experiment
from engine.inputs.readers import pictures, read_pixels
from engine.runtime import library
from engine.runtime.run import run
from engine.runtime.trace import Trace
from pages.controls.what_if.experiment_link import from_link, to_link
from tests.browser.harness import choose, comes_to, expect, shows, turn_to
from views.what_if.continuation import completion

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

    from tests.conftest import Wire

TEXT = 'Max gave the red ball to Anna. "Thank you," said'
QUIET = SilenceHeads(3, [3])


@pytest.fixture
def shown(stage: str, open_page: "Callable[[str], Page]") -> "Callable[..., Page]":
    def opened(name: str = "walkthrough", at: str = stage, **address: str) -> "Page":
        query = "&".join(f"{key}={value}" for key, value in address.items())
        page = open_page(f"{at}/{name}{'?' + query if query else ''}")
        page.locator(".experiment .start").wait_for()
        return page

    return opened


def linked(*edits: object) -> str:
    experiment = Experiment()
    for edit in edits:
        experiment = experiment.add(edit)  # type: ignore[arg-type]
    return to_link(experiment)


def traced(*edits: object) -> Trace:
    checkpoint = library.checkpoint("stories")
    return run(checkpoint.model, checkpoint.tokenizer.encode(TEXT), edits=edits)  # type: ignore[arg-type]


def in_the_address(page: "Page") -> tuple[object, ...]:
    return from_link(page.evaluate("new URL(location).searchParams.get('edits') ?? ''"))[0].edits


def comes_to_the_address(page: "Page", *edits: object) -> None:
    comes_to(page, lambda: in_the_address(page), edits)


def fill(page: "Page", label: str, text: str) -> None:
    """Fills in a field of the form."""
    page.get_by_role("textbox", name=label).or_(page.get_by_role("spinbutton", name=label)).fill(text)
    page.keyboard.press("Tab")


def row(page: "Page", token: str) -> "Locator":
    return page.locator(".candidates tbody tr").filter(has=page.locator(f'bdi:text-is("{token}")'))


def test_silencing_the_head_that_is_looked_at_takes_three_clicks_and_shows_the_engines_numbers(
    shown: "Callable[..., Page]",
) -> None:
    page = shown()
    assert page.locator(".effects").is_hidden() and page.locator(".experiment.resting").count() == 1
    page.locator(".experiment .start").click()
    page.get_by_role("button", name="Silence heads").click()
    page.get_by_role("button", name="Add", exact=True).click()
    page.locator(".effects .candidates").wait_for()
    expect(page.locator(".edit .words")).to_have_text("block 4, head 4: silenced")
    before, after = traced()["logits"][0, -1].double(), traced(QUIET)["logits"][0, -1].double()
    anna = library.checkpoint("stories").tokenizer.encode("to Anna").ids[-1]
    shares = [float(logits.softmax(-1)[anna]) for logits in (before, after)]
    cells = row(page, "·Anna").locator("td.number").all_inner_texts()
    assert cells[0] == f"{100 * shares[0]:.1f}\u00a0%" and cells[1] == f"{100 * shares[1]:.2f}\u00a0%"
    assert cells[3] == f"{float(after[anna] - before[anna]):.3f}".replace("-", "−")
    p, q = before.softmax(-1), after.softmax(-1)
    bits = float((p * (p / q).log2()).sum())
    assert f"KL {bits:.4f} bits" in page.locator(".headline").inner_text()
    assert "block 4 of 4 computed again in" in page.locator(".took").inner_text()
    page.locator(".line.after .token").first.wait_for()
    assert page.locator(".line.before .token").first.inner_text() == "·Anna"
    likeliest = library.checkpoint("stories").tokenizer.piece(int(after.argmax()))
    assert page.locator(".line.after .token").first.inner_text() == likeliest
    comes_to_the_address(page, QUIET)


def test_a_mask_is_painted_by_dragging_and_the_picture_below_is_of_that_run(
    shown: "Callable[..., Page]", server: str
) -> None:
    page = shown("attention", at=server)
    page.locator(".experiment .start").click()
    page.get_by_role("button", name="Mask", exact=True).click()
    canvas = page.locator(".mask canvas")
    canvas.wait_for()
    box = canvas.bounding_box()
    assert box is not None
    side = box["width"] / 14
    page.mouse.move(box["x"] + 2.5 * side, box["y"] + 13.5 * side)
    page.mouse.down()
    page.mouse.move(box["x"] + 7.5 * side, box["y"] + 13.5 * side, steps=12)
    page.mouse.up()
    page.get_by_role("button", name="Add", exact=True).click()
    page.locator(".edit .words").wait_for()
    painted = PaintMask(cells=[[13, key] for key in range(2, 8)], layer=3)
    comes_to_the_address(page, painted)
    shows(page, "attention", traced(painted))
    pattern = traced(painted)["blocks.3.attn.pattern"][0, 3, 13]
    weights = page.locator(".attention").evaluate(
        "({ loupe }) => Array.from(loupe.trace.row('blocks.3.attn.pattern', 13, 3))"
    )
    torch.testing.assert_close(torch.tensor(weights), pattern)
    assert not any(weights[2:8])


def test_a_mask_with_a_whole_row_is_opened_again_and_more_of_it_is_painted(shown: "Callable[..., Page]") -> None:
    page = shown("attention", edits=linked(PaintMask(rows=[4], layer=3)))
    page.locator(".edit .words").click()
    page.locator(".mask canvas").focus()
    page.keyboard.press(" ")
    page.get_by_role("button", name="Change", exact=True).click()
    comes_to(page, lambda: [(edit.rows, len(edit.cells)) for edit in in_the_address(page)], [([4], 1)])


def test_weights_are_painted_and_the_row_is_that_of_the_run(shown: "Callable[..., Page]", server: str) -> None:
    page = shown("attention", at=server)
    page.locator(".experiment .start").click()
    page.get_by_role("button", name="Pattern", exact=True).click()
    choose(page, "attend", "weights painted by hand")
    canvas = page.locator(".mask canvas")
    canvas.wait_for()
    fill(page, "weight to paint", "0.25")
    page.get_by_text("click or drag puts 0.25").wait_for()
    box = canvas.bounding_box()
    assert box is not None
    side = box["width"] / 14
    page.mouse.click(box["x"] + 2.5 * side, box["y"] + 13.5 * side)
    page.keyboard.press("ArrowRight")
    page.keyboard.press("3")
    told = page.locator(".painter .note").inner_text()
    page.get_by_role("button", name="Add", exact=True).click()
    page.locator(".edit .words").wait_for()
    painted = PaintPattern(3, [[13, 2], [13, 3]], [0.25, 0.3], [3])
    comes_to_the_address(page, painted)
    pattern = traced(painted)["blocks.3.attn.pattern"][0, 3, 13]
    assert pattern[2:4].tolist() == pytest.approx([0.25, 0.3]) and "looks at “·the”: 30.0" in told
    assert f"was {100 * float(traced()['blocks.3.attn.pattern'][0, 3, 13, 3]):.3f}"[:8] in told
    page.locator(".edit .words").click()  # its form begins from the head's own pattern
    canvas.wait_for()
    canvas.focus()
    for _ in range(7):
        page.keyboard.press("ArrowRight")
    shown_there = page.locator(".painter .note").inner_text()
    assert f"“·Anna”: {100 * float(pattern[7]):.1f}" in shown_there and "sums to 1" in shown_there


def test_what_only_a_link_could_bring_is_made_and_changed_by_hand(shown: "Callable[..., Page]", server: str) -> None:
    page = shown(at=server, edits=linked(Replace("logits", 1.0, {"vocab": [3, 4, 5]})))
    page.locator(".edit .words").click()
    expect(page.get_by_label("vocab", exact=True)).to_have_value("3-5")
    fill(page, "number", "2")
    page.get_by_role("button", name="Change", exact=True).click()
    page.get_by_text("replaced by 2").wait_for()
    page.locator(".experiment .start").click()
    page.get_by_role("button", name="Pattern", exact=True).click()
    choose(page, "attend", "to one token")
    page.get_by_role("radio", name="·Anna").click()
    page.get_by_role("button", name="Add", exact=True).click()
    page.get_by_text("attend to “·Anna” alone").wait_for()
    page.locator(".experiment .start").click()
    page.get_by_role("button", name="Patch", exact=True).click()
    choose(page, "block", "outside of the blocks")
    choose(page, "value", "final_norm.out")
    for token in ("·Anna", "·said"):  # one more, and without the one that the page looks at
        page.get_by_role("button", name=token, exact=True).click()
    fill(page, "the other text", "Max gave the blue ball to Lily")
    fill(page, "its token number", "5")
    page.get_by_role("button", name="Add", exact=True).click()
    page.get_by_text("final_norm.out, at").wait_for()
    other = list(library.checkpoint("stories").tokenizer.encode("Max gave the blue ball to Lily").ids)
    comes_to_the_address(
        page,
        Replace("logits", 2.0, {"vocab": [3, 4, 5]}),
        SetPattern(3, "position", [3], position=7),
        Patch("final_norm.out", Source(other), {"pos": [7]}, source_at={"pos": 5}),
    )


def test_a_picture_is_completed_before_and_after_and_a_guess_points_at_it(shown: "Callable[..., Page]") -> None:
    edits = [AttentionTemperature(3.0)]
    page = shown(model="digits-imagegpt", edits=linked(*edits))
    page.locator(".completed canvas").first.wait_for()
    checkpoint = library.checkpoint("digits-imagegpt")
    reading = read_pixels(checkpoint, pictures()[0][0], 32, 256, {}, 0)
    drawn = [completion(checkpoint, reading, made) for made in ((), edits)]
    others = int((drawn[0] != drawn[1]).any(-1).sum())
    assert f"{others} of 32 drawn pixels are others" in page.locator(".completed").inner_text() and others
    page.get_by_label("predict, then reveal").check()
    page.locator(".guess .cell").first.wait_for()
    offered = page.locator(".effects").evaluate("({ loupe }) => loupe.data.guess")
    assert offered["offered"] == list(range(offered["row"] + 1))  # it is causal, and no mask is painted
    page.locator(f'.guess [data-name="looks {offered["row"]}"]').click()
    page.get_by_role("button", name="Reveal", exact=True).click()
    page.locator(".effects .verdict").wait_for()
    assert "pixel at row" in page.locator(".effects .verdict").inner_text()


def test_one_click_compares_the_page_with_itself_under_the_edits(shown: "Callable[..., Page]", server: str) -> None:
    page = shown(at=server, edits=linked(QUIET))
    turn_to(page, "Compare")
    page.get_by_label("text of B").fill("Anna laughed")
    page.wait_for_function("new URL(location).searchParams.get('b_text') === 'Anna laughed'")
    turn_to(page, "Attention")
    page.locator('[data-name="compare"]').click()
    page.wait_for_function("location.pathname === '/compare' && new URL(location).searchParams.get('b_edits')")
    for letter in "AB":
        expect(page.get_by_label(f"text of {letter}")).to_have_value(TEXT)
    assert not page.evaluate("new URL(location).searchParams.get('a_edits')")
    assert from_link(page.evaluate("new URL(location).searchParams.get('b_edits')"))[0].edits == (QUIET,)
    turn_to(page, "Walkthrough")
    expect(page.locator(".edit .words")).to_have_text("block 4, head 4: silenced")


def test_a_link_restores_edits_that_can_be_switched_undone_and_removed(shown: "Callable[..., Page]") -> None:
    page = shown(edits=linked(QUIET, AttentionTemperature(2.0)))
    switches = page.locator(".switch")
    expect(switches).to_have_count(2)
    switches.nth(1).click()
    page.wait_for_function(checked("true,false"))
    expect(page.locator(".took")).to_contain_text("block 4 of 4")
    page.get_by_role("button", name="undo").click()
    page.wait_for_function(checked("true,true"))
    page.get_by_role("button", name="redo").click()
    page.wait_for_function(checked("true,false"))
    page.get_by_role("button", name="remove all").click()
    page.locator(".effects").wait_for(state="hidden")
    page.wait_for_function("!new URL(location).searchParams.has('edits')")


def checked(states: str) -> str:
    """That the switches stand so, wherever in the page's shadow trees."""
    return (
        "[...document.querySelectorAll('*')].map((e) => e.shadowRoot).filter(Boolean)"
        f".some((r) => [...r.querySelectorAll('.switch')].map((s) => s.ariaChecked).join() === '{states}')"
    )


def test_choosing_another_position_asks_nothing_of_the_server(shown: "Callable[..., Page]", wire: "Wire") -> None:
    page = shown(edits=linked(QUIET))
    page.locator(".line.after .token").first.wait_for()
    sent = wire.reruns
    said = page.locator(".says canvas")
    said.focus()
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Enter")
    before, after = traced()["logits"][0, -2].double(), traced(QUIET)["logits"][0, -2].double()
    expect(page.locator(".headline .asked")).to_have_text('After “,"”:')
    p, q = before.softmax(-1), after.softmax(-1)
    assert f"KL {float((p * (p / q).log2()).sum()):.4f}"[:7] in page.locator(".headline").inner_text()
    assert wire.reruns == sent


def test_a_guess_comes_before_what_an_edit_did_and_is_judged(shown: "Callable[..., Page]") -> None:
    page = shown(edits=linked(SilenceHeads(2, [1])))
    page.get_by_label("predict, then reveal").check()
    page.locator(".guess").wait_for()
    expect(page.locator(".candidates")).to_have_count(0)
    page.get_by_role("button", name="no, it stays").click()
    page.get_by_role("button", name="Reveal", exact=True).click()
    page.locator(".effects .verdict").wait_for()
    stays = int(traced()["logits"][0, -1].argmax()) == int(traced(SilenceHeads(2, [1]))["logits"][0, -1].argmax())
    assert ("Right" if stays else "Wrong") in page.locator(".effects .verdict").inner_text()
    assert f"{int(stays)} of 1 guesses right" in page.locator(".effects .tally").inner_text()


def test_a_form_that_is_opened_while_an_edit_is_computed_keeps_what_is_typed(
    shown: "Callable[..., Page]", server: str
) -> None:
    page = shown(at=server)
    page.locator(".experiment .start").click()
    page.get_by_role("button", name="Silence heads").click()
    page.get_by_role("button", name="Add", exact=True).click()
    page.locator(".experiment .start").click()  # while it is computed
    page.locator('[data-name="offer temperature"]').click()
    page.get_by_label("temperature", exact=True).fill("3.5")
    page.locator(".effects .candidates").wait_for()
    expect(page.get_by_label("temperature", exact=True)).to_have_value("3.5")
    expect(page.locator(".edit")).to_have_count(1)
    page.get_by_role("button", name="Add", exact=True).click()
    page.wait_for_function(checked("true,true"))
    comes_to_the_address(page, QUIET, AttentionTemperature(3.5, 3))
    expect(page.get_by_role("button", name="Cancel")).to_have_count(0)


def test_a_picture_is_patched_from_another_one_by_hand(shown: "Callable[..., Page]", server: str) -> None:
    page = shown(at=server, model="digits-vit")
    page.locator(".experiment .start").click()
    assert "Token: this model reads patches" in page.locator(".experiment").inner_text()
    page.get_by_role("button", name="Patch", exact=True).click()
    page.get_by_label("number, 0 to").wait_for()
    page.get_by_role("toolbar", name="at").get_by_role("button", pressed=True).click()  # and so at every place
    fill(page, "number, 0 to", "7")
    page.get_by_role("button", name="Add", exact=True).click()
    page.get_by_text("as in picture 7").wait_for()
    page.wait_for_function("new URL(location).searchParams.has('edits')")
    (edit,) = in_the_address(page)
    assert isinstance(edit, Patch) and edit.source is not None
    checkpoint = library.checkpoint("digits-vit")
    pixels = checkpoint.processor.pixels(pictures()[0][7])
    assert torch.equal(torch.tensor(edit.source.pixels), pixels[0])
    after = run(checkpoint.model, pixels)["logits"][0].softmax(-1)
    expect(page.locator(".likely bdi").nth(1)).to_have_text(checkpoint.labels[int(after.argmax())])
    page.locator(".edit .words").click()
    expect(page.get_by_label("number, 0 to")).to_have_value("7")
