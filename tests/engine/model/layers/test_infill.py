"""GLM's positions and mask, against the definition of Du et al. 2022, section 2.1, written out in plain loops."""

import math
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from engine.model.config import Infill, ModelConfig
from engine.model.layers.cache import KVCache
from engine.model.layers.mask import RowPrefix
from engine.model.layers.position import infill_positions, prefix_lengths
from engine.runtime.batch import batch
from engine.runtime.run import run
from tests.engine import tiny

MASK, START = 9, 10
INFILL = Infill(mask=MASK, start=START)
TEXTS = {
    "one gap, at the end": [3, 1, 4, MASK, START, 5, 6, 2],
    "one gap, in the middle": [3, MASK, 4, 1, START, 5, 6, 2],
    "two gaps": [3, MASK, 4, MASK, 1, START, 5, 6, START, 2, 7],
    "two gaps, one span so far": [MASK, 4, MASK, 1, START, 5],
    "one gap and two spans": [3, MASK, 4, START, 5, START, 2],
    "a mark inside a span": [3, MASK, 4, START, MASK, 6, START, 2],
    "no gap": [3, 1, START, 5, 6, START, 2],
    "no span": [3, MASK, 4, 1],
    "nothing but a span": [START, 5, 6],
}


def positions_of(ids: list[int]) -> tuple[list[int], list[int]]:
    """Where each token stands in the text, and where in its span.

    A token of the text stands where it stands and is at 0 of no span; those of the n-th span all stand at the n-th gap
    and count 1, 2, ... from its start token. With too few gaps the last one is filled again; with none, a span stands
    where it begins.
    """
    text = ids[: ids.index(START)] if START in ids else ids
    gaps = [i for i, token in enumerate(text) if token == MASK]
    stands, inside, span = list(range(len(text))), [0] * len(text), 0
    for i in range(len(text), len(ids)):
        if ids[i] == START:
            span, began = span + 1, i
        stands.append(gaps[min(span, len(gaps)) - 1] if gaps else began)
        inside.append(i - began + 1)
    return stands, inside


def may_see(ids: list[int]) -> Tensor:
    """pos key: everyone sees the text, and of the spans what came before and itself."""
    prefix = ids.index(START) if START in ids else len(ids)
    return torch.tensor([[key < prefix or key <= pos for key in range(len(ids))] for pos in range(len(ids))])


def config(kind: str, axes: int = 2) -> ModelConfig:
    made = tiny.config(kind, attention={"mask": "prefix"})
    return replace(made, infill=INFILL, positions=replace(made.positions, axes=axes))


@pytest.mark.parametrize("ids", TEXTS.values(), ids=TEXTS)
def test_positions_are_the_papers(ids: list[int]) -> None:
    stands, inside = infill_positions(torch.tensor([ids]), INFILL)
    assert (stands[0].tolist(), inside[0].tolist()) == positions_of(ids)


def test_one_gap_is_counted_as_chatglm_counts() -> None:
    """Its modeling_chatglm.py: 0..n-1 and block 0 before the start token; then the mask's position and 1, 2, ..."""
    stands, inside = infill_positions(torch.tensor([TEXTS["one gap, in the middle"]]), INFILL)
    assert stands.tolist() == [[0, 1, 2, 3, 1, 1, 1, 1]]
    assert inside.tolist() == [[0, 0, 0, 0, 1, 2, 3, 4]]


def padded(texts: list[list[int]]) -> tuple[Tensor, Tensor]:
    ids, real, _ = batch(texts, torch.device("cpu"))
    assert real is not None
    return ids, real


def test_each_text_of_a_batch_has_positions_and_a_prefix_of_its_own() -> None:
    ids, real = padded(list(TEXTS.values()))
    stands, inside = infill_positions(ids, INFILL)
    allowed = RowPrefix(prefix_lengths(ids, INFILL)).allows(*[torch.arange(ids.shape[1])] * 2)
    assert allowed.shape == (len(TEXTS), 1, ids.shape[1], ids.shape[1])
    for row, text in enumerate(TEXTS.values()):
        n = len(text)
        assert (stands[row, :n].tolist(), inside[row, :n].tolist()) == positions_of(text)
        assert torch.equal(allowed[row, 0, :n, :n], may_see(text))


@pytest.mark.parametrize("kind", ["learned", "rotary", "alibi", "none"])
def test_the_model_sees_the_text_in_both_directions_and_the_spans_causally(kind: str) -> None:
    model = tiny.model(config(kind, axes=1))
    trace = run(model, list(TEXTS.values()))
    for row, text in enumerate(TEXTS.values()):
        seen = trace.stack("attn.pattern")[:, row, :, : len(text)] > 0
        expected = torch.nn.functional.pad(may_see(text), (0, seen.shape[-1] - len(text)))
        assert torch.equal(seen, expected.expand(seen.shape))


@pytest.mark.parametrize("ids", TEXTS.values(), ids=TEXTS)
def test_two_learned_tables_are_added_one_for_each_position(ids: list[int]) -> None:
    model = tiny.model(config("learned"))
    trace = run(model, ids)
    stands, inside = positions_of(ids)
    for i, token in enumerate(ids):
        torch.testing.assert_close(trace["embed.positions"][0, i], model.embed.positions.weight[stands[i]])
        torch.testing.assert_close(trace["embed.within"][0, i], model.embed.within.weight[inside[i]])
        expected = model.embed.tokens.weight[token] + trace["embed.positions"][0, i] + trace["embed.within"][0, i]
        torch.testing.assert_close(trace["blocks.0.resid_pre"][0, i], expected, atol=1e-6, rtol=0)


@pytest.mark.parametrize("ids", TEXTS.values(), ids=TEXTS)
def test_half_of_a_head_turns_by_each_position(ids: list[int]) -> None:
    made = config("rotary")
    model = tiny.model(replace(made, attention=replace(made.attention, d_head=8)))
    trace = run(model, ids)
    for name in ("q", "k"):
        plain, turned = trace[f"blocks.1.attn.{name}"][0], trace[f"blocks.1.attn.{name}_rotated"][0]
        for i, stands in enumerate(zip(*positions_of(ids), strict=True)):
            for half, position in enumerate(stands):
                for pair, frequency in enumerate((1.0, 0.01)):  # 10000^(-2 pair / 4)
                    one, other = 4 * half + pair, 4 * half + pair + 2
                    a, b = plain[i, :, one], plain[i, :, other]
                    cos, sin = math.cos(position * frequency), math.sin(position * frequency)
                    torch.testing.assert_close(turned[i, :, one], a * cos - b * sin, atol=1e-5, rtol=0)
                    torch.testing.assert_close(turned[i, :, other], b * cos + a * sin, atol=1e-5, rtol=0)


@pytest.mark.parametrize("kind", ["learned", "rotary"])
@pytest.mark.parametrize("ids", [text for text in TEXTS.values() if START in text])
def test_reading_spans_step_by_step_gives_what_reading_all_at_once_does(ids: list[int], kind: str) -> None:
    model = tiny.model(config(kind))
    whole = run(model, ids)["logits"]
    begin = ids.index(START) + 1
    cache = KVCache(model.config, batch=1, length=len(ids), like=model.embed.tokens.weight)
    steps = [run(model, ids[:begin], cache=cache)["logits"]]
    steps += [run(model, [token], cache=cache)["logits"] for token in ids[begin:]]
    torch.testing.assert_close(torch.cat(steps, dim=1), whole, atol=1e-4, rtol=0)


@pytest.mark.parametrize("kind", ["learned", "rotary"])
def test_a_padded_batch_gives_each_text_what_it_gets_alone(kind: str) -> None:
    model = tiny.model(config(kind))
    together = run(model, list(TEXTS.values()), keep="logits")["logits"]
    for row, text in enumerate(TEXTS.values()):
        alone = run(model, text, keep="logits")["logits"][0]
        torch.testing.assert_close(together[row, : len(text)], alone, atol=1e-4, rtol=0)
