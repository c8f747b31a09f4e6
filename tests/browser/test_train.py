"""The page about training in a real browser: it draws what the run directory holds, and what is ordered is done."""

import json
import shutil
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from engine.training.probe.frames import read_frames
from tests.browser.harness import UVICORN, answered, choose, comes_to, expect, served, settle, train_shortly
from tests.browser.test_take import SVG, saved

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Locator, Page

    from tests.conftest import Wire

STEPS, SPIKE = 60, 44


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of a few seconds, in which the gradient has jumped once, and what is left of two that came to no end."""
    folder = tmp_path_factory.mktemp("runs")
    train_shortly(folder / "short", STEPS, warmup=5, every=1)
    lines = [json.loads(line) for line in (folder / "short" / "metrics.jsonl").read_text().splitlines()]
    for line in lines:
        line["grad_norm"] = 500.0 if line["step"] == SPIKE else 1.0 + 0.01 * (line["step"] % 3)
    (folder / "short" / "metrics.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    shutil.copytree(folder / "short", folder / "died")
    status = json.loads((folder / "died" / "status.json").read_text())
    why = "the loss is not a number; lower the rate."
    told = {"state": "failed", "step": 40, "cause": "not a number", "error": why}
    (folder / "died" / "status.json").write_text(json.dumps(status | told))
    return folder


@pytest.fixture(scope="module")
def train_server(runs: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LOUPE_RUNS", str(runs))
        patch.setenv("OMP_NUM_THREADS", "1")
        with served(UVICORN, "/health", tmp_path_factory.mktemp("train") / "log") as address:
            yield address


@pytest.fixture
def look(open_page: Callable[[str], "Page"], train_server: str) -> Callable[..., "Page"]:
    def open_(run: str = "", hash: str = "", anew: bool = False) -> "Page":
        page = open_page(f"{train_server}/train{f'?run={run}' if run else ''}{hash}", anew)
        page.wait_for_selector(".train[data-ready]")
        if run:
            page.wait_for_selector(".train[data-state]")
        return page

    return open_


def view(page: "Page") -> "Locator":
    return page.locator(".train")


def asked(page: "Page", expression: str) -> Any:
    return view(page).evaluate(f"e => {{ const view = e.loupe; return {expression}; }}")


def lines(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


def handle(page: "Page") -> int:
    return int(page.locator(".handle.step").get_attribute("aria-valuenow") or -1)


def until(page: "Page", words: str, seconds: float = 40) -> None:
    page.locator(".transport-told", has_text=words).wait_for(timeout=1000 * seconds)


def quiet(page: "Page", wire: "Wire") -> int:
    """How much was asked by the time at which the page asks for nothing more by itself."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        settle(page)
        before = wire.reruns
        page.wait_for_timeout(1500)
        if wire.reruns == before:
            return before
    raise AssertionError("the page goes on asking")


def state(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "status.json").read_text())
    return found


def test_the_curves_are_the_lines_of_the_run(look: Callable[..., "Page"], runs: Path) -> None:
    page = look("short")
    for name in ("step", "loss", "accuracy", "held_out_loss", "held_out_accuracy"):
        there = [np.nan if line.get(name) is None else np.float32(line[name]) for line in lines(runs / "short")]
        shown = asked(page, f"Array.from(view.metrics.column('{name}'), String)")
        np.testing.assert_array_equal(np.array(shown, np.float32), np.array(there, np.float32))
    last = lines(runs / "short")[-1]
    page.locator(".curves-plot .scatterlayer path.js-line").first.wait_for()
    traces = "view.element.querySelector('.curves-plot').data"
    drawn = asked(page, f"{traces}.map((trace) => [trace.meta, Array.from(trace.y, String)])")
    for name, values in drawn:
        there = [line[name] for line in lines(runs / "short") if line.get(name) is not None]
        np.testing.assert_array_equal(np.array(values, np.float32), np.array(there, np.float32))
    assert {name for name, _ in drawn} == {"loss", "held_out_loss", "accuracy", "held_out_accuracy", "lr"}
    told = page.locator(".panel-title").first.locator("output").all_text_contents()
    assert told == [f"{last['loss']:.4f}", f"{last['held_out_loss']:.4f}"]


def test_the_handle_goes_through_the_frames_and_asks_for_nothing(
    look: Callable[..., "Page"], runs: Path, wire: "Wire"
) -> None:
    page = look("short")
    (file,) = (runs / "short" / "frames").glob("*.bin")
    frames = {frame.step: frame for frame in read_frames(file).frames}
    steps = sorted(frames)
    assert asked(page, "view.steps") == steps and handle(page) == steps[-1]
    before = quiet(page, wire)
    page.locator(".handle.step").focus()
    for key, index in [("Home", 0), ("ArrowRight", 1), ("Shift+ArrowRight", 11), ("ArrowLeft", 10), ("End", -1)]:
        page.keyboard.press(key)
        assert handle(page) == steps[index]
    box = page.locator(".curves-box").bounding_box()
    assert box is not None
    x = box["x"] + asked(page, f"view.parts.curves.scale.to({steps[5]})")
    page.mouse.click(x + 1, box["y"] + 90)
    assert handle(page) == steps[5]
    shown = asked(page, "Array.from(view.frame.arrays['patterns.cross_attn'].data)")
    assert shown == frames[steps[5]].tensors["patterns.cross_attn"].flatten().tolist()
    page.keyboard.press("l")
    assert handle(page) == steps[-1] and asked(page, "view.state.step") == "live"
    answered(page)
    assert wire.reruns == before


def test_of_ten_thousand_lines_the_extremes_are_drawn(look: Callable[..., "Page"]) -> None:
    page = look("short")
    page.locator(".curves-plot .scatterlayer path.js-line").first.wait_for()
    many = """(() => { const n = 10000, own = view.metrics, made = new own.constructor();
        const some = (f) => ({ data: Float32Array.from({ length: n }, (_, i) => f(i)) });
        const wave = (i) => (i === 0 ? 1.95 : i === 7001 ? 3.9 : i === 2003 ? 0.01 : 1 + Math.random());
        const arrays = { "metrics.step": some((i) => i) };
        for (const name of ["loss", "held_out_loss", "accuracy", "held_out_accuracy", "lr"])
            arrays[`metrics.${name}`] = some(wave);
        made.append({ columns: Object.keys(arrays).map((name) => name.slice(8)), arrays });
        view.metrics = made;
        view.refresh();
        const line = view.element.querySelector(".curves-plot .xy path.js-line");
        const y = line.getAttribute("d").match(/,-?[\\d.]+/g).map((text) => Number(text.slice(1)));
        view.metrics = own; view.refresh();
        const { loss: room } = view.parts.curves.at.rooms;
        return { points: y.length, high: Math.min(...y), low: Math.max(...y), room }; })()"""
    found = asked(page, many)
    height = found["room"]["bottom"] - found["room"]["top"]
    assert 1000 < found["points"] < 12000
    rim = 4 * 2.4 / 2 / height  # half a line's width, which the axis goes on for at each end
    high, low = (height - (value + rim) / (4 + 2 * rim) * height for value in (3.9, 0.01))
    assert found["high"] == pytest.approx(high, abs=0.2)
    assert found["low"] == pytest.approx(low, abs=0.2)


def test_a_chart_is_drawn_again_where_something_that_it_reads_is_another(look: Callable[..., "Page"]) -> None:
    page = look("short")
    page.locator(".curves-plot .scatterlayer path.js-line").first.wait_for()
    told = """(change) => { const { run, marks, attentions, task, lr, recipe, probe, pictureCount: pictures } = view;
        const lines = { anew: [], columns: [], arrays: {}, frames: [], names: {}, watch: [] };
        view.receive({ run, marks, attentions, task, lr, recipe, probe, pictures, ...lines,
            status: { ...view.status, ...change } }); }"""
    found = asked(
        page,
        f"""(() => {{ const told = {told}, drawn = [], own = Plotly.react;
        const count = (act) => {{ drawn.push(0); act(); }};
        Plotly.react = (plot, ...rest) => (drawn[drawn.length - 1] += plot.matches(".curves-plot"),
            own(plot, ...rest));
        for (const act of [() => view.refresh(), () => told({{}}), () => told({{ seconds_left: 3 }}),
            () => told({{ step: 61 }}), () => view.go({{ step: 3 }}), () => view.go({{ curve: "grad_norm" }}),
            () => view.measure(), () => (view.destroy(), view.go({{ curve: "lr" }}))]) count(act);
        Plotly.react = own;
        return drawn; }})()""",
    )
    assert found == [0, 0, 0, 1, 0, 1, 1, 0]


def test_a_zoom_of_the_curves_moves_the_track_with_them_and_asks_for_nothing(
    look: Callable[..., "Page"], wire: "Wire"
) -> None:
    page = look("short")
    page.locator(".curves-plot .scatterlayer path.js-line").first.wait_for()
    before = quiet(page, wire)
    view(page).evaluate("e => Plotly.relayout(e.querySelector('.curves-plot'), { 'xaxis.range': [20, 40] })")
    left, right = asked(page, "[view.parts.curves.scale.from(view.parts.curves.at.left), view.parts.curves.at.right]")
    assert left == pytest.approx(20)
    assert asked(page, "view.parts.curves.scale.to(40)") == pytest.approx(right)
    answered(page)
    assert wire.reruns == before


def test_a_mark_is_a_flag_with_its_sentence_and_leads_to_its_step(look: Callable[..., "Page"]) -> None:
    page = look("short")
    flag = page.locator(f'.flag[aria-label*="at step {SPIKE}"]')
    flag.focus()
    sentence = page.locator(".flag-told").text_content()
    assert sentence == flag.get_attribute("aria-label") and "500" in (sentence or "")
    assert sentence in page.locator(".happening").all_text_contents()[0]
    page.locator(".happening", has_text="500").click()
    assert asked(page, "view.state.step") == SPIKE
    steps = asked(page, "view.steps")
    assert handle(page) == max(step for step in steps if step <= SPIKE)


def test_the_place_of_the_handle_stands_in_the_address(look: Callable[..., "Page"]) -> None:
    page = look("short", "#step=12&x=log&curve=grad_norm")
    assert asked(page, "view.state.step") == 12 and asked(page, "view.state.log") is True
    page.locator(".curves-plot .annotation-text", has_text="gradient norm").wait_for()
    page.locator(".handle.step").focus()
    page.keyboard.press("Home")
    page.wait_for_function("location.hash.includes('step=0')")


def test_a_run_that_failed_says_why_and_can_be_resumed(look: Callable[..., "Page"], runs: Path) -> None:
    page = look("died")
    until(page, f"failed at step 40 of {STEPS}: the loss is not a number; lower the rate.")
    expect(page.locator(".transport-play")).to_have_text("Train")  # the recipe of the controls is another one
    expect(page.locator(".transport-state .chip")).to_have_text("Resume")
    page.locator(".transport-state .chip").click()
    until(page, "finished")
    assert state(runs / "died")["step"] == STEPS


def test_a_run_that_is_not_there_yet_is_asked_for_again(look: Callable[..., "Page"], runs: Path) -> None:
    page = look()
    asked(page, "view.follow('late')")
    page.locator(".transport-trouble", has_text="there is no run called 'late' here").wait_for()
    shutil.copytree(runs / "short", runs / "late")
    until(page, "finished")
    expect(page.locator(".transport-trouble")).to_have_text("")


def test_a_run_is_taken_as_a_picture_of_each_part_and_as_a_file_that_goes_through_its_steps_without_a_network(
    look: Callable[..., "Page"], runs: Path, browser: "Browser", tmp_path: Path
) -> None:
    page = look("short")
    page.locator(".loupe-take .open").click()
    taken = {}
    for part in ("curves", "example", "below"):
        page.get_by_label("which part").select_option(part)
        root = ElementTree.parse(saved(page, "SVG", tmp_path)).getroot()
        taken[part] = " ".join(text.text or "" for text in root.iter(f"{SVG}text"))
        assert f"step {STEPS} of {STEPS}" in taken[part] and "Train" in taken[part]
    assert "held out" in taken["curves"] and "What happened" in taken["curves"] and "Play" not in taken["curves"]
    assert "0 to 100\u00a0% of the row" in taken["example"].replace("% of", "% of") or "of the row" in taken["example"]
    assert "What changed" in taken["below"] and "held out" not in taken["below"]
    file = saved(page, "HTML", tmp_path)
    context = browser.new_context(offline=True)
    alone, faults = context.new_page(), []
    alone.on("pageerror", lambda error: faults.append(str(error)))
    alone.goto(file.as_uri())
    alone.wait_for_selector(".train[data-state]")
    steps = asked(page, "view.steps")
    assert asked(alone, "view.steps") == steps
    grip = alone.locator(".handle.step")
    grip.focus()
    alone.keyboard.press("ArrowLeft")
    assert int(grip.get_attribute("aria-valuenow") or -1) == steps[-2]
    assert alone.locator(".probe-title").inner_text().endswith(f"at step {steps[-2]}")
    alone.locator(".probe-heads button").last.click()
    assert asked(alone, "view.state.head") == 1
    assert not alone.locator(".transport-play").is_visible() and not alone.locator(".probe-look").is_visible()
    context.close()
    assert not faults


def test_a_link_says_what_of_it_a_run_has_not(look: Callable[..., "Page"]) -> None:
    page = look("short", "#step=5000&attention=cross_attn&head=9", anew=True)
    notice = page.locator(".train .notice", has_text="Not all of this link could be restored")
    notice.wait_for()
    assert "step 5,000 is not here, the run has come to 60" in notice.inner_text()
    assert "head 10 is not here, there are 2" in notice.inner_text()


def test_the_recorded_run_is_shown_of_its_own_task_alone(look: Callable[..., "Page"]) -> None:
    page = look()
    until(page, "recorded run of “reverse”")
    choose(page, "task", "copy")
    until(page, "nothing has been trained yet")
    choose(page, "task", "reverse")
    until(page, "recorded run of “reverse”")


def test_play_pause_ten_steps_the_rate_and_stop_are_done_by_the_training(
    look: Callable[..., "Page"], runs: Path
) -> None:
    page = look()
    page.locator(".transport-play", has_text="Play").wait_for()  # below it the run that comes with Loupe
    page.keyboard.press("Space")
    page.wait_for_url("**run=reverse*")
    folder = runs / "reverse"
    until(page, "training")
    page.locator(".transport-play", has_text="Pause").click()
    until(page, "paused")
    at = state(folder)["step"]
    page.locator(".transport-small.ten").click()
    until(page, f"paused at step {at + 10} of")
    rate = page.locator('.rate input[type="text"]')
    rate.fill("0.0123")
    rate.press("Enter")
    page.wait_for_function(f"{FIND}.loupe.status.lr === 0.0123")
    page.locator(".transport-small.step").click()
    until(page, f"paused at step {at + 11} of")
    page.wait_for_function(f"{FIND}.loupe.frame.step === {at + 11}")  # where it rests is seen
    assert json.loads((folder / "control.json").read_text())["lr"] == 0.0123
    page.get_by_role("button", name="by schedule").click()
    comes_to(page, lambda: json.loads((folder / "control.json").read_text())["lr"], None)
    page.locator(".transport-small.stop").click()
    until(page, f"stopped at step {at + 11}")
    expect(page.locator(".transport-play")).to_have_text("Resume")
    page.locator(".transport-small.fork").click()
    page.wait_for_url("**run=reverse*from*")
    until(page, "training")
    page.locator(".transport-small.reset").click()
    until(page, "at its beginning")
    comes_to(page, lambda: asked(page, "view.metrics.length"), 0)
    page.locator(".happened", has_text="Nothing yet").wait_for()
    kept = [one for one in runs.iterdir() if (one / "status.json").exists()]
    comes_to(page, lambda: any(state(one).get("state") == "running" for one in kept), False)


FIND = "[...document.querySelectorAll('*')].map(e => e.shadowRoot?.querySelector('.train')).find(Boolean)"
