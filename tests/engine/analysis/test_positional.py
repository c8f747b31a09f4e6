"""The positional share against patterns that positions alone decide, and against a mean taken by hand."""

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from engine import load
from engine.analysis.positional import agreement, orders, other_texts, positional
from engine.edits import SilenceHeads
from engine.model.config import MLP, Attention, Embedding, Encoder, Infill, ModelConfig, OutputHead, Patches
from engine.runtime.run import run
from engine.tokenizers.encoding import Encoding
from tests.engine import tiny

IDS = [3, 1, 4, 1, 5, 9, 3, 1]
WIDE = Attention(4, mask="full")
PAIR = tiny.config(encoder=Encoder(2, WIDE, MLP(12)))
PICTURE = ModelConfig(
    1, 10, 16, 2, WIDE, MLP(20), embedding=Embedding(patches=Patches(12, 4, 1)), head=OutputHead("sequence", classes=3)
)


def share(pattern: Tensor, others: list[Tensor], first: int) -> float:
    """In loops, of one head: 1 - half the absolute differences from the mean, over the rows from `first` on."""
    mean = sum(others) / len(others)
    assert isinstance(mean, Tensor)
    return sum(1 - float((pattern[pos] - mean[pos]).abs().sum()) / 2 for pos in range(first, len(pattern))) / (
        len(pattern) - first
    )


@pytest.mark.parametrize(
    ("config", "side", "crosses", "first"),
    [
        (tiny.config("rotary", {"kv_heads": 2}), "", False, 1),
        (tiny.config(attention={"mask": "full"}), "", False, 1),
        (PAIR, "encoder", False, 1),
        (PAIR, "decoder", False, 1),
        (PAIR, "decoder", True, 0),
        (PICTURE, "", False, 1),
    ],
)
def test_it_is_the_distance_from_the_mean_pattern_of_other_orders(
    config: ModelConfig, side: str, crosses: bool, first: int
) -> None:
    model = tiny.model(config)
    target: dict[str, Any] = {"target": [[0, 7, 2, 7, 5]]} if side else {}
    read = [IDS] if config is not PICTURE else tiny.normal(1, 1, 12, 12)
    trace = run(model, read, **target)
    found = positional(model, trace, side, crosses, texts=3, seed=5)
    hook = f"{side and side + '.'}blocks.1.{'cross_attn' if crosses else 'attn'}.pattern"
    again = []
    for other, written in other_texts(model, trace, side, crosses, 3, 5):
        again.append(run(model, other, target=written)[hook][0])
    for head in range(4):
        expected = share(trace[hook][0, head], [pattern[head] for pattern in again], first)
        assert found[1, head].item() == pytest.approx(expected, abs=1e-5)
    assert torch.equal(found, positional(model, trace, side, crosses, texts=3, seed=5))
    assert not torch.equal(found, positional(model, trace, side, crosses, texts=3, seed=6))


def test_a_head_that_looks_at_places_scores_one_and_the_edits_of_the_run_hold() -> None:
    model = tiny.model()
    edits = [SilenceHeads(layer=1, heads=[2], how="uniform")]
    found = positional(model, run(model, [IDS], edits=edits))
    assert found[1, 2].item() == pytest.approx(1)
    assert found[1, [0, 1, 3]].max() < 0.99
    assert positional(model, run(model, [IDS]))[1, 2] < 0.99


def test_a_row_that_only_content_decides_shares_as_much_as_tokens_overlap() -> None:
    pattern = torch.tensor([[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.2, 0.3, 0.5]]])
    mean = torch.tensor([[[0.0, 1.0, 0.0], [0.5, 0.5, 0.0], [0.4, 0.1, 0.5]]])
    assert agreement(pattern, mean).tolist() == pytest.approx([(0.5 + 0.8) / 2])
    assert agreement(pattern, mean, crosses=True).tolist() == pytest.approx([(0 + 0.5 + 0.8) / 3])


def test_the_other_texts_have_the_same_tokens_and_leave_special_ones_in_place() -> None:
    special = (True, False, False, False, False, True)
    text = Encoding("", (2, 8, 7, 6, 8, 3), tuple("[abca]"), ((0, 0),) * 6, special, (0, 0, 0, 1, 1, 1))
    model = tiny.model(tiny.config(attention={"mask": "full"}, embedding=Embedding(segments=2)))
    others = [read for read, _ in other_texts(model, run(model, text), "", False, 20, 0)]
    assert len(others) == 20
    for other in others:
        assert isinstance(other, Encoding)
        assert sorted(other.ids) == sorted(text.ids) and other.ids != text.ids
        assert (other.ids[0], other.ids[-1], other.segments) == (2, 3, text.segments)
    assert len({other.ids for other in others if isinstance(other, Encoding)}) > 5


def test_a_target_keeps_its_first_token_and_an_infill_its_marks() -> None:
    model = tiny.model(PAIR)
    trace = run(model, [IDS], target=[[0, 7, 2, 6]])
    for read, target in other_texts(model, trace, "decoder", True, 5, 0):
        assert isinstance(read, Tensor) and isinstance(target, Tensor)
        assert target[0] == 0 and sorted(target.tolist()) == [0, 2, 6, 7] and sorted(read.tolist()) == sorted(IDS)
    (read, target), *_ = other_texts(model, trace, "decoder", False, 5, 0)
    assert isinstance(read, Tensor) and read.tolist() == IDS
    (read, target), *_ = other_texts(model, trace, "encoder", False, 5, 0)
    assert isinstance(target, Tensor) and target.tolist() == [0, 7, 2, 6]
    gaps = tiny.model(replace(tiny.CONFIG, attention=Attention(4, mask="prefix"), infill=Infill(mask=9, start=10)))
    for read, _ in other_texts(gaps, run(gaps, [[1, 2, 9, 3, 10, 4, 5]]), "", False, 5, 0):
        assert isinstance(read, Tensor) and (read[2], read[4]) == (9, 10)


def test_the_patches_of_a_picture_change_places_whole() -> None:
    model, picture = tiny.model(PICTURE), tiny.normal(1, 1, 12, 12)

    def patches(pixels: Tensor) -> set[tuple[float, ...]]:
        return {
            tuple(pixels[0, 0, row : row + 4, column : column + 4].flatten().tolist())
            for row in (0, 4, 8)
            for column in (0, 4, 8)
        }

    for other, _ in other_texts(model, run(model, picture), "", False, 3, 0):
        assert isinstance(other, Tensor)
        assert patches(other) == patches(picture) and not torch.equal(other, picture)


@pytest.mark.parametrize("ids", [[4], [4, 4, 4]])
def test_a_text_with_no_other_order_has_no_share(ids: list[int]) -> None:
    model = tiny.model()
    assert positional(model, run(model, [ids])).isnan().all()
    assert orders(torch.tensor([[4], [5]]), torch.tensor([True, False]), 3, torch.Generator()) is None


def test_the_shipped_previous_token_head_looks_at_places_and_the_induction_heads_at_tokens() -> None:
    checkpoint = load("induction")
    assert checkpoint.tokenizer is not None
    pieces = {piece: i for i, piece in enumerate(checkpoint.tokenizer.pieces)}
    trace = run(checkpoint.model, [pieces[letter] for letter in "ABxQ7pLABxQ7pLABx"])
    found = positional(checkpoint.model, trace)
    assert found[0, 2] > 0.95 and found[1].max() < 0.5
