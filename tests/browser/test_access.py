"""What axe-core, the usual checker of WCAG 2, finds on every page as it opens and in what opens on it, light and dark;
how large what is clicked is; and a page at a projector's size."""

from typing import TYPE_CHECKING, Any

import pytest

from tests.browser.harness import ROOT, answered, expect, settle, still, turn_to

if TYPE_CHECKING:
    from playwright.sync_api import BrowserContext, Page

AXE = ROOT / "node_modules" / "axe-core" / "axe.min.js"
PAGES = (
    "home", "course", "walkthrough", "attention", "generate", "compare", "train", "checkpoint", "architecture",
    "long_sequences",
)  # fmt: skip
TEXT = "text=Max%20gave%20the%20red%20ball%20to%20Anna."
TAB = ".st-key-view button:has-text('{}')"
SHARE = "text=Share & export"
# Page -> what is clicked on it, one after the other, and looked at after each click.
STATES = {
    f"generate?model=stories&{TEXT}": (
        TAB.format("beam"),
        TAB.format("surprise"),
        TAB.format("prompting"),
    ),
}
RARER = {
    f"generate?{TEXT}&model=stories": (
        ".write-button.go", "css=.tok.written >> nth=1", ".st-key-sampling button",
    ),
    "architecture?model=gpt2": (SHARE,),
    f"attention?model=stories&{TEXT}": (
        "css=.headgrid button >> nth=5", "role=tab[name='Steps']", "role=tab[name='Text']",
        "css=.piece >> nth=3", SHARE,
    ),
    f"walkthrough?model=stories&{TEXT}#open=[\"q\",\"scores\"]": ("css=canvas >> nth=3", SHARE),
    f"walkthrough?{TEXT}&model=stories": (".experiment .start", "role=button[name='Silence heads']"),
    f"walkthrough?model=stories&{TEXT}&edits=i65WSk3JLFGyUgrOzEnNS071SE1MKVbSUcpJrEwtUrIy1FHKAItYRRvE1sYCAA": (SHARE,),
    "compare": ("role=tab >> nth=1", "role=tab >> nth=2", "role=tab >> nth=0", SHARE),
    f"logit_lens?model=stories&{TEXT}": (SHARE,),
    "train": ("text=Recipe: every option", "text=All tasks"),
    "checkpoint#matrix=blocks.1.attn.q.weight&head=2": ("text=Your files",),
    "long_sequences": ("text=All measurements", "text=The formulas"),
    "course?lesson=query_key_value": (".plane svg", "role=button[name='Check']"),
    "course?lesson=averaging": ("role=button[name='Show me']",),
    "adapt": ("text=Preferences", "text=Draw answers", "text=Reward", "text=Policy"),
}  # fmt: skip
OPEN = [*STATES.items(), *(pytest.param(*entry, marks=pytest.mark.long) for entry in RARER.items())]
# Targets below 24px with another within the 24px circle about their centre (WCAG 2.5.8), those of an open panel where
# one is open. Exempt: links in a sentence, marks whose place on a curve is what they
# say, and the strips of other blocks, to which the arrows lead too.
SMALL = """() => {
  const all = (root) => [...root.querySelectorAll("*")].flatMap((e) => [e, ...(e.shadowRoot ? all(e.shadowRoot) : [])]);
  const kinds = "button, a[href], input, select, textarea, summary, [role=button], [role=tab], [role=radio]";
  const room = (e) => {
    const { left, top, right, bottom } = (e.matches("input") && e.closest("label") || e).getBoundingClientRect();
    const after = getComputedStyle(e, "::after");
    const grown = after.content === '""' && after.position === "absolute";
    const more = (side) => grown ? Math.max(0, -parseFloat(after[side]) || 0) : 0;
    return { e, left: left - more("left"), top: top - more("top"),
      right: right + more("right"), bottom: bottom + more("bottom") };
  };
  const apart = (x, y, o) => Math.hypot(Math.max(o.left - x, 0, x - o.right), Math.max(o.top - y, 0, y - o.bottom));
  const small = ({ left, top, right, bottom }) => Math.min(right - left, bottom - top) < 23.9;
  const targets = all(document.querySelector("[data-testid=stPopoverBody]") ?? document)
    .filter((e) => e.matches(kinds) && !e.disabled && e.checkVisibility({ visibilityProperty: true }) &&
      !e.matches(".mini, .flag") && getComputedStyle(e).display !== "inline")
    .map(room).filter(({ left, top, right, bottom }) => right - left > 1 && bottom - top > 1);
  return targets.filter((one) => {
    const [x, y] = [(one.left + one.right) / 2, (one.top + one.bottom) / 2];
    return small(one) && targets.some((o) => !o.e.contains(one.e) && !one.e.contains(o.e) && apart(x, y, o) < 12);
  }).map(({ e, left, top, right, bottom }) =>
    `${e.className} ${(e.ariaLabel ?? e.textContent).slice(0, 40)}: ${right - left} x ${bottom - top}`);
}"""
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


def look(page: "Page", colour: str) -> tuple[dict[str, Any], str]:
    """What is found in light, then in dark; and the colour of letters there."""
    found: dict[str, Any] = {}
    for scheme, rules in (("light", None), ("dark", ["color-contrast"])):  # in the dark only the colours are others
        page.emulate_media(color_scheme=scheme)
        colour = page.wait_for_function(COLOUR, arg=colour).json_value()
        settle(page)
        if scheme == "light":
            page.evaluate(AXE.read_text(encoding="utf-8"))
            found["small"] = page.evaluate(SMALL)
        found[scheme] = page.evaluate(FIND, rules)
    return found, colour


def come_to(page: "Page", address: str) -> None:
    page.goto(address)
    settle(page)
    page.locator("[data-testid=stBidiComponentIsolated]").first.wait_for(state="attached")
    answered(page)


@pytest.mark.parametrize("name", PAGES)
def test_no_serious_finding_light_or_dark(name: str, page: "Page", server: str) -> None:
    come_to(page, f"{server}/{name}")
    assert look(page, "")[0] == {"light": [], "dark": [], "small": []}


@pytest.mark.parametrize(("name", "clicks"), OPEN)
def test_no_serious_finding_in_what_opens(name: str, clicks: tuple[str, ...], page: "Page", server: str) -> None:
    come_to(page, f"{server}/{name}")
    colour, found = "", {}
    for click in clicks:
        page.locator(click).first.click()
        answered(page)
        still(page)
        found[click], colour = look(page, colour)
    assert found == dict.fromkeys(clicks, {"light": [], "dark": [], "small": []})


def test_the_list_of_pages_on_a_phone(page: "Page", server: str) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    come_to(page, f"{server}/glossary")
    page.get_by_test_id("stExpandSidebarButton").click()
    page.get_by_test_id("stSidebarNavLink").first.wait_for()
    page.evaluate(AXE.read_text(encoding="utf-8"))
    assert page.evaluate(FIND, None) == []


def test_a_projectors_size_is_kept_over_pages_and_reloads_and_left_by_escape(page: "Page", server: str) -> None:
    page.set_viewport_size({"width": 1280, "height": 720})
    come_to(page, f"{server}/walkthrough")
    word = page.get_by_test_id("stTopNavSection").first
    usual = word.evaluate("(one) => one.getBoundingClientRect().height")
    page.get_by_role("button", name="projector").click()
    assert word.evaluate("(one) => one.getBoundingClientRect().height") == pytest.approx(1.3 * usual, rel=0.02)
    turn_to(page, "Generate")
    page.reload()
    settle(page)
    expect(page.get_by_role("button", name="leave")).to_be_visible()
    assert page.get_by_test_id("stMainMenuButton").is_hidden()
    main = page.get_by_test_id("stMain")
    assert main.evaluate("(one) => one.scrollWidth <= one.clientWidth")
    page.keyboard.press("Escape")
    expect(page.get_by_role("button", name="projector")).to_be_visible()


def test_dark_is_that_of_every_address(page: "Page", server: str) -> None:
    come_to(page, f"{server}/generate")
    page.get_by_test_id("stMainMenuButton").click()
    page.get_by_test_id("stMainMenuPopover").get_by_text("Dark").last.click()
    try:
        come_to(page, f"{server}/glossary")
        assert page.get_by_test_id("stApp").evaluate("(app) => getComputedStyle(app).colorScheme") == "dark"
    finally:
        page.evaluate("localStorage.clear()")


def test_a_browser_that_is_too_old_is_told_so_once(context: "BrowserContext", server: str) -> None:
    page = context.new_page()
    page.add_init_script("CSS.supports = () => false")
    page.goto(f"{server}/walkthrough")
    expect(page.get_by_text("This browser is older: update it.")).to_have_count(1)
    page.close()
