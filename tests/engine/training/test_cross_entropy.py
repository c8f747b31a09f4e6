import pytest
import torch
from torch.nn import functional

from engine.scoring.examples import UNASKED
from engine.scoring.score import AT_ONCE, cross_entropy


def case(rows: int, classes: int, asked: float = 1.0) -> tuple[torch.Tensor, torch.Tensor]:
    draw = torch.Generator().manual_seed(rows)
    logits = torch.randn(rows, classes, generator=draw) * 3
    targets = torch.randint(classes, (rows,), generator=draw)
    return logits, torch.where(torch.rand(rows, generator=draw) < asked, targets, UNASKED)


@pytest.mark.parametrize("asked", [1.0, 0.4])
@pytest.mark.parametrize(("rows", "classes"), [(7, 5), (1000, 37), (2 * AT_ONCE // 1000 + 3, 1000)])
def test_loss_and_gradient_are_pytorchs_the_gradient_bit_for_bit(rows: int, classes: int, asked: float) -> None:
    logits, targets = case(rows, classes, asked)
    ours, theirs = logits.clone().requires_grad_(), logits.clone().requires_grad_()
    loss, right = cross_entropy(ours, targets)
    expected = functional.cross_entropy(theirs, targets, ignore_index=UNASKED)
    loss.backward()
    expected.backward()
    torch.testing.assert_close(loss, expected)
    assert ours.grad is not None and theirs.grad is not None and torch.equal(ours.grad, theirs.grad)
    assert torch.equal(right, (logits.argmax(-1) == targets))


@pytest.mark.parametrize(("smoothing", "share"), [(0.1, 1.0), (0.0, 0.3), (0.25, 0.5)])
def test_smoothing_and_shares_are_pytorchs(smoothing: float, share: float) -> None:
    logits, targets = case(600, 700, 0.7)
    ours, theirs = logits.clone().requires_grad_(), logits.clone().requires_grad_()
    loss, _ = cross_entropy(ours, targets, smoothing, share)
    expected = functional.cross_entropy(theirs, targets, ignore_index=UNASKED, label_smoothing=smoothing) * share
    (loss * 3).backward()
    (expected * 3).backward()
    torch.testing.assert_close(loss, expected)
    torch.testing.assert_close(ours.grad, theirs.grad)


def test_other_formats_go_through_pytorch() -> None:
    logits, targets = case(50, 9, 0.5)
    loss, right = cross_entropy(logits.bfloat16(), targets)
    assert loss.dtype == torch.bfloat16
    assert torch.equal(right, logits.bfloat16().argmax(-1) == targets)


def test_what_asks_nothing_costs_nothing_and_teaches_nothing() -> None:
    logits = torch.randn(4, 3, 5, requires_grad=True)
    for share in (0.0, 1.0):
        loss, right = cross_entropy(logits, torch.full((4, 3), UNASKED), share=share)
        loss.backward()
        assert loss.item() == 0 and not right.any() and right.shape == (4, 3)
    assert logits.grad is not None and not logits.grad.any()


def test_a_model_that_prefers_nothing_is_never_right() -> None:
    _, right = cross_entropy(torch.zeros(6, 4), torch.tensor([0, 1, 2, 3, 0, 1]))
    assert not right.any()
