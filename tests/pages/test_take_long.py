"""What is taken away of a text too long to be drawn whole: the head that is looked at, in full."""

import base64
import gzip
import io
import json
import re
from typing import Any

import numpy as np
import pytest
import torch

from engine.analysis.averages import by_norm
from engine.budget import budget
from engine.runtime.run import run
from tests.pages.test_attention_long import long_page, mine  # noqa: F401
from tests.pages.test_take import asked, ran, view
from views.core.payload import unpack

pytestmark = pytest.mark.long

HOOK = "blocks.1.attn.pattern"


def test_the_lines_and_the_data_of_a_long_text_are_the_whole_pattern_of_the_shown_head(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(budget, "models_folder", str(tmp_path))
    app = long_page(budget.max_tokens + 40).slider(key="attention").set_value(0.5).run()
    header = view(app, "attention")[0]
    script = asked(app, "attention", take="python", hook=HOOK, head=1, row=290, col=7)[0]["lines"]
    found = ran(script)
    assert list(found["trace"]) == [HOOK] and "AttentionTemperature(value=0.5)" in script
    values = found["values"]
    assert values.shape == (budget.max_tokens + 40,) * 2 and float(found["printed"]) == values[290, 7].item()
    torch.testing.assert_close(values.sum(-1), torch.ones(len(values)))
    _, answer = asked(app, "attention", take="data", hook=HOOK, head=1, format="npz")
    with np.load(io.BytesIO(answer["file"].data.tobytes())) as file:
        assert file["values"].dtype == np.float32 and file["dims"].tolist() == ["query", "key"]
        np.testing.assert_allclose(file["values"], values.numpy(), atol=1e-7)
        assert file["query_tokens"].tolist() == header["lanes"][""]["pieces"]


@pytest.mark.parametrize(("kind", "share"), [("length", False), ("share", True)])
def test_the_lines_and_the_data_of_a_value_weighted_map_are_what_the_weights_move(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch, kind: str, share: bool
) -> None:
    monkeypatch.setattr(budget, "models_folder", str(tmp_path))
    app = long_page(budget.max_tokens + 40)
    of = {"hook": HOOK, "head": 1, "moved": kind}
    found = ran(asked(app, "attention", take="python", row=290, col=7, **of)[0]["lines"])
    assert len(found["trace"]) == 2 and float(found["printed"]) == found["values"][290, 7].item()
    model = found["checkpoint"].model
    expected = by_norm(model, run(model, found["trace"].ids), 1, share=share)[1]
    torch.testing.assert_close(found["values"], expected)
    _, answer = asked(app, "attention", take="data", format="npz", **of)
    with np.load(io.BytesIO(answer["file"].data.tobytes())) as file:
        np.testing.assert_allclose(file["values"], expected, atol=1e-6)
    with pytest.raises(ValueError, match=r"row and col must be in 0\.\.295 and 0\.\.295, got 290 and 9999\."):
        asked(app, "attention", take="python", row=290, col=9999, **of)


@pytest.mark.parametrize(
    "query",
    [
        {"take": "python", "hook": "blocks.9.attn.pattern", "head": 0, "row": 0, "col": 0},
        {"take": "python", "hook": HOOK, "head": 0, "row": 0, "col": 9999},
        {"take": "data", "hook": "blocks.0.attn.scores", "head": 0, "format": "csv"},
        {"take": "data", "hook": HOOK, "head": None, "format": "csv"},
    ],
)
def test_what_a_long_text_does_not_give_is_a_sentence(query: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"[.;]"):
        asked(long_page(budget.max_tokens + 1), "attention", **query)


def test_the_file_of_a_long_text_has_every_tile_of_the_shown_head_and_the_others_at_rest() -> None:
    app = long_page(budget.max_tokens + 40)
    header = view(app, "attention")[0]
    of = {"hook": HOOK, "head": 1, "row": 290, "col": 7}
    _, answer = asked(app, "attention", take="html", state="#layer=1&head=1&query=290", asked=[], **of)
    page = answer["file"].data.tobytes()
    assert len(page) < 5e6 and b"/attention?v=1&amp;model=mine" in page
    (given,) = re.findall(rb'id="given">(.*?)</script>', page, re.DOTALL)
    said = json.loads(given)
    assert said["view"] == "attention/attention"
    whole = np.full((budget.max_tokens + 40,) * 2, np.nan, np.float32)
    heads = set()
    (moved,) = [one["query"] for one in said["answers"] if one["query"]["ask"] == "moved"]
    assert (moved["layer"], moved["head"]) == (1, 1)
    for one in said["answers"]:
        query = one["query"]
        heads.add((query["layer"], query["head"]))
        if query["ask"] != "tile" or (query["layer"], query["head"]) != (1, 1):
            continue
        about, arrays = unpack(gzip.decompress(base64.b64decode(one["payload"])))
        if about["block"] == [1, 1]:
            (top, bottom), (left, right) = query["rows"], query["columns"]
            whole[top:bottom, left:right] = 0 if about["empty"] else arrays["weight"].data
    assert heads == {(layer, head) for layer in range(2) for head in range(2)}
    _, matrix = asked(app, "attention", take="data", hook=HOOK, head=1, format="npz")
    with np.load(io.BytesIO(matrix["file"].data.tobytes())) as file:
        np.testing.assert_array_equal(whole, file["values"])
    assert header["tile"] == 128
