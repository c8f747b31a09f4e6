"""Pictures that Python mounts: what is clicked comes back, and what is read out is an element of the tensor."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import torch

from engine import load, run
from tests.browser.harness import settle

if TYPE_CHECKING:
    from playwright.sync_api import Page

SENTENCE = "Max gave the red ball to Anna."


def text(page: "Page", said: str) -> None:
    page.get_by_text(said, exact=True).wait_for()


def test_every_picture_says_what_was_clicked_and_reads_out_the_tensor(
    app_server: Callable[[str], str], page: "Page"
) -> None:
    checkpoint = load("stories")
    encoding = checkpoint.tokenizer.encode(SENTENCE)
    trace = run(checkpoint.model, encoding)
    page.goto(app_server("figures"))
    grid = page.locator(".figure.matrix .place")
    grid.locator("canvas").wait_for()
    settle(page)

    page.locator(".figure.heads button[data-layer='1'][data-head='2']").click()
    text(page, "block 2, head 3")
    settle(page)
    pattern, scores = trace["blocks.0.attn.pattern"][0, 2], trace["blocks.0.attn.masked_scores"][0, 2]
    size = len(pattern)
    box = grid.locator("canvas").bounding_box()
    assert box is not None
    every = grid.locator(".lines").evaluate("lines => getComputedStyle(lines).backgroundSize").split()[0]
    assert abs(float(every.removesuffix("px")) - 2 * box["width"] / size) < 0.5  # a line every two columns
    at = {"x": box["width"] * 1.5 / size, "y": box["height"] * (size - 0.5) / size}
    readout = page.locator(".figure.matrix .readout")
    grid.locator("canvas").hover(position=at)
    said = readout.inner_text()
    assert said.startswith(f"{encoding.pieces[-1]} → {encoding.pieces[1]}: ")
    shown = [float(part.replace("−", "-").split()[-1]) for part in said.split("·") if part.strip()[-1:].isdigit()]
    torch.testing.assert_close(torch.tensor(shown), torch.stack([pattern[-1, 1], scores[-1, 1]]), atol=1e-4, rtol=1e-4)
    grid.locator("canvas").click(position=at)
    text(page, f"cell ({size - 1}, 1)")
    grid.press("ArrowLeft")
    text(page, f"cell ({size - 1}, 0)")
    text(page, f"Chosen: ({size - 1}, 0)")

    page.locator(".figure.tokens .chip").nth(3).click()
    text(page, "token 3")
    page.locator(".figure.bars .bar-row").first.wait_for()
