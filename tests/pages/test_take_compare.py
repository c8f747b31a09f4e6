"""What a comparison gives away: lines and files with the numbers that are drawn, of each run and their difference."""

import io
import json
import re
from typing import Any

import numpy as np
import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from tests.pages.test_compare import opened
from tests.pages.test_take import asked, ran, view
from tests.shipped import LARGER

SILENT = json.dumps([{"edit": "SilenceHeads", "layer": 0, "heads": [1]}])


def looked(app: AppTest, heads: dict[str, list[int]], at: list[Any]) -> dict[str, Any]:
    attention = view(app, "compare")[0]["pairs"]["B"]["attentions"][-1]["key"]
    return {"attention": attention, "heads": heads, "beside": "B", "at": at}


def hook(app: AppTest, letter: str, layer: int) -> str:
    pair = view(app, "compare")[0]["pairs"]["B" if letter == "A" else letter]["attentions"][-1]
    one = pair["first" if letter == "A" else "second"]
    return f"{letter}/{one['side'] + '.' if one['side'] else ''}blocks.{layer}.{one['focus']}.pattern"


@pytest.mark.parametrize("model", LARGER)
def test_the_lines_of_a_comparison_give_both_patterns_as_they_are_drawn_and_the_difference_of_the_data(
    model: str,
) -> None:
    app = opened(a_model=model, b_model=model, b_edits=SILENT)
    query = looked(app, {"A": [1, 0], "B": [1, 1]}, ["A", 2, 1])
    _, arrays = view(app, "compare")
    found = ran(asked(app, "compare", take="python", **query)[0]["lines"])
    for letter, head in (("A", 0), ("B", 1)):
        drawn = arrays[hook(app, letter, 1)].data[head]
        np.testing.assert_array_equal(found[f"pattern_{letter.lower()}"].numpy(), drawn)
    _, answer = asked(app, "compare", take="data", matrix="B − A", format="npz", **query)
    with np.load(io.BytesIO(answer["file"].data.tobytes()), allow_pickle=False) as file:
        np.testing.assert_array_equal(file["values"], found["difference_b"].numpy())
        assert file["dims"].tolist() == ["query", "key"] and str(file["hook"]) == "difference"
        assert (len(file["query_tokens"]), len(file["key_tokens"])) == file["values"].shape


def test_where_one_text_has_a_token_more_the_difference_is_of_the_others() -> None:
    app = opened(a_text="Max gave the ball to Anna.", b_text="Max gave the small ball to Anna.")
    header, arrays = view(app, "compare")
    pieces = [header["sides"][i]["lanes"][""]["pieces"] for i in (0, 1)]
    extra = pieces[1].index("·small")
    assert pieces[0] == pieces[1][:extra] + pieces[1][extra + 1 :]
    first, second = (arrays[f"{letter}/blocks.2.attn.pattern"].data[3] for letter in "AB")
    expected = np.delete(np.delete(second, extra, 0), extra, 1) - first
    at = ["B", extra + 2, extra + 1]
    query = looked(app, {"A": [2, 3], "B": [2, 3]}, at)
    found = ran(asked(app, "compare", take="python", **query)[0]["lines"])
    np.testing.assert_array_equal(found["difference_b"].numpy(), expected)
    assert float(found["printed"]) == expected[extra + 1, extra]
    _, answer = asked(app, "compare", take="data", matrix="B − A", format="csv", **query)
    table = pd.read_csv(io.BytesIO(answer["file"].data.tobytes()), dtype={"difference": np.float32})
    assert list(table.columns) == ["query", "query_token", "key", "key_token", "difference"]
    np.testing.assert_array_equal(table["difference"].to_numpy().reshape(expected.shape), expected)
    assert table["query_token"].unique().tolist() == list(dict.fromkeys(pieces[0]))
    alone = looked(app, {"A": [2, 3], "B": [2, 3]}, ["B", extra, 0])
    printed = ran(asked(app, "compare", take="python", **alone)[0]["lines"])["printed"]
    assert float(printed) == second[extra, 0]


def test_two_tokenizers_are_aligned_by_characters_in_the_lines_and_attention_to_a_group_is_summed() -> None:
    text = "Lily was happy because she had a swing."
    app = opened(a_model="stories", a_text=text, b_model="tales-bert", b_text=text)
    query = looked(app, {"A": [1, 1], "B": [0, 2]}, ["A", 3, 2])
    script = asked(app, "compare", take="python", **query)[0]["lines"]
    assert "by_characters(a.encodings[0], b.encodings[0])" in script
    found = ran(script)
    groups = found["queries_b"].groups
    drawn = {
        letter: view(app, "compare")[1][hook(app, letter, layer)].data[head]
        for letter, layer, head in (("A", 1, 1), ("B", 0, 2))
    }
    expected = [
        [
            drawn["B"][np.ix_(row.second, col.second)].sum(-1).mean()
            - drawn["A"][np.ix_(row.first, col.first)].sum(-1).mean()
            for col in groups
        ]
        for row in groups
    ]
    np.testing.assert_allclose(found["difference_b"].numpy(), expected, atol=1e-6)


def test_three_runs_are_all_in_the_lines_with_their_edits() -> None:
    app = opened(a_text="The dog sat", b_text="The dog sat", c_model="stories", c_text="The cat sat", c_edits=SILENT)
    query = looked(app, {"A": [0, 1], "B": [0, 1], "C": [0, 1]}, ["A", 2, 1]) | {"beside": "C"}
    found = ran(asked(app, "compare", take="python", **query)[0]["lines"])
    _, arrays = view(app, "compare")
    drawn = {letter: arrays[f"{letter}/blocks.0.attn.pattern"].data[1] for letter in "AC"}
    np.testing.assert_array_equal(found["difference_c"].numpy(), drawn["C"] - drawn["A"])
    assert not found["difference_b"].any() and float(found["printed"]) == (drawn["C"] - drawn["A"])[2, 1]
    assert found["edits"] and view(app, "compare")[0]["take"]["matrices"] == ["B − A", "C − A", "A", "B", "C"]


@pytest.mark.parametrize("model", ["stories", "translate-en-fr", "digits-imagegpt", "digits-vit"])
def test_the_lines_of_a_tab_print_what_it_shows_of_every_run(model: str) -> None:
    app = opened(a_model=model, b_model=model, b_edits=SILENT)
    query = looked(app, {"A": [1, 0], "B": [1, 1]}, ["A", 2, 1])
    printed, bound = {}, {}
    for tab in ("map", "product", "steps", "points", "circuits"):
        bound = ran(asked(app, "compare", take="python", **query, view=tab)[0]["lines"])
        printed[tab] = bound["printed"].splitlines()
    stem = hook(app, "A", 1).removeprefix("A/").removesuffix("pattern")
    traces = [(bound["a"], 0), (bound["b"], 1)]
    scores = [trace[stem + "scores"][0, head, 2, 1].item() for trace, head in traces]
    weights = [trace[stem + "pattern"][0, head, 2, 1].item() for trace, head in traces]
    dots = [trace[stem + "q"].shape[-1] ** 0.5 * score for (trace, _), score in zip(traces, scores, strict=True)]
    assert [float(line) for line in printed["product"][1:]] == pytest.approx(dots, rel=1e-4, abs=1e-4)
    said = [line.split() for line in printed["steps"][1:]]
    assert [float(value) for part, value in said if part == "scores"] == scores
    assert [float(value) for part, value in said if part == "pattern"] == weights
    assert len(printed["points"]) == 3 and all(line.count(",") == 2 for line in printed["points"][1:])
    assert len(printed["circuits"]) == (1 if model == "digits-vit" else 5) and len(printed["map"]) == 1


def test_a_class_may_be_spared_the_controls_of_every_side() -> None:
    app = opened(a_text="The dog sat", b_model="digits-vit")
    take = view(app, "compare")[0]["take"]
    keys = [key for key, _ in take["controls"]]
    assert keys == ["a_model", "a_edits", "a_text", "b_model", "b_edits", "b_picture", "sides together"]
    hidden = opened(**take["link"], hide="a_model,b_edits,b_picture,sides together,nothing")
    style = next(one.proto.body for one in hidden.get("html") if "st-key-a_model" in one.proto.body)
    for name in ("a_model", "b_edits-button", "b_picture", "b_own-popover", "sides-together"):
        assert f".st-key-{name}" in style
    assert "no control 'nothing' to hide" in hidden.info[0].value


def test_a_number_that_is_none_is_said_in_a_sentence() -> None:
    app = opened(a_model="digits-vit", a_picture="three", b_model="digits-vit")
    assert "picture is 'three' and must be a whole number" in app.info[0].value


def test_the_link_of_a_comparison_opens_it_again_and_a_newer_one_says_so() -> None:
    app = opened(a_text="The dog sat", b_model="induction", b_text="1 2 1 2", b_edits=SILENT)
    link = view(app, "compare")[0]["take"]["link"]
    assert link["v"] == "1" and link["b_edits"] == SILENT and link["b_text"] == "1 2 1 2"
    again = opened(**link)
    assert view(again, "compare")[0]["trace"] == view(app, "compare")[0]["trace"]
    assert "version '7'" in opened(**(link | {"v": "7"})).info[0].value


def test_the_file_holds_the_questions_that_were_asked() -> None:
    app = opened(a_text="The dog sat", b_text="The cat sat")
    header, _ = view(app, "compare")
    question = {"ask": "similarity", "trace": header["pairs"]["B"]["trace"], "attention": "attn", "over": "here"}
    _, answer = asked(app, "compare", take="html", state="#layer=1", asked=[question, {"ask": "nothing"}])
    page = answer["file"].data.tobytes().decode()
    (given,) = re.findall(r'id="given">(.*?)</script>', page, re.DOTALL)
    first, *later = [one["query"] for one in json.loads(given)["answers"]]
    assert first == question
    for side in header["sides"]:  # what its tabs will ask
        mine = [query for query in later if query["trace"] == side["trace"]]
        layers = {query["layer"] for query in mine if query["ask"] == "layer"}
        heads = {(query["layer"], query["head"]) for query in mine if query["ask"] == "points"}
        assert layers == set(range(4)) and len(heads) == 16 and {"weighted", "ov", "qk"} <= {one["ask"] for one in mine}
    assert not re.search(r"""(?:src|href)=["']?https?:""", page)


@pytest.mark.parametrize(
    "change",
    [
        {"heads": {"A": [9, 0], "B": [0, 0]}},
        {"heads": {"A": [0, 0]}, "matrix": "B − A"},
        {"at": ["A", 99, 0]},
        {"at": ["Z", 0, 0]},
        {"at": "here"},
        {"attention": "nothing"},
        {"beside": "A"},
        {"matrix": "C"},
        {"trace": "another"},
        {"format": "xlsx"},
    ],
)
def test_what_a_comparison_does_not_have_is_a_sentence(change: dict[str, Any]) -> None:
    app = opened(a_text="The dog", b_text="The cat")
    query = looked(app, {"A": [0, 0], "B": [0, 0]}, ["A", 0, 0]) | {"matrix": "B − A", "format": "csv"} | change
    with pytest.raises(ValueError, match=r"[.;]"):
        asked(app, "compare", take="data", **query)


def test_a_text_that_no_address_can_hold_stays_in_its_field_and_is_in_the_link() -> None:
    app = opened(b_text="the cat ran")
    long = "\u65e5" * 60_000
    app.text_input(key="a_text").set_value(long).run()
    assert app.text_input(key="a_text").value == long
    assert view(app, "compare")[0]["take"]["link"]["a_text"] == long  # by which the browser says that it is too long
