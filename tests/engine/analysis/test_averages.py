"""Averaged and weighted patterns against sums over the same runs, one element at a time."""

from collections.abc import Iterator

import pytest
import torch

from engine.analysis.averages import by_norm, over_heads, over_texts
from engine.model.config import MLP, Attention, Encoder
from engine.runtime.run import run
from engine.runtime.trace import Trace
from tests.engine import tiny

IDS = tiny.IDS
TEXTS = [IDS, IDS[:3], IDS[2:7], [5]]
WIDE = Attention(4, mask="full")
PAIR = tiny.config(encoder=Encoder(2, WIDE, MLP(12)))


def test_the_mean_over_heads_and_layers_is_that_of_those_chosen() -> None:
    trace = run(tiny.model(), [IDS])
    layers, heads = [0, 2], [1, 3]
    chosen = [trace[f"blocks.{layer}.attn.pattern"][0, head] for layer in layers for head in heads]
    torch.testing.assert_close(over_heads(trace, layers, heads), sum(chosen) / 4)  # type: ignore[arg-type]
    torch.testing.assert_close(over_heads(trace), trace.stack("attn.pattern")[:, 0].mean((0, 1)))
    for wrong in ({"layers": [3]}, {"heads": [-1]}, {"heads": []}):
        with pytest.raises(ValueError, match="must be some of 0 to"):
            over_heads(trace, **wrong)


@pytest.mark.parametrize("mask", ["causal", "full"])
@pytest.mark.parametrize("fewest", [1, 2, 3])
def test_a_row_is_the_mean_of_the_texts_that_reach_it(mask: str, fewest: int) -> None:
    model = tiny.model(tiny.config(attention={"mask": mask}))
    found = over_texts((run(model, [text]) for text in TEXTS), fewest)
    counts = [sum(len(text) > pos for text in TEXTS) for pos in range(8)]
    kept = [count for count in counts if count >= fewest]
    assert found.texts.tolist() == kept
    keys = 8 if mask == "full" else len(kept)
    assert found.pattern.shape == (3, 4, len(kept), keys)
    patterns = [run(model, [text])["blocks.1.attn.pattern"][0, 2] for text in TEXTS]
    for pos, count in enumerate(kept):
        for key in range(keys):
            there = [float(p[pos, key]) for p in patterns if pos < len(p) and key < len(p)]
            assert found.pattern[1, 2, pos, key].item() == pytest.approx(sum(there) / count, abs=1e-6)
    torch.testing.assert_close(found.pattern.sum(-1), torch.ones(3, 4, len(kept)))


def test_texts_padded_together_average_as_they_do_alone() -> None:
    model = tiny.model()
    together, alone = over_texts([run(model, TEXTS)]), over_texts(run(model, [text]) for text in TEXTS)
    torch.testing.assert_close(together.pattern, alone.pattern)
    assert torch.equal(together.texts, alone.texts)


def test_traces_are_held_one_at_a_time() -> None:
    model, alive = tiny.model(), 0

    class Counted(Trace):
        def __del__(self) -> None:
            nonlocal alive
            alive -= 1

    def each() -> Iterator[Trace]:
        nonlocal alive
        for text in TEXTS:
            trace = run(model, [text], keep="*.attn.pattern")
            trace.__class__ = Counted
            alive += 1
            assert alive <= 2
            yield trace
            del trace

    assert len(over_texts(each()).texts) == 8


def test_across_rows_are_positions_of_the_target() -> None:
    model = tiny.model(PAIR)
    pairs = [(IDS, [0, 4]), (IDS[:2], [0, 7, 6])]
    found = over_texts((run(model, [a], target=[b]) for a, b in pairs), side="decoder", crosses=True)
    assert found.texts.tolist() == [2, 2, 1]
    longer, shorter = (run(model, [a], target=[b])["decoder.blocks.0.cross_attn.pattern"][0] for a, b in pairs)
    torch.testing.assert_close(found.pattern[0, :, 2, :2], shorter[:, 2])
    torch.testing.assert_close(found.pattern[0, :, 1, 2:], longer[:, 1, 2:] / 2)


def test_too_few_texts_and_other_models_are_refused() -> None:
    model, other = tiny.model(), tiny.model(tiny.config(layers=2))
    with pytest.raises(ValueError, match="at least 3 texts, got 2 at most"):
        over_texts([run(model, TEXTS[:2])], fewest=3)
    with pytest.raises(ValueError, match="got 0 at most"):
        over_texts([])
    with pytest.raises(ValueError, match="3 layers of 4 heads and 2 layers of 4 heads"):
        over_texts([run(model, [IDS]), run(other, [IDS])])


@pytest.mark.parametrize("attention", [{}, {"kv_heads": 2, "mask": "full"}, {"bias": False, "d_head": 6}])
def test_by_norm_is_the_length_of_what_each_key_adds_through_a_head(attention: dict[str, object]) -> None:
    model = tiny.model(tiny.config("rotary", attention))
    trace = run(model, [IDS], keep=["*", "*.head_out"])
    found = by_norm(model, trace, 1)
    layer = model.blocks[1].attn
    pattern, v = trace["blocks.1.attn.pattern"][0], trace["blocks.1.attn.v"][0]
    for head in range(4):
        W_O = layer.out.weight[:, head * layer.d_head : (head + 1) * layer.d_head]
        added = torch.stack([v[key, head * layer.kv_heads // 4] @ W_O.T for key in range(8)])  # key d_model
        for pos in range(8):
            parts = pattern[head, pos, :, None] * added
            torch.testing.assert_close(found[head, pos], parts.norm(dim=-1), atol=1e-5, rtol=1e-4)
            head_out = trace["blocks.1.attn.head_out"][0, pos, head]
            torch.testing.assert_close(parts.sum(0), head_out, atol=1e-5, rtol=1e-4)
    shares = by_norm(model, trace, 1, share=True)
    torch.testing.assert_close(shares, found / found.sum(-1, keepdim=True))


def test_by_norm_across_and_of_what_moves_nothing() -> None:
    model = tiny.model(PAIR)
    trace = run(model, [IDS], target=[[0, 4]])
    cross = model.decoder.blocks[2].cross_attn
    expected = trace["decoder.blocks.2.cross_attn.pattern"][0, 3] * (
        trace["decoder.blocks.2.cross_attn.v"][0, :, 3] @ cross.out.weight[:, 12:].T
    ).norm(dim=-1)
    torch.testing.assert_close(by_norm(model, trace, 2, "decoder", crosses=True)[3], expected, atol=1e-5, rtol=1e-4)
    with torch.no_grad():
        cross.out.weight.zero_()
    assert by_norm(model, trace, 2, crosses=True, side="decoder", share=True).eq(0).all()
    with pytest.raises(ValueError, match="layer must be 0 to 2"):
        by_norm(model, trace, 3, "decoder")
