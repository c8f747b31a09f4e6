"""Pictures that are no digits lie far from the training, and digits near, on either ground."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from PIL import Image, ImageDraw, ImageFont

from engine.data.digits import invert, split
from engine.inputs.familiarity import MEASURED, distance_to_training, distances
from engine.inputs.readers import read_picture, read_pixels
from engine.runtime import library

ROWS, COLUMNS = np.mgrid[0:100, 0:100]


def letter(name: str) -> np.ndarray:
    picture = Image.new("L", (100, 100), 255)
    ImageDraw.Draw(picture).text((22, 8), name, 0, font=ImageFont.load_default(70))
    return np.asarray(picture)


def noise(side: int) -> np.ndarray:
    levels = np.random.default_rng(side).integers(0, 256, (side, side))
    return levels.repeat(-(-100 // side), 0).repeat(-(-100 // side), 1)[:100, :100]


STRANGE = {
    **{name: letter(name) for name in "AMWXHKTE"},
    **{f"noise of {side}": noise(side) for side in (4, 8, 50, 100)},
    "upright stripes": COLUMNS // 12 % 2 * 255,
    "level stripes": ROWS // 12 % 2 * 255,
    "slanted stripes": (ROWS + COLUMNS) // 16 % 2 * 255,
    "chessboard": (ROWS // 25 + COLUMNS // 25) % 2 * 255,
    "slope": (ROWS + COLUMNS) * 1.2,
    "lamp": 255 - np.hypot(ROWS - 50, COLUMNS - 50) * 3.5,
    "horizon": (ROWS > 50) * 255,
    "square": ((abs(ROWS - 50) < 30) & (abs(COLUMNS - 50) < 30)) * 255,
}


def picture(values: np.ndarray) -> Image.Image:
    return Image.fromarray(values.astype(np.uint8)).resize((8, 8), Image.Resampling.BOX)


@pytest.mark.parametrize("name", ["digits-vit", "digits-imagegpt"])
def test_what_is_no_digit_is_told_from_held_out_digits(name: str) -> None:
    checkpoint, drawn = library.checkpoint(name), split(0).test_images
    figures = checkpoint.card["measured"][MEASURED]
    most, either = figures["held_out_most"], figures["either_ground"]
    assert either == (checkpoint.card["data"]["digits"].get("inverted", 0) > 0)
    assert float(distances(drawn, 0, either).max()) == pytest.approx(most, abs=1e-3)
    assert float(distances(invert(drawn), 0, True).max()) == pytest.approx(most, abs=1e-3)
    assert float(distances(split(0).train_images, 0, either).max()) < 0.01

    def is_far(shown: Image.Image | torch.Tensor) -> bool:
        reading = read_picture(checkpoint, shown) if name == "digits-vit" else read_pixels(*given(shown))
        distance = distance_to_training(checkpoint, reading)
        assert distance is not None
        return distance.is_far

    def given(shown: Image.Image | torch.Tensor) -> tuple:
        return checkpoint, shown, 64, 65, {}, 0

    assert len(STRANGE) == 20 and sum(is_far(picture(values)) for values in STRANGE.values()) >= 18
    assert not any(is_far(image) for image in drawn[:20])
    assert all(is_far(image) != either for image in invert(drawn[:20]))


def test_the_original_of_a_completed_picture_is_compared_and_not_what_the_model_drew() -> None:
    checkpoint = library.checkpoint("digits-imagegpt")
    image = split(0).train_images[0]
    distance = distance_to_training(checkpoint, read_pixels(checkpoint, image, 8, 65, {}, 0))
    assert distance is not None and distance.found < 0.01


def test_a_card_that_does_not_say_what_the_model_learned_from_gives_no_distance() -> None:
    checkpoint = library.checkpoint("digits-vit")
    reading = read_picture(checkpoint, split(0).test_images[0])
    for measured in ({}, None, {MEASURED: 3.6}, {MEASURED: {"split": "0", "held_out_most": 3.6}}):
        assert distance_to_training(replace(checkpoint, card={"measured": measured}), reading) is None
    assert distance_to_training(checkpoint, reading) is not None
