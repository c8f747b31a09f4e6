"""A person's own digits: drawn by a pen of any width, dark on light or light on dark, anywhere, on uneven light."""

from io import BytesIO

import numpy as np
import pytest
import torch
from PIL import Image, ImageDraw

from engine.data.digits import LEVELS, SIDE
from engine.inputs.ink import own_picture, read_ink
from engine.inputs.readers import read_picture
from engine.runtime import library

# As a hand draws them, in a box of 100 by 100.
STROKES = {
    0: [[(50, 10), (27, 25), (20, 50), (27, 78), (50, 90), (73, 78), (80, 50), (73, 25), (50, 10)]],
    1: [[(36, 26), (52, 10), (52, 90)]],
    2: [[(24, 30), (36, 13), (60, 11), (74, 28), (64, 48), (40, 68), (22, 88), (80, 88)]],
    3: [[(24, 15), (55, 10), (74, 26), (60, 45), (44, 48), (64, 52), (77, 70), (60, 88), (26, 85)]],
    4: [[(60, 10), (20, 62), (82, 62)], [(62, 35), (62, 92)]],
    5: [[(75, 12), (34, 12), (30, 45), (58, 42), (75, 62), (62, 86), (26, 86)]],
    6: [[(64, 10), (40, 32), (26, 62), (39, 88), (64, 86), (73, 66), (58, 52), (31, 62)]],
    7: [[(22, 12), (78, 12), (45, 90)]],
    8: [[(52, 48), (30, 32), (39, 12), (62, 12), (71, 30), (52, 48), (27, 68), (39, 90), (65, 90), (76, 70), (52, 48)]],
    9: [[(71, 38), (50, 52), (30, 38), (39, 14), (62, 12), (73, 32), (70, 60), (60, 90)]],
}
LIGHT, DARK = 235, 30


def hand_drawn(digit: int, pen: int, dark_on_light: bool, place: tuple[int, int], size: int = 150) -> Image.Image:
    ground, ink = (LIGHT, DARK) if dark_on_light else (DARK, LIGHT)
    picture = Image.new("L", (300, 300), ground)
    pencil = ImageDraw.Draw(picture)
    for stroke in STROKES[digit]:
        points = [(place[0] + x * size / 100, place[1] + y * size / 100) for x, y in stroke]
        pencil.line(points, ink, pen, "curve")
        for x, y in points:
            pencil.ellipse((x - pen / 2, y - pen / 2, x + pen / 2, y + pen / 2), ink)
    return picture


def png(picture: Image.Image) -> BytesIO:
    file = BytesIO()
    picture.save(file, "PNG")
    return file


@pytest.mark.parametrize("dark_on_light", [True, False])
@pytest.mark.parametrize(("pen", "place"), [(9, (20, 30)), (16, (110, 90)), (24, (70, 60))])
def test_nine_of_ten_digits_are_read_on_either_ground(dark_on_light: bool, pen: int, place: tuple[int, int]) -> None:
    checkpoint = library.checkpoint("digits-vit")
    said = []
    for digit in STROKES:
        picture = own_picture(checkpoint, png(hand_drawn(digit, pen, dark_on_light, place)))
        said.append(int(checkpoint.model(read_picture(checkpoint, picture).read)[0].argmax()))
    assert sum(a == b for a, b in zip(said, STROKES, strict=True)) >= 9, said


def test_light_from_one_side_and_specks_are_no_ink() -> None:
    plain = hand_drawn(5, 16, True, (60, 60))
    light = np.linspace(0.6, 1, 300)[:, None] * np.linspace(0.8, 1, 300)
    photo = np.asarray(plain) * light
    photo[10:13, 200:203] = 0
    lit = read_ink(Image.fromarray(photo.astype(np.uint8)))
    assert (lit.levels.int() - read_ink(plain).levels.int()).abs().max() <= 3
    assert lit.levels.shape == (SIDE, SIDE) and int(lit.levels.max()) < LEVELS


def test_a_digit_of_the_models_own_size_is_read_as_it_is_and_other_models_read_the_picture() -> None:
    own = Image.fromarray(np.arange(64, dtype=np.uint8).reshape(SIDE, SIDE))
    read = own_picture(library.checkpoint("digits-vit"), png(own))
    assert np.array_equal(np.asarray(read), np.asarray(own))
    drawn = png(hand_drawn(3, 16, True, (60, 60)))
    assert isinstance(own_picture(library.checkpoint("digits-imagegpt"), drawn), torch.Tensor)
    assert isinstance(own_picture(library.checkpoint("stories"), drawn), Image.Image)


def test_a_picture_with_nothing_on_it_says_so() -> None:
    with pytest.raises(ValueError, match="stands out from its ground"):
        read_ink(Image.new("L", (200, 200), 180))
