"""Digits: a fifth of each held out, the same for a seed, and pictures that are moved but stay pictures."""

from collections import Counter

import numpy as np
import pytest
import torch

from engine.data.digits import augment, invert, split, vary_stroke

DIGITS = split(0)


def rows(images: torch.Tensor) -> Counter[bytes]:
    return Counter(image.numpy().tobytes() for image in images)


def test_every_picture_is_in_one_of_the_two_parts_with_its_own_label() -> None:
    from sklearn.datasets import load_digits

    data = load_digits()
    of_data = Counter(
        (image.astype(np.uint8).tobytes(), int(label)) for image, label in zip(data.images, data.target, strict=True)
    )
    parts = [(DIGITS.train_images, DIGITS.train_labels), (DIGITS.test_images, DIGITS.test_labels)]
    ours = Counter(
        (image.numpy().tobytes(), int(label))
        for images, labels in parts
        for image, label in zip(images, labels, strict=True)
    )
    assert ours == of_data and sum(ours.values()) == 1797
    assert not rows(DIGITS.train_images) & rows(DIGITS.test_images)


def test_a_fifth_of_each_digit_is_held_out() -> None:
    train, test = DIGITS.train_labels.bincount(), DIGITS.test_labels.bincount()
    assert ((test / (train + test) - 0.2).abs() < 0.003).all()
    assert DIGITS.train_images.dtype == torch.uint8 and DIGITS.train_images.max() == 16


def test_a_seed_is_a_split() -> None:
    again, other = split(0), split(1)
    assert torch.equal(again.test_images, DIGITS.test_images)
    assert not torch.equal(other.test_images, DIGITS.test_images)


def test_without_amounts_augmenting_changes_nothing() -> None:
    same = augment(DIGITS.test_images, torch.Generator(), shift=0, degrees=0, scale=0)
    assert torch.equal(same, DIGITS.test_images)


def test_a_shift_of_whole_pixels_is_a_shift() -> None:
    """With one picture and no turning, the values are those of a direct bilinear shift by the amounts drawn."""
    image = torch.zeros(1, 8, 8)
    image[0, 3, 4] = 16
    moved = augment(image, torch.Generator().manual_seed(3), shift=1, degrees=0, scale=0)
    right, down = (torch.rand(4, 1, generator=torch.Generator().manual_seed(3)) * 2 - 1)[:2, 0].tolist()
    expected = np.zeros((8, 8))
    for row in range(8):
        for column in range(8):
            near = max(0, 1 - abs(row + down - 3)) * max(0, 1 - abs(column + right - 4))
            expected[row, column] = 16 * near
    np.testing.assert_allclose(moved[0].numpy(), expected, atol=1e-4)


def test_a_quarter_turn_is_a_quarter_turn() -> None:
    """The largest angle that could be drawn is scaled so that the one that is drawn is 90 degrees."""
    image = DIGITS.test_images[:1].float()
    drawn = float(torch.rand(4, 1, generator=torch.Generator().manual_seed(5))[2, 0]) * 2 - 1
    turned = augment(image, torch.Generator().manual_seed(5), shift=0, degrees=90 / drawn, scale=0)
    either = [torch.rot90(image, way, dims=(1, 2)) for way in (1, -1)]
    assert min(float((turned - each).abs().max()) for each in either) < 1e-3


def test_augmented_digits_are_levels_that_differ_from_draw_to_draw_but_not_from_run_to_run() -> None:
    first, again, other = (augment(DIGITS.train_images, torch.Generator().manual_seed(seed)) for seed in (1, 1, 2))
    assert torch.equal(first, again) and not torch.equal(first, other)
    assert first.dtype == torch.uint8 and first.max() <= 16
    kept = first.sum().item() / DIGITS.train_images.sum().item()
    assert 0.85 < kept < 1.05


def test_strokes_get_thicker_and_thinner_and_0_leaves_them() -> None:
    images = DIGITS.test_images
    assert torch.equal(vary_stroke(images, torch.Generator().manual_seed(1), 0.0), images)
    first, again = (vary_stroke(images, torch.Generator().manual_seed(1), 0.5) for _ in range(2))
    assert torch.equal(first, again) and first.dtype == torch.uint8 and first.max() <= 16
    thicker = torch.rand(len(images), generator=torch.Generator().manual_seed(1)) > 0.5
    assert (first[thicker] >= images[thicker]).all() and (first[~thicker] <= images[~thicker]).all()
    more, less = (float(first[each].sum() / images[each].sum()) for each in (thicker, ~thicker))
    assert less < 0.9 and more > 1.1


def test_a_whole_stroke_is_the_dilation_by_a_pixel_to_each_side() -> None:
    point = torch.zeros(1, 8, 8)
    point[0, 3, 4] = 16
    amount = 2 * float(torch.rand(1, generator=torch.Generator().manual_seed(3))) - 1
    thick = vary_stroke(point, torch.Generator().manual_seed(3), 1 / amount)
    cross = {(2, 4), (3, 3), (3, 4), (3, 5), (4, 4)}
    assert {tuple(at) for at in thick[0].nonzero().tolist()} == cross and thick.max() == pytest.approx(16)


def test_the_other_ground_is_paper_for_ink() -> None:
    images = DIGITS.test_images
    assert torch.equal(images + invert(images), torch.full_like(images, 16))
