"""How often a held-out picture is named right, on its own ground and on the other."""

from __future__ import annotations

from typing import Any

import torch

from engine.data.digits import invert
from engine.inputs.familiarity import MEASURED, distances
from engine.training.sources.digits import DigitPictures
from engine.training.trainer import Trainer

SHADES = " .:-=+*#%@"


@torch.no_grad()
def measure_digit_classes(trainer: Trainer) -> dict[str, Any]:
    source = digits(trainer)
    images, labels = source.images.test_images, source.images.test_labels
    dark = source.examples(invert(images), labels).to(trainer.full_model.device)
    right = (trainer.result(dark.ids).argmax(-1) == dark.targets).float()
    return {
        "test_accuracy": trainer.measure(len(labels))["accuracy"],
        "test_accuracy_inverted": float(right.mean()),
        "pictures": len(labels),
        **measure_distance(source),
    }


def measure_distance(source: DigitPictures) -> dict[str, Any]:
    """Largest distance of a held-out picture to the training, by which a picture that is no digit is found."""
    cut, either = source.digits.split, source.digits.inverted > 0
    most = float(distances(source.images.test_images, cut, either).max())
    return {MEASURED: {"held_out_most": most, "split": cut, "either_ground": either}}


@torch.no_grad()
def sample_digit(trainer: Trainer) -> str:
    """The first held-out picture, drawn, and what it is taken for."""
    source = digits(trainer)
    images, labels = source.images.test_images[:1], source.images.test_labels[:1]
    logits = trainer.result(source.examples(images, labels).to(trainer.full_model.device).ids)
    return f"{draw_levels(images[0])}\n{int(logits.argmax())}"


def draw_levels(levels: torch.Tensor) -> str:
    """`levels` (height width, 0 to 16) as lines of text, two signs a pixel."""
    shade = (levels.long() * (len(SHADES) - 1)).div(16, rounding_mode="floor")
    return "\n".join("".join(SHADES[level] * 2 for level in row) for row in shade.tolist())


def digits(trainer: Trainer) -> DigitPictures:
    assert isinstance(trainer.source, DigitPictures)
    return trainer.source
