"""A photographed or drawn digit as the digits are that a model was trained on.

Those of `engine.data.digits` were made so: the ink of a scanned form as a bitmap of 32 by 32, of which each block of
4 by 4 counts its inked pixels (Alpaydin and Kaynak, Optical Recognition of Handwritten Digits, UCI 1998).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import IO

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from scipy import ndimage  # type: ignore[import-untyped]
from torch import Tensor

from engine.checkpoints import Checkpoint
from engine.data.digits import LEVELS, SIDE
from engine.inputs.pictures import Picture, open_picture, picture_array
from engine.inputs.processors import ImageProcessor, PalettePixels

BITMAP, BLOCK = 32, 4  # pixels a side, of the bitmap and of a block that is counted
WIDEST = 26  # of them, of a digit: the first column of the training's pictures is empty
LARGEST = 512  # pixels of the longer side that are looked at
RIM = 0.04  # of the shorter side
SPECK = 0.05  # of the largest stroke: what is smaller is none
LEAST = 0.12  # of the levels between ground and ink that ink must have
STROKES = (0.26, 0.36)  # least and most share of ink: those between which nine tenths of the training's digits are


@dataclass(frozen=True)
class Drawing:
    """Stages of a drawn picture: its `ink` (height width, bool), that as a `bitmap` (32 32, bool), and the `levels`
    (8 8, uint8 from 0 to 16) that a model reads."""

    ink: NDArray[np.bool_]
    bitmap: NDArray[np.bool_]
    levels: Tensor


def reads_digits(checkpoint: Checkpoint) -> bool:
    """True if pictures come to it as those of `engine.data.digits` do."""
    processor = checkpoint.processor
    image = processor.image if isinstance(processor, PalettePixels) else processor
    form = (SIDE, SIDE), 1, LEVELS
    return isinstance(image, ImageProcessor) and (image.size, image.channels, image.levels) == form


def own_picture(checkpoint: Checkpoint, file: IO[bytes]) -> Picture:
    """A person's picture from a file, and for a model that reads digits what `read_ink` makes of it, unless it has
    their size already. Raises ValueError for what is no picture, and for one with nothing drawn on it."""
    picture = open_picture(file)
    drawing = find_drawing(picture) if reads_digits(checkpoint) else None
    return picture if drawing is None else drawing.levels


def find_drawing(picture: Image.Image) -> Drawing | None:
    """`read_ink` of the picture; None of one that has the digits' size already."""
    return None if picture.size == (SIDE, SIDE) else read_ink(picture)


def read_ink(picture: Picture) -> Drawing:
    """Finds what is drawn, dark on light or light on dark, cuts it out and brings it to the digits' size and stroke.

    Raises ValueError for a picture with nothing drawn on it.
    """
    grey = _grey(picture)
    differs = np.abs(grey - _ground(grey))
    if np.quantile(differs, 0.999) < LEAST:
        raise ValueError("Expected a digit that stands out from its ground, got an even picture; draw it darker.")
    ink = _without_specks(differs > max(LEAST / 2, _otsu(differs)))
    bitmap = _thicken(_fit_digit(ink))
    counts = bitmap.reshape(SIDE, BLOCK, SIDE, BLOCK).sum((1, 3))
    return Drawing(ink, bitmap, torch.from_numpy(counts.astype(np.uint8)))


def _grey(picture: Picture) -> NDArray[np.float64]:
    array, highest = picture_array(picture, 1, 256)
    grey = Image.fromarray((array[..., 0].astype(np.float64) * (255 / highest)).astype(np.uint8))
    grey.thumbnail((LARGEST, LARGEST), Image.Resampling.BOX)
    return np.asarray(grey, dtype=np.float64) / 255


def _ground(grey: NDArray[np.float64]) -> NDArray[np.float64]:
    """The plane that lies closest to the picture's rim, so that light from one side is no ink."""
    height, width = grey.shape
    rows, columns = np.mgrid[0:height, 0:width]
    inside = np.minimum.reduce([rows, height - 1 - rows, columns, width - 1 - columns])
    rim = inside <= RIM * min(grey.shape)
    terms = np.stack([np.ones_like(grey), rows / height, columns / width], -1)
    at, values = terms[rim], grey[rim]
    for _ in range(4):  # without what is drawn on the rim
        plane, *_rest = np.linalg.lstsq(at, values, rcond=None)
        off = np.abs(at @ plane - values)
        near = off <= max(2 * np.median(off), 0.02)
        at, values = at[near], values[near]
    return np.asarray(terms @ plane)


def _otsu(values: NDArray[np.float64]) -> float:
    """The threshold between two kinds of values that lie furthest apart (Otsu 1979, equation 12)."""
    counts, edges = np.histogram(values, 128)
    moments = (counts * (edges[1:] + edges[:-1]) / 2).cumsum()
    total, below, mean = counts.sum(), counts.cumsum()[:-1], moments[:-1]  # of all splits but that with nothing above
    between = (moments[-1] * below / total - mean) ** 2 / np.maximum(below * (total - below), 1)
    return float(edges[1 + int(between.argmax())])


def _without_specks(ink: NDArray[np.bool_]) -> NDArray[np.bool_]:
    labels, count = ndimage.label(ink, np.ones((3, 3)))
    sizes = ndimage.sum_labels(ink, labels, range(1, count + 1))
    return np.isin(labels, 1 + np.flatnonzero(sizes >= SPECK * sizes.max()))


def _fit_digit(ink: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Ink within its own box, as tall as the bitmap or as wide as a digit is, in the middle."""
    rows, columns = np.flatnonzero(ink.any(1)), np.flatnonzero(ink.any(0))
    box = ink[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
    scale = min(BITMAP / box.shape[0], WIDEST / box.shape[1])
    height, width = (max(1, round(side * scale)) for side in box.shape)
    small = Image.fromarray(box.astype(np.uint8) * 255).resize((width, height), Image.Resampling.BOX)
    bitmap = np.zeros((BITMAP, BITMAP), bool)
    top, left = (BITMAP - height) // 2, (BITMAP - width) // 2
    bitmap[top : top + height, left : left + width] = np.asarray(small) >= 96
    return bitmap


def _thicken(bitmap: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Thickens strokes to those of the training pictures."""
    cross = ndimage.generate_binary_structure(2, 1)
    for _ in range(3):
        share = bitmap.mean()
        if share < STROKES[0]:
            bitmap = ndimage.binary_dilation(bitmap, cross)
        elif share > STROKES[1]:
            thinner = ndimage.binary_erosion(bitmap, cross, border_value=1)
            bitmap = thinner if thinner.any() else bitmap
    return bitmap
