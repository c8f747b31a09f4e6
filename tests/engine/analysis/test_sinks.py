"""What is said of a column against loops over the run, and sentences that say no more than the numbers."""

import math
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from engine.analysis.heads import head_scores
from engine.analysis.sinks import Column, column, describe_sink
from engine.model.config import MLP, Attention, Embedding, Encoder, ModelConfig, OutputHead, Patches
from engine.model.layers.mask import PaintedMask
from engine.runtime.run import run
from engine.tokenizers.encoding import Encoding
from tests.engine import tiny

IDS = [3, 1, 4, 1, 5, 9, 3, 1]
WIDE = Attention(4, mask="full")
PAIR = tiny.config(encoder=Encoder(2, WIDE, MLP(12)))
PICTURE = ModelConfig(
    1, 10, 16, 2, WIDE, MLP(20), embedding=Embedding(patches=Patches(12, 4, 1)), head=OutputHead("none")
)


def by_hand(pattern: Tensor, mask: Tensor, v: Tensor, key: int) -> dict[str, float]:
    """Of one head, in loops: `pattern` and `mask` are pos key, `v` key d_head."""
    sees = [pos for pos in range(len(pattern)) if mask[pos, key] and mask[pos].sum() > 1]
    lengths = [math.sqrt(sum(x * x for x in vector)) for vector in v.tolist()]
    rest = sorted(length for k, length in enumerate(lengths) if k != key)
    middle = len(rest) // 2
    moved = [[p * length for p, length in zip(row, lengths, strict=True)] for row in pattern.tolist()]
    return {
        "share": sum(pattern[pos, key].item() for pos in sees) / len(sees),
        "even": sum(1 / mask[pos].sum().item() for pos in sees) / len(sees),
        "value": lengths[key],
        "median": rest[middle] if len(rest) % 2 else (rest[middle - 1] + rest[middle]) / 2,
        "part": sum(moved[pos][key] / sum(moved[pos]) for pos in sees) / len(sees),
    }


@pytest.mark.parametrize(
    ("kind", "attention"),
    [("learned", {}), ("rotary", {"kv_heads": 2}), ("none", {"mask": "full"}), ("alibi", {"window": 3})],
)
def test_the_numbers_of_a_column_are_those_of_the_run(kind: str, attention: dict[str, object]) -> None:
    trace = run(tiny.model(tiny.config(kind, attention)), [IDS])
    pattern, mask = trace["blocks.2.attn.pattern"][0], trace["blocks.2.attn.mask"][0]
    v = trace["blocks.2.attn.v"][0]
    for key in (0, 3, 7):
        each = []
        for head in range(4):
            found = column(trace, 2, key, head)
            expected = by_hand(pattern[head], mask[head], v[:, head * v.shape[1] // 4], key)
            each.append(expected)
            for name, value in expected.items():
                assert getattr(found, name) == pytest.approx(value, abs=1e-5), name
            assert (found.queries, found.heads) == (int((mask[head, :, key] & (mask[head].sum(-1) > 1)).sum()), 1)
        whole = column(trace, 2, key)
        assert whole.heads == 4
        for name in each[0]:
            assert getattr(whole, name) == pytest.approx(sum(one[name] for one in each) / 4, abs=1e-5), name


def test_what_stands_at_the_key_is_told() -> None:
    pieces = ("[CLS]", "ab", "·,", "ab", '·"!', "·")
    spans = ((0, 0), (0, 2), (2, 4), (4, 6), (6, 9), (9, 10))
    text = Encoding('ab ,ab "! ', (2, 7, 4, 7, 5, 6), pieces, spans, (True, *[False] * 5), (0,) * 6)
    trace = run(tiny.model(), text)
    found = [column(trace, 0, key, 0) for key in range(6)]
    assert [one.piece for one in found] == list(pieces)
    assert [one.first for one in found] == [True] + [False] * 5
    assert [one.special for one in found] == [True] + [False] * 5
    assert [one.punctuation for one in found] == [False, False, True, False, True, False]
    assert [one.others for one in found] == [0, 1, 0, 1, 0, 0]
    drawn = replace(text, text="", spans=((0, 0),) * 6)  # without a text, as the pieces are drawn
    plain = run(tiny.model(), [list(text.ids)])
    assert [column(plain, 0, key, 0, read=drawn).punctuation for key in range(6)] == [one.punctuation for one in found]
    assert column(plain, 0, 2, 0).piece is None


def test_across_the_keys_are_the_source() -> None:
    trace = run(tiny.model(PAIR), [IDS], target=[[0, 9, 7]])
    found = column(trace, 1, 6, 2, "decoder", crosses=True)
    pattern = trace["decoder.blocks.1.cross_attn.pattern"][0, 2]
    v = trace["decoder.blocks.1.cross_attn.v"][0, :, 2]
    for name, value in by_hand(pattern, torch.ones(3, 8), v, 6).items():
        assert getattr(found, name) == pytest.approx(value, abs=1e-5), name
    assert (found.queries, found.others) == (3, 1)


def test_a_picture_has_columns_too() -> None:
    trace = run(tiny.model(PICTURE), tiny.normal(1, 1, 12, 12))
    names = Encoding.from_ids(range(10), ["[CLS]", *(f"row {i // 3 + 1}, column {i % 3 + 1}" for i in range(9))])
    found = column(trace, 0, 4, 1, read=names)
    assert (found.piece, found.others, found.queries) == ("row 2, column 1", 0, 10)
    assert describe_sink(found).startswith("“row 2, column 1” (key 4) gets ")
    assert describe_sink(found, "patch (2, 1)").startswith("Patch (2, 1) gets ")
    alike = describe_sink(replace(found, others=3, special=True, punctuation=True), "pixel (2, 1)", "colour")
    assert alike.startswith("Pixel (2, 1), a special token, punctuation and one of 4 occurrences of this colour")


def test_a_column_that_nobody_may_see_and_a_text_of_one_token_are_said_so() -> None:
    allowed = torch.ones(8, 8, dtype=torch.bool).tril()
    allowed[:, 5] = False
    hidden = column(run(tiny.model(), [IDS], mask=PaintedMask(allowed)), 0, 5, 0)
    assert hidden.queries == 0 and math.isnan(hidden.share) and math.isnan(hidden.times)
    assert describe_sink(hidden) == "Key 5 is seen by no query that may see another key too."
    single = column(run(tiny.model(), [[4]]), 0, 0, 0)
    assert math.isnan(single.median)
    assert describe_sink(single).endswith("is seen by no query that may see another key too.")


def test_the_first_column_of_a_causal_head_has_its_first_token_score() -> None:
    trace = run(tiny.model(), [IDS])
    score = head_scores(trace).first
    for head in range(4):
        assert column(trace, 1, 0, head).share == pytest.approx(float(score[1, head]), abs=1e-6)


SINK = Column(0, "The", 1, 11, 0.413, 0.182, 0.31, 1.24, 0.098, True, False, False, 1)


def test_a_sink_is_called_one_by_its_numbers() -> None:
    assert describe_sink(SINK) == (
        "“The” (key 0), the first position and one of 2 occurrences of this token, gets 41.3 % of the attention of "
        "the 11 queries that may see it and others, 2.27 times the 18.2 % of an even spread; its value vector is "
        "short, as a sink’s is (0.31, the other keys’ median is 1.24), so it makes up 9.8 % of the rows’ pattern × |v|."
    )


@pytest.mark.parametrize(
    ("changed", "said", "unsaid"),
    [
        ({"value": 1.2}, "2.27 times the 18.2 % of an even spread", "sink"),
        ({"share": 0.2}, "1.1 times the 18.2 % of an even spread", "sink"),
        ({"share": 0.01}, "0.0549 times the 18.2 % of an even spread", "sink"),
        ({"value": 2.0}, "is long (2, ", "short"),
        ({"value": 1.3}, "is of ordinary length (1.3, ", "short"),
        ({"heads": 12}, "see it and others (the mean of 12 heads), 2.27 times", "one query"),
        ({"queries": 1}, "the one query that may see it", "11"),
        ({"first": False, "others": 0, "special": True}, "“The” (key 0), a special token, gets", "first"),
    ],
)
def test_a_sentence_claims_only_what_was_measured(changed: dict[str, float], said: str, unsaid: str) -> None:
    text = describe_sink(replace(SINK, **changed))
    assert said in text and unsaid not in text


def test_what_is_not_there_is_refused() -> None:
    trace = run(tiny.model(), [IDS])
    for wrong in ({"layer": 3, "key": 0}, {"layer": 0, "key": 8}, {"layer": 0, "key": 0, "head": 4}):
        with pytest.raises(ValueError, match="must be 0 to"):
            column(trace, **wrong)  # type: ignore[arg-type]
    with pytest.raises(KeyError, match="attn.v"):
        column(run(tiny.model(), [IDS], keep=["*.attn.pattern", "*.attn.mask"]), 0, 0)
