"""What weights of a long text move: elements of `by_norm`, every peak, and few bytes."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from engine.analysis.averages import by_norm
from engine.analysis.tiles import block
from engine.edits import Scale
from engine.model.config import Attention, ModelConfig
from engine.model.transformer import Transformer, initialise
from engine.runtime.run import run
from engine.tokenizers.encoding import Encoding
from tests.engine import tiny
from tests.views.test_attention_long import GPT2, LENGTH, SMALL, TWO, answer, asked, check_tile, ids, looked_at
from views.attention.long import ACROSS, TILE, LongContext, at_rest, attention_long
from views.core.run_context import HeadOfRun

pytestmark = pytest.mark.long

KINDS = [("length", False), ("share", True)]


def peaks(values: Tensor, side: int) -> Tensor:
    high, wide = (block(size, side) for size in values.shape)
    return torch.nn.functional.max_pool2d(values[None], (high, wide), ceil_mode=True)[0]


@pytest.mark.parametrize(("shows", "share"), KINDS)
@pytest.mark.parametrize("config", [SMALL, replace(SMALL, attention=Attention(4, kv_heads=2))])
def test_tiles_at_every_zoom_hold_the_largest_of_every_block_of_what_the_weights_move(
    config: ModelConfig, shows: str, share: bool
) -> None:
    model, read, edits = tiny.model(config), ids(LENGTH), [Scale("blocks.1.attn.v", 3.0)]
    long = looked_at(model, read, None, *edits)
    whole = by_norm(model, run(model, read, edits=edits), 1, share=share)[3]
    for rows, columns in ((0, 128), (0, 128)), ((173, 301), (0, 128)), ((45, 301), (45, 301)), ((0, LENGTH),) * 2:
        where = {"layer": 1, "head": 3, "rows": list(rows), "columns": list(columns)}
        about, arrays = asked(long, ask="tile", shows=shows, **where)
        found = torch.tensor(arrays["weight"].data)
        torch.testing.assert_close(found, peaks(whole[slice(*rows), slice(*columns)], TILE))
        check_tile(long.lengths(HeadOfRun("", "attn", 1, 3), shows), about, arrays)


@pytest.mark.parametrize("side", ["encoder", "decoder"])
def test_a_weight_times_its_keys_number_is_the_length_and_the_overview_loses_no_peak(side: str) -> None:
    model, read, target = tiny.model(TWO), ids(280), ids(LENGTH, 1)
    crosses = side == "decoder"
    where = {"side": side, "focus": "cross_attn" if crosses else "attn", "layer": 1, "head": 2}
    long = looked_at(model, read, target)
    header, arrays = asked(long, ask="moved", **where)
    trace = run(model, read, target=target)
    pattern = trace[f"{side}.blocks.1.{where['focus']}.pattern"][0, 2]
    lengths = pattern * torch.tensor(arrays["moved"].data)
    made = {"length": lengths, "share": lengths / torch.tensor(arrays["total"].data)[:, None]}
    for shows, share in KINDS:
        whole = by_norm(model, trace, 1, side, crosses, share)[2]
        torch.testing.assert_close(made[shows], whole)
        most = 1 if share else header["max"]
        small, largest = torch.tensor(arrays[f"overview.{shows}"].data).float() * most / 255, peaks(whole, long.cells)
        assert (small >= largest * (1 - 1e-5)).all() and (small - largest).max() <= most / 254
    assert header["max"] == pytest.approx(float(lengths.max()), rel=1e-5)


def test_a_length_of_one_among_a_million_is_seen_at_rest_and_in_the_overview(monkeypatch: pytest.MonkeyPatch) -> None:
    model, read = tiny.model(ModelConfig(23, 1024, 16, 1, Attention(1))), ids(1000)
    long = looked_at(model, read)
    unit = torch.ones(1000)
    unit[511] = 50.0  # the weight is small, and what it moves is not
    planted = torch.full((1000, 1000), 1e-5)
    planted[:, 511] = 1e-7
    planted[512, 511] = 1e-2
    monkeypatch.setattr(LongContext, "pattern", lambda self, head: planted)
    monkeypatch.setattr("views.attention.long.key_lengths", lambda long, head: unit)
    tops = {}
    for rows, columns in at_rest(1000, 1000):
        about, arrays = asked(long, ask="tile", shows="length", rows=list(rows), columns=list(columns))
        tops[rows, columns] = (float(arrays["weight"].data.max()), about["block"])
    assert max(tops.values())[0] == pytest.approx(0.5) and all(high > 1 for _, (high, _) in tops.values())
    header, arrays = asked(long, ask="moved")
    overview = torch.tensor(arrays["overview.length"].data)
    size = block(1000, long.cells)
    assert overview.argmax() == 512 // size * overview.shape[1] + 511 // size and int(overview.max()) == 255
    assert header["max"] == pytest.approx(0.5)


def test_a_row_that_attends_to_nothing_moves_nothing() -> None:
    model, read = tiny.model(SMALL), ids(LENGTH)
    long = looked_at(model, read, None, Scale("blocks.0.attn.pattern", 0.0, {"pos": 7}))
    for shows, _ in KINDS:
        _, arrays = asked(long, ask="tile", shows=shows, rows=[0, 128], columns=[0, 128])
        weight = torch.tensor(arrays["weight"].data)
        assert not weight[7].any() and weight[8].any() and not weight.isnan().any()


def test_the_window_of_exact_numbers_has_the_values_of_the_map() -> None:
    long = looked_at(tiny.model(SMALL), ids(LENGTH))
    where = {"layer": 1, "head": 2}
    header, window = asked(long, ask="window", pos=200, key=7, **where)
    keys = torch.tensor(window["keys"].data).long()
    for part, shows in (("weighted", "length"), ("relative", "share")):
        _, near = asked(long, ask="tile", shows=shows, rows=[173, 301], columns=[0, 128], **where)
        inside, first = keys < 128, header["first"] - 173
        found = torch.tensor(near["weight"].data)[first : first + 48][:, keys[inside]]
        torch.testing.assert_close(torch.tensor(window[part].data)[0][:, inside], found)


@pytest.mark.parametrize("query", [{"ask": "tile", "rows": [0, 9], "columns": [0, 9], "shows": "scores"},
                                   {"ask": "moved", "head": 4}, {"ask": "moved", "layer": 2}])  # fmt: skip
def test_what_is_no_kind_of_the_map_is_refused_with_a_sentence(query: dict) -> None:
    with pytest.raises(ValueError, match=r"\.$"):
        asked(looked_at(tiny.model(SMALL), ids(LENGTH)), **query)


def test_1024_tokens_through_gpt2_small_stay_below_a_megabyte_value_weighted_too() -> None:
    model = initialise(Transformer(GPT2), 0).requires_grad_(False).eval()
    long = looked_at(model, Encoding.from_ids([i * i % 1000 for i in range(1024)]))
    base = {"trace": long.digest, "side": "", "focus": "attn", "layer": 6, "head": 7}
    near = [[first, first + TILE] for first in range(512, 512 + ACROSS, TILE)]
    shown = [*at_rest(1024, 1024), *((rows, columns) for rows in near for columns in near)]
    tiles = [{"ask": "tile", "rows": list(r), "columns": list(c), "shows": "share"} for r, c in shown]
    spent = len(attention_long(long, name="it", look={}, notes={"notice": ""}))
    spent += sum(len(answer(long, base | one)) for one in ({"ask": "moved"}, {"ask": "row", "pos": 9}, *tiles))
    assert spent <= 1_000_000
    assert not any(tensor.dim() == 4 for tensor in long.trace.values()), "a pattern was kept"
