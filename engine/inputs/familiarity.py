"""How far a picture lies from the digits that a model was trained on, in grey levels a pixel.

A classifier is as sure of letters and stripes as it is of digits; the distance to the nearest picture of its training
tells them apart.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from torch import Tensor, cat, cdist

from engine.checkpoints import Checkpoint
from engine.data.digits import LEVELS, invert, split
from engine.inputs.ink import reads_digits
from engine.inputs.readers import Reading

MEASURED = "distance_to_training"  # in the card
MARGIN = 1.2  # times as far as every held-out digit: most digits that somebody else draws are nearer


@dataclass(frozen=True)
class Distance:
    """Distance of a picture to the nearest one of the training, and the `most` that a held-out digit has, in grey
    levels."""

    found: float
    most: float

    @property
    def is_far(self) -> bool:
        return self.found > MARGIN * self.most


def distances(images: Tensor, cut: int, either_ground: bool) -> Tensor:
    """Root mean square difference (image) of `images` (image height width, levels) and the nearest picture that
    `split(cut)` trains on, as it is or on `either_ground`."""
    known = training_rows(cut, either_ground)
    return cdist(images.flatten(1).float(), known).amin(1) / known.shape[1] ** 0.5


def distance_to_training(checkpoint: Checkpoint, reading: Reading) -> Distance | None:
    """Distance of the picture that was given; None of a model whose card does not say what it learned from."""
    picture = reading.picture if reading.original is None else reading.original
    measured = checkpoint.card.get("measured")
    figures = measured.get(MEASURED) if isinstance(measured, Mapping) else None
    if picture is None or not reads_digits(checkpoint) or not isinstance(figures, Mapping):
        return None
    cut, most = figures.get("split"), figures.get("held_out_most")
    if not isinstance(cut, int) or not isinstance(most, float):
        return None
    levels = (picture.reshape(1, -1) * (LEVELS - 1)).round()
    return Distance(float(distances(levels, cut, bool(figures.get("either_ground")))), most)


@lru_cache(maxsize=4)
def training_rows(cut: int, either_ground: bool) -> Tensor:
    """The training pictures, picture pixel."""
    images = split(cut).train_images
    return (cat([images, invert(images)]) if either_ground else images).flatten(1).float()
