"""DINOv2 and the towers of CLIP against transformers: vectors, attention, and folders in both directions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from PIL import Image
from transformers import BitImageProcessor, CLIPConfig, CLIPImageProcessor, CLIPTokenizer

from engine import load
from engine.analysis.attribution import attribute
from engine.analysis.logit_lens import read_stream
from engine.analysis.text_vectors import cosines, text_vectors
from engine.inputs.processors import ImageProcessor
from engine.inputs.readers import tokens
from engine.runtime.run import run
from tests.engine import tiny
from tests.engine.checkpoints.against import equal, equal_patterns, opened, shaken, written_back

SIZES = {"hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 3}
PICTURE = SIZES | {"image_size": 12, "patch_size": 4}
DINO_3 = PICTURE | {"intermediate_size": 32, "num_register_tokens": 1}
CLIP_PICTURE = PICTURE | {"intermediate_size": 32, "projection_dim": 10}
CLIP_TEXT = SIZES | {"intermediate_size": 32, "projection_dim": 10, "vocab_size": 40, "max_position_embeddings": 16}
SIGLIP_PICTURE = PICTURE | {"intermediate_size": 32}
SIGLIP_TEXT = SIZES | {"intermediate_size": 32, "vocab_size": 40, "max_position_embeddings": 16}
PIXELS = tiny.normal(2, 3, 12, 12)
TEXTS = torch.tensor([[7, 3, 39, 1, 39], [5, 39, 2, 2, 2]])

BEIT = PICTURE | {"intermediate_size": 32, "use_relative_position_bias": True}
SHARED = PICTURE | {"intermediate_size": 32, "use_shared_relative_position_bias": True}
MODELS: dict[str, tuple[str, dict[str, Any]]] = {
    "dinov2": ("Dinov2Model", PICTURE),
    "dinov2, gated, no bias": ("Dinov2Model", PICTURE | {"use_swiglu_ffn": True, "mlp_ratio": 2, "qkv_bias": False}),
    "dinov2, another ratio": (
        "Dinov2Model",
        PICTURE | {"mlp_ratio": 3, "use_mask_token": False, "hidden_act": "relu", "layer_norm_eps": 0.1},
    ),
    "registers": ("Dinov2WithRegistersModel", PICTURE | {"num_register_tokens": 3}),
    "registers, gated": ("Dinov2WithRegistersModel", PICTURE | {"num_register_tokens": 1, "use_swiglu_ffn": True}),
    "dinov3": ("DINOv3ViTModel", DINO_3),
    "dinov3, gated": (
        "DINOv3ViTModel",
        DINO_3 | {"use_gated_mlp": True, "num_register_tokens": 3, "hidden_act": "silu"},
    ),
    "dinov3, other biases": (
        "DINOv3ViTModel",
        DINO_3 | {"query_bias": False, "value_bias": False, "proj_bias": False, "mlp_bias": False, "rope_theta": 7.0},
    ),
    "dinov3, key bias": ("DINOv3ViTModel", DINO_3 | {"key_bias": True, "layer_norm_eps": 0.1}),
    "beit": ("BeitModel", BEIT),
    "beit, one bias for all layers": ("BeitModel", SHARED | {"layer_norm_eps": 0.1, "use_mask_token": True}),
    "beit, learned positions": (
        "BeitModel",
        SHARED | {"use_absolute_position_embeddings": True, "layer_scale_init_value": 0.0, "hidden_act": "relu"},
    ),
    "beit, [CLS] alone": ("BeitModel", BEIT | {"use_mean_pooling": False}),
    "clip, pictures": ("CLIPVisionModelWithProjection", CLIP_PICTURE),
    "clip, pictures alone": ("CLIPVisionModel", CLIP_PICTURE | {"hidden_act": "gelu", "num_channels": 1}),
    "clip, texts": ("CLIPTextModelWithProjection", CLIP_TEXT | {"eos_token_id": 39}),
    "clip, texts, as older configs": ("CLIPTextModelWithProjection", CLIP_TEXT | {"eos_token_id": 2}),
    "siglip, pictures": ("SiglipVisionModel", SIGLIP_PICTURE),
    "siglip, pictures, gelu": ("SiglipVisionModel", SIGLIP_PICTURE | {"hidden_act": "gelu", "layer_norm_eps": 0.1}),
    "siglip, texts": ("SiglipTextModel", SIGLIP_TEXT),
    "siglip, texts, another width": ("SiglipTextModel", SIGLIP_TEXT | {"projection_size": 10}),
    "clip, texts alone": ("CLIPTextModel", CLIP_TEXT | {"eos_token_id": 39, "layer_norm_eps": 0.1}),
}


def made(name: str) -> Any:
    kind = getattr(transformers, MODELS[name][0])
    torch.manual_seed(0)
    return shaken(kind(kind.config_class(**MODELS[name][1])))


def vector_of(found: Any) -> torch.Tensor:
    return next(found[key] for key in ("image_embeds", "text_embeds", "pooler_output") if key in found)


@pytest.mark.parametrize("name", MODELS)
def test_a_tower_equals_transformers_and_is_read_back(name: str, tmp_path: Path) -> None:
    model = made(name)
    checkpoint = opened(model, tmp_path / "theirs")
    read = (
        TEXTS
        if checkpoint.config.embedding.patches is None
        else PIXELS[:, : checkpoint.config.embedding.patches.channels]
    )
    trace = run(checkpoint.model, read)
    last = "final_norm.out" if "final_norm.out" in trace else "blocks.1.resid_post"
    for other in (model, written_back(checkpoint, tmp_path / "ours", type(model))):
        with torch.no_grad():
            expected = other(read, output_attentions=True)
        equal_patterns(trace, "attn.pattern", expected.attentions)
        equal(trace[last], expected.last_hidden_state)
        equal(trace["vector.out"], vector_of(expected))


CLASSIFIERS = {
    "beit": ("BeitForImageClassification", BEIT),
    "beit, [CLS] alone": ("BeitForImageClassification", SHARED | {"use_mean_pooling": False}),
    "dinov2": ("Dinov2ForImageClassification", PICTURE),
    "registers": ("Dinov2WithRegistersForImageClassification", PICTURE | {"num_register_tokens": 3}),
}


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_what_names_pictures_reads_its_classes_from_the_vector(name: str, tmp_path: Path) -> None:
    kind, sizes = getattr(transformers, CLASSIFIERS[name][0]), CLASSIFIERS[name][1]
    torch.manual_seed(0)
    model = shaken(kind(kind.config_class(**sizes, num_labels=5)))
    checkpoint = opened(model, tmp_path / "theirs")
    assert not checkpoint.report.notes
    trace = run(checkpoint.model, PIXELS)
    for other in (model, written_back(checkpoint, tmp_path / "ours", type(model))):
        with torch.no_grad():
            equal(trace["logits"], other(PIXELS).logits)
    found = attribute(checkpoint.model, trace, 0, 3)
    assert found.logit == pytest.approx(float(trace["logits"][0, 3]), abs=1e-4)
    again = read_stream(checkpoint.model, trace, 1)
    assert again.shape == trace["logits"].shape and not torch.allclose(again, trace["logits"])


def clip_folder(folder: Path) -> Any:
    """A CLIP of both towers with its tokenizer, of letters and five merges, and its processor."""
    letters = [chr(code) for code in range(33, 127) if not chr(code).isupper()]
    merges = [("a", "t</w>"), ("c", "at</w>"), ("d", "o"), ("do", "g</w>"), ("o", "f</w>")]
    pieces = [*letters, *(f"{one}</w>" for one in letters), *map("".join, merges), "<|startoftext|>", "<|endoftext|>"]
    vocabulary = {piece: number for number, piece in enumerate(pieces)}
    CLIPTokenizer(vocab=vocabulary, merges=merges).save_pretrained(folder)
    CLIPImageProcessor(size={"shortest_edge": 12}, crop_size={"height": 12, "width": 12}).save_pretrained(folder)
    of_texts = CLIP_TEXT | {"vocab_size": len(pieces), "eos_token_id": len(pieces) - 1}
    torch.manual_seed(0)
    made = CLIPConfig(text_config=of_texts, vision_config=CLIP_PICTURE, projection_dim=10)
    model = shaken(transformers.CLIPModel(made))
    model.save_pretrained(folder)
    return model


def test_a_processor_that_resizes_scaled_levels_makes_the_same_pixels(tmp_path: Path) -> None:
    config = transformers.DINOv3ViTConfig(**DINO_3 | {"num_register_tokens": 0})
    shaken(transformers.DINOv3ViTModel(config)).save_pretrained(tmp_path)
    fields = {"image_processor_type": "DINOv3ViTImageProcessorFast", "size": {"height": 16, "width": 16}}
    (tmp_path / "preprocessor_config.json").write_text(json.dumps(fields))
    checkpoint = load(tmp_path)
    assert checkpoint.report.ok and isinstance(checkpoint.processor, ImageProcessor)
    picture = Image.fromarray((tiny.normal(33, 21, 3).sigmoid() * 255).byte().numpy())
    scaled = torch.tensor(list(picture.getdata()), dtype=torch.float32).reshape(33, 21, 3).permute(2, 0, 1) / 255
    resized = torch.nn.functional.interpolate(scaled[None], (16, 16), mode="bilinear", antialias=True)
    mean, std = (torch.tensor(one).reshape(3, 1, 1) for one in ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)))
    torch.testing.assert_close(checkpoint.processor.pixels(picture), (resized - mean) / std, atol=1e-4, rtol=0)
    checkpoint.save(tmp_path / "again")
    assert load(tmp_path / "again").processor == checkpoint.processor


WORDS = ("a cat", "A dog, of  cats!", "Ünï 12")


def test_a_folder_of_two_towers_opens_as_either_and_their_cosine_is_clips(tmp_path: Path) -> None:
    model = clip_folder(tmp_path / "clip")
    pictures, texts = load(tmp_path / "clip"), load(f"{tmp_path / 'clip'}#text")
    assert pictures.report.ok and texts.report.ok and not pictures.report.notes + texts.report.notes
    assert pictures.tokenizer is None and texts.processor is None and texts.tokenizer is not None
    reference = CLIPTokenizer.from_pretrained(tmp_path / "clip")
    for text in WORDS:
        assert list(texts.tokenizer.encode(text).ids) == reference(text)["input_ids"]
    picture = Image.fromarray((tiny.normal(20, 30, 3).sigmoid() * 255).byte().numpy())
    processor = CLIPImageProcessor.from_pretrained(tmp_path / "clip")
    assert isinstance(pictures.processor, ImageProcessor)
    pixels = pictures.processor.pixels(picture)
    torch.testing.assert_close(pixels, processor(picture, return_tensors="pt")["pixel_values"], atol=1e-5, rtol=0)
    with torch.no_grad():
        expected = model(**reference(list(WORDS), padding=True, return_tensors="pt"), pixel_values=pixels)
    found = cosines(run(pictures.model, pixels)["vector.out"], text_vectors(texts, WORDS))
    assert pictures.pair is not None and texts.pair is not None and texts.pair.reads == "text"
    equal(pictures.pair.scores(found), expected.logits_per_image)
    equal(texts.pair.probabilities(found).float(), expected.logits_per_image.softmax(-1))
    pictures.save(tmp_path / "half")
    assert load(tmp_path / "half").pair is None
    with pytest.raises(ValueError, match="has one tower"):
        load(f"{tmp_path / 'half'}#text")


def test_an_older_file_of_both_towers_says_nothing_that_is_not_obeyed(tmp_path: Path) -> None:
    clip_folder(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    for key in ("text_config", "vision_config"):
        config[f"{key}_dict"] = {"hidden_size": 24, **({"eos_token_id": 2} if key == "text_config" else {})}
        config[key] |= {"dropout": 0.0, "add_cross_attention": False, "tie_word_embeddings": True, "torch_dtype": None}
    (tmp_path / "config.json").write_text(json.dumps(config))
    older = {"feature_extractor_type": "CLIPFeatureExtractor", "size": 12, "crop_size": 12, "resample": 3}
    (tmp_path / "preprocessor_config.json").write_text(json.dumps(older))
    pictures, texts = load(tmp_path), load(f"{tmp_path}#text")
    assert not pictures.report.notes + texts.report.notes
    assert texts.config.vector is not None and texts.config.vector.mark == texts.config.vocab_size - 1
    assert isinstance(pictures.processor, ImageProcessor) and pictures.processor.resize == 12


def test_siglip_judges_each_text_by_itself(tmp_path: Path) -> None:
    torch.manual_seed(0)
    made = transformers.SiglipConfig(text_config=SIGLIP_TEXT, vision_config=SIGLIP_PICTURE)
    model = shaken(transformers.SiglipModel(made))
    model.save_pretrained(tmp_path)
    pictures, texts = load(tmp_path), load(f"{tmp_path}#text")
    with torch.no_grad():
        expected = model(input_ids=TEXTS, pixel_values=PIXELS)
    found = cosines(run(pictures.model, PIXELS)["vector.out"], run(texts.model, TEXTS)["vector.out"])
    assert pictures.pair is not None and pictures.pair.each
    equal(pictures.pair.scores(found), expected.logits_per_image)
    equal(pictures.pair.probabilities(found).float(), expected.logits_per_image.sigmoid())


def test_a_text_is_filled_up_where_the_model_was_trained_so(tmp_path: Path) -> None:
    clip_folder(tmp_path)
    size = load(f"{tmp_path}#text").config.vocab_size
    torch.manual_seed(0)
    model = shaken(transformers.SiglipTextModel(transformers.SiglipTextConfig(**SIGLIP_TEXT | {"vocab_size": size})))
    model.save_pretrained(tmp_path)
    ours = load(tmp_path)
    read = tokens(ours, "a cat")
    assert (
        len(read) == 16
        and set(read.ids[4:]) == {1}
        and all(read.special[4:])
        and read.pieces[4] == ours.tokenizer.piece(1)
    )
    with torch.no_grad():
        equal(text_vectors(ours, ["a cat"]), model(torch.tensor([read.ids])).pooler_output)


@pytest.mark.parametrize(("name", "before"), [("registers", 4), ("dinov2", 1), ("dinov3, gated", 4)])
def test_positions_are_interpolated_to_the_size_that_a_processor_makes(name: str, before: int, tmp_path: Path) -> None:
    model = made(name)
    model.save_pretrained(tmp_path)
    BitImageProcessor(size={"shortest_edge": 20}, crop_size={"height": 20, "width": 20}).save_pretrained(tmp_path)
    checkpoint = load(tmp_path)
    assert checkpoint.config.context == before + 25 and checkpoint.report.ok and not checkpoint.report.notes
    pixels = tiny.normal(1, 3, 20, 20)
    trace = run(checkpoint.model, pixels)
    for other in (model, written_back(checkpoint, tmp_path / "ours", type(model))):
        with torch.no_grad():
            expected = other(pixels, output_attentions=True)
        equal(trace["final_norm.out"], expected.last_hidden_state)
        equal_patterns(trace, "attn.pattern", expected.attentions)
