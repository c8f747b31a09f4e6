"""The table of runs, and what was watched of a run, in a real browser: all of it is what the runs' files say."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from shutil import copytree
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest
import torch
from safetensors.torch import load_file

from engine.training.export import table
from engine.training.folder import RunFolder
from tests.browser.harness import ROOT, UVICORN, comes_to, expect, served, settle

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

NAME, OTHER, BROKEN = "naïve try", "second", "broken"
Open = Callable[..., "Page"]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of runs: a short training, a copy of it, and one that is damaged."""
    runs = tmp_path_factory.mktemp("runs")
    command = [sys.executable, "-m", "engine", "train", "assets/lab/reverse.toml", "--steps", "40", "--quiet"]
    subprocess.run([*command, "--threads", "1", "--out", str(runs / NAME)], cwd=ROOT, check=True, timeout=120)
    (runs / BROKEN).mkdir()
    (runs / BROKEN / "recipe.toml").write_text("steps = ", encoding="utf-8")
    (runs / BROKEN / "status.json").write_text("{", encoding="utf-8")
    return runs


@pytest.fixture(scope="module")
def address(trained: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LOUPE_RUNS", str(trained))
        with served(UVICORN, "/health", tmp_path_factory.mktemp("server") / "log") as found:
            yield found


@pytest.fixture
def runs(trained: Path) -> Path:
    """The same, with a second run as it was."""
    if not (trained / OTHER).is_dir():
        copytree(trained / NAME, trained / OTHER)
    return trained


@pytest.fixture
def show(page: "Page", address: str, runs: Path) -> Open:
    def shown(run: str = NAME, fragment: str = "") -> "Page":
        page.set_default_timeout(90_000)
        page.goto(f"{address}/train?run={run}{fragment}")
        page.wait_for_selector(".runs[data-ready]")
        page.wait_for_selector(".lab[data-state=finished]")
        settle(page)
        return page

    return shown


def row(page: "Page", name: str) -> "Locator":
    return page.locator(f'.runs-body .runs-row[data-run="{name}"]')


def names(page: "Page") -> list[str]:
    return page.locator(".runs-name").all_text_contents()


def wait(page: "Page", condition: str) -> None:
    """Until a condition on `lab`, the object behind the page's upper view, holds."""
    every = "[...document.querySelectorAll('*')].map((one) => one.shadowRoot?.querySelector('.lab'))"
    page.wait_for_function(f"() => {{ const lab = {every}.find(Boolean)?.loupe; return lab && ({condition}); }}")


def choose(page: "Page", name: str, button: str, entry: str) -> None:
    row(page, name).get_by_role("button", name=f"{button} {name}").click()
    page.locator(".runs-entry", has_text=entry).click()


def test_a_row_says_what_the_files_of_its_run_say(show: Open, runs: Path) -> None:
    page = show()
    last = RunFolder(runs / NAME).read_metrics()[-1]
    weights = load_file(RunFolder(runs / NAME).weights)
    loss, held_out, accuracy, parameters, *_ = row(page, NAME).locator(".runs-cell.number").all_text_contents()
    assert loss == f"{last['loss']:.3f}" and held_out == f"{last['held_out_loss']:.3f}"
    assert accuracy == f"{100 * last['held_out_accuracy']:.1f}\u00a0%"
    assert parameters == f"{sum(tensor.numel() for tensor in weights.values()):,}"
    assert row(page, NAME).locator(".runs-steps").text_content() == "40 / 40"
    fault = row(page, BROKEN).locator(".runs-fault").text_content() or ""
    assert "recipe.toml" in fault and "status.json" in fault
    assert row(page, BROKEN).locator(".runs-state").text_content() == "damaged"
    assert row(page, BROKEN).get_by_role("button", name="open").is_disabled()


def test_the_table_is_searched_by_words_and_sorted_by_columns(show: Open) -> None:
    page = show()
    page.locator(".runs-search").fill("finished naïve")
    assert names(page) == [NAME]
    page.locator(".runs-search").fill("")
    page.get_by_role("button", name="run", exact=True).click()
    assert names(page) == [BROKEN, NAME, OTHER]
    page.get_by_role("button", name="run", exact=True).click()
    assert names(page) == [OTHER, NAME, BROKEN]
    page.get_by_role("button", name="loss", exact=True).click()
    assert names(page)[-1] == BROKEN  # has none
    assert page.locator("[aria-sort]").inner_text() == "loss"
    page.wait_for_function("location.hash.includes('runs=loss')")


def test_two_hundred_runs_are_drawn_and_sorted(show: Open) -> None:
    page = show()
    many = """element => {
      const table = element.loupe;
      table.runs = Array.from({ length: 200 }, (_, i) => ({ ...table.runs[0], name: `run ${i}`, loss: i }));
      table.show();
      table.runs = table.runs.map((run) => ({ ...run, step: run.step + 1 }));
      table.sort("loss");
    }"""
    page.locator(".runs").evaluate(many)
    assert len(names(page)) == 200
    assert names(page)[:2] == ["run 0", "run 1"]


def test_a_click_looks_at_a_run_and_a_tick_lays_another_over_it(show: Open) -> None:
    page = show()
    row(page, OTHER).locator(".runs-name").click()
    page.wait_for_url("**/train?run=second*")
    page.wait_for_selector(f'.runs-row.looked[data-run="{OTHER}"]')
    row(page, NAME).get_by_role("checkbox").check()
    wait(page, f"lab.overlays.get('{NAME}')?.length > 0")
    row(page, NAME).get_by_role("checkbox").uncheck()
    wait(page, "lab.overlays.size === 0")


def test_a_run_is_named_in_place_and_the_page_goes_on_with_it(show: Open, runs: Path) -> None:
    page = show(OTHER)
    row(page, OTHER).locator(".runs-name").focus()
    page.keyboard.press("F2")
    page.keyboard.type("nothing")
    page.keyboard.press("Escape")
    assert names(page).count(OTHER) == 1
    page.keyboard.press("F2")
    page.keyboard.type("a/b")
    page.keyboard.press("Enter")
    page.wait_for_selector('.runs-said:has-text("got \'a/b\'")')
    page.locator(".runs-rename").fill("third")
    page.keyboard.press("Enter")
    page.wait_for_url("**/train?run=third*")
    assert (runs / "third" / "metrics.jsonl").is_file() and not (runs / OTHER).exists()
    named = row(page, "third").locator(".runs-name")
    comes_to(page, lambda: named.evaluate("name => name === name.getRootNode().activeElement"), True)
    (runs / "third").rename(runs / OTHER)


def test_a_deleted_run_can_be_had_back(show: Open, runs: Path) -> None:
    page = show()
    choose(page, OTHER, "more for", "Delete")
    page.wait_for_selector(".runs-undo.now")
    assert OTHER not in names(page) and not (runs / OTHER).exists()
    page.keyboard.press("Enter")  # the focus is on Undo
    page.wait_for_selector(f'.runs-row[data-run="{OTHER}"]')
    assert (runs / OTHER / "metrics.jsonl").is_file()


def test_curves_weights_and_the_command_are_taken_away(show: Open, runs: Path) -> None:
    page = show()
    with page.expect_download() as taken:
        choose(page, NAME, "take away", "CSV")
    assert Path(taken.value.path()).read_text(encoding="utf-8").splitlines() == table(NAME, runs).splitlines()
    with page.expect_download() as taken:
        choose(page, NAME, "take away", "Checkpoint")
    assert Path(taken.value.path()).read_bytes().startswith(b"PK")
    page.evaluate("navigator.clipboard.writeText = async (text) => void (window.copied = text)")
    choose(page, NAME, "take away", "command line")
    page.wait_for_function("window.copied")
    assert f"'{runs / NAME}/recipe.toml'" in page.evaluate("window.copied")
    choose(page, NAME, "take away", "link")
    page.wait_for_function("window.copied.includes('recipe=1')")


def test_any_kept_step_of_a_run_opens_on_the_other_pages(show: Open, runs: Path) -> None:
    kept = RunFolder(runs / NAME).snapshot_steps()
    page = show()
    row(page, NAME).get_by_role("button", name="open").click()

    def links() -> dict[str, str]:
        entries = page.locator("a.runs-entry").all()
        return {entry.inner_text().split("\n")[0]: entry.get_attribute("href") or "" for entry in entries}

    others = {"Attention", "Generate", "Compare two steps", "Checkpoint", "Architecture", "Long sequences"}
    whole = {"Walkthrough"} | others
    assert set(links()) == whole and links()["Checkpoint"].endswith(f"model=run%3A{quote(NAME)}")
    page.get_by_label("weights of", exact=True).select_option(str(kept[-2]))
    page.get_by_label("compared with", exact=True).select_option(str(kept[1]))
    found = links()
    assert all(found[name].endswith(f"%40{kept[-2]}") for name in whole - {"Compare two steps"})
    page.locator("a.runs-entry").first.focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.wait_for_selector(".attention[data-ready='true']")
    model = f"run:{NAME}@{kept[-2]}"
    page.wait_for_function("model => new URL(location).searchParams.get('model') === model", arg=model)
    page.goto(found["Checkpoint"])
    expect(page.locator(".card h2")).to_have_text(model)
    page.goto(found["Compare two steps"])
    page.wait_for_selector(".compare[data-ready='true']")
    for number, step in enumerate((kept[1], kept[-2])):
        expect(page.locator(".map-head .name").nth(number)).to_have_text(f"{NAME} · step {step}")


def watched(runs: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (runs / NAME / "watch.jsonl").read_text(encoding="utf-8").splitlines()]


def shown_numbers(texts: list[str]) -> list[float]:
    return [float(text.replace("−", "-")) for text in texts]


def test_gradients_are_those_that_were_watched_and_a_click_moves_the_handle(show: Open, runs: Path) -> None:
    page = show(fragment="#tab=gradients")
    page.wait_for_selector(".watch-track text.norm")
    last = watched(runs)[-1]
    order = ["embed", "encoder.blocks.0", "decoder.blocks.0", "decoder.blocks.1", "head"]
    assert set(last["gradients"]) == set(order)
    told = shown_numbers(page.locator(".watch-track text.norm").all_text_contents())
    assert told == pytest.approx([last["gradients"][part] for part in order], rel=2e-3)
    page.locator(".watch-track").focus()
    page.keyboard.press("Home")
    first = next(line for line in watched(runs) if line["gradients"])
    wait(page, f"lab.state.step === {first['step']}")
    told = shown_numbers(page.locator(".watch-track text.norm").all_text_contents())
    assert told == pytest.approx([first["gradients"][part] for part in order], rel=2e-3)
    box = page.locator(".watch-track canvas").bounding_box()
    assert box is not None
    page.mouse.click(box["x"] + box["width"] - 2, box["y"] + 5)
    wait(page, f"lab.state.step === {last['step']}")


def test_a_hill_has_the_weights_of_its_step(show: Open, runs: Path) -> None:
    page = show(fragment="#tab=weights")
    page.wait_for_selector(".ridge .hill")
    part = page.get_by_role("group", name="embedding", exact=True)
    least, spread, most = shown_numbers(part.locator(".ridge-numbers dd").all_inner_texts())
    run = RunFolder(runs / NAME)
    weights = load_file(run.snapshot(run.snapshot_steps()[-1]))
    table_of_tokens = next(tensor for name, tensor in weights.items() if name.endswith("embed.tokens.weight"))
    low, high, counts = watched(runs)[-1]["weights"]["embed"]
    assert (least, most) == pytest.approx((low, high), rel=1e-3) and sum(counts) >= table_of_tokens.numel()
    every = [tensor.flatten() for name, tensor in weights.items() if "embed." in name]
    assert spread == pytest.approx(float(torch.cat(every).std()), rel=0.01)


def test_shares_of_certain_rows_and_quiet_neurons_stand_in_words_beside_runs_sorted_as_the_link_says(
    show: Open, runs: Path
) -> None:
    page = show(fragment="#tab=activations&runs=-name")
    assert names(page) == [OTHER, NAME, BROKEN]
    page.wait_for_selector(".ridge .hill")
    block = page.get_by_role("group", name="decoder block 1", exact=True)
    certain, quiet = (float(text.split("\u00a0")[0]) for text in block.locator(".ridge-shares dd").all_inner_texts())
    last = watched(runs)[-1]
    expected = [100 * last[name]["decoder.blocks.0"] for name in ("certain", "quiet")]
    assert [certain, quiet] == pytest.approx(expected, rel=1e-2)
