"""What the pages give away, without a browser: files and lines with their numbers, links that restore what they can."""

import contextlib
import io
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from pages.controls.share.export import distinct
from pages.controls.share.links import READABLE, fit_address
from tests.pages.mounted import answered, mounted
from tests.shipped import LARGER
from views.core.export import answer_all
from views.core.payload import Named, unpack

ROOT = Path(__file__).parents[2]
PAGES = {"walkthrough": "pages/explore/walkthrough.py", "attention": "pages/explore/attention.py"}


def opened(page: str = "attention", **address: str) -> AppTest:
    app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60)
    for name, value in address.items():
        app.query_params[name] = value
    return app.switch_page(PAGES[page]).run()


def view(app: AppTest, name: str) -> tuple[dict, dict[str, Named]]:
    assert not app.exception, app.exception
    (found, *_) = mounted(app, name)
    return unpack(found.bytes)


def as_question(query: dict[str, Any], take: dict[str, Any]) -> dict[str, Any]:
    """What share.js asks for what it shows; `take` is what the page has to export."""
    kind = query.get("take")
    rest = {key: query[key] for key in ("state", "asked", "format", "trace") if key in query}
    tables = {} if "" in take.get("matrices", []) else take.get("tables", {})  # what is looked at, unless one is chosen
    looked = {key: value for key, value in query.items() if key not in (*rest, "take", "matrix")}
    if kind in ("python", "data") and tables:
        rest["of"] = {**table_of(tables, query.get("matrix")), **looked}
    elif kind in ("python", "data"):
        moved = {"moved": query["moved"]} if "moved" in query else {}
        of = query.get("tab", {"ask": "matrix", "hook": query.get("hook"), "head": query.get("head"), **moved})
        rest["of"] = of
    elif kind == "html" and tables:
        rest |= {"of": {**table_of(tables), **looked}, "row": None}
    elif kind == "html" and "hook" in query:
        rest |= {"of": {"ask": "matrix", "hook": query["hook"], "head": query.get("head")}, "row": query.get("row")}
    if kind == "python" and not tables:
        rest |= {"row": query.get("row", 0), "col": query.get("col", 0)}
    if kind == "html":
        rest.setdefault("asked", [])
    return query if kind is None else {"ask": f"export_{kind}", **rest}


def table_of(tables: dict[str, dict[str, Any]], name: str | None = None) -> dict[str, Any]:
    """The question of a table of the page: the first, or as somebody would ask who makes a name up."""
    first = next(iter(tables.values()))
    return tables.get(name, {key: value if key == "ask" or name is None else name for key, value in first.items()})


def asked(app: AppTest, page: str, **query: Any) -> tuple[dict, dict[str, Named]]:
    """What the page answers when its toolbar asks."""
    header, _ = view(app, page)
    query = {"trace": header["trace"], **as_question(query, header.get("take", {}))}
    return answered(app, query)


def ran(script: str) -> dict[str, Any]:
    bound: dict[str, Any] = {}
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(compile(script, "lines", "exec"), bound)
    return bound | {"printed": printed.getvalue()}


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize("model", LARGER)
def test_each_pages_lines_give_the_numbers_that_the_page_draws(page: str, model: str) -> None:
    app = opened(page, model=model)
    _, arrays = view(app, page)
    hook = [name for name in arrays if name.endswith("attn.pattern") and name.count(".") > 2][-1]
    found = ran(asked(app, page, take="python", hook=hook, head=1, row=2, col=1)[0]["lines"])
    np.testing.assert_array_equal(found["values"].numpy(), arrays[hook].data[1])
    assert float(found["printed"]) == arrays[hook].data[1, 2, 1]


def test_the_lines_have_the_pages_edits() -> None:
    app = opened("walkthrough", attention="0.5")
    header, arrays = view(app, "walkthrough")
    assert header["take"]["edits"] == "edited: attention temperature 0.5, every block"
    script = asked(app, "walkthrough", take="python", hook="blocks.2.attn.pattern", head=3, row=5, col=2)[0]["lines"]
    assert "AttentionTemperature(value=0.5)" in script
    np.testing.assert_array_equal(ran(script)["values"].numpy(), arrays["blocks.2.attn.pattern"].data[3])


def test_data_is_the_matrix_that_is_drawn() -> None:
    app = opened("walkthrough")
    _, arrays = view(app, "walkthrough")
    _, answer = asked(app, "walkthrough", take="data", hook="blocks.1.attn.scores", head=2, format="parquet")
    table = pd.read_parquet(io.BytesIO(answer["file"].data.tobytes()))
    drawn = arrays["blocks.1.attn.scores"].data[2]
    np.testing.assert_array_equal(table["scores"].to_numpy().reshape(drawn.shape), drawn)


@pytest.mark.parametrize("model", ["stories", "translate-en-fr"])
@pytest.mark.parametrize("moved", ["length", "share"])
def test_of_a_value_weighted_map_lines_and_data_are_what_the_weights_move(model: str, moved: str) -> None:
    app = opened("attention", model=model)
    header, arrays = view(app, "attention")
    hook = [name for name in arrays if name.endswith("attn.pattern") and name.count(".") > 2][-1]
    side, layer = ("decoder", hook.split(".")[2]) if hook.startswith("decoder") else ("", hook.split(".")[1])
    where = {"side": side, "focus": hook.split(".")[-2], "layer": int(layer)}
    shown = asked(app, "attention", ask="weighted", **where)[1]["weighted" if moved == "length" else "relative"].data[1]
    of = {"hook": hook, "head": 1, "row": 2, "col": 1, "moved": moved}
    found = ran(asked(app, "attention", take="python", **of)[0]["lines"])
    np.testing.assert_allclose(found["values"].detach().numpy(), shown, rtol=1e-5, atol=1e-7)
    assert float(found["printed"]) == pytest.approx(shown[2, 1], rel=1e-5)
    _, answer = asked(app, "attention", take="data", format="csv", **of)
    table = pd.read_csv(io.BytesIO(answer["file"].data.tobytes()))
    np.testing.assert_allclose(table[moved].to_numpy().reshape(shown.shape), shown, rtol=1e-5, atol=1e-7)


def test_the_file_holds_the_payload_and_what_was_asked() -> None:
    app = opened("attention", text="the dog sat")
    header, _ = view(app, "attention")
    where = {"trace": header["trace"], "side": "", "focus": "attn", "layer": 0, "head": 1}
    mean = where | {"ask": "average", "over": "layers"}
    _, answer = asked(app, "attention", take="html", state="#layer=1", asked=[mean, {"ask": "nothing"}, 7])
    page = answer["file"].data.tobytes().decode()
    (given,) = re.findall(r'id="given">(.*?)</script>', page, re.DOTALL)
    queries = [one["query"] for one in json.loads(given)["answers"]]
    assert queries[0] == mean and {"trace": header["trace"], "ask": "scores"} in queries
    assert sum(query["ask"] == "sink" for query in queries) == 16 * len(header["lanes"][""]["pieces"])


def test_the_file_answers_what_was_asked_first_and_then_what_is_worth_most() -> None:
    app = opened("attention", text="the dog sat")
    header, _ = view(app, "attention")
    where = {"trace": header["trace"], "side": "", "focus": "attn"}
    means = [where | {"ask": "average", "over": "layers", "layer": 0, "head": head} for head in (2, 0, 2)]
    _, answer = asked(app, "attention", take="html", state="", asked=means)
    (given,) = re.findall(r'id="given">(.*?)</script>', answer["file"].data.tobytes().decode(), re.DOTALL)
    queries = [one["query"] for one in json.loads(given)["answers"]]
    assert queries[:2] == means[:2]
    heads = [(layer, head) for layer in range(4) for head in range(4)]
    expected = ["scores", *["weighted"] * 4, *["points"] * 16, *["ov"] * 16, *["qk"] * 16]
    expected += ["sink"] * (16 * len(header["lanes"][""]["pieces"]))
    assert [query["ask"] for query in queries[2:]] == expected
    assert [(one["layer"], one["head"]) for one in queries if one["ask"] == "points"] == heads


def test_where_a_file_has_no_room_what_comes_first_is_kept() -> None:
    rng = np.random.default_rng(0)
    payloads = {name: rng.bytes(size) for name, size in (("a", 600), ("large", 9000), ("b", 600), ("c", 600))}
    queries = [{"ask": name} for name in ("a", "a", "large", "b", "c")]

    def kept(**limits: int) -> list[str]:
        answered = answer_all(distinct(queries), lambda query: payloads[query["ask"]], **limits)
        return [one.query["ask"] for one in answered]

    assert kept() == ["a", "large", "b", "c"]
    assert kept(most=2) == ["a", "large"]
    assert kept(room=2000) == ["a", "b"]  # what is too large is left out, and what comes after it may still fit


def test_of_an_address_that_is_too_long_the_longest_entries_are_left_out() -> None:
    said = {"model": "stories", "a_text": "\u65e5" * 60_000, "b_text": "x" * 400_000, "edits": "y" * 100}
    assert fit_address(said) == {"model": "stories", "b_text": "x" * 400_000, "edits": "y" * 100}
    left = {"model": "stories", "c_text": "z" * 200_000, "edits": "y" * 100}
    assert fit_address({**said, "c_text": "z" * 200_000}) == left
    short = {"text": "the dog", "model": "stories"}
    assert list(fit_address(short).items()) == list(short.items())
    exact = "x" * (READABLE - len("text="))
    assert fit_address({"text": exact}) and not fit_address({"text": exact + "x"})


def test_a_text_that_no_link_can_hold_is_not_in_the_link_of_the_file() -> None:
    app = opened("attention", text="the dog sat")
    for text, part in (("the dog sat", "In Loupe: /attention?v=1"), ("\u65e5" * 60_000, "too long for a link")):
        app.text_input(key="text").set_value(text).run()
        _, answer = asked(app, "attention", take="html", state="#layer=1", asked=[])
        caption = answer["file"].data.tobytes().decode().partition("<header>")[2].partition("</header>")[0]
        assert caption.count("<p>") == 2 and part in caption


@pytest.mark.parametrize(
    "query",
    [
        {"take": "python", "hook": "blocks.9.attn.pattern", "head": 0, "row": 0, "col": 0},
        {"take": "data", "hook": "blocks.0.attn.pattern", "head": 9, "format": "csv"},
        {"take": "data", "hook": "blocks.0.attn.pattern", "head": 0, "format": "xlsx"},
        {"take": "everything"},
        {"take": "python", "trace": "another"},
    ],
)
def test_what_is_not_there_is_a_sentence(query: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"[.;]"):
        asked(opened("attention", text="the dog"), "attention", **query)


def test_the_link_says_all_that_the_address_of_a_page_restores() -> None:
    link = view(opened("walkthrough", text="the dog", temperature="0.5"), "walkthrough")[0]["take"]["link"]
    assert link == {"v": "1", "model": "stories", "text": "the dog", "temperature": "0.5"}
    again = view(opened("walkthrough", **link), "walkthrough")[0]
    assert again["sampling"]["temperature"] == 0.5 and again["take"]["link"] == link


@pytest.mark.parametrize(
    ("address", "part"),
    [
        ({"v": "7"}, "version '7'"),
        ({"model": "nobody"}, "'nobody' is not here"),
        ({"attention": "99"}, "from 0.1 to 4"),
        ({"temperature": "warm"}, "'warm'"),
        ({"hide": "model,everything"}, "'everything'"),
        ({"seed": "x"}, "seed"),
    ],
)
def test_an_old_or_broken_link_opens_with_a_sentence_and_the_rest_of_it(address: dict[str, str], part: str) -> None:
    app = opened("walkthrough", text="the dog sat", **address)
    (said,) = [one.value for one in app.info]
    assert part in said and said.endswith("saved.")
    assert app.text_input(key="text").value == "the dog sat"
    app.text_input(key="text").set_value("the cat sat").run()
    app.text_input(key="text").set_value("the cat ran").run()
    assert not app.info


def test_a_link_that_makes_sense_says_nothing() -> None:
    assert not opened("walkthrough", text="the dog sat", v="1", attention="0.5", seed="3").info


def test_a_link_for_a_class_hides_controls_on_every_page_and_they_keep_what_it_says() -> None:
    app = opened("walkthrough", hide="model,temperature", model="tales-bert", temperature="0.5")
    styles = "".join(one.proto.body for one in app.get("html"))
    assert ".st-key-model, .st-key-temperature { display: none !important; }" in styles
    assert app.selectbox(key="model").value == "tales-bert" and app.slider(key="temperature").value == 0.5
    app.switch_page(PAGES["attention"]).run()
    assert ".st-key-model" in "".join(one.proto.body for one in app.get("html"))
    assert app.selectbox(key="model").value == "tales-bert"
