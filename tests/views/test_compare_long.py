"""A comparison of long texts: what is asked for is what whole runs have, no peak is lost, and few bytes travel."""

import math
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
import torch
from torch import Tensor

from engine.analysis.overview_cache import LongRun
from engine.analysis.predictions import predictions
from engine.analysis.similarity import head_changes, head_similarity, stream_distance
from engine.checkpoints import Checkpoint
from engine.edits import AttentionTemperature, Edit
from engine.inputs.readers import Reading
from engine.model.config import MLP, Attention, ModelConfig
from engine.model.transformer import Transformer, initialise
from engine.runtime.run import run
from engine.tokenizers.encoding import Encoding
from tests.engine import tiny
from tests.views.test_attention_long import GPT2, LENGTH, SMALL, TWO, ids
from views.attention.long import ACROSS, LARGEST_TILE, TILE, long_context, spans
from views.compare.compare import compare
from views.compare.differences import CELLS, ROWS
from views.compare.pair import ComparedRun, RunPair, match_attentions
from views.compare.questions import Comparison
from views.compare.tables import ComparisonSelection, difference, matrix, pattern
from views.compare.tiles import about_pair, carry_long
from views.core.lanes import lanes
from views.core.payload import Named, unpack
from views.core.questions import Page
from views.core.run_context import RunContext

pytestmark = pytest.mark.long

MIDDLE = 150  # where the second text has one token more


def inserted(read: Encoding) -> Encoding:
    return Encoding.from_ids([*read.ids[:MIDDLE], 22, *read.ids[MIDDLE:-3], 1, 2, 3])


def shown(
    letter: str, model: Transformer, read: Encoding, target: Encoding | None = None, *edits: Edit, long: bool = True
) -> ComparedRun:
    checkpoint, reading = Checkpoint(model), Reading(read, target=target)
    stacks = lanes(checkpoint, reading)
    if long:
        made = long_context("it", checkpoint, stacks, LongRun(model, read, edits, target), {})
        return ComparedRun(letter, "it", reading, made)
    trace = run(model, read, target=target, edits=edits)
    return ComparedRun(letter, "it", reading, RunContext("it", checkpoint, trace, stacks))


def pair_of(config: ModelConfig = SMALL, *edits: Edit, long: bool = True) -> RunPair:
    model, first = tiny.model(config), ids(LENGTH)
    second = shown("B", model, inserted(first), None, *edits, long=long)
    return match_attentions(shown("A", model, first, long=long), second)


def answered(pairs: list[RunPair], query: dict) -> bytes:
    return Page(*Comparison(pairs).parts).answer(query)


def answer(pair: RunPair, **query: object) -> tuple[dict, dict[str, Named]]:
    return unpack(answered([pair], about_pair(pair, **of_attention(**query))))


def of_attention(**query: object) -> dict:
    """A query about the only attention; what is said at a place is about none."""
    return query if query["ask"] == "says" else {"attention": "attn", **query}


def by_entries(pair: RunPair, layer: int, head: int, other: tuple[int, int]) -> Tensor:
    """The difference of two heads, with a row and a column of NaN for the token that one text has alone."""
    mine = pair.first.run.trace[f"blocks.{layer}.attn.pattern"][0, head]
    theirs = pair.second.run.trace[f"blocks.{other[0]}.attn.pattern"][0, other[1]]
    wide = torch.full_like(theirs, torch.nan)
    kept = [i for i in range(len(theirs)) if i != MIDDLE]
    wide[np.ix_(kept, kept)] = theirs[kept][:, kept] - mine
    return wide


def test_what_is_sent_names_what_belongs_together_and_holds_no_weight() -> None:
    pair = pair_of()
    header, arrays = unpack(compare([pair], {"look": {}}))
    (found,) = header["pairs"]["B"]["attentions"]
    assert not arrays and found["keys"] is None and header["pairs"]["B"]["says"]["groups"] is None
    places = [b for _, (b,), _ in found["queries"]]
    assert places == [i for i in range(LENGTH + 1) if i != MIDDLE] and not header["pairs"]["B"]["same"]
    assert [side["trace"] for side in header["sides"]] == [one.run.digest for one in (pair.first, pair.second)]


@pytest.mark.parametrize("window", [(0, 302, 0, 302), (100, 230, 0, 130), (140, 160, 140, 160), (17, 300, 3, 290)])
def test_every_cell_of_a_difference_is_its_blocks_furthest_from_zero(window: tuple[int, int, int, int]) -> None:
    top, bottom, left, right = window
    expected = by_entries(pair_of(long=False), 1, 2, (0, 3))
    query = {"ask": "difference", "heads": [[1, 2], [0, 3]], "rows": [top, bottom], "columns": [left, right]}
    header, arrays = answer(pair_of(), **query)
    high, wide = header["block"]
    assert header["max"] == pytest.approx(float(expected.abs().nan_to_num().max()), abs=1e-6)
    assert max(arrays["weight"].data.shape) <= LARGEST_TILE
    for (i, j), value in np.ndenumerate(arrays["weight"].data):
        row, col = top + i * high, left + j * wide
        block = expected[row : min(row + high, bottom), col : min(col + wide, right)]
        if block.isnan().all():
            assert math.isnan(value)
            continue
        assert abs(value) == pytest.approx(float(block.abs().nan_to_num().max()), abs=1e-6)
        inside = int(arrays["at"].data[i, j]) if high * wide > 1 else 0
        assert value == pytest.approx(float(block[inside // wide, inside % wide]), abs=1e-6)


def test_one_difference_among_a_million_is_seen_at_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    model, read = tiny.model(ModelConfig(23, 1024, 16, 1, Attention(1), MLP(24))), ids(1000)
    pair = match_attentions(shown("A", model, read), shown("B", model, Encoding.from_ids([2, *read.ids[1:]])))
    planted = torch.full((1000, 1000), 1e-4)
    planted[777, 33] = -0.5
    monkeypatch.setattr("views.compare.questions.head_difference", lambda *_: planted)
    side = unpack(compare([pair], {}))[0]["pairs"]["B"]["attentions"][0]["tiles"][2]
    tiles = spans(1000, side, side * ACROSS // TILE)
    assert len(tiles) == 2
    found = []
    for rows, columns in product(tiles, tiles):
        header, arrays = answer(pair, ask="difference", heads=[[0, 0], [0, 0]], rows=list(rows), columns=list(columns))
        weight, (high, wide) = arrays["weight"].data, header["block"]
        for i, j in np.argwhere(weight == np.float32(-0.5)):
            inside = int(arrays["at"].data[i, j])
            found.append((rows[0] + i * high + inside // wide, columns[0] + j * wide + inside % wide))
    assert found == [(777, 33)]


def test_where_two_texts_are_one_no_number_is_sent() -> None:
    model, read = tiny.model(SMALL), ids(LENGTH)
    pair = match_attentions(shown("A", model, read), shown("B", model, Encoding.from_ids(read.ids)))
    assert unpack(compare([pair], {}))[0]["pairs"]["B"]["same"]
    header, arrays = answer(pair, ask="difference", heads=[[0, 1], [0, 1]], rows=[0, 128], columns=[0, 128])
    assert header["empty"] and header["max"] == 0 and not arrays


def test_heads_differ_and_are_alike_as_in_whole_runs() -> None:
    pair, whole = pair_of(), pair_of(long=False).patterns(0)
    for layer in range(SMALL.layers):
        _, arrays = answer(pair, ask="change", layer=layer)
        expected = head_changes(whole)[layer]
        torch.testing.assert_close(torch.tensor(arrays["change"].data), expected, atol=1e-6, rtol=1e-4)
        seen = arrays["seen"].data.astype(np.float32)
        assert seen.shape == (4, CELLS - 1, CELLS - 1)  # of 302 entries, ten in a cell
        for head in range(4):
            largest = float(by_entries(pair_of(long=False), layer, head, (layer, head)).abs().nan_to_num().max())
            assert seen[head].max() == pytest.approx(largest, rel=1e-3)
    header, arrays = answer(pair, ask="similarity", over="here")
    rows = whole.queries.groups[1:][::-1][:: -(-300 // ROWS)][::-1]
    some = replace(whole, queries=replace(whole.queries, groups=tuple(rows)))
    expected = head_similarity([some]).heads
    torch.testing.assert_close(torch.tensor(arrays["similarity"].data), expected, atol=1e-6, rtol=1e-4)
    assert (header["rows"], header["of"]) == (len(rows), LENGTH - 1) and len(rows) <= ROWS


def test_both_runs_say_at_a_place_what_whole_runs_say_there() -> None:
    pair, whole = pair_of(), pair_of(long=False)
    for number in (0, MIDDLE, LENGTH - 1):
        header, arrays = answer(pair, ask="says", group=number)
        places = [(number, number + (number >= MIDDLE))]
        expected = predictions(whole.first.run.trace["logits"][0], whole.second.run.trace["logits"][0], places, 12)
        for name in ("ids", "first", "second", "kl", "variation"):
            wanted = getattr(expected, name).numpy()
            np.testing.assert_allclose(arrays[name].data, wanted, atol=1e-6, rtol=1e-4, err_msg=name)
        assert set(header["names"]) == {str(i) for i in expected.ids.flatten().tolist()}


def test_residual_streams_are_as_far_apart_as_in_whole_runs() -> None:
    whole = pair_of(long=False)
    expected = stream_distance(whole.first.run.trace, whole.second.run.trace, whole.alignment("", ""))
    _, arrays = answer(pair_of(), ask="streams")
    for name in ("relative", "cosine"):
        np.testing.assert_allclose(arrays[name].data, getattr(expected, name).numpy(), atol=1e-5, rtol=1e-4)


def test_edits_of_one_run_are_in_its_tiles_and_in_the_difference() -> None:
    hot = AttentionTemperature(3.0)
    pair, whole = pair_of(SMALL, hot), pair_of(SMALL, hot, long=False)
    trace = pair.second.run.digest
    where = {"trace": trace, "side": "", "focus": "attn", "layer": 1, "head": 0}
    _, arrays = unpack(answered([pair], {**where, "ask": "row", "pos": 200}))
    expected = whole.second.run.trace["blocks.1.attn.pattern"][0, 0, 200]
    torch.testing.assert_close(torch.tensor(arrays["weights"].data), expected, atol=1e-6, rtol=1e-5)
    _, arrays = answer(pair, ask="difference", heads=[[1, 0], [1, 0]], rows=[200, 264], columns=[0, 64])
    expected = by_entries(whole, 1, 0, (1, 0))[200:264, :64]
    torch.testing.assert_close(torch.tensor(arrays["weight"].data), expected, atol=1e-6, rtol=1e-4, equal_nan=True)


def test_models_of_other_shapes_are_compared_head_with_head_only() -> None:
    read = ids(LENGTH)
    small, other = tiny.model(SMALL), tiny.model(replace(SMALL, layers=3, attention=Attention(2)))
    pair = match_attentions(shown("A", small, read), shown("B", other, read))
    (described,) = unpack(compare([pair], {}))[0]["pairs"]["B"]["attentions"]
    assert not described["change"] and "one depth and width" in described["streams"]
    for layer in range(3):
        assert not answer(pair, ask="change", layer=layer)[1]
    _, arrays = answer(pair, ask="similarity", over="here")
    assert arrays["similarity"].data.shape == (8, 6) and not np.isnan(arrays["similarity"].data).any()
    with pytest.raises(ValueError, match="one depth and width"):
        answer(pair, ask="streams")


@pytest.mark.parametrize("key", ["encoder.attn", "decoder.attn", "decoder.cross_attn"])
def test_every_attention_of_two_stacks_is_compared(key: str) -> None:
    model, target = tiny.model(TWO), ids(280, 1)
    targets = [target, Encoding.from_ids([*target.ids[:100], 0, *target.ids[101:]])]
    sides = [shown(letter, model, ids(LENGTH), target) for letter, target in zip("AB", targets, strict=True)]
    pair = match_attentions(*sides)
    query = about_pair(pair, ask="difference", attention=key, heads=[[1, 2], [1, 2]], rows=[90, 154], columns=[60, 124])
    _, arrays = unpack(answered([pair], query))
    hook = f"{key.replace('.', '.blocks.1.')}.pattern"
    old, new = (run(model, ids(LENGTH), target=target)[hook][0, 2, 90:154, 60:124] for target in targets)
    if key == "encoder.attn":
        assert not arrays and torch.equal(old, new)
    else:
        torch.testing.assert_close(torch.tensor(arrays["weight"].data), new - old, atol=1e-6, rtol=1e-4)


def test_what_is_taken_away_of_a_long_text_is_the_whole_heads() -> None:
    pair, whole = pair_of(), pair_of(long=False)
    looked = ComparisonSelection("attn", {"A": (1, 2), "B": (0, 3)}, "B", ("A", 5, 5))
    for letter, one in (("A", whole.first), ("B", whole.second)):
        layer, head = looked.heads[letter]
        expected = one.run.trace[f"blocks.{layer}.attn.pattern"][0, head]
        torch.testing.assert_close(pattern(pair, looked, letter), expected, atol=1e-6, rtol=1e-5)
        assert matrix([pair], looked, letter).values.shape == expected.shape
    wanted = by_entries(whole, 1, 2, (0, 3))
    wanted = wanted[~wanted[:, 0].isnan()][:, ~wanted[0].isnan()]
    torch.testing.assert_close(difference(pair, looked), wanted, atol=1e-6, rtol=1e-4)


@pytest.mark.parametrize(
    "query",
    [
        {"ask": "difference", "heads": [[0, 0], [0, 4]], "rows": [0, 9], "columns": [0, 9]},
        {"ask": "difference", "heads": [[0, 0]], "rows": [0, 9], "columns": [0, 9]},
        {"ask": "difference", "heads": [[0, 0], [0, 0]], "rows": [0, 999], "columns": [0, 9]},
        {"ask": "difference", "heads": [[0, 0], [0, 0]], "rows": "all", "columns": [0, 9]},
        {"ask": "says", "group": LENGTH},
        {"ask": "says", "group": -1},
        {"ask": "change", "layer": 2},
        {"ask": "similarity", "over": "everything"},
        {"ask": "nothing"},
        {"ask": "streams", "attention": "decoder.attn"},
        {"ask": "streams", "other": "another"},
        {"ask": "streams", "trace": "another"},
    ],
)
def test_what_the_runs_do_not_have_is_refused_with_a_sentence(query: dict) -> None:
    pair = pair_of()
    with pytest.raises(ValueError, match=r"[a-z]{3}.*\.$"):
        answered([pair], about_pair(pair, **of_attention(**query)))


def test_the_answers_of_one_pair_are_not_those_of_another_second_text() -> None:
    old, new = pair_of(), pair_of(SMALL, AttentionTemperature(2.0))
    with pytest.raises(ValueError, match="changed since"):
        answered([new], about_pair(old, ask="streams", attention="attn"))


def test_all_that_a_file_asks_ahead_is_answered() -> None:
    pair = pair_of()
    looked = ComparisonSelection("attn", {"A": (1, 2), "B": (1, 2)}, "B", ("A", 5, 5))
    queries = list(carry_long([pair], looked))
    asks = {query["ask"] for query in queries}
    assert asks == {"tile", "difference", "streams", "similarity", "change", "says", "row"}
    for query in queries:
        unpack(answered([pair], query))


def test_two_texts_of_1024_tokens_through_gpt2_small_are_compared_within_a_megabyte() -> None:
    model = initialise(Transformer(GPT2), 0).requires_grad_(False).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if ".q." in name:
                parameter.mul_(8)  # patterns with peaks
    read = torch.randint(1000, (1000,), generator=torch.Generator().manual_seed(0)).tolist()
    texts = [Encoding.from_ids(one) for one in (read, [*read[:300], 5, *read[300:700], 7, *read[701:], *range(23)])]
    assert len(texts[1]) == 1024
    pair = match_attentions(*(shown(letter, model, text) for letter, text in zip("AB", texts, strict=True)))
    opened = compare([pair], {})
    looked = ComparisonSelection("attn", {"A": (6, 7), "B": (6, 7)}, "B", ("A", 5, 5))
    cells = unpack(opened)[0]["across"]
    assert cells == ACROSS
    seen = [query for query in carry_long([pair], looked) if query["ask"] in ("tile", "difference")]
    widest = max(query["rows"][1] - query["rows"][0] for query in seen)
    rest = [query for query in seen if query["rows"][1] - query["rows"][0] > widest / 2]
    sent = [len(answered([pair], query)) for query in rest]
    assert len(rest) == 12
    sent += [len(answered([pair], about_pair(pair, ask="says", group=999)))]
    assert len(opened) < 120_000 and len(opened) + sum(sent) <= 1_000_000 < 2 * 4 * 144 * 1024**2 / 1000
    later = [len(answered([pair], about_pair(pair, ask="change", attention="attn", layer=3)))]
    later += [len(answered([pair], about_pair(pair, ask="streams", attention="attn")))]
    assert 12 * later[0] + later[1] <= 450_000
    assert not any(value.dim() == 4 for one in (pair.first, pair.second) for value in one.run.trace.values())


@pytest.mark.parametrize("length", [9, 200, 301, 520, 700, 800, 1000, 1023, 1024])
@pytest.mark.parametrize("sides", [2, 3])
def test_tiles_are_cut_as_the_picture_counts_their_blocks(length: int, sides: int) -> None:
    model, read = tiny.model(ModelConfig(23, 1024, 16, 1, Attention(1), MLP(24))), ids(length)
    texts = [Encoding.from_ids([first, *read.ids[1:]]) for first in range(sides)]
    shown_ones = [shown(letter, model, text) for letter, text in zip("ABC", texts, strict=False)]
    pairs = [match_attentions(shown_ones[0], other) for other in shown_ones[1:]]
    header, _ = unpack(compare(pairs, {}))
    tiles = {letter: header["pairs"][letter]["attentions"][0]["tiles"] for letter in header["pairs"]}
    looked = ComparisonSelection("attn", dict.fromkeys("ABC"[:sides], (0, 0)), "B", ("A", 0, 0))
    for query in carry_long(pairs, looked):
        if query["ask"] not in ("tile", "difference"):
            continue
        named = {one.run.digest: one.letter for one in shown_ones} | {pair.digest: pair.second.letter for pair in pairs}
        letter = named[query["trace"]]
        side = tiles[max(letter, "B")][2 if query["ask"] == "difference" else 0 if letter == "A" else 1]
        about = unpack(answered(pairs, query))[0]
        widths = (query["rows"][1] - query["rows"][0], query["columns"][1] - query["columns"][0])
        assert about["block"] == [2 ** max(0, math.ceil(math.log2(width / side))) for width in widths], query
