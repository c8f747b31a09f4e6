"""From a picture to what an image model reads, and back: pixel values for ViT, palette ids for ImageGPT.

Both are read from and written to the `preprocessor_config.json` that transformers' processors use, and so is what makes
frames of a sound (`sound.py`). What counts as a picture is said in `pictures.py`.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import isclose, isqrt
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor

from engine.inputs.pictures import MODES, Picture, crop_center, picture_array, resize_channels, resize_shorter
from engine.inputs.settings_file import find_fields, write_fields
from engine.inputs.sound import KEYS as OF_SOUND
from engine.inputs.sound import SoundProcessor, is_of_sound, read_sound_processor
from engine.plurals import count_words
from engine.tokenizers.jsonfile import read_object

Floats: TypeAlias = NDArray[np.float32]

METHODS = tuple(map(int, Image.Resampling))
BILINEAR, BICUBIC = int(Image.Resampling.BILINEAR), int(Image.Resampling.BICUBIC)
LONGEST_SIDE = 4096
MOST_LEVELS = 256
FAR = 1e30  # float32 still has its inverse
USUAL: dict[str, Any] = {
    "do_resize": True, "do_rescale": True, "rescale_factor": 1 / 255, "do_normalize": True,
    "image_mean": (0.5,) * 3, "image_std": (0.5,) * 3, "resample": BILINEAR,
}  # fmt: skip
SMOOTH = "DINOv3ViT"  # whose pictures are scaled before they are resized
CROPPED = USUAL | {
    "size": {"shortest_edge": 224}, "default_to_square": False, "do_center_crop": True, "crop_size": 224,
    "resample": BICUBIC, "image_mean": (0.48145466, 0.4578275, 0.40821073),
    "image_std": (0.26862954, 0.26130258, 0.27577711),
}  # fmt: skip
KINDS: dict[str, dict[str, Any]] = {
    "ViT": USUAL | {"size": 224},
    "DeiT": USUAL | {"size": 256, "do_center_crop": True, "crop_size": 224, "resample": BICUBIC},
    "ImageGPT": USUAL | {"size": 256, "do_color_quantize": True},
    SMOOTH: USUAL | {"size": 224, "image_mean": (0.485, 0.456, 0.406), "image_std": (0.229, 0.224, 0.225)},
    **dict.fromkeys(("Siglip", "Beit"), USUAL | {"size": 224, "crop_size": 224, "resample": BICUBIC}),
    **dict.fromkeys(("CLIP", "Bit"), CROPPED),
}  # what transformers' classes take for keys that a file leaves out
OF_STEPS = {"resample": "do_resize", "image_mean": "do_normalize", "image_std": "do_normalize"}  # null without them
READ = "read"
KEYS = {  # each with READ, or why it is without effect
    **dict.fromkeys(("image_processor_type", "feature_extractor_type"), READ),
    **dict.fromkeys(("do_resize", "size", "default_to_square", "resample", "do_center_crop", "crop_size"), READ),
    **dict.fromkeys(("do_rescale", "rescale_factor", "do_normalize", "image_mean", "image_std"), READ),
    **dict.fromkeys(("do_pad", "pad_size"), "refused where they would change a picture"),
    **dict.fromkeys(("do_color_quantize", "clusters"), "read for an ImageGPT, of no use to the others"),
    **dict.fromkeys(("do_reduce_labels", "reduce_labels"), "of maps that name each pixel's class"),
    "do_convert_rgb": "a picture always gets the colours that its model reads",
    "input_data_format": "of arrays, not of files of pictures",
    **dict.fromkeys(("data_format", "return_tensors", "disable_grouping", "device"), "channels come first, on the CPU"),
    **dict.fromkeys(("processor_class", "image_seq_length", "auto_map", "_valid_processor_keys"), "of their program"),
    **dict.fromkeys(("transformers_version", "use_fast", "backend", "name_or_path"), "of their program"),
}
MOST_NAMED = 10  # in one note


@dataclass(frozen=True)
class ImageProcessor:
    """Resizes to `size` (height, width), scales levels to 0..1, then gives (value - mean) / std a channel.

    With `resize` a picture is resized to that instead: a height and a width, or its shorter side, or not at all (0);
    then `crop` cuts its middle out, of `size`, and without it what has not come out at `size` is refused.
    A grey picture fills three channels alike; of a coloured one a single channel keeps the brightness.
    `resample` is PIL's number of the method (2 bilinear, 3 bicubic); a `smooth` one is not rounded to levels after it.
    """

    size: tuple[int, int]
    channels: int = 3
    mean: tuple[float, ...] = (0.5, 0.5, 0.5)
    std: tuple[float, ...] = (0.5, 0.5, 0.5)
    levels: int = 256
    resample: int = BILINEAR
    resize: tuple[int, int] | int | None = None
    crop: bool = False
    smooth: bool = False

    def __post_init__(self) -> None:
        resized = self.resize if isinstance(self.resize, tuple) else (self.resize or 1,)
        if not all(1 <= side <= LONGEST_SIDE for side in (*self.size, *resized)):
            got = self.size if self.resize is None else f"{self.size} and {self.resize}"
            raise ValueError(f"Expected a height and a width from 1 to {LONGEST_SIDE} pixels, got {got}; correct size.")
        if self.channels not in MODES:
            raise ValueError(f"Expected 1 channel (grey) or 3 (red, green, blue), got {self.channels}; choose one.")
        fit = all(abs(mean) < FAR for mean in self.mean) and all(1 / FAR < abs(std) < FAR for std in self.std)
        if not len(self.mean) == len(self.std) == self.channels or not fit:
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
        kind = SMOOTH if self.smooth else "ViT"
        write_fields(folder, {"image_processor_type": f"{kind}ImageProcessor", **self.fields()})

    def fields(self) -> dict[str, Any]:
        """Settings in transformers' names."""
        size = self.size if not self.resize else self.resize
        cropped = {"do_center_crop": True, "crop_size": _sides(self.size)} if self.crop else {}
        return {
            "do_resize": self.resize != 0,
            "size": {"shortest_edge": size} if isinstance(size, int) else _sides(size),
            **cropped,
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
        array = array.astype(np.float32) if self.smooth else array
        values = (self._in_size(array).astype(np.float64) * (1 / highest)).astype(np.float32)
        return np.ascontiguousarray(((values - mean) / std).transpose(2, 0, 1))

    def _in_size(self, array: NDArray[Any]) -> NDArray[Any]:
        if isinstance(self.resize, int) and self.resize:
            array = resize_shorter(array, self.resize, self.resample)
        elif self.resize != 0:
            array = resize_channels(array, self.resize or self.size, self.resample)
        if self.crop:
            return crop_center(array, self.size)
        if array.shape[:2] != self.size:
            (height, width), (wanted, across) = array.shape[:2], self.size
            raise ValueError(
                f"Expected a picture that comes to {across} x {wanted} pixels, as its model reads them, and the "
                f"processor, which cuts nothing, makes it {width} x {height}; cut it to that shape."
            )
        return array


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
                f"Expected a palette of colours with {count_words(self.image.channels, 'value')} each, "
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
        write_fields(folder, {"image_processor_type": "ImageGPTImageProcessor", **self.image.fields(), **clusters})


Processor: TypeAlias = ImageProcessor | PalettePixels | SoundProcessor


def read_processor(folder: Path, config: Mapping[str, Any] | None = None) -> Processor | None:
    """None where `folder` has no file of a processor; ValueError for one that cannot be obeyed.

    `config` is the model's config.json, by default the one in `folder`: it says of what kind a processor is whose file
    does not, and what size comes out where the file leaves that to the picture.
    """
    file, fields = find_fields(folder)
    if fields is None:
        return None
    if config is None:
        config = read_object(folder / "config.json") if (folder / "config.json").is_file() else {}
    try:
        return read_sound_processor(fields) if is_of_sound(fields, config) else _read(fields, config)
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"Expected sizes and numbers in {file}, got something else ({error}); correct it.") from error
    except ValueError as error:
        raise ValueError(f"{file} cannot be used. {error}") from error


def describe_unread_keys(folder: Path, processor: Processor) -> tuple[str, ...]:
    """Sentence about the keys of the file in `folder` that ask for something which `processor` does not do."""
    file, fields = find_fields(folder)
    what = "sounds" if isinstance(processor, SoundProcessor) else "pictures"
    known, idle = (OF_SOUND, (None, 0)) if isinstance(processor, SoundProcessor) else (KEYS, (None,))
    unread = [name for name, value in (fields or {}).items() if name not in known and value not in idle]
    if isinstance(processor, PalettePixels) and fields and fields.get("do_center_crop"):
        unread.append("do_center_crop")  # which of transformers' two classes for ImageGPT only one obeys
    if not unread:
        return ()
    more = f" and {len(unread) - MOST_NAMED} more" if len(unread) > MOST_NAMED else ""
    named = ", ".join(f"{name!r:.80}" for name in sorted(unread)[:MOST_NAMED])
    return (f"{file.name} has keys that Loupe does not read for its {what}, so not obeyed: {named}{more}.",)


def _read(fields: dict[str, Any], config: Mapping[str, Any]) -> ImageProcessor | PalettePixels:
    types = [*map(fields.get, ("image_processor_type", "feature_extractor_type")), config.get("image_processor_type")]
    name = next((each for each in types if each is not None), None)
    of_model = {kind.lower(): kind for kind in KINDS}.get(str(config.get("model_type")))
    kind = str(name).removesuffix("Fast").removesuffix("ImageProcessor").removesuffix("FeatureExtractor")
    kind = of_model or kind if name is None else kind
    if kind not in KINDS:
        got = f"none, and a model of type {config.get('model_type')!r:.80}" if name is None else f"{name!s:.80}"
        known = " or ".join(f"{each}ImageProcessor" for each in KINDS)
        raise ValueError(f"Expected a {known} in image_processor_type, got {got}; no other is known.")
    fields = KINDS[kind] | fields
    fields |= {name: KINDS[kind][name] for name, step in OF_STEPS.items() if fields[name] is None and not fields[step]}
    if kind != "ImageGPT":
        return replace(_read_image(fields, config), smooth=kind == SMOOTH)
    if not fields["do_color_quantize"]:
        raise ValueError("Expected do_color_quantize, got it turned off; an ImageGPT reads numbers of colours.")
    image = _read_image(fields | {"do_center_crop": False, "do_pad": False}, config)  # which it has no use for
    return PalettePixels(image, tuple(map(_numbers, fields["clusters"])))


def _read_image(fields: Mapping[str, Any], config: Mapping[str, Any]) -> ImageProcessor:
    """The mean and the std take up any rescale_factor but that of levels; without do_normalize they are 0 and 1."""
    if fields.get("do_pad") and fields.get("pad_size") is not None:
        raise ValueError(f"Expected pictures that are not padded, got pad_size {fields['pad_size']!r:.80}; remove it.")
    (factor,) = _numbers([fields["rescale_factor"] if fields["do_rescale"] else 1])
    mean, std = _channels(fields["image_mean"]), _channels(fields["image_std"])
    channels = len(mean)
    if not fields["do_normalize"]:
        mean, std = (0.0,) * channels, (1.0,) * channels
    if not 1 / FAR < factor < FAR:
        raise ValueError(f"Expected rescale_factor to be more than 0, got {factor}; 1/255 is usual.")
    levels = round(1 / factor) + 1 if channels == 1 and 1 / (MOST_LEVELS - 0.5) < factor <= 1 else MOST_LEVELS
    scale = 1.0 if isclose(factor, 1 / (levels - 1), rel_tol=1e-6) else 255 * factor
    size, resize, crop = _steps(fields, config)
    return ImageProcessor(
        size=size,
        channels=channels,
        mean=tuple(value / scale for value in mean),
        std=tuple(value / scale for value in std),
        levels=levels if scale == 1 else MOST_LEVELS,
        resample=operator.index(fields["resample"]),
        resize=resize,
        crop=crop,
    )


def _steps(
    fields: Mapping[str, Any], config: Mapping[str, Any]
) -> tuple[tuple[int, int], tuple[int, int] | int | None, bool]:
    """`size`, `resize` and `crop` of a processor."""
    square = fields.get("default_to_square", True) is not False
    resize = _size(fields["size"], square) if fields["do_resize"] else 0
    if fields.get("do_center_crop"):
        crop = _size(fields["crop_size"])
        if isinstance(crop, int):
            raise ValueError("Expected crop_size to be a height and a width, got shortest_edge; correct it.")
        return crop, resize, True
    if isinstance(resize, tuple):
        return resize, None, False
    side = config.get("image_size") or isqrt(operator.index(config.get("n_positions") or 0)) or resize
    if not side:
        raise ValueError(
            "Expected do_resize or do_center_crop, got neither, and no image_size in config.json; add one of them."
        )
    size = _size(side)
    assert isinstance(size, tuple)  # as a number is a square
    return size, resize, False


def _channels(values: Any) -> tuple[float, ...]:
    """transformers takes one number for all three colours."""
    return _numbers([values] * 3 if isinstance(values, int | float) else values)


def _numbers(values: Any) -> tuple[float, ...]:
    if not isinstance(values, list | tuple) or not all(isinstance(value, int | float) for value in values):
        raise TypeError(f"{values!r:.80} instead of numbers")
    return tuple(map(float, values))


def _size(size: Any, square: bool = True) -> tuple[int, int] | int:
    """Height and width, or the shorter side. A number is the side of a square, in older files, unless that is off."""
    if isinstance(size, int):
        return (size, size) if square else size
    if isinstance(size, list | tuple):
        size = dict(zip(("height", "width"), size, strict=False))
    if set(size) == {"shortest_edge"}:
        return operator.index(size["shortest_edge"])
    if set(size) != {"height", "width"}:
        raise ValueError(f"Expected a size of height and width, or shortest_edge, got {size!r:.80}; no other is known.")
    return operator.index(size["height"]), operator.index(size["width"])


def _sides(size: tuple[int, int]) -> dict[str, int]:
    return {"height": size[0], "width": size[1]}
