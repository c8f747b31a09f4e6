"""The file that works alone: all its modules are inside, nothing is left to fetch, and what a text says stays text."""

import base64
import gzip
import json
import re

import pytest

from engine.analysis.heads import head_scores
from engine.inputs.readers import read_text
from engine.runtime import library
from engine.runtime.run import run
from views.attention.attention import attention
from views.core.component import PLOTLY
from views.core.export import (
    MODULES,
    PackedAnswer,
    imported_modules,
    modules,
    pack_text,
    rename_imports,
    self_contained,
)
from views.core.lanes import lanes
from views.core.payload import pack
from views.walkthrough.walkthrough import walkthrough

WORDS = "Once upon a time there was a little dog who lost his red ball in the park . "
GIVEN = re.compile(r'<script type="application/json" id="given">(.*?)</script>', re.DOTALL)
IMPORTS = re.compile(r'<script type="importmap">(.*?)</script>', re.DOTALL)
OTHERS = re.compile(r"(?:https?:)?//(?!www\.w3\.org/)[\w-]+\.\w+")


def unpacked(text: str) -> bytes:
    return gzip.decompress(base64.b64decode(text))


def given(page: str) -> dict:
    (found,) = GIVEN.findall(page)
    return json.loads(found)


def sources(page: str) -> dict[str, str]:
    (found,) = IMPORTS.findall(page)
    urls = json.loads(found)["imports"]
    return {name: base64.b64decode(url.partition(",")[2]).decode() for name, url in urls.items()}


@pytest.mark.parametrize("view", ["walkthrough", "attention"])
def test_every_module_that_may_be_imported_is_inside_under_the_name_it_is_imported_by(view: str) -> None:
    inside = sources(self_contained(view, pack({}, {}), title="t"))
    assert f"loupe/{view}/{view}.js" in inside
    for name, source in inside.items():
        wanted = re.findall(r"""(?:from|import)\s*\(?\s*["']([^"']+\.js)["']""", source)
        assert not [one for one in wanted if one not in inside], name
        assert not re.search(r"""(?:from|import)\s*\(?\s*["'`]\.{1,2}/""", source), name


def test_a_module_whose_name_is_made_later_is_inside_with_all_that_it_may_be() -> None:
    tabs = {f"attention/{path.stem}" for path in (MODULES / "attention").glob("*.js")}
    assert tabs <= set(modules("attention")) and "attention/points" in tabs
    some = [f"attention/{path.stem}" for path in (MODULES / "attention").glob("p*.js")]
    assert imported_modules("import(`./p${x}.js`)", "attention/attention") == some
    source = 'import { a } from "../core/dom.js"; export * from "./b_c.js"; import(`./x_${name}.js`)'
    assert rename_imports(source, "attention/attention") == (
        'import { a } from "loupe/core/dom.js"; export * from "loupe/attention/b_c.js"; '
        "import(`loupe/attention/x_${name}.js`)"
    )


def test_plotly_is_inside_where_a_chart_is_drawn_and_not_where_none_can_be() -> None:
    def library(view: str, *asks: str) -> str:
        answers = [PackedAnswer({"ask": ask}, pack_text(pack({}, {}))) for ask in asks]
        page = self_contained(view, pack({}, {}), title="t", answers=answers)
        return "".join(re.findall(r'<script type="text/plain" id="plotly">(.*?)</script>', page))

    assert unpacked(library("train")) == unpacked(library("attention", "points")) == PLOTLY.read_bytes()
    assert unpacked(library("compare", "ov", "points")) == PLOTLY.read_bytes()
    assert not library("attention") and not library("compare", "ov") and not library("walkthrough")


def test_nothing_names_a_host_and_the_policy_forbids_all_fetching() -> None:
    page = self_contained("attention", pack({}, {}), title="t", caption=["stories"])
    texts = [page, *sources(page).values()]
    assert not [match[0] for text in texts for match in OTHERS.finditer(text)]
    assert "default-src &#x27;none&#x27;" in page and "connect-src" not in page


def test_numbers_and_answers_come_out_as_they_went_in() -> None:
    payload, answer = pack({"a": 1}, {}), pack({"b": 2}, {})
    answers = [PackedAnswer({"ask": "x"}, pack_text(answer))]
    page = self_contained("attention", payload, title="t", state="#layer=2", answers=answers)
    found = given(page)
    assert unpacked(found["payload"]) == payload
    assert found["state"] == "#layer=2" and found["view"] == "attention/attention"
    ((one),) = found["answers"]
    assert one["query"] == {"ask": "x"} and unpacked(one["payload"]) == answer


def test_what_a_text_says_can_neither_end_a_script_nor_open_an_element() -> None:
    evil = "</script><script>alert(1)</script><!--"
    answers = [PackedAnswer({"q": evil}, "")]
    page = self_contained("attention", pack({}, {}), title=evil, caption=[evil], state=evil, answers=answers)
    assert page.count("<script") == page.count("</script>") == 3
    assert given(page)["state"] == evil and given(page)["answers"][0]["query"] == {"q": evil}


@pytest.mark.parametrize("view", ["walkthrough", "attention"])
def test_32_tokens_of_the_first_model_take_less_than_5_megabytes(view: str) -> None:
    checkpoint = library.checkpoint("stories")
    reading = read_text(checkpoint, WORDS * 4, 32)
    trace, stacks = run(checkpoint.model, reading.read), lanes(checkpoint, reading)
    notes = {"notice": "", "look": {"layer": 0, "head": 0}}
    if view == "walkthrough":
        scores = {"attn": head_scores(trace)}
        payload = walkthrough(trace, stacks, name="stories", outcome=None, scores=scores, notes=notes)
    else:
        payload = attention(trace, stacks, name="stories", scores={}, table=[], notes=notes)
    assert len(reading.read) == 32
    assert len(self_contained(view, payload, title="t").encode()) < 5_000_000


def test_a_module_of_which_only_a_type_is_needed_is_left_out() -> None:
    text = (MODULES / "attention" / "source.js").read_text()
    assert 'import("../share/shown.js")' in text and "share/shown" not in modules("attention")
    assert not any("@param" in source or "@type" in source for source in modules("attention").values())
