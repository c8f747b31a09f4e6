"""Pictures as model input: the numbers of transformers' processors, and back to what can be drawn."""

import json
import struct
import zlib
from io import BytesIO
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from engine.inputs.pictures import Picture, open_picture
from engine.inputs.processors import (
    KEYS,
    KINDS,
    READ,
    SMOOTH,
    ImageProcessor,
    PalettePixels,
    describe_unread_keys,
    read_processor,
)

RNG = np.random.default_rng(0)
PHOTO = RNG.integers(0, 256, (37, 50, 3), dtype=np.uint8)
DIGIT = RNG.integers(0, 17, (8, 8), dtype=np.uint8)
PALETTE = tuple(map(tuple, RNG.uniform(-1, 1, (40, 3)).tolist()))

processors = pytest.mark.parametrize(
    "ours",
    [
        ImageProcessor((224, 224)),
        ImageProcessor((16, 24), mean=(0.485, 0.456, 0.406), std=(0.229, 0.224, 0.225), resample=3),
        ImageProcessor((37, 50), mean=(0.0,) * 3, std=(1.0,) * 3),
    ],
)


def vit(folder: Path) -> Any:
    return pytest.importorskip("transformers").ViTImageProcessorPil.from_pretrained(folder)


@processors
def test_pixels_are_those_of_transformers_reading_our_file(ours: ImageProcessor, tmp_path: Path) -> None:
    ours.save(tmp_path)
    reference = vit(tmp_path)
    for picture in (Image.fromarray(PHOTO), PHOTO):
        expected = reference(picture, return_tensors="pt")["pixel_values"]
        torch.testing.assert_close(ours.pixels(picture), expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize("size", [(8, 8), (20, 12)])
def test_grey_levels_are_those_of_transformers(size: tuple[int, int], tmp_path: Path) -> None:
    ours = ImageProcessor.grey(size, levels=17)
    ours.save(tmp_path)
    expected = vit(tmp_path)(DIGIT[None], return_tensors="pt")["pixel_values"]
    torch.testing.assert_close(ours.pixels(DIGIT), expected, rtol=0, atol=1e-6)


@processors
def test_a_saved_processor_is_read_back(ours: ImageProcessor, tmp_path: Path) -> None:
    ours.save(tmp_path)
    assert read_processor(tmp_path) == ours
    assert read_processor(tmp_path / "nothing") is None


def test_what_transformers_wrote_is_read(tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    written = transformers.ViTImageProcessorPil(size={"height": 30, "width": 20}, image_std=[0.2, 0.3, 0.4], resample=3)
    written.save_pretrained(tmp_path)
    ours = read_processor(tmp_path)
    assert isinstance(ours, ImageProcessor)
    expected = written(PHOTO, return_tensors="pt")["pixel_values"]
    torch.testing.assert_close(ours.pixels(PHOTO), expected, rtol=0, atol=1e-6)


SIZE = {"height": 30, "width": 20}
STEPS: list[dict[str, Any]] = [
    {"size": 32},
    {"size": [30, 20], "resample": 3},
    {"size": SIZE, "do_center_crop": True, "crop_size": 17},
    {"size": {"shortest_edge": 19}, "do_center_crop": True, "crop_size": {"height": 18, "width": 15}},
    {"size": {"shortest_edge": 11}, "do_center_crop": True, "crop_size": [16, 12]},
    {"size": 11, "default_to_square": False, "do_center_crop": True, "crop_size": 16},
    {"do_resize": False, "do_center_crop": True, "crop_size": 24},
    {"do_resize": False, "do_center_crop": True, "crop_size": [40, 33]},
    {"size": 9, "do_center_crop": False, "crop_size": 4},
    {"size": 9, "do_rescale": False, "image_mean": [127.5] * 3, "image_std": [127.5] * 3},
    {"size": 9, "do_rescale": False, "do_normalize": False},
    {"size": 9, "rescale_factor": 1 / 127.5, "image_mean": [1.0] * 3, "image_std": 1.0},
    {"size": 9, "rescale_factor": 1 / 127, "do_normalize": False},
    {"size": [9, 8, 7], "do_normalize": False, "resample": 0},
    {"size": 9, "do_convert_rgb": True, "do_pad": True},
    {"size": 9, "pad_size": 12, "data_format": "channels_first", "input_data_format": None},
    {"size": 9, "do_center_crop": None, "do_normalize": None, "image_mean": None, "image_std": None, "crop_size": None},
    {"do_resize": None, "size": None, "resample": None, "do_center_crop": True, "crop_size": 24},
    {"size": 9, "do_center_crop": False, "do_rescale": None, "rescale_factor": None},
    {},
]


@pytest.mark.parametrize("steps", STEPS, ids=str)
@pytest.mark.parametrize("kind", ["vit", "deit"])
def test_every_step_of_a_file_is_obeyed_as_transformers_obeys_it(
    kind: str, steps: dict[str, Any], tmp_path: Path
) -> None:
    """The file of 2021 names no type: config.json does."""
    transformers = pytest.importorskip("transformers")
    (tmp_path / "preprocessor_config.json").write_text(json.dumps(steps))
    (tmp_path / "config.json").write_text(json.dumps({"model_type": kind}))
    theirs = transformers.AutoImageProcessor.from_pretrained(tmp_path, backend="pil")
    ours = read_processor(tmp_path)
    assert isinstance(ours, ImageProcessor) and type(theirs).__name__.lower() == f"{kind}imageprocessorpil"
    ours.save(tmp_path / "again")
    for photo in (PHOTO, PHOTO.transpose(1, 0, 2)):
        expected = theirs(photo, return_tensors="pt")["pixel_values"].float()
        torch.testing.assert_close(ours.pixels(photo), expected, rtol=1e-6, atol=2e-6)
        again = transformers.ViTImageProcessorPil.from_pretrained(tmp_path / "again")(photo, return_tensors="pt")
        if "rescale_factor" not in steps and "do_rescale" not in steps:
            torch.testing.assert_close(again["pixel_values"].float(), expected, rtol=1e-6, atol=2e-6)
    assert read_processor(tmp_path / "again") == ours


@pytest.mark.parametrize(
    "steps",
    [
        {"size": SIZE, "resample": 3},
        {"size": [7, 9], "do_center_crop": True, "crop_size": 4, "do_pad": True, "pad_size": 99},
        {"do_resize": False},
        {"size": 8, "do_rescale": False, "image_mean": [127.5] * 3, "image_std": [127.5] * 3},
        {"size": 8, "rescale_factor": 1 / 127.5, "do_normalize": False},
        {"size": 8, "image_mean": [0.4, 0.5, 0.6], "image_std": 0.25},
    ],
    ids=str,
)
def test_every_step_before_a_palette_is_obeyed_as_transformers_obeys_it(steps: dict[str, Any], tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    fields = {"image_processor_type": "ImageGPTImageProcessor", "clusters": PALETTE, **steps}
    (tmp_path / "preprocessor_config.json").write_text(json.dumps(fields))
    reference = transformers.ImageGPTImageProcessorPil.from_pretrained(tmp_path)
    ours = read_processor(tmp_path, {"image_size": [37, 50]})
    assert isinstance(ours, PalettePixels)
    assert ours.ids(PHOTO).tolist() == reference(PHOTO, return_tensors="pt")["input_ids"].tolist()
    named = ["do_center_crop" in note for note in describe_unread_keys(tmp_path, ours)]
    assert named == [True] * ("do_center_crop" in steps)  # transformers' other class for it obeys that


@pytest.mark.parametrize("mode", ["RGB", "RGBA", "L", "LA", "P"])
def test_do_convert_rgb_is_obeyed_as_transformers_obeys_it(mode: str, tmp_path: Path) -> None:
    fields = {"image_processor_type": "ViTImageProcessor", "size": [37, 50], "do_convert_rgb": True}
    (tmp_path / "preprocessor_config.json").write_text(json.dumps(fields))
    picture = Image.fromarray(PHOTO).convert(mode)
    if "A" in mode:
        picture.putalpha(Image.fromarray(PHOTO[..., 0]))
    ours = read_processor(tmp_path)
    assert isinstance(ours, ImageProcessor)
    expected = vit(tmp_path)(picture, return_tensors="pt")["pixel_values"]
    torch.testing.assert_close(ours.pixels(picture), expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_every_key_that_transformers_knows_is_read_or_known_to_have_no_effect(kind: str, tmp_path: Path) -> None:
    if kind == SMOOTH:
        pytest.skip("transformers needs torchvision for it")
    theirs = getattr(pytest.importorskip("transformers"), f"{kind}ImageProcessorPil")
    assert not theirs.valid_kwargs.__annotations__.keys() - KEYS.keys()
    theirs(clusters=PALETTE if kind == "ImageGPT" else None, do_convert_rgb=False).save_pretrained(tmp_path)
    ours = read_processor(tmp_path)
    assert ours is not None and describe_unread_keys(tmp_path, ours) == ()


def test_keys_that_are_not_read_are_named_in_one_sentence(tmp_path: Path) -> None:
    harmless = {name: 1 for name, why in KEYS.items() if why != READ and name != "pad_size"}
    fields = harmless | {"size": 9, "do_flip_channel_order": True, "do_thumbnail": None, "rescale_offset": 1}
    nested = {"image_processor": {**fields, "image_processor_type": "ViTImageProcessor"}}
    for name, table in {"processor_config.json": nested, "preprocessor_config.json": nested["image_processor"]}.items():
        (tmp_path / name).write_text(json.dumps(table))
        ours = read_processor(tmp_path)
        assert ours is not None and describe_unread_keys(tmp_path, ours) == (
            f"{name} has keys that Loupe does not read for its pictures, so not obeyed: 'do_flip_channel_order', "
            "'rescale_offset'.",
        )
        (tmp_path / name).unlink()


def test_a_processor_within_a_processor_comes_first_and_old_and_new_names_of_a_type_are_known(tmp_path: Path) -> None:
    (tmp_path / "preprocessor_config.json").write_text('{"feature_extractor_type": "DeiTFeatureExtractor", "size": 9}')
    ours = read_processor(tmp_path)
    assert isinstance(ours, ImageProcessor) and (ours.size, ours.resize, ours.resample) == ((224, 224), (9, 9), 3)
    nested = {"processor_class": "X", "image_processor": {"image_processor_type": "ViTImageProcessorFast", "size": 7}}
    (tmp_path / "processor_config.json").write_text(json.dumps(nested))
    assert read_processor(tmp_path) == ImageProcessor((7, 7))


def test_without_a_crop_the_model_says_what_has_to_come_out(tmp_path: Path) -> None:
    (tmp_path / "preprocessor_config.json").write_text('{"size": {"shortest_edge": 16}}')
    ours = read_processor(tmp_path, {"model_type": "vit", "image_size": 16})
    assert isinstance(ours, ImageProcessor) and ours.pixels(PHOTO[:, :37]).shape[2:] == (16, 16)
    with pytest.raises(ValueError, match="comes to 16 x 16 pixels, .* makes it 21 x 16; cut it to that shape"):
        ours.pixels(PHOTO)
    with pytest.raises(ValueError, match="Expected a picture less long, got 400000 x 1 pixels"):
        ours.pixels(np.zeros((1, 400_000), np.uint8))
    with pytest.raises(ValueError, match="image_processor_type, got none, and a model of type 'swin'; no other is kn"):
        read_processor(tmp_path, {"model_type": "swin"})


def test_palette_ids_are_those_of_transformers(tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    ours = PalettePixels(ImageProcessor((9, 11)), PALETTE)
    ours.save(tmp_path)
    assert read_processor(tmp_path) == ours
    reference = transformers.ImageGPTImageProcessorPil.from_pretrained(tmp_path)
    assert ours.ids(PHOTO).tolist() == reference(PHOTO, return_tensors="pt")["input_ids"].tolist()


def test_an_old_palette_file_has_a_number_for_its_size_and_no_rescaling_keys(tmp_path: Path) -> None:
    old = {"feature_extractor_type": "ImageGPTFeatureExtractor", "size": 32, "clusters": PALETTE, "do_normalize": True}
    (tmp_path / "preprocessor_config.json").write_text(json.dumps(old))
    assert read_processor(tmp_path) == PalettePixels(ImageProcessor((32, 32)), PALETTE)


def test_every_form_of_the_same_picture_gives_the_same_pixels() -> None:
    processor = ImageProcessor((37, 50))
    forms: list[Picture] = [
        Image.fromarray(PHOTO),
        PHOTO,
        PHOTO.astype(np.int64),
        PHOTO / 255,
        torch.from_numpy(PHOTO).permute(2, 0, 1),
        torch.from_numpy(PHOTO).permute(2, 0, 1).double() / 255,
        Image.fromarray(PHOTO).convert("RGBA"),
    ]
    batch = processor.pixels(forms)
    assert batch.shape == (len(forms), 3, 37, 50)
    torch.testing.assert_close(batch, batch[:1].expand_as(batch), rtol=0, atol=1e-6)
    np.testing.assert_allclose(processor.picture(batch[0]), PHOTO / 255, atol=1e-6)


def test_grey_and_colour_are_turned_into_each_other() -> None:
    grey = Image.fromarray(PHOTO).convert("L")
    assert torch.equal(ImageProcessor((37, 50)).pixels(grey)[:, 0], ImageProcessor.grey((37, 50)).pixels(grey)[:, 0])
    of_array = ImageProcessor.grey((37, 50)).pixels(PHOTO)
    torch.testing.assert_close(of_array, ImageProcessor.grey((37, 50)).pixels(grey), rtol=0, atol=2.01 / 255)


def test_what_is_transparent_is_white() -> None:
    clear = Image.new("RGBA", (4, 4), (0, 0, 0, 0))
    assert ImageProcessor.grey((4, 4)).pixels(clear).eq(1).all()


def saved(picture: Image.Image, kind: str = "PNG", **how: Any) -> BytesIO:
    file = BytesIO()
    picture.save(file, kind, **how)
    return BytesIO(file.getvalue())


def test_a_photo_is_upright_as_transformers_opens_it(tmp_path: Path, subtests: pytest.Subtests) -> None:
    for orientation, kind in product(range(9), ["PNG", "JPEG", "WEBP", "TIFF", "MPO"]):
        with subtests.test(orientation=orientation, kind=kind):
            exif = Image.Exif()
            exif[0x0112] = orientation
            file = saved(Image.fromarray(PHOTO), kind, exif=exif)
            (tmp_path / "photo").write_bytes(file.getvalue())
            expected = pytest.importorskip("transformers.image_utils").load_image(str(tmp_path / "photo"))
            assert np.array_equal(np.asarray(open_picture(file).convert("RGB")), np.asarray(expected))
            assert expected.size == ((37, 50) if orientation > 4 else (50, 37))


@pytest.mark.parametrize("mode", ["P", "LA", "RGBA", "1", "CMYK"])
def test_a_photo_of_any_mode_is_turned(mode: str) -> None:
    exif = Image.Exif()
    exif[0x0112] = 8
    picture = Image.fromarray(PHOTO).convert(mode)
    read = open_picture(saved(picture, "TIFF" if mode == "CMYK" else "PNG", exif=exif))
    assert np.array_equal(np.asarray(read.convert("RGB")), np.rot90(np.asarray(picture.convert("RGB"))))


def test_a_photo_whose_exif_is_damaged_is_as_it_is_stored() -> None:
    file = saved(Image.fromarray(PHOTO), exif=b"Exif\0\0XX no TIFF")
    assert np.array_equal(np.asarray(open_picture(file)), PHOTO)


RAMP = np.linspace(0, 1, 64).reshape(8, 8)
LEVELS_16 = (RAMP * 65535).round().astype(np.uint16)


def tiff(values: np.ndarray, bits: int, photometric: int, sample: int = 1) -> BytesIO:
    """A little-endian TIFF of one strip, as no library here writes it."""
    height, width = values.shape
    data = values.tobytes()
    if bits == 12:
        pairs = values.astype(int).reshape(-1, 2)
        data = b"".join(bytes([a >> 4, (a & 15) << 4 | b >> 8, b & 255]) for a, b in pairs.tolist())
    tags = {256: width, 257: height, 258: bits, 259: 1, 262: photometric, 273: 8, 277: 1, 278: height, 279: len(data)}
    entries = b"".join(struct.pack("<HHII", tag, 4, 1, value) for tag, value in sorted((tags | {339: sample}).items()))
    start = struct.pack("<2sHI", b"II", 42, 8 + len(data))
    return BytesIO(start + data + struct.pack("<H", len(tags) + 1) + entries + bytes(4))


@pytest.mark.parametrize(
    "file",
    [
        saved(Image.fromarray(LEVELS_16)),
        saved(Image.fromarray(LEVELS_16), "TIFF"),
        saved(Image.fromarray(LEVELS_16), "TIFF", compression="tiff_lzw"),
        saved(Image.fromarray(LEVELS_16.astype(">u2")), "TIFF"),
        saved(Image.fromarray(LEVELS_16), "JPEG2000"),
        saved(Image.fromarray(LEVELS_16.astype(np.int32)), "TIFF"),
        saved(Image.fromarray(RAMP.astype(np.float32)), "TIFF"),
        saved(Image.fromarray((255 * RAMP).astype(np.float32)), "TIFF"),
        tiff((RAMP * 4095).round().astype(np.uint16), 12, 1),
        tiff(65535 - LEVELS_16, 16, 0),
        tiff((1 - RAMP).astype(np.float32), 32, 0, sample=3),
        tiff((RAMP * 32767).round().astype(np.int16), 16, 1, sample=2),
        BytesIO(b"P5 8 8 65535\n" + LEVELS_16.astype(">u2").tobytes()),
        BytesIO(b"P5 8 8 1023\n" + (RAMP * 1023).round().astype(">u2").tobytes()),
        BytesIO(b"Pf 8 8 -1\n" + RAMP[::-1].astype("<f4").tobytes()),
    ],
    ids=range(15),
)
def test_pictures_of_more_than_eight_bits_keep_their_values(file: BytesIO) -> None:
    picture = open_picture(file)
    for channels in (1, 3):
        reader = ImageProcessor((8, 8), channels, mean=(0.0,) * channels, std=(1.0,) * channels)
        expected = torch.from_numpy(RAMP).float().expand(1, channels, 8, 8)
        torch.testing.assert_close(reader.pixels(picture), expected, rtol=0, atol=2e-3)


def test_a_dark_picture_of_sixteen_bits_stays_dark() -> None:
    for file in (saved(Image.fromarray(LEVELS_16 // 300)), BytesIO(b"P5 8 8 65535\n" + bytes(64) + b"\0\x80" * 32)):
        assert ImageProcessor.grey((8, 8)).pixels(open_picture(file)).max() < -0.99


def png(values: np.ndarray, kind: int, **chunks: bytes) -> BytesIO:
    """A PNG of 16 bits a channel, of colour type `kind`."""
    rows = b"".join(b"\0" + row.astype(">u2").tobytes() for row in values)
    head = struct.pack(">IIBBBBB", values.shape[1], values.shape[0], 16, kind, 0, 0, 0)
    parts = {"IHDR": head, **chunks, "IDAT": zlib.compress(rows), "IEND": b""}
    told = ((name.encode(), data) for name, data in parts.items())
    return BytesIO(
        b"\x89PNG\r\n\x1a\n"
        + b"".join(struct.pack(">I", len(d)) + n + d + struct.pack(">I", zlib.crc32(n + d)) for n, d in told)
    )


def test_what_is_transparent_in_sixteen_bits_is_white() -> None:
    colours = np.stack([LEVELS_16] * 3, axis=-1)
    alpha = np.where(np.arange(64) < 32, 0, 65535).reshape(8, 8, 1)
    half = np.where(alpha[..., 0] == 0, 1, RAMP)
    one = np.where(np.arange(64).reshape(8, 8) == 20, 1, RAMP)
    key = struct.pack(">H", LEVELS_16.flat[20])
    cases = [
        (png(np.concatenate([LEVELS_16[..., None], alpha], -1), 4), half),
        (png(np.concatenate([colours, alpha], -1), 6), half),
        (png(LEVELS_16[..., None], 0, tRNS=key), one),
        (png(colours, 2, tRNS=key * 3), one),
    ]
    reader = ImageProcessor((8, 8), mean=(0.0,) * 3, std=(1.0,) * 3)
    for file, expected in cases:
        np.testing.assert_allclose(reader.pixels(open_picture(file))[0, 1].numpy(), expected, atol=1 / 255)


@pytest.mark.parametrize("values", [[-1.0, 1.0], [0.0, 300.0], [0.0, np.nan], [0.0, 1.1]])
def test_floats_without_a_scale_are_refused_in_one_sentence(values: list[float]) -> None:
    with pytest.raises(ValueError, match="^Expected a picture in mode F with values from 0 to 1 or 255, got .*; scale"):
        ImageProcessor((8, 8)).pixels(open_picture(saved(Image.fromarray(np.float32([values])), "TIFF")))


def test_a_batch_of_levels_gives_the_pixels_of_each() -> None:
    processor = ImageProcessor.grey((8, 8), levels=17)
    images = torch.from_numpy(RNG.integers(0, 17, (5, 8, 8), dtype=np.uint8))
    torch.testing.assert_close(processor.levels_to_pixels(images), processor.pixels(list(images)), rtol=0, atol=1e-7)


def test_grey_palette_ids_are_the_levels_row_by_row_and_paint_them_again() -> None:
    palette = PalettePixels.grey((8, 8), 17)
    ids = palette.ids(DIGIT)
    assert ids.tolist() == [DIGIT.flatten().tolist()]
    assert (palette.start_id, palette.vocab_size) == (17, 18)
    np.testing.assert_allclose(palette.picture(ids[0]), DIGIT / 16, atol=1e-6)
    half = palette.picture(ids[0, :32])
    assert np.isnan(half[4:]).all() and not np.isnan(half[:4]).any()


def test_a_coloured_palette_paints_its_colours() -> None:
    palette = PalettePixels(ImageProcessor((1, 2)), ((-1.0, 0.0, 1.0), (1.0, 1.0, 1.0)))
    np.testing.assert_array_equal(palette.picture([1, 0]), np.array([[[1, 1, 1], [0, 0.5, 1]]]))


@pytest.mark.parametrize(
    "picture",
    [
        np.full((8, 8), 17),
        np.full((8, 8), 1.5),
        np.full((8, 8), np.nan),
        np.full((8, 8), -1),
        np.zeros((8, 8, 2)),
        np.zeros((0, 8)),
        np.zeros(8),
        np.zeros((8, 8), dtype=bool),
        torch.zeros(8, 8, 3),
    ],
)
def test_what_is_no_picture_is_refused_in_one_sentence(picture: Picture) -> None:
    with pytest.raises(ValueError, match=r"^Expected a picture .*, got .*; .*\.$"):
        ImageProcessor.grey((8, 8), levels=17).pixels(picture)


@pytest.mark.parametrize("ids", [[17], [-1], [[0]], [0] * 65])
def test_ids_that_paint_nothing_are_refused(ids: list[int]) -> None:
    with pytest.raises(ValueError, match=r"^Expected .*ids.*, got .*; .*\.$"):
        PalettePixels.grey((8, 8), 17).picture(ids)


@pytest.mark.parametrize(
    "fields",
    [
        {"size": (0, 8)},
        {"size": (8, 100_000)},
        {"size": (8, 8), "channels": 2},
        {"size": (8, 8), "mean": (0.5,)},
        {"size": (8, 8), "std": (1.0, 0.0, 1.0)},
        {"size": (8, 8), "mean": (0.0, 0.0, float("inf"))},
        {"size": (8, 8), "levels": 1},
        {"size": (8, 8), "resample": 9},
    ],
)
def test_an_impossible_processor_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"^Expected .*, got .*; .*\.$"):
        ImageProcessor(**fields)


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[]",
        "{}",
        '{"image_processor_type": "LevitImageProcessor"}',
        '{"image_processor_type": "ViTImageProcessor", "size": 1e999}',
        '{"image_processor_type": "ViTImageProcessor", "size": 8, "rescale_factor": 1e-300}',
        '{"image_processor_type": "ViTImageProcessor", "size": 8, "do_center_crop": true}',
        '{"image_processor_type": "ViTImageProcessor", "size": 8, "do_center_crop": true, "crop_size": {"height": 3}}',
        '{"image_processor_type": "ViTImageProcessor", "size": {"longest_edge": 8}}',
        '{"image_processor_type": "ViTImageProcessor", "size": {"shortest_edge": 8, "longest_edge": 9}}',
        '{"image_processor_type": "ViTImageProcessor", "size": 8, "do_pad": true, "pad_size": 9}',
        '{"image_processor_type": "ViTImageProcessor", "size": [1]}',
        '{"image_processor_type": "ViTImageProcessor", "do_resize": false}',
        '{"image_processor_type": "ViTImageProcessor", "size": 8, "rescale_factor": -1}',
        '{"image_processor_type": "ImageGPTImageProcessor", "clusters": [[1, 2, 3]], "do_color_quantize": 0}',
        '{"image_processor_type": "ViTImageProcessor", "size": 8, "image_mean": "grey"}',
        '{"image_processor_type": "ViTImageProcessor", "size": 8, "rescale_factor": "1/255"}',
        '{"image_processor_type": "ViTImageProcessor", "size": 8, "resample": "bilinear"}',
        '{"image_processor_type": "ImageGPTImageProcessor", "size": 8}',
        '{"image_processor_type": "ImageGPTImageProcessor", "size": 8, "clusters": 3}',
        '{"image_processor_type": "ImageGPTImageProcessor", "size": 8, "clusters": [[1, 2]]}',
    ],
)
def test_a_file_that_describes_no_known_processor_is_named(text: str, tmp_path: Path) -> None:
    (tmp_path / "preprocessor_config.json").write_text(text)
    with pytest.raises(ValueError, match=r"preprocessor_config\.json.*\.$"):
        read_processor(tmp_path)


@pytest.mark.parametrize(
    "content",
    [
        b"P6 4x4 255\n" + bytes(48),
        b"P6 4 4 99999\n" + bytes(48),
        b"P3 2 2 255 " + b"9" * 100,
        b"P5 -4 4 255\n" + bytes(16),
        b"Image type: x image\r\nImage size (x*y): a*b\r\n" + bytes(600),
        b"Image type: L image\r\nImage size (x*y): 4*4*\r\n" + bytes(600),
        b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 10 10\n%%EndComments\n{} loop\n",
        b"\x89PNG\r\n\x1a\n\x00\x00\x00\x0dIHDR" + bytes(17),
        b"GIF89a" + bytes(20),
        b"BM" + b"\xff" * 60,
        b"no picture",
        b"",
    ],
    ids=lambda content: ascii(content)[:20],
)
def test_a_file_that_is_no_picture_is_one_sentence_without_the_librarys_words(content: bytes) -> None:
    with pytest.raises(
        ValueError,
        match=r"^Expected a picture such as PNG or JPEG, got (a damaged one or something else|EPS, a program); save it",
    ):
        open_picture(BytesIO(content))


def test_a_picture_of_too_many_pixels_is_refused_before_it_is_unpacked() -> None:
    with pytest.raises(ValueError, match="of at most 50,000,000 pixels, got 10000 x 9000; shrink it"):
        open_picture(BytesIO(b"P6 10000 9000 255\n"))
