"""The table of runs, and what was watched of a run, in a real browser: all of it is what the runs' files say.

What its rows say, sorting, searching, renaming and deleting: tests/pages/test_run_table.py."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from shutil import copytree
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, quote, urljoin, urlsplit

import pytest
import torch
from safetensors.torch import load_file

from engine.training.run.export import metrics_csv
from engine.training.run.folder import RunFolder
from tests.browser.harness import UVICORN, answered, comes_to, expect, served, train_shortly

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

NAME, OTHER, BROKEN = "naïve try", "second", "broken"
GRID, ROW = "[data-testid=stDataFrame]", 35  # px of one row and of the headings
Open = Callable[..., "Page"]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of runs: a short training, a copy of it, and one that is damaged."""
    runs = tmp_path_factory.mktemp("runs")
    train_shortly(runs / NAME, 40, warmup=40, every=5)
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
def show(open_page: Callable[..., "Page"], address: str, runs: Path) -> Open:
    def shown(run: str = NAME, query: str = "", fragment: str = "") -> "Page":
        page = open_page(f"{address}/train?run={quote(run)}{query}{fragment}", anew=True)
        page.wait_for_selector(".train[data-state=finished]")
        page.locator(f"{GRID} canvas").first.wait_for()
        return page

    return shown


def column(page: "Page", title: str) -> list[str]:
    """Texts of a column of the table, which is a canvas with a table for readers of the screen inside it."""
    heads = page.locator(f"{GRID} [role=columnheader]")
    heads.filter(has_text=title).first.wait_for(state="attached")
    place = heads.all_text_contents().index(title) + 1
    return page.locator(f"{GRID} [role=gridcell][aria-colindex='{place}']").all_text_contents()


def press_cell(page: "Page", name: str, x: float) -> None:
    """Clicks into the row of a run, `x` px from the table's left edge."""
    canvas = page.locator(f"{GRID} canvas").first
    canvas.scroll_into_view_if_needed()
    box = canvas.bounding_box()
    assert box is not None
    page.mouse.click(box["x"] + x, box["y"] + ROW * (column(page, "run").index(name) + 1.5))


def tick(page: "Page", name: str) -> None:
    press_cell(page, name, 18)


def menu(page: "Page", title: str) -> "Locator":
    answered(page)  # a script that runs draws a download anew, and one that is asked for meanwhile does not come
    named = page.get_by_role("button", name=title, exact=True)
    page.get_by_test_id("stPopoverButton").and_(named).click()
    return page.locator("[data-testid=stPopoverBody]")


def wait(page: "Page", condition: str) -> None:
    """Until a condition on `view`, the object behind what the page draws, holds."""
    every = "[...document.querySelectorAll('*')].map((one) => one.shadowRoot?.querySelector('.train'))"
    page.wait_for_function(f"() => {{ const view = {every}.find(Boolean)?.loupe; return view && ({condition}); }}")


def test_a_click_shows_a_run_and_a_tick_lays_another_over_it(show: Open) -> None:
    page = show()
    press_cell(page, OTHER, 150)
    page.wait_for_url("**/train?run=second*")
    comes_to(page, lambda: dict(zip(column(page, "run"), column(page, ""), strict=True))[OTHER], "●")
    tick(page, NAME)
    wait(page, f"view.overlays.get('{NAME}')?.length > 0")
    page.locator(".curves-plot .annotation-text", has_text=NAME).first.wait_for()
    page.locator(".other-run").click()
    wait(page, "view.overlays.size === 0")
    page.locator(".other-run").wait_for(state="detached")
    chosen = page.get_by_test_id("stElementContainer").and_(page.locator("[class*='runs-actions'] > *")).first
    expect(chosen).to_have_text(OTHER)  # the table has heard of it
    tick(page, BROKEN)
    page.get_by_role("button", name="Open", exact=True).and_(page.locator(":disabled")).wait_for()
    page.get_by_role("paragraph").get_by_text("recipe.toml: this is not TOML").wait_for()


def test_curves_weights_the_command_and_a_link_are_exported(show: Open, runs: Path) -> None:
    page = show()
    body = menu(page, "Export")
    with page.expect_download() as found:
        body.get_by_role("button", name="Curves (CSV)").click()
    assert Path(found.value.path()).read_text(encoding="utf-8").splitlines() == metrics_csv(NAME, runs).splitlines()
    with page.expect_download() as found:
        body.get_by_role("button", name="Checkpoint").click()
    assert Path(found.value.path()).read_bytes().startswith(b"PK")
    command, link = body.locator("code").all_text_contents()
    assert f"'{runs / NAME}/recipe.toml'" in command
    assert "/train?" in link and "recipe=2" in link


def test_any_kept_step_of_a_run_opens_on_the_other_pages(show: Open, runs: Path) -> None:
    kept = RunFolder(runs / NAME).snapshot_steps()
    page = show()
    body = menu(page, "Open")

    def links() -> dict[str, str]:
        return {entry.inner_text().strip(): entry.get_attribute("href") or "" for entry in body.locator("a").all()}

    def choose(label: str, step: int) -> None:
        body.get_by_label(label).click()
        page.get_by_role("option", name=f"step {step:,}", exact=True).click()

    pages = {"Walkthrough", "Attention", "Generate", "Open a model", "Anatomy", "Long context"}
    comes_to(page, lambda: pages < set(links()), True)
    assert parse_qs(urlsplit(links()["Open a model"]).query)["model"] == [f"run:{NAME}"]
    choose("weights of", kept[-2])
    choose("compared with", kept[1])
    comparing = f"Compare steps {kept[1]:,} and {kept[-2]:,}"
    comes_to(page, lambda: comparing in links(), True)
    model = f"run:{NAME}@{kept[-2]}"
    found = links()
    assert all(parse_qs(urlsplit(found[name]).query)["model"] == [model] for name in pages)
    body.get_by_role("link", name="Walkthrough").click()
    page.wait_for_selector(".walkthrough[data-ready]")
    page.wait_for_function("model => new URL(location).searchParams.get('model') === model", arg=model)
    home = page.url.split("/walkthrough")[0]
    page.goto(urljoin(home, found["Open a model"]))
    expect(page.locator("h2").first).to_have_text(model)
    page.goto(urljoin(home, found[comparing]))
    page.wait_for_selector(".compare[data-ready]")
    for number, step in enumerate((kept[1], kept[-2])):
        expect(page.locator(".map-head .name").nth(number)).to_have_text(f"{NAME} · step {step}")


def watched(runs: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (runs / NAME / "watch.jsonl").read_text(encoding="utf-8").splitlines()]


def shown_numbers(texts: list[str]) -> list[float]:
    return [float(text.replace("−", "-")) for text in texts]


def test_gradients_are_those_that_were_watched_and_a_click_moves_the_handle(show: Open, runs: Path) -> None:
    page = show(fragment="#tab=gradients")
    page.wait_for_selector(".watch-track .norm output")
    last = watched(runs)[-1]
    order = ["embed", "encoder.blocks.0", "decoder.blocks.0", "decoder.blocks.1", "head"]
    assert set(last["gradients"]) == set(order)
    told = shown_numbers(page.locator(".watch-track .norm output").all_text_contents())
    assert told == pytest.approx([last["gradients"][part] for part in order], rel=2e-3)
    page.locator(".watch-track").focus()
    page.keyboard.press("Home")
    first = next(line for line in watched(runs) if line["gradients"])
    wait(page, f"view.state.step === {first['step']}")
    told = shown_numbers(page.locator(".watch-track .norm output").all_text_contents())
    assert told == pytest.approx([first["gradients"][part] for part in order], rel=2e-3)
    page.locator(".watch-plot .nsewdrag").wait_for()
    box = page.locator(".watch-plot .nsewdrag").bounding_box()
    assert box is not None
    page.mouse.click(box["x"] + box["width"] - 2, box["y"] + 5)
    wait(page, f"view.state.step === {last['step']}")


def test_a_hill_has_the_weights_of_its_step(show: Open, runs: Path) -> None:
    page = show(fragment="#tab=weights")
    page.locator(".ridge").first.scroll_into_view_if_needed()  # drawn once it is in sight
    page.wait_for_selector(".ridge .scatterlayer path.js-line")
    part = page.get_by_role("group", name="embedding", exact=True)
    least, spread, most = shown_numbers(part.locator(".ridge-numbers dd").all_inner_texts())
    run = RunFolder(runs / NAME)
    weights = load_file(run.snapshot(run.snapshot_steps()[-1]))
    table_of_tokens = next(tensor for name, tensor in weights.items() if name.endswith("embed.tokens.weight"))
    low, high, counts = watched(runs)[-1]["weights"]["embed"]
    assert (least, most) == pytest.approx((low, high), rel=1e-3) and sum(counts) >= table_of_tokens.numel()
    every = [tensor.flatten() for name, tensor in weights.items() if "embed." in name]
    assert spread == pytest.approx(float(torch.cat(every).std()), rel=0.01)


def test_shares_of_certain_rows_and_quiet_neurons_stand_in_words_beside_runs_sorted_as_an_old_link_says(
    show: Open, runs: Path
) -> None:
    page = show(fragment="#tab=activations&runs=-name")
    comes_to(page, lambda: column(page, "run"), [OTHER, NAME, BROKEN])
    page.locator(".ridge").first.scroll_into_view_if_needed()  # drawn once it is in sight
    page.wait_for_selector(".ridge .scatterlayer path.js-line")
    block = page.get_by_role("group", name="decoder block 1", exact=True)
    certain, quiet = (float(text.split("\u00a0")[0]) for text in block.locator(".ridge-shares dd").all_inner_texts())
    last = watched(runs)[-1]
    expected = [100 * last[name]["decoder.blocks.0"] for name in ("certain", "quiet")]
    assert [certain, quiet] == pytest.approx(expected, rel=1e-2)
