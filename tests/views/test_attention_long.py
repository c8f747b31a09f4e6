"""What the page about attention sends of a long text: elements of the engine's patterns, every peak, and few bytes."""

from collections.abc import Iterator
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from engine.analysis import overview_cache as glances
from engine.analysis.circuits import qk
from engine.analysis.copying import copying_scores
from engine.analysis.edit_extent import touched_cells
from engine.analysis.heads import head_scores
from engine.analysis.overview_cache import LongRun
from engine.analysis.sinks import column, describe_sink
from engine.checkpoints import Checkpoint
from engine.edits import AttentionTemperature, PaintMask
from engine.inputs.readers import Reading
from engine.model.config import MLP, Attention, Encoder, ModelConfig, Positions
from engine.model.transformer import Transformer, initialise
from engine.runtime.run import run
from engine.tokenizers.encoding import Encoding
from tests.engine import tiny
from views.attention.long import ACROSS, OVERVIEWS, TILE, LongContext, at_rest, attention_long, long_context
from views.attention.long_questions import ATTENTION
from views.core.lanes import lanes
from views.core.payload import Named, unpack
from views.core.questions import Page
from views.core.run_context import HeadOfRun

pytestmark = pytest.mark.long

LENGTH = 301
SMALL = ModelConfig(23, 512, 16, 2, Attention(4), MLP(24), Positions("rotary"))
READER = Encoder(3, Attention(4, mask="full"), MLP(24), 0)
TWO = ModelConfig(23, 512, 16, 2, Attention(4), MLP(24), Positions("sinusoidal"), encoder=READER)
GPT2 = ModelConfig(1000, 1024, 768, 12, Attention(12), MLP(3072, "gelu_tanh"))


def ids(count: int, seed: int = 0) -> Encoding:
    return Encoding.from_ids(torch.randint(1, 23, (count,), generator=torch.Generator().manual_seed(seed)).tolist())


def looked_at(
    model: Transformer, read: Encoding, target: Encoding | None = None, *edits: object, **look: int
) -> LongContext:
    checkpoint = Checkpoint(model)
    made = LongRun(model, read, tuple(edits), target)  # type: ignore[arg-type]
    return long_context("it", checkpoint, lanes(checkpoint, Reading(read, target=target)), made, look)


def payload(long: LongContext) -> tuple[dict, dict[str, Named]]:
    return unpack(attention_long(long, name="it", look={}, notes={"notice": ""}))


def asked(long: LongContext, **query: object) -> tuple[dict, dict[str, Named]]:
    side = long.lanes[-1].side
    usual = {"side": side, "focus": "attn", "layer": 0, "head": 0}
    known = ATTENTION.questions_about(long).get(str(query.get("ask")))
    own = {name: value for name, value in usual.items() if known is None or name in known.parameters}
    return unpack(answer(long, {"trace": long.digest, **own, **query}))


def answer(long: LongContext, query: dict[str, object]) -> bytes:
    return Page((ATTENTION, long)).answer(query)


def cells(about: dict, weight: Named | None, at: Named | None) -> Iterator[tuple[int, int, float, slice, slice]]:
    """Of a tile, row and column of each cell's weight, the weight, and the block that it is to be the largest of."""
    (top, bottom), (left, right), (high, wide) = about["rows"], about["columns"], about["block"]
    assert weight is not None
    for i, row in enumerate(weight.data):
        for j, value in enumerate(row):
            inside = 0 if at is None else int(at.data[i, j])
            first, begin = top + i * high, left + j * wide
            block = slice(first, min(first + high, bottom)), slice(begin, min(begin + wide, right))
            yield first + inside // wide, begin + inside % wide, float(value), *block


def check_tile(pattern: Tensor, about: dict, arrays: dict[str, Named], prefix: str = "") -> None:
    if about["empty"]:
        assert not pattern[slice(*about["rows"]), slice(*about["columns"])].any() and f"{prefix}weight" not in arrays
        return
    weight, at = arrays[f"{prefix}weight"], arrays.get(f"{prefix}at")
    assert max(weight.data.shape) <= TILE
    for row, key, value, rows, columns in cells(about, weight, at):
        assert value == float(pattern[row, key]) == float(pattern[rows, columns].max())


def test_the_tiles_that_arrive_cover_the_head_with_the_largest_weight_of_every_block() -> None:
    model, read = tiny.model(SMALL), ids(LENGTH)
    header, arrays = payload(looked_at(model, read, layer=1, head=2))
    first, pattern = header["first"], run(model, read)["blocks.1.attn.pattern"][0, 2]
    assert (first["layer"], first["head"]) == (1, 2)
    seen = torch.zeros(LENGTH, LENGTH, dtype=torch.bool)
    for number, about in enumerate(first["tiles"]):
        seen[slice(*about["rows"]), slice(*about["columns"])] = True
        check_tile(pattern, about, arrays, f"tile.{number}.")
    assert seen.all()


@pytest.mark.parametrize("window", [(0, 128, 0, 128), (173, 301, 0, 128), (45, 301, 45, 301), (7, 9, 0, 11)])
def test_a_tile_at_any_zoom_holds_elements_of_the_engines_pattern(window: tuple[int, int, int, int]) -> None:
    model, read = tiny.model(SMALL), ids(LENGTH)
    rows, columns = list(window[:2]), list(window[2:])
    about, arrays = asked(looked_at(model, read), ask="tile", layer=1, head=3, rows=rows, columns=columns)
    assert (about["rows"], about["columns"]) == (rows, columns)
    pattern = run(model, read)["blocks.1.attn.pattern"][0, 3]
    window = pattern[slice(*rows), slice(*columns)]
    largest = torch.nn.functional.max_pool2d(window[None], tuple(about["block"]), ceil_mode=True)[0]
    torch.testing.assert_close(torch.tensor(arrays["weight"].data), largest)
    check_tile(looked_at(model, read).pattern(HeadOfRun("", "attn", 1, 3)), about, arrays)


def test_a_window_that_no_query_may_see_brings_no_numbers() -> None:
    long = looked_at(tiny.model(SMALL), ids(LENGTH))
    about, arrays = asked(long, ask="tile", rows=[0, 128], columns=[128, 256])
    assert about["empty"] and not arrays


def test_one_weight_of_one_among_a_million_is_seen_at_rest_and_in_the_overview(monkeypatch: pytest.MonkeyPatch) -> None:
    model, read = tiny.model(ModelConfig(23, 1024, 16, 1, Attention(1), MLP(24))), ids(1000)
    long = looked_at(model, read)
    for place in ((999, 3), (512, 511), (77, 0)):
        planted = torch.full((1000, 1000), 1e-5)
        planted[place] = 1.0
        monkeypatch.setattr(LongContext, "pattern", lambda self, head, planted=planted: planted)
        header, arrays = payload(long)
        tops = [arrays[f"tile.{number}.weight"].data.max() for number in range(len(header["first"]["tiles"]))]
        assert max(tops) == 1.0
        found = [
            (row, column)
            for number, about in enumerate(header["first"]["tiles"])
            for row, column, value, *_ in cells(about, arrays[f"tile.{number}.weight"], arrays[f"tile.{number}.at"])
            if value == 1.0
        ]
        assert set(found) == {place}


def test_a_row_lists_its_heaviest_keys_and_what_all_others_share() -> None:
    model, read = tiny.model(SMALL), ids(LENGTH)
    header, arrays = asked(looked_at(model, read), ask="row", layer=1, head=1, pos=250)
    weights = run(model, read)["blocks.1.attn.pattern"][0, 1, 250]
    order = weights.argsort(descending=True)
    torch.testing.assert_close(torch.tensor(arrays["weights"].data), weights)
    torch.testing.assert_close(torch.tensor(arrays["weight"].data), weights[order[:20]])
    assert torch.equal(weights[torch.tensor(arrays["key"].data).long()], weights[order[:20]])
    assert header["rest"] == pytest.approx(float(weights[order[20:]].sum()), abs=1e-6)
    assert header["others"] == int((weights > 0).sum()) - 20


def test_scores_of_a_layer_are_those_of_the_whole_run() -> None:
    model, read = tiny.model(SMALL), ids(LENGTH)
    whole, long = vars(head_scores(run(model, read))), looked_at(model, read)
    whole["copying"] = copying_scores(model)
    assert {score["key"] for score in payload(long)[0]["scoreTable"]} == whole.keys() | {"positional"}
    for layer in range(2):
        _, arrays = asked(long, ask="scores", layer=layer)
        for key, values in whole.items():
            torch.testing.assert_close(torch.tensor(arrays[key].data), values[layer], equal_nan=True)


def test_all_three_attentions_of_two_stacks_are_there() -> None:
    model, read, target = tiny.model(TWO), ids(280), ids(LENGTH, 1)
    long = looked_at(model, read, target)
    header, arrays = payload(long)
    assert header["first"]["focus"] == "cross_attn" and header["look"]["query"] == LENGTH - 1
    layers = {"encoder.attn": 3, "decoder.attn": 2, "decoder.cross_attn": 2}
    assert {n: arrays[f"patterns.{n}"].data.shape[:2] for n in layers} == {n: (c, 4) for n, c in layers.items()}
    trace = run(model, read, target=target)
    for side, focus in (("encoder", "attn"), ("decoder", "attn"), ("decoder", "cross_attn")):
        where = {"side": side, "focus": focus, "layer": 1, "head": 2}
        _, found = asked(long, ask="tile", **where, rows=[120, 248], columns=[0, 128])
        pattern = trace[f"{side}.blocks.1.{focus}.pattern"][0, 2]
        torch.testing.assert_close(torch.tensor(found["weight"].data), pattern[120:248, :128])


def test_edits_reach_the_first_head_and_those_asked_for_later() -> None:
    model, read, hot = tiny.model(SMALL), ids(LENGTH), AttentionTemperature(3.0)
    long = looked_at(model, read, None, hot)
    assert payload(long)[0]["edited"] == ["*.temperature"]
    whole = run(model, read, edits=[hot])
    assert long.digest != looked_at(model, read).digest
    for layer, head in ((0, 0), (1, 3)):
        pattern = whole[f"blocks.{layer}.attn.pattern"][0, head]
        torch.testing.assert_close(long.pattern(HeadOfRun("", "attn", layer, head)), pattern)


@pytest.mark.parametrize(
    "query",
    [
        {"ask": "tile", "rows": [0, 999], "columns": [0, 9]},
        {"ask": "tile", "rows": [9, 9], "columns": [0, 9]},
        {"ask": "tile", "rows": "all", "columns": [0, 9]},
        {"ask": "tile", "rows": [0, 9], "columns": [0, 9], "head": 4},
        {"ask": "tile", "rows": [0, 9], "columns": [0, 9], "focus": "cross_attn"},
        {"ask": "row", "pos": LENGTH},
        {"ask": "row", "pos": 0, "layer": -1},
        {"ask": "scores", "layer": 2},
        {"ask": "scores", "side": "encoder"},
        {"ask": "sink"},
        {"ask": "column", "key": LENGTH},
        {"ask": "column"},
        {"ask": "qk", "head": 4},
        {"ask": "row", "pos": 0, "trace": "another"},
    ],
)
def test_what_the_run_does_not_have_is_refused_with_a_sentence(query: dict) -> None:
    with pytest.raises(ValueError, match=r"\.$"):
        asked(looked_at(tiny.model(SMALL), ids(LENGTH)), **query)


def test_a_second_look_computes_nothing_and_another_head_is_computed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    model, read, calls = tiny.model(SMALL), ids(LENGTH, 7), []
    for name in ("glance", "head_pattern"):
        real = getattr(glances, name)
        monkeypatch.setattr(glances, name, lambda *a, real=real, name=name, **k: calls.append(name) or real(*a, **k))
    payload(looked_at(model, read))
    long = looked_at(model, Encoding.from_ids(read.ids))
    payload(long)
    assert calls == ["glance"]
    for _ in range(2):
        asked(long, ask="tile", layer=1, rows=[0, 128], columns=[0, 128])
        asked(long, ask="row", layer=1, pos=5)
    assert calls == ["glance", "head_pattern"]


def test_1024_tokens_through_gpt2_small_are_looked_at_within_a_megabyte() -> None:
    model = initialise(Transformer(GPT2), 0).requires_grad_(False).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if ".q." in name:
                parameter.mul_(8)  # patterns with peaks
    read = Encoding.from_ids(torch.randint(1000, (1024,), generator=torch.Generator().manual_seed(0)).tolist())
    long = looked_at(model, read)
    opened = attention_long(long, name="it", look={}, notes={"notice": ""})
    base = {"trace": long.digest, "side": "", "focus": "attn", "layer": 6, "head": 7}
    tiles = [{"ask": "tile", "rows": list(rows), "columns": list(columns)} for rows, columns in at_rest(1024, 1024)]
    head = [answer(long, base | one) for one in (*tiles, {"ask": "row", "pos": 1023})]
    near = [[first, first + TILE] for first in range(512, 512 + ACROSS, TILE)]
    zoom = [answer(long, base | {"ask": "tile", "rows": r, "columns": c}) for r in near for c in near]
    whole = 4 * 12 * 12 * 1024**2
    spent = len(opened) + sum(map(len, head)) + sum(map(len, zoom))
    assert len(opened) > OVERVIEWS / 2 and spent <= 1_000_000 < whole / 600
    assert not any(tensor.dim() == 4 for tensor in long.trace.values()), "a pattern was kept"


def test_what_edits_put_into_a_head_comes_with_its_tiles_at_every_zoom_and_the_head_is_named() -> None:
    model, read = tiny.model(SMALL), ids(LENGTH)
    edits = [PaintMask(cells=[[200, 7], [250, 120], [290, 299]], layer=1, heads=[2])]
    long = looked_at(model, read, None, *edits, layer=1, head=2)
    header, arrays = payload(long)
    assert header["editedHeads"] == {"attn": [[1, 2]]}
    expected = touched_cells(run(model, read, edits=edits), run(model, read), 1)[2] > 0
    assert expected.sum() == 3
    seen = torch.zeros(LENGTH, LENGTH, dtype=torch.bool)
    for number, about in enumerate(header["first"]["tiles"]):
        (top, bottom), (left, right), (high, wide) = about["rows"], about["columns"], about["block"]
        found = arrays.get(f"tile.{number}.edited")
        blocks = torch.zeros(-(-(bottom - top) // high), -(-(right - left) // wide), dtype=torch.bool)
        blocks = blocks if found is None else torch.tensor(found.data).bool()
        whole = blocks.repeat_interleave(high, 0).repeat_interleave(wide, 1)[: bottom - top, : right - left]
        seen[top:bottom, left:right] |= whole
        for row, key in expected[top:bottom, left:right].nonzero().tolist():
            assert blocks[row // high, key // wide]
    assert seen[expected].all() and seen.sum() <= 3 * 16
    _, near = asked(long, ask="tile", layer=1, head=2, rows=[173, 301], columns=[0, 128])
    assert torch.equal(torch.tensor(near["edited"].data).bool(), expected[173:301, :128])
    for head in (1, 2):
        _, far = asked(long, ask="tile", layer=1, head=head, rows=[0, 128], columns=[0, 128])
        assert "edited" not in far


def test_a_masked_window_without_a_weight_still_says_what_edits_took_away() -> None:
    model, read = tiny.model(SMALL), ids(LENGTH)
    long = looked_at(model, read, None, PaintMask(columns=list(range(128)), layer=1, heads=[2]))
    about, arrays = asked(long, ask="tile", layer=1, head=2, rows=[173, 301], columns=[0, 128])
    assert about["empty"] and bool(arrays["edited"].data.all()) and "weight" not in arrays


@pytest.mark.parametrize(("side", "focus"), [("encoder", "attn"), ("decoder", "attn"), ("decoder", "cross_attn")])
def test_a_column_of_a_long_text_is_told_as_that_of_a_short_one(side: str, focus: str) -> None:
    model, read, target = tiny.model(TWO), ids(280), ids(LENGTH, 1)
    where = {"side": side, "focus": focus, "layer": 1, "head": 2}
    header, arrays = asked(looked_at(model, read, target), ask="column", key=5, **where)
    trace = run(model, read, target=target)
    torch.testing.assert_close(
        torch.tensor(arrays["weights"].data), trace[f"{side}.blocks.1.{focus}.pattern"][0, 2, :, 5]
    )
    assert header["sentence"] == describe_sink(column(trace, 1, 5, 2, side, focus == "cross_attn"))


def test_heads_that_share_a_key_have_its_value_in_a_column_of_a_long_text() -> None:
    model, read = tiny.model(replace(SMALL, attention=Attention(4, kv_heads=2))), ids(LENGTH)
    header, _ = asked(looked_at(model, read), ask="column", layer=1, head=3, key=0)
    assert header["sentence"] == describe_sink(column(run(model, read), 1, 0, 3))


def test_circuits_of_a_long_text_are_those_of_its_first_tokens() -> None:
    model, read = tiny.model(SMALL), ids(LENGTH)
    _, arrays = asked(looked_at(model, read), ask="qk", layer=1, head=2)
    order = list(dict.fromkeys(read.ids))
    assert arrays["ids"].data.tolist() == order
    torch.testing.assert_close(torch.tensor(arrays["scores"].data), qk(model, 1, 2, order, order))
    _, arrays = asked(looked_at(model, read), ask="ov", layer=1, head=2)
    assert arrays["top"].data.shape == (len(order), 8)
