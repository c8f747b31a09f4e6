"""Norms: where they leave a vector, in a view that is true in any number of dimensions."""

import pytest
import torch

from engine.course.norms import mean_and_spread, normalise


@pytest.mark.parametrize("d", [2, 4, 64])
def test_along_and_across_the_mean_a_vector_has_its_length_and_norms_end_on_one_circle(d: int) -> None:
    x = torch.randn(5, d, generator=torch.manual_seed(d)) * 3 + 1
    torch.testing.assert_close(mean_and_spread(x).norm(dim=-1), x.norm(dim=-1))
    radius = torch.full((5,), d**0.5)
    torch.testing.assert_close(normalise(x, "rms").norm(dim=-1), radius, rtol=1e-3, atol=0)
    torch.testing.assert_close(normalise(x, "layer").norm(dim=-1), radius, rtol=1e-2, atol=0)
    before, after = mean_and_spread(x), mean_and_spread(normalise(x, "rms"))
    cosine = torch.nn.functional.cosine_similarity(before, after, dim=-1)
    torch.testing.assert_close(cosine, torch.ones(5))  # RMSNorm keeps the direction
    along, across = mean_and_spread(normalise(x, "layer")).unbind(-1)
    torch.testing.assert_close(along, torch.zeros(5), rtol=0, atol=1e-5 * d)  # LayerNorm leaves no mean
    torch.testing.assert_close(across, radius, rtol=1e-2, atol=0)
