"""What axe-core, the usual checker of WCAG 2, finds on every page as it opens, light and dark."""

from typing import TYPE_CHECKING, Any

import pytest

from tests.browser.harness import ROOT, settle

if TYPE_CHECKING:
    from playwright.sync_api import Page

AXE = ROOT / "node_modules" / "axe-core" / "axe.min.js"
PAGES = (
    "home", "course", "walkthrough", "attention", "generate", "compare", "train", "checkpoint", "architecture",
    "long_sequences",
)  # fmt: skip
# Streamlit tells the components about another theme after the page has it. Gives the colour of letters once all have
# another one than `before`.
COLOUR = """(before) => {
  const text = getComputedStyle(document.querySelector("[data-testid=stApp]")).color;
  const hosts = [...document.querySelectorAll("[data-testid=stBidiComponentIsolated]")].map((place) =>
    [place, ...place.querySelectorAll("*")].find(({ shadowRoot }) => shadowRoot)).filter(Boolean);
  const shown = hosts.map((host) => getComputedStyle(host.shadowRoot.querySelector(".loupe-view") ?? host).color);
  return text !== before && shown.length && shown.every((colour) => colour === text) && text;
}"""
# Of each finding: the rule, the element, and what is wrong with it.
FIND = """async (rules) => {
  const { violations } = await axe.run(document, { resultTypes: ["violations"], ...(rules && { runOnly: rules }) });
  return violations.filter(({ impact }) => impact === "serious" || impact === "critical").flatMap(({ id, nodes }) =>
    nodes.map(({ html, any, all, none }) => `${id}: ${html.slice(0, 160)}: ${[...any, ...all, ...none][0]?.message}`));
}"""


@pytest.mark.parametrize("name", PAGES)
def test_no_serious_finding_light_or_dark(name: str, page: "Page", server: str) -> None:
    page.goto(f"{server}/{name}")
    settle(page)
    page.locator("[data-testid=stBidiComponentIsolated]").first.wait_for(state="attached")
    page.wait_for_load_state("networkidle")
    found: dict[str, Any] = {}
    colour = ""
    for scheme, rules in (("light", None), ("dark", ["color-contrast"])):  # in the dark only the colours are others
        page.emulate_media(color_scheme=scheme)
        colour = page.wait_for_function(COLOUR, arg=colour).json_value()
        settle(page)
        if scheme == "light":
            page.evaluate(AXE.read_text(encoding="utf-8"))
        found[scheme] = page.evaluate(FIND, rules)
    assert found == {"light": [], "dark": []}
