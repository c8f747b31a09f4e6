"""The probe of the page about training in a real browser: what stands there is what the model of that step says."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import torch
from torch.nn.functional import cross_entropy

from engine.checkpoints import Checkpoint, load
from engine.data.digits import split
from engine.generation.generate import generate
from engine.inputs.processors import ImageProcessor
from engine.runtime.run import run
from engine.training.probe.frames import Frame, read_frames
from engine.training.probe.probe import read_probe
from engine.training.probe.probe_frame import LISTED
from engine.training.run.folder import RunFolder
from tests.browser.harness import ROOT, UVICORN, answered, comes_to, served, settle

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

    from tests.conftest import Wire

pytestmark = pytest.mark.long

Look = Callable[..., "Page"]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    for preset, steps in (("reverse", 60), ("digits-vit", 24)):
        recipe = f"assets/lab/{preset}.toml"
        command = [sys.executable, "-m", "engine", "train", recipe, "--out", str(folder / preset), "--device", "cpu"]
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        subprocess.run([*command, "--steps", str(steps), "--quiet"], cwd=ROOT, env=environment, check=True, timeout=300)
    return folder


@pytest.fixture(scope="module")
def train_server(runs: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LOUPE_RUNS", str(runs))
        patch.setenv("OMP_NUM_THREADS", "1")
        with served(UVICORN, "/health", tmp_path_factory.mktemp("train") / "log") as address:
            yield address


@pytest.fixture
def look(open_page: Callable[[str], Page], train_server: str) -> Look:
    def opened(run: str, state: str = "") -> Page:
        page = open_page(f"{train_server}/train?run={run}{f'#{state}' if state else ''}")
        page.wait_for_selector(".train .probe-map canvas")
        return page

    return opened


def view(page: Page) -> Locator:
    return page.locator(".train")


def asked(page: Page, expression: str) -> Any:
    return view(page).evaluate(f"e => {{ const view = e.loupe; return {expression}; }}")


def await_frame(page: Page, condition: str, step: int) -> None:
    """Until the page has that step's frame of the example that `condition` asks for."""
    until = f"{condition} && view.frames.has({step}) && !view.status.catching_up"
    wait = f"async e => {{ const view = e.loupe; while (!({until})) await new Promise((go) => setTimeout(go, 50)); }}"
    view(page).evaluate(wait)


def texts(page: Page, selector: str) -> list[str]:
    return page.locator(selector).all_text_contents()


def shares(page: Page, selector: str = ".probe-bar .share") -> list[float]:
    """Percentages as they are written, as shares of 1."""
    return [float(text.replace("\u00a0%", "")) / 100 for text in texts(page, selector) if text]


def costs(page: Page, count: int) -> list[float]:
    """The losses under the first words, which have two places, or one from 10 nats on."""
    return [float(text) for text in texts(page, ".word .loss")[:count]]


def middle(folder: Path) -> int:
    """A step that has a snapshot, well after the first and before the last."""
    steps = RunFolder(folder).snapshot_steps()
    return steps[2 * len(steps) // 3]


def model_at(folder: Path, step: int) -> Checkpoint:
    return load(RunFolder(folder).snapshot(step))


def frames(folder: Path) -> dict[int, Frame]:
    probe = read_probe(folder)
    assert probe is not None
    return {one.step: one for one in read_frames(folder / "frames" / f"{probe.digest}.bin").frames}


def reversal(checkpoint: Checkpoint, text: str) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Logits (pos vocab), what is right (pos), cross-attention (layer head pos key) of a text and its reverse."""
    tokenizer, model = checkpoint.tokenizer, checkpoint.model
    assert tokenizer is not None
    target = checkpoint.target(text[::-1])
    trace = run(model, tokenizer.encode(text), model.hook_names, target=target)
    right = torch.tensor([*target.ids[1:], checkpoint.end_ids[0]])
    found = [trace[f"decoder.blocks.{layer}.cross_attn.pattern"][0] for layer in range(model.config.layers)]
    return trace["logits"][0], right, torch.stack(found)


def hover(page: Page, root: str, row: int, col: int, shape: Sequence[int]) -> str:
    """What the bubble says of a cell."""
    canvas = page.locator(f"{root} canvas").first
    wide, tall = canvas.evaluate("({ clientWidth, clientHeight }) => [clientWidth, clientHeight]")
    canvas.hover(position={"x": wide * (col + 0.5) / shape[1], "y": tall * (row + 0.5) / shape[0]})
    return page.locator(".train .tip strong").text_content() or ""


def test_heads_answers_and_losses_are_those_of_the_model_at_the_handle(look: Look, runs: Path) -> None:
    folder = runs / "reverse"
    step, probe = middle(folder), read_probe(folder)
    assert probe is not None and probe.text is not None and probe.target == probe.text[::-1]
    checkpoint = model_at(folder, step)
    logits, right, cross = reversal(checkpoint, probe.text)
    page = look("reverse", f"step={step}&attention=cross_attn&layer=1&head=1&position=2")
    comes_to(page, lambda: asked(page, "view.frame.step"), step)
    seen = torch.tensor(asked(page, "Array.from(view.frame.arrays['patterns.cross_attn'].data)")).view_as(cross)
    assert (seen - 255 * cross).abs().max() <= 0.51
    assert hover(page, ".probe-map", 3, 1, cross.shape[-2:]) == f"≈ {100 * float(seen[1, 1, 3, 1]) / 255:.0f}\u00a0%"

    chances = logits.softmax(-1)
    best = chances[2].topk(LISTED)
    answer = float(chances[2, right[2]])
    listed = [float(p) for p in best.values]
    others = 1 - sum(listed) - (0 if right[2] in best.indices else answer)
    expected = [*listed, others] + ([] if right[2] in best.indices else [answer])
    assert shares(page) == pytest.approx(expected, rel=5e-3, abs=2e-5)
    tokenizer = checkpoint.tokenizer
    assert tokenizer is not None
    assert texts(page, ".probe-bar.is-right bdi") == [tokenizer.piece(int(right[2]))]

    losses = cross_entropy(logits, right, reduction="none")
    count = len(right)
    assert costs(page, count) == pytest.approx(losses.tolist(), abs=0.051)
    said = page.text_content(".probe-written .probe-cost") or ""
    together = [float(part) for part in re.findall(r"[\d.]+(?= nats)", said)]
    assert together == pytest.approx([float(losses.sum()), float(losses.mean())], rel=1e-3)
    assert texts(page, ".word .asked")[:count] == [tokenizer.piece(int(id)) for id in right]
    assert texts(page, ".word .taught")[:count] == [tokenizer.piece(int(id)) for id in logits.argmax(-1)]
    own = [one.id for one in islice(generate(checkpoint, probe.text, greedy=True), count + 4)]
    assert [text for text in texts(page, ".word .free") if text != "·"] == [tokenizer.piece(id) for id in own]
    wrong = [i for i, id in enumerate(right.tolist()) if i >= len(own) or own[i] != id]
    assert wrong and f"token {wrong[0] + 1}:" in (page.text_content(".probe-parts") or "")


def test_going_through_the_steps_keeps_every_element_and_asks_for_nothing(look: Look, wire: Wire) -> None:
    page = look("reverse")
    before = -1
    while before != wire.reruns:  # until what opened the page has come to rest
        settle(page)
        before = wire.reruns
        page.wait_for_timeout(1000)
    moved = view(page).evaluate(
        """e => { const parts = ".train-probe *, .train-answer *, .train-tab-two *";
        const view = e.loupe, nodes = () => Array.from(e.querySelectorAll(parts));
        view.go({ step: view.steps[0] });
        const [there, first] = [nodes(), e.querySelector(".probe-next").textContent];
        for (const step of view.steps.slice(1, -1)) view.go({ step });
        const now = nodes();
        return [there.length, now.length, now.filter((node, i) => node !== there[i]).length,
          first !== e.querySelector(".probe-next").textContent]; }"""
    )
    assert moved[0] == moved[1] and moved[2] == 0 and moved[3]
    answered(page)
    assert wire.reruns == before


def test_two_steps_say_what_changed_of_a_head_and_of_every_loss(look: Look, runs: Path) -> None:
    found = frames(runs / "reverse")
    step = middle(runs / "reverse")
    page = look("reverse", f"step={step}&other=0&attention=cross_attn&layer=0&head=1")
    old, new = (found[at].tensors for at in (0, step))
    change = new["patterns.cross_attn"][0, 1].int() - old["patterns.cross_attn"][0, 1].int()
    row, col = divmod(int(change.abs().argmax()), change.shape[1])
    points = 100 * float(change[row, col]) / 255
    page.locator(".two-maps").scroll_into_view_if_needed()  # it is drawn where it is in sight
    page.locator(".two-maps h3", has_text=f"Step {step} ").wait_for()
    said = hover(page, ".two-maps section:nth-child(3)", row, col, (change.shape[0], change.shape[1]))
    assert said == f"≈ {'+' if points > 0 else '−'}{abs(points):.0f} points"
    rows = [texts(page, f".two-losses .two-row:nth-child({i + 1}) .number") for i in range(len(new["loss"]))]
    told = [[float(text.replace("−", "-")) for text in line] for line in rows]
    pairs = torch.stack([old["loss"], new["loss"], new["loss"] - old["loss"]], 1)
    torch.testing.assert_close(torch.tensor(told), pairs, atol=1e-3, rtol=0)
    page.locator(".two-losses .two-row").nth(3).click()
    assert asked(page, "view.state.position") == 3
    page.get_by_role("button", name="this one").click()
    assert asked(page, "view.state.other") == step
    page.get_by_role("button", name="remove").click()
    assert asked(page, "view.state.other") is None


def test_another_example_is_looked_at_now_and_at_every_snapshot(look: Look, runs: Path) -> None:
    page = look("reverse")
    before = read_probe(runs / "reverse")
    for name, text in (("text", "rewind"), ("target", "dniwer")):
        page.locator(f".probe-field.{name} input").fill(text)
    page.keyboard.press("Enter")
    step = middle(runs / "reverse")
    await_frame(page, "view.probe.text === 'rewind'", step)
    assert texts(page, ".train-probe .map-top bdi") == [*"rewind"]
    asked(page, f"view.go({{ step: {step} }})")
    logits, right, _ = reversal(model_at(runs / "reverse", step), "rewind")
    losses = cross_entropy(logits, right, reduction="none")
    assert costs(page, len(right)) == pytest.approx(losses.tolist(), abs=0.051)
    page.locator(".probe-field.text input").fill("Ünlike 7")
    page.keyboard.press("Enter")
    page.locator(".probe-said", has_text="no token for").wait_for()
    assert texts(page, ".train-probe .map-top bdi") == [*"rewind"]
    assert before is not None and read_probe(runs / "reverse") != before


def test_a_picture_is_chosen_and_its_classes_are_those_of_the_model(look: Look, runs: Path) -> None:
    folder = runs / "digits-vit"
    page = look("digits-vit")
    page.get_by_role("button", name="the next picture").click()
    step = middle(folder)
    await_frame(page, "view.probe.picture === 1", step)
    asked(page, f"view.go({{ step: {step}, layer: 1, head: 0 }})")
    checkpoint = model_at(folder, step)
    assert isinstance(checkpoint.processor, ImageProcessor)
    held_out = split(0)
    pixels = checkpoint.processor.levels_to_pixels(held_out.test_images[1][None])
    trace = run(checkpoint.model, pixels, checkpoint.model.hook_names)
    assert shares(page) == pytest.approx(trace["logits"][0].softmax(-1).tolist(), rel=5e-3, abs=1e-6)
    assert texts(page, ".probe-bar.is-right bdi") == [str(int(held_out.test_labels[1]))]
    looks = trace["blocks.1.attn.pattern"][0, 0]
    assert hover(page, ".probe-map", 0, 5, looks.shape) == f"≈ {100 * round(255 * float(looks[0, 5])) / 255:.0f}\u00a0%"
    assert "[CLS]" in (page.locator(".probe-picture figure canvas").nth(1).get_attribute("aria-label") or "")


def test_answers_stand_below_both_columns_and_under_the_curves_where_the_example_is_tall(look: Look) -> None:
    def boxes(page: Page) -> list[dict[str, float]]:
        parts = [".train-curves", ".train-probe", ".probe-next", ".train-answer", ".probe-written"]
        found: list[dict[str, float]] = asked(
            page, f"{parts}.map(part => view.element.querySelector(part)?.getBoundingClientRect().toJSON() ?? {{}})"
        )
        return found

    def beside(page: Page) -> list[bool]:
        curves, probe, likely, answer, written = boxes(page)
        below = answer["y"] >= max(curves["bottom"], probe["bottom"])
        return [below, written["x"] == curves["x"], likely["x"] == probe["x"], written["y"] == likely["y"]]

    def under(page: Page) -> list[bool]:
        curves, probe, likely, *_ = boxes(page)
        return [likely["x"] == curves["x"], likely["bottom"] < probe["bottom"] + 200]

    page = look("reverse")
    comes_to(page, lambda: beside(page), [True] * 4)
    page = look("digits-vit")
    comes_to(page, lambda: under(page), [True] * 2)
