"""From a changed text to the first frame that shows it, in a real browser, with where the time goes."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from itertools import cycle, islice
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import TYPE_CHECKING, Any
from unittest.mock import patch
from urllib.parse import quote

import torch

from engine.checkpoints import Checkpoint
from engine.model.config import MLP, Attention, ModelConfig
from engine.model.transformer import Transformer, initialise
from engine.runtime import library
from engine.runtime.run import run
from tests.browser.harness import FLAGS, UVICORN, browser_path, served, settle

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

CHANGES = 30
TOKENS = 32
REACH = 300  # ms
SWITCHES = 24
SWITCH_REACH = 50  # ms
SETTLED = 3000  # ms in which a page asks whatever it asks of its own accord
TEXTS = (
    "One day, the little dog could not find his red ball, so he was very sad and sat down by the old tree near the "
    "house and the garden with the flowers",
    "Once upon a time, there was a girl who had a kite, and she wanted to play with it in the park but it was too dark "
    "and the wind was too cold for her",
)

# What the browser sends and receives, and the first frame in which the picture is another run's.
CLOCK = """
window.clock = {};
const Real = WebSocket;
window.WebSocket = class extends Real {
  constructor(...given) {
    super(...given);
    this.addEventListener('message', (event) => {
      if ((event.data.byteLength ?? event.data.size) > 20000) clock.received = performance.now();
    });
  }
  send(data) { clock.sent ??= performance.now(); super.send(data); }
};
"""
CHANGE = """([text]) => new Promise((done) => {
  const find = () => [...document.querySelectorAll('*')]
    .map((e) => e.shadowRoot?.querySelector('.walkthrough')).find(Boolean);
  const before = find().loupe.trace.trace;
  const input = document.querySelector('input[aria-label=text]');
  Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, 'value').set.call(input, text);
  input.dispatchEvent(new Event('input', {bubbles: true}));
  window.clock = {};
  const begun = performance.now();
  input.dispatchEvent(new KeyboardEvent('keydown', {key: 'Enter', bubbles: true}));
  const look = () => find()?.loupe.trace.trace === before ? requestAnimationFrame(look)
    : requestAnimationFrame(() => done({begun, shown: performance.now(), ...clock}));
  look();
})"""


def texts(first: int = 300) -> list[str]:
    """Two texts of TOKENS tokens each, in turns with an ending nobody typed before, so that no run is remembered: the
    tokens from `first` on."""
    tokenizer = library.checkpoint("stories").tokenizer
    assert tokenizer is not None
    ids = [tokenizer.encode(text).ids[:TOKENS] for text in TEXTS]
    words = list(islice(range(first, tokenizer.vocab_size), CHANGES))
    made = [tokenizer.decode((*start[:-1], word)) for start, word in zip(cycle(ids), words, strict=False)]
    return [text for text in made if len(tokenizer.encode(text)) == TOKENS]


def changed(page: Page, text: str) -> dict[str, float]:
    times: dict[str, Any] = page.evaluate(CHANGE, [text])
    settle(page)
    return {
        "whole": times["shown"] - times["begun"],
        "server": times["received"] - times["sent"],
        "paint": times["shown"] - times["received"],
    }


def forward() -> float:
    """Milliseconds of one full trace in this process, with one thread like the server."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    checkpoint = library.checkpoint("stories")
    assert checkpoint.tokenizer is not None
    times = []
    for text in texts():
        begun = perf_counter()
        run(checkpoint.model, checkpoint.tokenizer.encode(text))
        times.append(1e3 * (perf_counter() - begun))
    torch.set_num_threads(threads)
    return median(times)


# The next head by its key, until a frame that was drawn after it; what went to the server meanwhile.
SWITCH = """() => new Promise((done) => {
  const find = () => [...document.querySelectorAll('*')]
    .map((e) => e.shadowRoot?.querySelector('.attention')).find(Boolean);
  const view = find();
  const before = view.loupe.state.head;
  window.clock = {};
  const begun = performance.now();
  view.dispatchEvent(new KeyboardEvent('keydown', {key: ']', bubbles: true, composed: true}));
  requestAnimationFrame(() => requestAnimationFrame(() => {
    done({took: performance.now() - begun, moved: view.loupe.state.head !== before});
  }));
})"""


def many_heads(folder: Path) -> str:
    """A model whose patterns are as many as GPT-2 small's, saved to `folder`; a text of 64 ids for it."""
    config = ModelConfig(64, 64, 144, 12, Attention(12), MLP(288), tied=True)
    Checkpoint(initialise(Transformer(config), seed=0)).save(folder / "many")
    return " ".join(map(str, range(64)))


def switches(browser: Browser, address: str, text: str) -> Iterator[str]:
    """Heads of 144 one after the other, and what reached the browser for them."""
    page = browser.new_page(viewport={"width": 1440, "height": 950})
    page.add_init_script(CLOCK)
    page.goto(f"{address}/attention?model=many&text={quote(text)}#layer=5&head=0")
    page.wait_for_selector(".attention")
    page.wait_for_timeout(SETTLED)
    times = []
    for _ in range(SWITCHES):
        switched = page.evaluate(SWITCH)
        assert switched["moved"]
        times.append(switched["took"])
    page.wait_for_timeout(SETTLED)
    asked = page.evaluate("window.clock.sent !== undefined")
    middle, worst = median(times), max(times)
    yield (
        f"head switch, 144 heads, 64 tokens: median {middle:.0f} ms, worst of {SWITCHES} {worst:.0f} ms "
        f"(reach < {SWITCH_REACH} ms {'yes' if middle < SWITCH_REACH else 'NO'}), "
        f"{'messages went' if asked else 'no message'} to the server"
    )


def lines() -> Iterator[str]:
    executable = browser_path()
    if executable is None:
        yield "text change to picture: no browser found, not measured"
        return
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        models = Path(folder) / "models"
        ids = many_heads(models)
        offered = patch.dict(os.environ, LOUPE_MODELS=str(models))
        with offered, served(UVICORN, "/health", Path(folder) / "log") as address:
            browser = playwright.chromium.launch(executable_path=executable, args=FLAGS)
            page = browser.new_page(viewport={"width": 1440, "height": 950})
            page.add_init_script(CLOCK)
            page.goto(f"{address}/walkthrough?model=stories&text={quote(TEXTS[0])}")
            page.wait_for_selector(".walkthrough[data-ready]")
            settle(page)
            times = [changed(page, text) for text in texts()]
            page.close()
            yield from switches(browser, address, ids)
            browser.close()
    whole, server, paint = (median(t[part] for t in times[3:]) for part in ("whole", "server", "paint"))
    computed = forward()
    yield (
        f"text change to picture, {TOKENS} tokens, 1440 x 950, {len(times) - 3} changes: median {whole:.0f} ms "
        f"(reach < {REACH} ms {'yes' if whole < REACH else 'NO'}) = {whole - server - paint:.0f} ms until it is sent "
        f"+ {server:.0f} ms server and transfer, {computed:.0f} ms of it the forward + {paint:.0f} ms decode and paint"
    )
