"""How much of it: the fit of a power law, counts of a training, and the published laws against their papers."""

import pytest

from engine.course.how_much import (
    ENTROPY,
    PUBLISHED,
    PowerLaw,
    best_size,
    fit_power_law,
    fitted_loss,
    operations,
    train_size,
)


def test_a_power_law_is_fitted_and_extended() -> None:
    law = PowerLaw(5.0, 0.1)
    sizes = [300, 1000, 5000]
    found = fit_power_law(sizes, [law.loss(n) for n in sizes])
    assert (found.scale, found.exponent) == pytest.approx((5.0, 0.1))
    assert found.loss(1024 * 7) == pytest.approx(found.loss(7) / 2) and found.times(0.5) == pytest.approx(1024)


def test_more_weights_learn_more_and_want_more_tokens() -> None:
    small, large, longer = (train_size("stories", width, steps) for width, steps in ((3, 200), (12, 200), (12, 400)))
    assert longer.loss < large.loss - 0.05 and large.loss < small.loss - 0.2
    assert small.tokens == large.tokens == 200 * 64 * 8 == small.seen[-1] and longer.tokens == 2 * large.tokens
    assert small.losses[0] > small.losses[-1] and len(small.losses) == len(small.seen)


def test_published_fits_say_what_their_papers_say() -> None:
    """Hoffmann et al. 2022, tables 1 and 3: Gopher's 5.76e23 operations want about 67 billion weights at 1.5 trillion
    tokens; the larger of two models of about one compute predicts worse."""
    assert operations(*PUBLISHED["GPT-3"]) == pytest.approx(3.15e23)
    weights, tokens = best_size(5.76e23)
    assert weights == pytest.approx(67e9, rel=0.05) and tokens == pytest.approx(1.5e12, rel=0.1)
    assert operations(weights, tokens) == pytest.approx(5.76e23)
    chinchilla, gopher = (fitted_loss(*PUBLISHED[name]) for name in ("Chinchilla", "Gopher"))
    assert ENTROPY < chinchilla < gopher - 0.03
