"""The window into one head of a long text: elements of the engine's tensors, and what of a row lies outside it."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from engine.analysis.averages import by_norm
from engine.analysis.edit_extent import touched_cells
from engine.analysis.points import head_points
from engine.edits import AttentionTemperature, PaintMask
from engine.model.config import Attention, ModelConfig, Positions
from engine.model.transformer import Transformer, initialise
from engine.runtime.run import run
from engine.runtime.trace import Trace
from engine.tokenizers.encoding import Encoding
from tests.engine import tiny
from tests.views.test_attention_long import GPT2, LENGTH, SMALL, TWO, answer, asked, ids, looked_at
from views.attention.attention import is_attention
from views.attention.long_window import KEYS, KEYS_OF_SEVERAL, OF_KEYS, ROWS, SEVERAL, SQUARES, chosen
from views.core.payload import Named

pytestmark = pytest.mark.long

ALIBI = replace(SMALL, positions=Positions("alibi"))
CAPPED = replace(SMALL, attention=Attention(4, softcap=5.0))
GROUPED = replace(SMALL, attention=Attention(4, kv_heads=2, qk_norm="head"))
NORMED = replace(SMALL, attention=Attention(4, qk_norm="all"))
BOTH = replace(SMALL, attention=Attention(4, mask="full"), positions=Positions("learned"))


def check(trace: Trace, block: str, head: int, header: dict, arrays: dict[str, Named]) -> Tensor:
    """Every value of the head's attention is there and the engine's; gives the keys."""
    rows, keys = slice(header["first"], header["first"] + ROWS), torch.tensor(arrays["keys"].data).long()
    hooks = [name for name in trace if name.startswith(block) and is_attention(name)]
    assert {f"{block}{part}" for part in ("q", "k", "v", "z", "scores", "mask", "pattern")} <= set(hooks)
    heads = trace[f"{block}q"].shape[2]
    for name in hooks:
        part, value, found = name.removeprefix(block), trace[name], torch.tensor(arrays[name].data)
        if part == "temperature":
            assert torch.equal(found, value)
            continue
        value = value if part == "bias" else value[0]
        if part in SQUARES:
            expected = value[head, rows][:, keys][None]
        else:
            value = value.reshape(len(value), -1, trace[f"{block}q"].shape[3])
            own = value[:, head * value.shape[1] // heads][:, None]
            expected = own[keys] if part in OF_KEYS else own[rows]
        assert found.shape == expected.shape, name
        torch.testing.assert_close(found, expected, atol=1e-6, rtol=1e-5)
    return keys


@pytest.mark.parametrize("config", [SMALL, ALIBI, CAPPED, GROUPED, NORMED, BOTH])
def test_a_window_holds_elements_of_what_the_engine_records(config: ModelConfig) -> None:
    model, read = tiny.model(config), ids(LENGTH)
    header, arrays = asked(looked_at(model, read), ask="window", layer=1, head=3, pos=200, key=7)
    keys = check(run(model, read), "blocks.1.attn.", 3, header, arrays)
    assert (header["first"], header["count"], header["dtype"]) == (200, LENGTH, "float32")
    assert 7 in keys and len(keys) == KEYS and bool((keys.diff() > 0).all())


@pytest.mark.parametrize(("side", "focus"), [("encoder", "attn"), ("decoder", "attn"), ("decoder", "cross_attn")])
def test_every_attention_of_two_stacks_has_its_window(side: str, focus: str) -> None:
    model, read, target = tiny.model(TWO), ids(280), ids(LENGTH, 1)
    long = looked_at(model, read, target)
    where = {"side": side, "focus": focus, "layer": 1, "head": 2}
    header, arrays = asked(long, ask="window", pos=10, key=260, **where)
    keys = check(run(model, read, target=target), f"{side}.blocks.1.{focus}.", 2, header, arrays)
    assert 260 in keys and header["count"] == (LENGTH if (side, focus) == ("decoder", "attn") else 280)


def test_the_heaviest_key_of_every_row_is_listed_then_those_with_most_weight() -> None:
    pattern = torch.rand(ROWS, 500, generator=torch.Generator().manual_seed(0)).softmax(-1)
    keys = chosen(pattern, 499)
    best = {*pattern.argmax(-1).tolist(), 499}
    assert best <= set(keys.tolist()) and len(keys) == KEYS
    others = [key for key in pattern.sum(0).argsort(descending=True).tolist() if key not in best]
    assert set(keys.tolist()) - best == set(others[: KEYS - len(best)])


def test_keys_that_no_row_of_the_window_may_see_are_not_listed_unless_one_is_looked_at() -> None:
    long = looked_at(tiny.model(SMALL), ids(LENGTH))
    _, arrays = asked(long, ask="window", pos=0, key=290)
    assert arrays["keys"].data.tolist() == [*range(ROWS), 290]


@pytest.mark.parametrize("temperature", [1.0, 2.5])
def test_the_softmax_of_a_row_is_made_of_what_is_listed_and_what_is_said_of_the_rest(temperature: float) -> None:
    model, read, hot = tiny.model(SMALL), ids(LENGTH), AttentionTemperature(temperature)
    edits = [] if temperature == 1 else [hot]
    _, arrays = asked(looked_at(model, read, None, *edits), ask="window", layer=1, head=2, pos=250, key=0)
    block, found = "blocks.1.attn.", {name: torch.tensor(one.data) for name, one in arrays.items()}
    masked = found[f"{block}masked_scores"][0].double() / found[f"{block}temperature"][2]
    exponentials = (masked - found["outside.top"].double()[:, None]).exp()
    total = exponentials.sum(-1) + found["outside.total"].double()
    weights = (exponentials / total[:, None]).float()
    torch.testing.assert_close(weights, found[f"{block}pattern"][0], atol=1e-6, rtol=1e-5)
    pattern = run(model, read, edits=edits)[f"{block}pattern"][0, 2, 250:298]
    share = 1 - pattern[:, found["keys"].long()].sum(-1)
    torch.testing.assert_close(found["outside.share"], share, atol=1e-5, rtol=1e-4)
    assert 0 < share.min()


def test_a_row_that_may_see_nothing_has_nothing_outside_the_window() -> None:
    long = looked_at(tiny.model(SMALL), ids(LENGTH), None, PaintMask(rows=[200], to="forbid", layer=1))
    _, arrays = asked(long, ask="window", layer=1, pos=190, key=0)
    assert [float(arrays[f"outside.{name}"].data[10]) for name in ("share", "top", "total")] == [0, -torch.inf, 0]


@pytest.mark.parametrize("side", ["encoder", "decoder"])
def test_what_a_weight_moves_is_that_of_the_whole_run(side: str) -> None:
    model, read, target = tiny.model(TWO), ids(280), ids(LENGTH, 1)
    crosses = side == "decoder"
    where = {"side": side, "focus": "cross_attn" if crosses else "attn", "layer": 1, "head": 2}
    header, arrays = asked(looked_at(model, read, target), ask="window", pos=60, key=0, **where)
    trace, keys = run(model, read, target=target), torch.tensor(arrays["keys"].data).long()
    for name, share in (("weighted", False), ("relative", True)):
        whole = by_norm(model, trace, 1, side, crosses, share)[2, header["first"] : header["first"] + ROWS]
        torch.testing.assert_close(torch.tensor(arrays[name].data)[0], whole[:, keys])


def test_what_edits_put_into_a_window_comes_with_it() -> None:
    model, read = tiny.model(SMALL), ids(LENGTH)
    painted = PaintMask(cells=[[200, 7], [250, 120]], layer=1, heads=[2])
    long = looked_at(model, read, None, painted)
    header, arrays = asked(long, ask="window", layer=1, head=2, pos=180, key=7)
    whole = touched_cells(run(model, read, edits=[painted]), run(model, read), 1)[2]
    keys = torch.tensor(arrays["keys"].data).long()
    expected = whole[header["first"] : header["first"] + ROWS][:, keys]
    assert expected.any() and torch.equal(torch.tensor(arrays["blocks.1.attn.edited"].data)[0], expected)
    for head, pos in ((2, 20), (1, 180)):
        assert "blocks.1.attn.edited" not in asked(long, ask="window", layer=1, head=head, pos=pos, key=7)[1]


def test_a_window_at_the_end_reaches_back() -> None:
    header, arrays = asked(looked_at(tiny.model(SMALL), ids(LENGTH)), ask="window", pos=LENGTH - 1, key=0)
    assert header["first"] == LENGTH - ROWS and arrays["blocks.0.attn.pattern"].data.shape[1] == ROWS


def test_heads_beside_another_bring_their_weights_on_keys_that_are_common_to_all() -> None:
    model, read = tiny.model(SMALL), ids(LENGTH)
    painted = PaintMask(cells=[[200, 7]], layer=0, heads=[3])
    long, others = looked_at(model, read, None, painted), [[0, 3], [1, 0], [0, 1]]
    header, arrays = asked(long, ask="window", layer=1, head=2, pos=190, key=7, beside=others)
    trace = run(model, read, edits=[painted])
    keys = check(trace, "blocks.1.attn.", 2, header, arrays)
    rows = slice(190, 190 + ROWS)
    every = [trace[f"blocks.{layer}.attn.pattern"][0, head, rows] for layer, head in [[1, 2], *others]]
    first, rest = {7, *every[0].argmax(-1).tolist()}, {key for one in every[1:] for key in one.argmax(-1).tolist()}
    assert len(keys) == KEYS_OF_SEVERAL and first <= set(keys.tolist())
    assert rest <= set(keys.tolist()) or set(keys.tolist()) <= first | rest
    for number, pattern in enumerate(every[1:]):
        found = {part: arrays.get(f"beside.{number}.{part}") for part in ("pattern", "share", "edited")}
        torch.testing.assert_close(torch.tensor(found["pattern"].data), pattern[:, keys])
        left = 1 - pattern[:, keys].sum(-1)
        torch.testing.assert_close(torch.tensor(found["share"].data), left, atol=1e-5, rtol=1e-4)
        assert (found["edited"] is not None) == (number == 0)
    whole = touched_cells(trace, run(model, read), 0)[3, rows]
    assert torch.equal(torch.tensor(arrays["beside.0.edited"].data), whole[:, keys])


def test_the_shown_heads_own_keys_come_before_those_of_the_heads_beside_it() -> None:
    made = torch.Generator().manual_seed(0)
    faint = [torch.rand(ROWS, 900, generator=made).softmax(-1) for _ in range(2)]  # weights of a thousandth
    strong = [torch.eye(900)[first : first + ROWS] for first in (300, 600)]  # 1 each, and more than fit
    best = set(faint[0].argmax(-1).tolist())
    keys = set(chosen(faint[0], None, [*strong, faint[1]]).tolist())
    assert best <= keys and len(keys) == KEYS_OF_SEVERAL < len(best) + 2 * ROWS
    assert keys - best <= set(range(300, 300 + ROWS)) | set(range(600, 600 + ROWS))


@pytest.mark.parametrize(
    "query",
    [
        *({"ask": "window", "pos": 0, "beside": one} for one in (3, [3], [[0]], [[0, 9]], [["a", 0]])),
        {"ask": "window", "pos": 0, "beside": [[0, 0]] * SEVERAL},
        {"ask": "window", "pos": LENGTH, "key": 0},
        {"ask": "window", "pos": 0, "key": LENGTH},
        {"ask": "window", "key": 0},
        {"ask": "window", "pos": 0, "key": 0, "head": 4},
        {"ask": "window", "pos": 0, "key": 0, "focus": "cross_attn"},
        {"ask": "points", "how": "guess"},
        {"ask": "points", "how": "pca", "layer": 2},
    ],
)
def test_a_window_that_the_run_does_not_have_is_refused_with_a_sentence(query: dict) -> None:
    with pytest.raises(ValueError, match=r"\.$"):
        asked(looked_at(tiny.model(SMALL), ids(LENGTH)), **query)


@pytest.mark.parametrize("config", [SMALL, GROUPED, NORMED])
def test_points_of_a_long_text_are_those_of_the_whole_run(config: ModelConfig) -> None:
    model, read = tiny.model(config), ids(LENGTH)
    header, arrays = asked(looked_at(model, read), ask="points", how="pca", layer=1, head=3)
    expected = head_points(run(model, read), 1, 3)
    torch.testing.assert_close(torch.tensor(arrays["queries"].data), expected.queries)
    torch.testing.assert_close(torch.tensor(arrays["keys"].data), expected.keys)
    assert header["shares"] == pytest.approx(expected.explained)


def test_points_of_two_long_texts_are_those_of_the_whole_run() -> None:
    model, read, target = tiny.model(TWO), ids(280), ids(LENGTH, 1)
    where = {"side": "decoder", "focus": "cross_attn", "layer": 1, "head": 2}
    _, arrays = asked(looked_at(model, read, target), ask="points", how="pca", **where)
    expected = head_points(run(model, read, target=target), 1, 2, "decoder", True)
    torch.testing.assert_close(torch.tensor(arrays["queries"].data), expected.queries)
    torch.testing.assert_close(torch.tensor(arrays["keys"].data), expected.keys)


def test_a_window_into_gpt2_small_takes_little_and_another_head_of_the_layer_no_further_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = initialise(Transformer(GPT2), 0).requires_grad_(False).eval()
    long = looked_at(model, Encoding.from_ids([i * i % 1000 for i in range(1024)]))
    where = {"trace": long.digest, "side": "", "focus": "attn", "layer": 6, "pos": 700, "key": 3}
    sent = len(answer(long, where | {"ask": "window", "head": 0}))
    assert sent < 300_000
    several = {"ask": "window", "head": 0, "beside": [[6, head] for head in range(1, SEVERAL)]}
    assert len(answer(long, where | several)) < 700_000

    def again(*given: object, **options: object) -> None:
        raise AssertionError("the layer was computed again")

    monkeypatch.setattr("views.attention.long.rerun_reduced", again)
    for head in (1, 11):
        assert len(answer(long, where | {"ask": "window", "head": head})) <= sent
