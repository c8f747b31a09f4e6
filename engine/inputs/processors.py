"""From a picture to what an image model reads, and back: pixel values for ViT, palette ids for ImageGPT.

Both are read from and written to the `preprocessor_config.json` that transformers' processors use. What counts
as a picture is said in `pictures.py`.
"""

from __future__ import annotations

import json
import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isclose, isfinite
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor

from engine.inputs.pictures import MODES, Picture, picture_array, resize_channels

Floats: TypeAlias = NDArray[np.float32]

FILE = "preprocessor_config.json"
METHODS = tuple(map(int, Image.Resampling))
BILINEAR = int(Image.Resampling.BILINEAR)
LONGEST_SIDE = 4096
MOST_LEVELS = 256


@dataclass(frozen=True)
class ImageProcessor:
    """Resizes to `size` (height, width), scales levels to 0..1, then gives (value - mean) / std a channel.

    A grey picture fills three channels alike; of a coloured one a single channel keeps the brightness.
    `resample` is PIL's number of the method (2 bilinear, 3 bicubic).
    """

    size: tuple[int, int]
    channels: int = 3
    mean: tuple[float, ...] = (0.5, 0.5, 0.5)
    std: tuple[float, ...] = (0.5, 0.5, 0.5)
    levels: int = 256
    resample: int = BILINEAR

    def __post_init__(self) -> None:
        if not all(1 <= side <= LONGEST_SIDE for side in self.size):
            raise ValueError(
                f"Expected a height and a width from 1 to {LONGEST_SIDE} pixels, got {self.size}; correct size."
            )
        if self.channels not in MODES:
            raise ValueError(f"Expected 1 channel (grey) or 3 (red, green, blue), got {self.channels}; choose one.")
        given = (*self.mean, *self.std)
        if not len(self.mean) == len(self.std) == self.channels or not all(self.std) or not all(map(isfinite, given)):
            raise ValueError(
                f"Expected a mean and a std other than 0 for each of {self.channels} channels, "
                f"got {self.mean} and {self.std}; give one of each a channel."
            )
        if not 2 <= self.levels <= MOST_LEVELS:
            raise ValueError(f"Expected 2 to {MOST_LEVELS} levels, got {self.levels}; a byte has 256.")
        if self.resample not in METHODS:
            raise ValueError(
                f"Expected PIL's number of a resampling method, {min(METHODS)} to {max(METHODS)}, got {self.resample}; "
                "2 is bilinear, 3 bicubic."
            )

    @classmethod
    def grey(cls, size: tuple[int, int], levels: int = 256) -> ImageProcessor:
        """Normalises one channel, from -1 for level 0 to 1 for the highest."""
        return cls(size, channels=1, mean=(0.5,), std=(0.5,), levels=levels)

    def pixels(self, picture: Picture | Sequence[Picture]) -> Tensor:
        """float32, batch channel height width; a list of pictures is a batch of them, one picture a batch of one."""
        pictures = [picture] if isinstance(picture, Image.Image | np.ndarray | Tensor) else picture
        return torch.from_numpy(np.stack([self._pixels(each) for each in pictures]))

    def levels_to_pixels(self, images: Tensor) -> Tensor:
        """Whole levels (batch height width) of the right size and one channel, as `pixels` would give them."""
        values = images.double() * (1 / (self.levels - 1))
        return ((values.float() - self.mean[0]) / self.std[0])[:, None]

    def picture(self, pixels: Tensor) -> Floats:
        """Turns one image, channel height width, back as height width channel (height width if grey) in 0..1."""
        mean, std = np.asarray(self.mean, np.float32), np.asarray(self.std, np.float32)
        values = pixels.detach().cpu().float().numpy().transpose(1, 2, 0) * std + mean
        return values[..., 0] if self.channels == 1 else values

    def save(self, folder: Path) -> None:
        _write(folder, {"image_processor_type": "ViTImageProcessor", **self.fields()})

    def fields(self) -> dict[str, Any]:
        """Settings in transformers' names."""
        return {
            "do_resize": True,
            "size": {"height": self.size[0], "width": self.size[1]},
            "resample": self.resample,
            "do_rescale": True,
            "rescale_factor": 1 / (self.levels - 1),
            "do_normalize": True,
            "image_mean": list(self.mean),
            "image_std": list(self.std),
        }

    def _pixels(self, picture: Picture) -> Floats:
        array, highest = picture_array(picture, self.channels, self.levels)
        mean, std = np.asarray(self.mean, np.float32), np.asarray(self.std, np.float32)
        resized = resize_channels(array, self.size, self.resample).astype(np.float64)
        values = (resized * (1 / highest)).astype(np.float32)
        return np.ascontiguousarray(((values - mean) / std).transpose(2, 0, 1))


@dataclass(frozen=True)
class PalettePixels:
    """ImageGPT's (Chen et al. 2020, section 3.1): every pixel as the number of the nearest colour of a palette.

    `clusters` are those colours, a value a channel, in the units of `image.pixels` (-1 to 1 in transformers'
    files); nearest is by squared distance, and of equals the first. The sequence runs in raster order: along
    each row, top row first.
    """

    image: ImageProcessor
    clusters: tuple[tuple[float, ...], ...]

    def __post_init__(self) -> None:
        if not self.clusters or any(len(colour) != self.image.channels for colour in self.clusters):
            raise ValueError(
                f"Expected a palette of colours with {self.image.channels} values each, "
                f"got {len(self.clusters)} with {sorted(set(map(len, self.clusters)))}; correct clusters."
            )

    @classmethod
    def grey(cls, size: tuple[int, int], levels: int) -> PalettePixels:
        """The palette is the levels themselves: id 3 is level 3."""
        clusters = tuple((2 * level / (levels - 1) - 1,) for level in range(levels))
        return cls(ImageProcessor.grey(size, levels), clusters)

    @property
    def start_id(self) -> int:
        """The token before the first pixel, which follows the colours in the vocabulary."""
        return len(self.clusters)

    @property
    def vocab_size(self) -> int:
        return len(self.clusters) + 1

    def ids(self, picture: Picture | Sequence[Picture]) -> Tensor:
        """int64, batch pos, where pos = row * width + column; without the start token."""
        pixels = self.image.pixels(picture).permute(0, 2, 3, 1).double()  # batch height width channel
        clusters = torch.tensor(self.clusters, dtype=torch.float64)  # colour channel
        squares = pixels.square().sum(-1, keepdim=True) - 2 * pixels @ clusters.T + clusters.square().sum(-1)
        return squares.argmin(-1).flatten(1)

    def picture(self, ids: Sequence[int] | Tensor) -> Floats:
        """The image that `ids` paint, as `ImageProcessor.picture` gives it; NaN where they do not reach yet."""
        row = torch.as_tensor(ids, dtype=torch.int64).cpu()
        height, width = self.image.size
        if row.dim() != 1 or len(row) > height * width:
            raise ValueError(
                f"Expected one row of at most {height * width} ids, got shape {tuple(row.shape)}; give one image's."
            )
        if ((row < 0) | (row >= len(self.clusters))).any():
            raise ValueError(
                f"Expected ids of colours, from 0 to {len(self.clusters) - 1}, got {row.min()} to {row.max()}; "
                "leave out the start token."
            )
        pixels = torch.full((height * width, self.image.channels), torch.nan)
        pixels[: len(row)] = torch.tensor(self.clusters)[row]
        return self.image.picture(pixels.T.reshape(self.image.channels, height, width))

    def save(self, folder: Path) -> None:
        """transformers reads it if the palette is of red, green and blue; it knows no other."""
        clusters = {"do_color_quantize": True, "clusters": list(map(list, self.clusters))}
        _write(folder, {"image_processor_type": "ImageGPTImageProcessor", **self.image.fields(), **clusters})


def read_processor(folder: Path) -> ImageProcessor | PalettePixels | None:
    """None where `folder` has no `preprocessor_config.json`; ValueError for one of another kind of model."""
    file = folder / FILE
    if not file.is_file():
        return None
    try:
        fields: Any = json.loads(file.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"Expected JSON in {file}, got something else ({error}); fetch it again.") from error
    if not isinstance(fields, dict):
        raise ValueError(f"Expected a JSON object in {file}, got a {type(fields).__name__}; fetch it again.")
    try:
        return _read(fields)
    except (KeyError, TypeError) as error:
        raise ValueError(f"Expected a size and colours in {file}, got something else ({error}); correct it.") from error
    except ValueError as error:
        raise ValueError(f"{file} cannot be used. {error}") from error


def _read(fields: Mapping[str, Any]) -> ImageProcessor | PalettePixels:
    name = str(fields.get("image_processor_type") or fields.get("feature_extractor_type"))
    kind = name.removesuffix("Fast").removesuffix("ImageProcessor").removesuffix("FeatureExtractor")
    if kind not in ("ViT", "ImageGPT"):
        raise ValueError(f"Expected a ViTImageProcessor or an ImageGPTImageProcessor, got {name}; no other is known.")
    image = _read_image(fields)
    if kind == "ViT":
        return image
    return PalettePixels(image, tuple(map(_numbers, fields["clusters"])))


def _read_image(fields: Mapping[str, Any]) -> ImageProcessor:
    """Without do_normalize the mean is 0 and the deviation 1; no other step can be left out."""
    if fields.get("do_center_crop") or not (fields.get("do_resize", True) and fields.get("do_rescale", True)):
        raise ValueError("Expected pictures to be resized and rescaled, got other steps; nothing else is known.")
    (factor,) = _numbers([fields.get("rescale_factor", 1 / 255)])
    levels = round(1 / factor) + 1 if 1 / MOST_LEVELS <= factor <= 1 else 0
    if not levels or not isclose(factor, 1 / (levels - 1), rel_tol=1e-6):
        raise ValueError(f"Expected rescale_factor to be one over 1 to 255, got {factor}; 1/255 is usual.")
    normalised = fields.get("do_normalize", True)
    mean = _channels(fields.get("image_mean", (0.5,) * 3))
    std = _channels(fields.get("image_std", (0.5,) * 3))
    return ImageProcessor(
        size=_size(fields["size"]),
        channels=len(mean),
        mean=mean if normalised else (0.0,) * len(mean),
        std=std if normalised else (1.0,) * len(std),
        levels=levels,
        resample=operator.index(fields.get("resample", BILINEAR)),
    )


def _channels(values: Any) -> tuple[float, ...]:
    """transformers takes one number for all three colours."""
    return _numbers([values] * 3 if isinstance(values, int | float) else values)


def _numbers(values: Any) -> tuple[float, ...]:
    if not isinstance(values, list | tuple) or not all(isinstance(value, int | float) for value in values):
        raise TypeError(f"{values!r:.80} instead of numbers")
    return tuple(map(float, values))


def _size(size: Any) -> tuple[int, int]:
    """A number is the side of a square, in older files."""
    height, width = (size, size) if isinstance(size, int) else (size["height"], size["width"])
    return operator.index(height), operator.index(width)


def _write(folder: Path, fields: Mapping[str, Any]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / FILE).write_text(json.dumps(fields, indent=2), encoding="utf-8")
