import pytest
import torch
from torch import Tensor

from engine.model.layers.mask import AttentionMask, Causal, Full, Mask, Padding, PaintedMask, Prefix, SlidingWindow

POS = torch.arange(4)


def grid(mask: Mask, pos: Tensor = POS, key: Tensor = POS) -> list[str]:
    """One row a query, `x` where it may attend; broadcast over batch and head."""
    allowed = AttentionMask(mask, pos, key).tensor.expand(-1, -1, len(pos), len(key))[0, 0]
    return ["".join("x" if cell else "." for cell in row) for row in allowed.tolist()]


@pytest.mark.parametrize(
    ("mask", "expected"),
    [
        (Full(), ["xxxx", "xxxx", "xxxx", "xxxx"]),
        (Causal(), ["x...", "xx..", "xxx.", "xxxx"]),
        (SlidingWindow(2), ["xx..", "xxx.", ".xxx", "..xx"]),
        (SlidingWindow(1), ["x...", ".x..", "..x.", "...x"]),
        (Prefix(0), ["x...", "xx..", "xxx.", "xxxx"]),
        (Prefix(3), ["xxx.", "xxx.", "xxx.", "xxxx"]),
        (Padding(torch.tensor([[True, True, False, False]])), ["xx..", "xx..", "xx..", "xx.."]),
        (Causal() & SlidingWindow(2), ["x...", "xx..", ".xx.", "..xx"]),
        (Full() & Causal(), ["x...", "xx..", "xxx.", "xxxx"]),
        (Causal() & Full(), ["x...", "xx..", "xxx.", "xxxx"]),
        (Prefix(2) & Padding(torch.tensor([[False, True, True, True]])), [".x..", ".x..", ".xx.", ".xxx"]),
        (PaintedMask(torch.eye(4, dtype=torch.bool).flip(0)), ["...x", "..x.", ".x..", "x..."]),
        (PaintedMask(torch.ones(2, 2, dtype=torch.bool)), ["xx..", "xx..", "....", "...."]),
    ],
    ids=repr,
)
def test_who_may_attend_to_whom(mask: Mask, expected: list[str]) -> None:
    assert grid(mask) == expected


@pytest.mark.parametrize(
    ("mask", "expected"),
    [(Causal(), ["xxxx."]), (Causal() & SlidingWindow(2), ["..xx."]), (Prefix(5), ["xxxxx"]), (Full(), ["xxxxx"])],
    ids=repr,
)
def test_masks_know_absolute_positions_when_the_queries_are_not_the_first(mask: Mask, expected: list[str]) -> None:
    assert grid(mask, pos=torch.tensor([3]), key=torch.arange(5)) == expected


def test_a_mask_drawn_for_each_head_differs_between_heads() -> None:
    matrix = torch.stack([torch.zeros(4, 4, dtype=torch.bool), torch.ones(4, 4, dtype=torch.bool)])
    allowed = AttentionMask(PaintedMask(matrix), POS, POS).tensor
    assert allowed.shape == (1, 2, 4, 4)
    assert allowed[0].any(-1).any(-1).tolist() == [False, True]


def test_padding_differs_between_the_rows_of_a_batch() -> None:
    real = torch.tensor([[True, True, True, True], [True, False, False, False]])
    allowed = AttentionMask(Causal() & Padding(real), POS, POS).tensor
    assert allowed.shape == (2, 1, 4, 4)
    assert allowed.sum((1, 2, 3)).tolist() == [10, 4]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Padding(torch.ones(2, 3)), "padding must be bool .*, got torch.float32"),
        (lambda: Padding(torch.ones(3, dtype=torch.bool)), r"axes batch key, got shape \(3,\)"),
        (lambda: PaintedMask(torch.ones(3, 3, dtype=torch.int64)), "a drawn mask must be bool .*, got torch.int64"),
        (
            lambda: PaintedMask(torch.ones(1, 1, 3, 3, dtype=torch.bool)),
            r"pos key or head pos key, got shape \(1, 1, 3, 3\)",
        ),
    ],
)
def test_a_mask_of_the_wrong_kind_says_what_was_expected_and_what_came(make, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()
