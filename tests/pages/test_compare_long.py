"""The page about comparisons with texts too long to be drawn whole, without a browser."""

import base64
import gzip
import io
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from streamlit.testing.v1 import AppTest

from engine.budget import budget
from engine.edits import SilenceHeads
from engine.edits.experiment import Experiment
from engine.inputs.readers import read_text
from engine.runtime import library
from engine.runtime.run import run
from pages.controls.compare.run import SideControls
from pages.controls.compare.run import run as run_sides
from tests.pages.mounted import answered
from tests.pages.test_attention_long import mine  # noqa: F401
from tests.pages.test_attention_long import text as numbers
from tests.pages.test_compare import opened
from tests.pages.test_take import asked, ran, view
from views.core.lanes import lanes
from views.core.payload import unpack

pytestmark = pytest.mark.long

COUNT = budget.max_tokens + 40
MIDDLE = 100  # where the second text has another token
WHO = (("A", "first", "mine"), ("B", "second", "mine"))
SILENT = json.dumps([{"edit": "SilenceHeads", "layer": 0, "heads": [1]}])


def texts(count: int) -> tuple[str, str]:
    words = numbers(count).split()
    return " ".join(words), " ".join([*words[:MIDDLE], "0", *words[MIDDLE + 1 :]])


def long_pair(count: int = COUNT, **address: str) -> AppTest:
    first, second = texts(count)
    both = {"a_model": "mine", "a_text": first, "b_model": "mine", "b_text": second}
    return opened(**(both | address))


def ids(app: AppTest, number: int) -> list[int]:
    found: list[int] = view(app, "compare")[0]["sides"][number]["lanes"][""]["ids"]
    return found


def test_up_to_a_limit_texts_are_compared_whole_and_beyond_it_in_tiles() -> None:
    assert "A/blocks.0.attn.pattern" in view(long_pair(budget.max_tokens), "compare")[1]
    app = long_pair(budget.max_tokens + 1)
    header, arrays = view(app, "compare")
    assert [len(ids(app, i)) for i in (0, 1)] == [budget.max_tokens + 1] * 2 and not arrays
    assert [side["notice"] for side in header["sides"]] == ["", ""]


def test_what_is_run_is_said_while_long_texts_are_and_no_sentence_stays() -> None:
    app = long_pair()
    assert not [one.value for one in app.caption if "Running" in one.value]
    checkpoint = library.checkpoint("mine")
    config, told = checkpoint.model.config, list[str]()
    for count in (3, COUNT):
        readings = [read_text(checkpoint, said, COUNT) for said in texts(count)]
        given = [(*who, checkpoint, one, lanes(checkpoint, one)) for who, one in zip(WHO, readings, strict=True)]
        found = run_sides([SideControls(*one, Experiment(), "", str) for one in given], told.append)
        assert [side.run.whole for side in found] == [count == 3] * 2 and (count == COUNT or not told)
    size = f"{COUNT} tokens in {config.layers} layers of {config.attention.heads} heads."
    assert told == [f"Running A, 1 of 2: first reads {size}", f"Running B, 2 of 2: second reads {size}"]


def test_a_short_text_beside_a_long_one_is_looked_at_in_the_same_way() -> None:
    app = long_pair(b_text="1 2 3", c_model="stories", c_text="A cat sat.")
    header, _ = view(app, "compare")
    assert [side["letter"] for side in header["sides"]] == ["A", "B", "C"] and len(ids(app, 1)) == 3


def test_a_text_beyond_what_the_page_reads_is_cut_and_that_is_said_with_the_limit() -> None:
    app = long_pair(budget.long_tokens + 6)
    assert len(ids(app, 0)) == budget.long_tokens
    for side in view(app, "compare")[0]["sides"]:
        assert "the last 6 are cut" in side["notice"] and "LOUPE_LONG_TOKENS" in side["notice"]


@pytest.mark.parametrize(
    ("edits", "said", "count"),
    [
        ("[", "could not be read", 0),
        (SILENT, "", 1),
        ('[{"edit": "SilenceHeads", "layer": 99, "heads": [0]}]', "does not fit", 0),
        (SILENT[:-1] + ', {"edit": "SilenceHeads", "layer": 99, "heads": [0]}]', "does not fit", 1),
    ],
)
def test_edits_of_a_long_text_are_made_where_they_fit(edits: str, said: str, count: int) -> None:
    header, _ = view(long_pair(b_edits=edits), "compare")
    side = header["sides"][1]
    assert side["edits"] == count and (said in side["notice"] if said else not side["notice"])


def test_a_head_is_silenced_in_one_run_of_a_long_text_from_the_picture() -> None:
    app = long_pair(b_text=texts(COUNT)[0])
    assert view(app, "compare")[0]["pairs"]["B"]["same"]
    app.query_params["b_edits"] = SILENT
    app.run()
    header, _ = view(app, "compare")
    assert not header["pairs"]["B"]["same"] and header["sides"][1]["silenced"][0]["heads"] == [1]
    model = library.checkpoint("mine").model
    _, arrays = question(app, header["pairs"]["B"]["trace"], ask="says", group=COUNT - 1)
    logits = run(model, ids(app, 0), edits=[SilenceHeads(0, [1])])["logits"][0, -1].double().softmax(-1)
    chosen = torch.tensor(arrays["ids"].data[0]).long()
    torch.testing.assert_close(torch.tensor(arrays["second"].data[0]), logits[chosen].float(), atol=1e-6, rtol=1e-4)


def question(app: AppTest, trace: str, **query: Any) -> tuple[dict, dict[str, Any]]:
    """What the page answers to its views."""
    return answered(app, {"trace": trace, **query})


def looked(view: str = "map") -> dict[str, Any]:
    return {"attention": "attn", "heads": {"A": [1, 0], "B": [1, 1]}, "beside": "B", "at": ["A", 290, 7], "view": view}


def test_lines_and_data_of_long_texts_are_both_whole_patterns_and_their_difference(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(budget, "models_folder", str(tmp_path))
    app = long_pair()
    found = ran(asked(app, "compare", take="python", **looked())[0]["lines"])
    assert list(found["a"]) == ["blocks.1.attn.pattern"]
    model = library.checkpoint("mine").model
    patterns = [run(model, ids(app, i))["blocks.1.attn.pattern"][0, i] for i in (0, 1)]
    for name, expected in zip(("pattern_a", "pattern_b"), patterns, strict=True):
        torch.testing.assert_close(found[name], expected, atol=1e-6, rtol=1e-5)
    expected = patterns[1] - patterns[0]
    assert float(found["printed"]) == pytest.approx(float(expected[290, 7]), abs=1e-6)
    _, answer = asked(app, "compare", take="data", matrix="B − A", format="npz", **looked())
    with np.load(io.BytesIO(answer["file"].data.tobytes()), allow_pickle=False) as file:
        np.testing.assert_allclose(file["values"], expected.numpy(), atol=1e-6)
        assert len(file["query_tokens"]) == COUNT


@pytest.mark.parametrize("tab", ["product", "steps", "points", "circuits", "text", "lines"])
def test_the_lines_of_every_tab_of_a_long_text_run(tab: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budget, "models_folder", str(tmp_path))
    found = ran(asked(long_pair(), "compare", take="python", **looked(tab))[0]["lines"])
    lines = found["printed"].splitlines()
    assert len(lines) == {"text": 1, "lines": 1, "product": 3, "points": 3, "circuits": 5, "steps": 7}[tab]


def test_a_file_of_long_texts_has_both_heads_and_their_difference_down_to_single_weights() -> None:
    app = long_pair()
    header, _ = view(app, "compare")
    page = asked(app, "compare", take="html", state="#layer=1", asked=[], **looked())[1]["file"].data.tobytes()
    assert len(page) < 5e6 and b"/compare?v=1&amp;a_model=mine" in page
    (given,) = re.findall(rb'id="given">(.*?)</script>', page, re.DOTALL)
    said = json.loads(given)
    assert said["view"] == "compare/compare"
    traces = [side["trace"] for side in header["sides"]]
    names = {traces[0]: "A", traces[1]: "B", header["pairs"]["B"]["trace"]: "B − A"}
    whole = {name: np.full((COUNT, COUNT), np.nan, np.float32) for name in names.values()}
    for one in said["answers"]:
        query, answer = one["query"], unpack(gzip.decompress(base64.b64decode(one["payload"])))
        if query["ask"] not in ("tile", "difference") or answer[0]["block"] != [1, 1]:
            continue
        (top, bottom), (left, right) = query["rows"], query["columns"]
        values = 0 if answer[0]["empty"] else answer[1]["weight"].data
        whole[names[query["trace"]]][top:bottom, left:right] = values
    for name, values in whole.items():
        _, matrix = asked(app, "compare", take="data", matrix=name, format="npz", **looked())
        with np.load(io.BytesIO(matrix["file"].data.tobytes())) as file:
            np.testing.assert_allclose(values, file["values"], atol=1e-7, err_msg=name)
    asks = {one["query"]["ask"] for one in said["answers"]}
    assert asks == {"tile", "difference", "row", "says", "streams", "change", "similarity"}
