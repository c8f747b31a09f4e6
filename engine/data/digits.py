"""Handwritten digits: 1,797 pictures of 8 by 8 pixels in 17 levels of grey.

They are the test part of Alpaydin and Kaynak's Optical Recognition of Handwritten Digits (UCI, 1998): each pixel
counts the inked ones in a block of 4 by 4, from 0 (paper) to 16 (ink).
"""

from __future__ import annotations

import gzip
from dataclasses import dataclass
from hashlib import blake2b

import torch
from torch import Tensor
from torch.nn.functional import affine_grid, grid_sample, max_pool2d

from engine.places import ASSETS

SIDE = 8
LEVELS = 17
CLASSES = 10
HELD_OUT = 0.2
LICENCE = "the digits it learned from CC-BY-4.0 (UCI)"


@dataclass(frozen=True)
class Digits:
    """Images are uint8 levels from 0 to 16, labels the digits they show, in the order of the data set."""

    train_images: Tensor  # image height width
    train_labels: Tensor  # image
    test_images: Tensor  # image height width
    test_labels: Tensor  # image


def split(seed: int) -> Digits:
    """Four fifths of each digit to train on, one fifth to test on; the same for a seed on every machine.

    13 people wrote them, and which of them wrote which is not recorded. So the test pictures are new drawings
    by the same hands, and accuracy on them says nothing about the handwriting of somebody else.
    """
    images, labels = drawings()
    is_test = torch.zeros(len(labels), dtype=torch.bool)
    for digit in range(CLASSES):
        of_digit = (labels == digit).nonzero().flatten().tolist()
        shuffled = sorted(of_digit, key=lambda index: blake2b(f"{seed}:{index}".encode(), digest_size=8).digest())
        is_test[shuffled[: round(len(shuffled) * HELD_OUT)]] = True
    return Digits(images[~is_test], labels[~is_test], images[is_test], labels[is_test])


def drawings() -> tuple[Tensor, Tensor]:
    """All of them, image height width, and the digits they show."""
    with gzip.open(ASSETS / "digits" / "digits.csv.gz", "rt", encoding="ascii") as lines:
        rows = torch.tensor([[int(entry) for entry in line.split(",")] for line in lines])
    return rows[:, :-1].reshape(-1, SIDE, SIDE).to(torch.uint8), rows[:, -1]


def augment(
    images: Tensor, generator: torch.Generator, shift: float = 1.0, degrees: float = 10.0, scale: float = 0.1
) -> Tensor:
    """`images` (image height width), each moved, turned and resized a little, in their dtype.

    Drawn anew from `generator`, uniformly: up to `shift` pixels along each axis, `degrees` either way, and sizes
    from 1 - scale to 1 + scale. Between pixels the value is bilinear, rounded for whole levels; beyond the edge
    is paper, 0.
    """
    count, height, width = images.shape
    right, down, turn, grown = (torch.rand(4, count, generator=generator) * 2 - 1).to(images.device)
    angle = torch.deg2rad(turn * degrees)
    cos, sin = angle.cos() / (1 + grown * scale), angle.sin() / (1 + grown * scale)
    # From where in the old picture each new pixel comes; a picture is 2 wide in these units.
    rows = [cos, -sin, right * shift * 2 / width], [sin, cos, down * shift * 2 / height]
    theta = torch.stack([torch.stack(row, dim=1) for row in rows], dim=1)  # image 2 3
    grid = affine_grid(theta, [count, 1, height, width], align_corners=False)
    moved = grid_sample(images[:, None].float(), grid, align_corners=False)[:, 0]
    return moved.to(images.dtype) if images.is_floating_point() else moved.round().to(images.dtype)


def vary_stroke(images: Tensor, generator: torch.Generator, most: float) -> Tensor:
    """`images` (image height width, levels), each with thicker or thinner strokes, in their dtype.

    Drawn anew from `generator`, uniformly up to `most` either way: 1 is the grey dilation by a pixel to each side, -1
    the erosion (Serra 1982), and between them lies a mixture with the picture itself, rounded for whole levels.
    """
    amount = (torch.rand(len(images), generator=generator) * 2 - 1).to(images.device)[:, None, None] * most
    drawn = images.float()
    thick, thin = _dilate(drawn), -_dilate(-drawn)
    varied = drawn + amount.clamp(min=0) * (thick - drawn) + amount.clamp(max=0) * (drawn - thin)
    return varied.to(images.dtype) if images.is_floating_point() else varied.round().to(images.dtype)


def invert(images: Tensor) -> Tensor:
    """Pictures of levels on the other ground: ink is 0 and paper 16."""
    return LEVELS - 1 - images


def _dilate(images: Tensor) -> Tensor:
    """The largest of each pixel and the four beside it."""
    return torch.maximum(
        max_pool2d(images[:, None], (3, 1), 1, (1, 0)), max_pool2d(images[:, None], (1, 3), 1, (0, 1))
    )[:, 0]
