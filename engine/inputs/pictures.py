"""Pictures as people and programs have them, as one array of numbers.

A picture is a PIL image, a numpy array (height width, or height width channel) or a tensor (height width, or
channel height width). Floats are between 0 (black) and 1; whole numbers are levels from 0 to the highest. Those of a
PIL image are out of 255, or out of 65,535 where it has 16 bits; a float image is out of 1, or of 255 as Pillow has it.
"""

from __future__ import annotations

import struct
import zlib
from contextlib import suppress
from math import prod
from typing import IO, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps, TiffImagePlugin
from torch import Tensor

Picture: TypeAlias = Image.Image | NDArray[Any] | Tensor

MOST_PIXELS = 50_000_000
PROGRAMS = ("EPS",)  # formats whose pictures another program would have to draw
UNREADABLE = (
    OSError,
    SyntaxError,
    ValueError,
    LookupError,
    TypeError,
    AttributeError,
    ArithmeticError,
    MemoryError,
    RuntimeError,  # NotImplementedError and RecursionError among them
    AssertionError,
    struct.error,
    zlib.error,
    Image.DecompressionBombError,
)  # what Pillow's readers raise, each in its own words
BITS, PHOTOMETRIC = 258, 262  # of TIFF's tags
MODES = {1: "L", 3: "RGB"}  # PIL's names for one and three channels


def open_picture(file: IO[bytes]) -> Image.Image:
    """The picture in a file, upright. Raises ValueError for what is none, is damaged, or is too large to unpack."""
    try:
        picture: Image.Image = Image.open(file)
        size, program = picture.size, picture.format in PROGRAMS
        if prod(size) <= MOST_PIXELS and not program:
            picture = turn_upright(with_full_scale(picture))
    except UNREADABLE as error:
        raise ValueError(
            "Expected a picture such as PNG or JPEG, got a damaged one or something else; save it as PNG."
        ) from error
    if prod(size) > MOST_PIXELS:
        raise ValueError(f"Expected a picture of at most {MOST_PIXELS:,} pixels, got {size[0]} x {size[1]}; shrink it.")
    if program:
        raise ValueError(f"Expected a picture such as PNG or JPEG, got {picture.format}, a program; save it as PNG.")
    return picture


def with_full_scale(picture: Image.Image) -> Image.Image:
    """Unpacks it, and puts right what Pillow leaves as the file has it: 16 bits are out of 65,535, 0 is black."""
    deep = any("16" in str(tile[3]) for tile in getattr(picture, "tile", ()))
    picture.load()
    clear = picture.info.get("transparency")
    if deep and isinstance(clear, tuple):  # of 16 bits, where the colours are unpacked to 8
        picture.info["transparency"] = tuple(value >> 8 for value in clear)
    if picture.mode == "I" and picture.format == "PPM":
        return picture.convert("I;16")
    if not isinstance(picture, TiffImagePlugin.TiffImageFile) or picture.mode[0] not in "IF":
        return picture
    values, bits = np.asarray(picture), picture.tag_v2[BITS][0]
    highest: float = 2**bits - 1 if picture.mode != "I" else 2 ** (bits - 1) - 1  # mode I is signed
    if picture.mode == "F":
        highest = 1 if values.max() <= 1 else 255
    if picture.tag_v2.get(PHOTOMETRIC) == 0:  # white is zero
        values = (highest - values).astype(values.dtype)
    if bits <= 16 and values.min() >= 0:
        values = (values.astype(np.int64) * 65535 // int(highest)).astype(np.uint16)
    return Image.fromarray(values)


def turn_upright(picture: Image.Image) -> Image.Image:
    """Turned and mirrored as its EXIF says; as it is stored where that is damaged, as a browser shows it."""
    with suppress(*UNREADABLE):
        ImageOps.exif_transpose(picture, in_place=True)
    return picture


def picture_array(picture: Picture, channels: int, levels: int) -> tuple[NDArray[Any], int]:
    """The picture as height width channel, uint8 or float32, and the value that stands for full brightness."""
    if isinstance(picture, Image.Image):
        return _of_pil(picture, channels)
    array = _with_channels(picture)
    floats = array.dtype.kind == "f"
    highest = 1 if floats else levels - 1
    if array.size == 0 or not (array.min() >= 0 and array.max() <= highest):
        kind = "floats" if floats else "whole numbers"
        got = f"{array.min()} to {array.max()}" if array.size else "no pixels"
        raise ValueError(
            f"Expected a picture of {kind} from 0 to {highest}, got {got}; scale it, or give it as a PIL image."
        )
    return _in_channels(array.astype(np.float32 if floats else np.uint8), channels), highest


def _of_pil(picture: Image.Image, channels: int) -> tuple[NDArray[Any], int]:
    """Puts the picture on white where it is transparent, as a browser shows it."""
    if picture.mode.startswith("I;16") or picture.mode in ("I", "F"):
        return _in_channels(_of_deep(picture)[..., None], channels), 1
    if picture.has_transparency_data:
        shown = picture.convert("RGBA")
        picture = Image.alpha_composite(Image.new("RGBA", shown.size, "white"), shown)
    array = np.asarray(picture.convert(MODES[channels]))
    return array[..., None] if array.ndim == 2 else array, 255


def _of_deep(picture: Image.Image) -> NDArray[np.float32]:
    """Brightness in 0..1, height width, of one channel of more than 8 bits, which Pillow would cut off at 255.

    Floats are out of 1, or of 255 as Pillow makes them; just above 1 it may be either, and neither is assumed.
    """
    values = np.asarray(picture).astype(np.float64)
    least, most = (values.min(), values.max()) if values.size else (np.nan, np.nan)
    scales = {"F": (1, 255), "I": (255, 65535)}.get(picture.mode, (65535,))
    highest = next((scale for scale in scales if most <= scale), None)
    if highest is None or not least >= 0 or (picture.mode == "F" and 1 < most < 2):
        raise ValueError(
            f"Expected a picture in mode {picture.mode} with values from 0 to {' or '.join(map(str, scales))}, "
            f"got {least:g} to {most:g}; scale it."
        )
    clear = picture.info.get("transparency")
    shown = np.where(values == clear, highest, values) if isinstance(clear, int) else values
    return (shown / highest).astype(np.float32)


def _with_channels(picture: NDArray[Any] | Tensor) -> NDArray[Any]:
    if isinstance(picture, Tensor):
        values = picture.detach().cpu()
        array = (values.float() if values.is_floating_point() else values).numpy()
        array = array.transpose(1, 2, 0) if array.ndim == 3 else array
        form = "channel height width"
    else:
        array, form = np.asarray(picture), "height width channel"
    array = array[..., None] if array.ndim == 2 else array
    if array.ndim != 3 or array.shape[-1] not in MODES or array.dtype.kind not in "uif":
        raise ValueError(
            f"Expected a picture as numbers, height width or {form} with 1 or 3 channels, "
            f"got {array.dtype} of shape {tuple(np.shape(picture))}; reshape it."
        )
    return array


def _in_channels(array: NDArray[Any], channels: int) -> NDArray[Any]:
    if array.shape[-1] == channels:
        return array
    if channels == 3:
        return array.repeat(3, axis=-1)
    grey = array @ np.array([[0.299], [0.587], [0.114]])  # ITU-R BT.601, as PIL weighs the colours
    return grey.round().astype(np.uint8) if array.dtype == np.uint8 else grey.astype(np.float32)


def resize_shorter(array: NDArray[Any], side: int, resample: int) -> NDArray[Any]:
    """Resizes until the shorter side has `side` pixels, the longer rounded down, as the reference does."""
    height, width = array.shape[:2]
    longer = int(side * max(height, width) / min(height, width))
    if side * longer > MOST_PIXELS:
        raise ValueError(
            f"Expected a picture less long, got {width} x {height} pixels, which come to more than {MOST_PIXELS:,} "
            f"with {side} along the shorter side; cut it."
        )
    return resize_channels(array, (side, longer) if height <= width else (longer, side), resample)


def crop_center(array: NDArray[Any], size: tuple[int, int]) -> NDArray[Any]:
    """The middle of height width channel, with black around what is smaller, to the pixel as the reference does."""
    room = [(max(want - have, 0) + 1) // 2 for want, have in zip(size, array.shape, strict=False)]
    full = np.zeros((*map(max, size, array.shape), array.shape[2]), array.dtype)
    full[room[0] :, room[1] :][: array.shape[0], : array.shape[1]] = array
    top, left = ((have - want) // 2 + pad for want, have, pad in zip(size, array.shape, room, strict=False))
    return full[top:, left:][: size[0], : size[1]]


def resize_channels(array: NDArray[Any], size: tuple[int, int], resample: int) -> NDArray[Any]:
    """Channel by channel, in the dtype of `array`, so that bytes are rounded to bytes as the reference does."""
    if array.shape[:2] == size:
        return array
    height, width = size
    channels = [Image.fromarray(np.ascontiguousarray(channel)) for channel in array.transpose(2, 0, 1)]
    return np.stack([np.asarray(each.resize((width, height), resample)) for each in channels], axis=-1)
