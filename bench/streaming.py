"""A text written in the browser, from the click to its last token on screen, beside the same text written bare."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import TYPE_CHECKING
from unittest.mock import patch
from urllib.parse import quote

import torch

from bench.models import GPT2_SMALL, LITTLE, Shape
from bench.paired import Row
from engine.checkpoints import Checkpoint, load
from engine.generation.generate import generate
from engine.model.transformer import Transformer, initialise
from tests.browser.harness import FLAGS, UVICORN, browser_path, served, settle

if TYPE_CHECKING:
    from playwright.sync_api import Page

NEW = 200
PROMPT = tuple(range(8))
REACH = 1.15
ROUNDS = {"little": 9, "small": 1}
SHAPES = {"little": LITTLE, "small": GPT2_SMALL}

# From a click until a frame that was drawn after the last of the tokens; every round begins with an empty tree.
WRITE = """([count]) => new Promise((done) => {
  const page = [...document.querySelectorAll('*')]
    .map((e) => e.shadowRoot?.querySelector('.generate')).find(Boolean).loupe;
  page.tab.remove(null);
  const begun = performance.now();
  page.tab.button.click();
  const look = () => page.run.active || page.tab.text.spans.length < count ? requestAnimationFrame(look)
    : requestAnimationFrame(() => done({took: performance.now() - begun, engine: 1000 * page.run.speed.seconds}));
  look();
})"""


def rows() -> Iterator[Row]:
    executable = browser_path()
    if executable is None:
        return
    from playwright.sync_api import sync_playwright

    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # as the server has it
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        models = Path(folder) / "models"
        for name, shape in SHAPES.items():
            Checkpoint(initialise(Transformer(shape.config), seed=0)).save(models / name)
        offered = patch.dict(os.environ, LOUPE_MODELS=str(models))
        with offered, served(UVICORN, "/health", Path(folder) / "log") as address:
            browser = playwright.chromium.launch(executable_path=executable, args=FLAGS)
            for name, shape in SHAPES.items():
                page = browser.new_page(viewport={"width": 1440, "height": 950})
                text = quote(" ".join(map(str, PROMPT)))
                page.goto(f"{address}/generate?model={name}&text={text}&method=greedy&most={NEW}")
                page.wait_for_selector('.generate[data-ready="write"]', timeout=120_000)
                settle(page)
                yield compared(page, shape, bare(load(models / name)), ROUNDS[name])
                page.close()
            browser.close()
    torch.set_num_threads(threads)


def compared(page: Page, shape: Shape, alone: Callable[[], None], rounds: int) -> Row:
    """Times the browser and the engine in turns, after one round of each that does not count."""
    streamed, written, engine = list[float](), list[float](), list[float]()
    for turn in range(rounds + 1):
        told = page.evaluate(WRITE, [NEW])
        begun = perf_counter()
        alone()
        if turn:
            streamed.append(told["took"] / 1000)
            engine.append(told["engine"] / 1000)
            written.append(perf_counter() - begun)
    ratio = median(one / other for one, other in zip(streamed, written, strict=True))
    note = f"of it {median(engine) * 1e3:.0f} ms the engine in the server"
    what = f"{NEW} tokens in the browser, {shape.name.partition(',')[0]}"
    return Row(what, median(streamed), median(written), ratio, rounds, REACH, note)


def bare(checkpoint: Checkpoint) -> Callable[[], None]:
    def write() -> None:
        for _ in generate(checkpoint, PROMPT, NEW, greedy=True):
            pass

    return write
