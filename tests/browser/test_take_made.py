"""What pages that run no model give away in a browser: pictures of shapes, a file without a network, any matrix."""

import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from engine import load
from tests.browser.test_take import SVG, saved

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page


def test_an_architecture_is_taken_as_shapes_and_as_a_file_that_is_alive_without_a_network(
    open_page: Callable[[str], "Page"], server: str, browser: "Browser", tmp_path: Path
) -> None:
    page = open_page(f"{server}/architecture?model=gpt2")
    page.wait_for_selector(".architecture svg")
    page.get_by_role("button", name="Take away").click()
    texts = [text.text for text in ElementTree.parse(saved(page, "SVG", tmp_path)).getroot().iter(f"{SVG}text")]
    assert "124,439,808 parameters" in texts and "Radford et al. 2019, table 2." in texts
    path = saved(page, "HTML", tmp_path)
    context = browser.new_context(offline=True)
    alone, faults = context.new_page(), []
    alone.on("pageerror", lambda error: faults.append(str(error)))
    alone.on("console", lambda message: faults.append(message.text) if message.type == "error" else None)
    alone.goto(path.as_uri())
    alone.locator('[data-block="mlp"]').first.click()
    assert alone.locator(".architecture .panel").get_by_text("56,669,184").count() == 1  # 12 (2 · 768 · 3072 + 3840)
    context.close()
    assert not faults


def test_the_matrix_that_is_looked_at_is_taken(
    open_page: Callable[[str], "Page"], server: str, tmp_path: Path
) -> None:
    page = open_page(f"{server}/checkpoint#matrix=blocks.1.attn.q.weight&head=2")
    page.wait_for_selector('.weights[data-ready="true"]')
    bars = page.locator(".loupe-take")
    bars.nth(1).get_by_role("button", name="Take away").click()
    path = saved(page, "npz", tmp_path)
    weight = load("stories").model.get_parameter("blocks.1.attn.q.weight").detach().numpy()
    with np.load(path) as file:
        np.testing.assert_array_equal(file["values"], weight.reshape(4, 32, 128)[2])
    bars.nth(1).get_by_role("button", name="SVG", exact=True).click()
    page.locator("output.said").nth(1).get_by_text("loupe-weights-stories.svg").wait_for()
