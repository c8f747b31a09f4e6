import pytest
import torch

from engine.training.gradients import bound, norms, norms_by_part, part_of


def gradients() -> list[torch.Tensor]:
    draw = torch.Generator().manual_seed(0)
    return [torch.randn(shape, generator=draw) for shape in ((3, 4), (7,), (2, 5))]


@pytest.mark.parametrize("most", [0.5, 1e6])
def test_gradients_are_bounded_as_pytorch_bounds_them_bit_for_bit(most: float) -> None:
    ours, theirs = gradients(), [torch.zeros_like(one, requires_grad=True) for one in gradients()]
    for one, grad in zip(theirs, gradients(), strict=True):
        one.grad = grad
    norm = torch.linalg.vector_norm(norms(ours))
    assert torch.equal(norm, torch.nn.utils.clip_grad_norm_(theirs, most))
    bound(ours, norm, most)
    assert all(one.grad is not None and torch.equal(mine, one.grad) for mine, one in zip(ours, theirs, strict=True))


def test_no_bound_leaves_them() -> None:
    ours = gradients()
    bound(ours, torch.tensor(1e9), 0.0)
    assert all(torch.equal(a, b) for a, b in zip(ours, gradients(), strict=True))


def test_norms_are_told_by_part() -> None:
    names = ("embed.tokens.weight", "blocks.0.attn.q.weight", "blocks.0.norm1.bias", "final_norm.weight", "head.weight")
    found = norms_by_part(names, torch.tensor([1.0, 3.0, 4.0, 6.0, 8.0]))
    assert {part: float(norm) for part, norm in found.items()} == {"embed": 1.0, "blocks.0": 5.0, "head": 10.0}
    assert part_of("encoder.blocks.11.mlp.pre.weight") == "encoder.blocks.11"
    assert part_of("decoder.embed.positions.weight") == part_of("relative.weight") == "embed"
