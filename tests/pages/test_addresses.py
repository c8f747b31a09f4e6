"""Whatever an address says, no page shows a traceback, and what it cannot use it names."""

from collections.abc import Mapping

import pytest
from streamlit.testing.v1 import AppTest

from pages.controls.generate.parameters import GENERATE, TABS
from pages.controls.run_page import state_of
from tests.pages.mounted import at_page, read_markdown

PICTURE = "![x](http://elsewhere.example/p.png)"
RULES, RUN = GENERATE.rules, state_of("attention").rules
FEW = ("x", PICTURE)
VALUES = ("", "-1", "1.5", "1e999", "nan", "y" * 10_000, *FEW)
FIELDS = (
    "text",
    "second",
    "target",
    "span",
    *RUN,
    "seed",
    "edits",
    "layer",
    "head",
    "row",
    "token",
    "stage",
    "position",
)
EVERY = ("v", "hide", "instruction", "predict", "revealed", "guess")
RUNS = ("run", "task", "way", "adapt", "base", "shared", "recipe", "data")
PAGES: Mapping[str, tuple[str, ...]] = {
    "learn/home": ("text", "lang"),
    "learn/course": ("lesson", "lang", "done", "large"),
    "learn/glossary": ("term", "lang"),
    "learn/teach": ("room", "secret", "step", "steps", "linking"),
    "learn/join": ("code",),
    "explore/walkthrough": FIELDS,
    "explore/attention": FIELDS,
    "analyse/logit_lens": (*FIELDS, "candidate", "vocab"),
    "analyse/why_token": (*FIELDS, "candidate", "against"),
    "analyse/why_head": (*FIELDS, "pos", "key", "side", "focus"),
    "analyse/fires": ("model", "layer", "head", "neuron", "side", "measure", "corpus"),
    "analyse/probes": (*FIELDS, "layer", "label", "label_column", "corpus"),
    "analyse/steering": (*FIELDS, "layer", "side", "toward", "away", "part", "read", "strength", "candidate", "corpus"),
    "analyse/quantisation": (*FIELDS, "scheme", "sister", "candidate", "against"),
    "analyse/similarity": (*FIELDS, "others", "other", "pooled", "prompt", "prompt_of_others", "corpus"),
    "explore/generate": ("text", "target", "given", "picture", "seed", "edits", *RULES),
    "explore/compare": tuple(
        f"{letter}_{name}"
        for letter in "abcd"
        for name in ("model", "step", "text", "target", "edits", "picture", "given")
    ),
    "inspect/architecture": (
        "against",
        "number",
        "batch",
        "length",
        "d_model",
        "width",
        "layers",
        "heads",
        "norm",
        "mask",
    ),
    "inspect/checkpoint": (
        "head",
        "circuit",
        "status",
        "named",
        "matrix",
        "table",
        "method",
        "axes",
        "frame",
        "log_counts",
    ),
    "inspect/long_sequences": ("length", "window", "k", "kind", "what", "text", "query", "pieces", "pattern", "unit"),
    "train/train": RUNS,
    "train/adapt": RUNS,
}


def open_page(page: str, **address: str) -> AppTest:
    return at_page(f"pages/{page}.py", **address).run()


def said(app: AppTest) -> str:
    kinds = (app.info, app.warning, app.error)
    return " ".join(read_markdown(one.value) for kind in kinds for one in kind)


def check(app: AppTest) -> None:
    assert not app.exception, [one.message for one in app.exception]
    drawn = [*app.markdown, *app.caption, *app.info, *app.warning, *app.error, *app.success, *app.toast, *app.title]
    labels = [getattr(one, "label", "") for one in app.main if getattr(one, "label", None)]
    for text in [*(one.value for one in drawn), *labels]:
        assert PICTURE not in text, f"it draws a picture of another host: {text[:200]}"


@pytest.mark.parametrize("value", FEW)
@pytest.mark.parametrize("page", PAGES)
def test_an_address_of_nonsense_opens_its_page(page: str, value: str) -> None:
    check(open_page(page, **dict.fromkeys((*PAGES[page], *EVERY), value)))
    check(open_page(page, model=value))


@pytest.mark.parametrize("tab", TABS)
@pytest.mark.parametrize("value", ["x", "1.5"])
def test_every_tab_of_generate_reads_its_settings_by_their_rules(tab: str, value: str) -> None:
    wrong = {name: value for name, rule in RULES.items() if name != "view" and rule(value)}
    app = open_page("explore/generate", **wrong, view=tab)
    check(app)
    assert "Not all of this link could be restored" in said(app)


@pytest.mark.parametrize("way", ["Fine-tune", "LoRA", "Preferences"])
def test_a_run_that_is_gone_is_no_traceback(way: str) -> None:
    check(open_page("train/adapt", run="gone", way=way))


@pytest.mark.parametrize("page", ["explore/attention", "explore/generate"])
def test_edits_that_cannot_be_read_are_named(page: str) -> None:
    app = open_page(page, edits="AAAA")
    check(app)
    assert "edits is 'AAAA' and must be" in said(app)


@pytest.mark.parametrize(("page", "name"), [("explore/generate", "seed"), ("inspect/architecture", "layers")])
def test_a_number_that_no_int_can_hold_is_named(page: str, name: str) -> None:
    app = open_page(page, **{name: "1e999"})
    check(app)
    assert name in said(app)


@pytest.mark.long
@pytest.mark.parametrize("page", PAGES)
def test_every_value_of_every_parameter_opens_its_page(page: str) -> None:
    for name in (*PAGES[page], *EVERY, "model"):
        for value in VALUES:
            app = open_page(page, **{name: value})
            assert not app.exception, f"{name}={value[:40]}: {[one.message for one in app.exception]}"
            check(app)
            rule = (RUN if page != "explore/generate" else RULES).get(name)
            if rule is not None and name in PAGES[page] and rule(value):
                assert f"{name} is" in said(app), f"{name}={value[:40]} is not named"
