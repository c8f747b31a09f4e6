"""The walkthrough of each type of model: its numbers are the engine's, and every kind of cell explains itself.

What every family explains is tests/engine/analysis/test_arithmetic.py's, what its page is given
tests/pages/test_walkthrough_kinds.py's."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

import numpy as np
import pytest

from engine.budget import budget
from engine.inputs.readers import pictures
from engine.runtime.trace import Trace
from tests.browser import zoo
from tests.browser.harness import BYTES, floats

if TYPE_CHECKING:
    from playwright.sync_api import Page

READY = ".walkthrough[data-ready]"
TOLERANCE = 2e-5  # between a value recomputed in double precision and the one stored in single
NOT_DRAWN = ("scale", "temperature", "pixels")

# Brings every element kind of both stacks into the arithmetic, one after the other, and reads what it says.
EXPLAIN = """async ({layer, skip}) => {
  const roots = [...document.querySelectorAll('*')].map(e => e.shadowRoot).filter(Boolean);
  const page = roots.map(root => root.querySelector('.walkthrough')).find(Boolean).loupe;
  const said = [];
  let patience = 1500; // turns of 20 ms
  const verdict = async () => {
    for (let i = 0; i < patience; i++) {
      await new Promise(wake => setTimeout(wake, 20));
      const found = page.element.querySelector('.verdict');
      if (found) return {recomputed: found.dataset.recomputed, stored: found.dataset.stored};
      const sentence = page.element.querySelector('.arithmetic .sentence');
      if (sentence) return {sentence: sentence.textContent};
    }
    patience = 0; // nor will it for the others
    return {sentence: 'nothing came'};
  };
  const ask = async (name, change) => {
    page.arithmetic.update({title: ''});
    page.go(change);
    said.push({name, ...await verdict()});
  };
  for (const side of page.trace.sides) {
    await page.go({side, layer});
    const {trace} = page;
    const own = name => side ? (name.startsWith(side + '.') ? name.slice(side.length + 1) : null) : name;
    const outside = name => trace.reads && /^(head|pooler|next_sentence|logits)/.test(name);
    const names = Object.keys(trace.arrays).map(name => outside(name) ? name : own(name))
      .filter(name => name && /^(embed|blocks|final_norm|head|pooler|next_sentence|logits)/.test(name))
      .filter(name => !skip.some(end => name.endsWith(end)))
      .filter(name => !name.startsWith('blocks.') || name.startsWith(`blocks.${layer}.`));
    for (const name of names) {
      const {shape} = trace.array(name);
      const square = trace.isSquare(name);
      const row = Math.min(2, (square ? shape[1] : shape[0]) - 1);
      const col = Math.min(square ? 1 : 3, shape.at(-1) - 1);
      const focus = trace.model.crosses ? (name.includes('cross_attn') ? 'cross_attn' : 'attn') : undefined;
      const hook = name.replace(/^blocks\\.\\d+/, 'blocks.{l}');
      await ask(side + ':' + name, {head: 1, focus, query: row, cell: {hook, row, col, flat: false}});
    }
    const last = trace.reads ? trace.arrays['next.id'].shape[1] - 1 : -1;
    for (let list = 0; trace.reads && list < trace.lists; list++)
      await ask(`candidate of list ${list}`, {cell: {candidate: Math.min(1, last), list}});
  }
  return said;
}"""


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("zoo")
    zoo.fill(folder)
    return folder


@pytest.fixture(scope="module")
def zoo_stage(models: Path, stage: str) -> Iterator[str]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(budget, "models_folder", str(models))
        yield stage


@pytest.fixture
def visit(open_page: Callable[[str], Page], zoo_stage: str) -> Callable[[str], Page]:
    def opened(name: str) -> Page:
        query = "".join(f"&{key}={quote(value)}" for key, value in zoo.GIVEN[name].items())
        page = open_page(f"{zoo_stage}/walkthrough?model={name}{query}")
        page.wait_for_selector(READY)
        return page

    return opened


@pytest.mark.parametrize("name", ["neox", "experts", "bert", "original", "vit"])  # decoders, encoder, both, pictures
def test_the_picture_holds_every_hook_of_the_engines_run_and_every_kind_of_cell_explains_itself(
    name: str, visit: Callable[[str], Page], models: Path
) -> None:
    page = visit(name)
    holds_every_hook(page, zoo.traced(models, name))
    explains_every_kind_of_cell(page)


def holds_every_hook(page: Page, trace: Trace) -> None:
    sent = page.locator(".walkthrough").evaluate(
        f"""e => Object.fromEntries(Object.entries(e.loupe.trace.arrays).map(([name, {{data}}]) =>
             [name, {BYTES}(data)]))"""
    )
    for hook in (h for h in trace if h != "logits" or h in sent):
        value = trace[hook][0] if trace.dims(hook)[0] == "batch" else trace[hook]
        got = floats(sent[hook]).reshape(tuple(value.shape))
        np.testing.assert_array_equal(got, value.float().numpy(), err_msg=hook)


def explains_every_kind_of_cell(page: Page) -> None:
    said = [one for layer in (0, 1) for one in page.evaluate(EXPLAIN, {"layer": layer, "skip": list(NOT_DRAWN)})]
    assert len(said) >= 40
    for one in said:
        assert "recomputed" in one, one
        recomputed, stored = (float(one[key].replace("Infinity", "inf")) for key in ("recomputed", "stored"))
        assert recomputed == stored or abs(recomputed - stored) <= TOLERANCE * max(1, abs(stored)), one


def test_two_stacks_change_places_with_one_click(visit: Callable[[str], Page]) -> None:
    page = visit("original")
    assert page.locator(".folded-encoder .token bdi").all_inner_texts() == ["The", "delighted", "dog"]
    assert page.locator(".stage-tokens .token bdi").all_inner_texts() == ["<start>", "Le", "chien", "très"]
    page.locator(".folded-encoder .folded-title").click()
    page.locator(".folded-decoder").wait_for()
    assert page.locator(".stage-tokens .token bdi").all_inner_texts() == ["The", "delighted", "dog"]
    assert page.locator(".stage-next").count() == 0
    page.wait_for_function("location.hash.includes('side=encoder')")


def test_of_two_attentions_one_is_shown_step_by_step_and_a_click_takes_the_other(visit: Callable[[str], Page]) -> None:
    page = visit("t5")
    drawn = "e => e.loupe.drawn().map(panel => panel.hook)"
    hooks = page.locator(".walkthrough").evaluate(drawn)
    assert "blocks.0.cross_attn.q" in hooks and "blocks.0.attn.q" not in hooks and "blocks.0.attn.pattern" in hooks
    page.get_by_role("button", name="self", exact=True).first.click()
    page.locator('.stage [data-stage="k"]').wait_for()
    hooks = page.locator(".walkthrough").evaluate(drawn)
    assert "blocks.0.attn.q" in hooks and "blocks.0.cross_attn.q" not in hooks


def test_a_prefix_model_shows_both_positions_of_every_token(visit: Callable[[str], Page]) -> None:
    page = visit("glm")
    pieces = page.locator(".stage-tokens .token bdi").all_inner_texts()
    shown = page.locator(".stage-tokens .token .id").all_inner_texts()
    positions = [tuple(map(int, text.split(" · "))) for text in shown]
    gap, span = pieces.index("[gMASK]"), pieces.index("[sop]")
    assert positions[:span] == [(i, 0) for i in range(span)]
    assert positions[span:] == [(gap, i + 1) for i in range(len(pieces) - span)]


def test_a_picture_is_seen_whole_and_pointing_at_a_patch_reads_its_row(visit: Callable[[str], Page]) -> None:
    page = visit("vit")
    canvas = page.locator(".picture > canvas")
    box = canvas.bounding_box()
    canvas.click(position={"x": box["width"] * 0.4, "y": box["height"] * 0.9})  # patch 4, 2 of 4 x 4
    page.locator(".arithmetic h3", has_text="“4, 2”").wait_for()
    assert page.locator(".walkthrough").evaluate("e => e.loupe.state.query") == 1 + 3 * 4 + 1
    brightness = page.locator(".picture-plain canvas").evaluate(
        """c => { const g = c.getContext('2d'), s = c.width / 8; return Array.from({length: 64}, (_, i) =>
             g.getImageData((i % 8 + .5) * s, (Math.floor(i / 8) + .5) * s, 1, 1).data[0]); }"""
    )
    np.testing.assert_allclose(brightness, pictures()[0][7].flatten().numpy() * 255, atol=1.5)


def test_an_answer_is_marked_on_its_tokens_and_its_start_and_end_explain_themselves(
    visit: Callable[[str], Page],
) -> None:
    page = visit("roberta-qa")
    walkthrough = page.locator(".walkthrough")
    answer = walkthrough.evaluate("e => e.loupe.trace.answer")
    marked = page.locator(".stage-tokens .token bdi").evaluate_all("all => all.map(e => e.classList.contains('said'))")
    assert [i for i, said in enumerate(marked) if said] == list(range(answer["start"], answer["end"] + 1))
    assert page.locator(".answer bdi").inner_text() == f"“{answer['text']}”"
    for list_, word in enumerate(("starts", "ends")):
        page.locator(f'[data-list="{list_}"] .bar-row').nth(1).click()
        page.locator(".arithmetic h3", has_text=f"where the answer {word}").wait_for()
        verdict = page.locator(".verdict")
        assert float(verdict.get_attribute("data-recomputed")) == pytest.approx(
            float(verdict.get_attribute("data-stored")), abs=TOLERANCE
        )
    page.wait_for_function("location.hash.includes('1,1]')")
    page.reload()
    page.locator(".arithmetic h3", has_text="where the answer ends").wait_for()


def test_what_is_said_once_stands_beside_the_row_it_was_read_from(visit: Callable[[str], Page]) -> None:
    page = visit("deit")
    rows = page.locator(".stage-tokens .token")
    for i, stage in enumerate(("cls", "distilled")):
        strip, row = page.locator(f".stage-{stage} canvas").bounding_box(), rows.nth(i).bounding_box()
        assert strip["y"] == pytest.approx(row["y"], abs=1)
