"""From any picture a prediction leads to what wrote its logit, in the run that the picture shows."""

from collections.abc import Callable
from typing import TYPE_CHECKING
from urllib.parse import quote

from engine.analysis.attribution import attribute
from engine.edits import SilenceHeads
from engine.runtime import library
from tests.browser.harness import expect

if TYPE_CHECKING:
    from playwright.sync_api import Page

TEXT, OTHER = "Max gave the red ball to", "Max gave the small red ball to"
SILENT = '[{"edit": "SilenceHeads", "layer": 3, "heads": [3]}]'


def test_a_prediction_leads_to_what_wrote_it(open_page: Callable[[str], "Page"], server: str) -> None:
    checkpoint = library.checkpoint("stories")

    def expect_logit(page: "Page", text: str, id: int, edits: list[SilenceHeads]) -> None:
        trace = library.traces.trace("stories", checkpoint.tokenizer.encode(text), edits)
        found = attribute(checkpoint.model, trace, len(trace["logits"][0]) - 1, id)
        expect(page.get_by_text("the sum of")).to_contain_text(f"is {found.logit:.2f}, the sum of {len(found.values)}")

    def likeliest(text: str, edits: list[SilenceHeads]) -> int:
        trace = library.traces.trace("stories", checkpoint.tokenizer.encode(text), edits)
        return int(trace["logits"][0, -1].argmax())

    edits = [SilenceHeads(3, [3])]
    compared = f"{server}/compare?a_text={quote(TEXT)}&b_text={quote(OTHER)}&b_edits={quote(SILENT)}"
    page = open_page(compared)
    name = checkpoint.tokenizer.pieces[id := likeliest(OTHER, edits)].replace(" ", "·")
    line = page.locator(".said bdi", has_text=name).first
    line.locator("xpath=following-sibling::a[2]").click()
    expect_logit(page, OTHER, id, edits)
    page = open_page(compared)
    page.locator(".pointed a").click()
    expect(page.get_by_text("the sum of")).to_contain_text("pairs")
    page = open_page(f"{server}/generate?model=stories&text={quote(TEXT)}")
    page.locator(".step-why a").first.click()
    expect_logit(page, TEXT, likeliest(TEXT, []), [])
    page = open_page(f"{server}/logit_lens?model=stories&text={quote(TEXT)}")
    page.locator("[data-testid=stVegaLiteChart]").first.get_by_text("·red", exact=True).first.click()
    page.wait_for_url("**row=**")
    page.get_by_text("Which parts of the model wrote the logit of “·red”").click()  # of the place that was clicked
    expect(page.get_by_text("the sum of")).to_contain_text("·red")
