"""Models of pictures against transformers: ViT and ImageGPT."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import (
    ImageGPTConfig,
    ImageGPTForCausalImageModeling,
    ViTConfig,
    ViTForImageClassification,
    ViTModel,
)

from engine import load
from engine.checkpoints import Checkpoint
from engine.inputs.processors import ImageProcessor, PalettePixels
from engine.runtime.run import run
from tests.engine import tiny
from tests.engine.checkpoints.against import equal, equal_patterns, opened, shaken, written_back

VIT = {"hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 36}
VIT |= {"image_size": 12, "patch_size": 4, "num_channels": 3, "num_labels": 5}
IMAGEGPT = {"vocab_size": 17, "n_positions": 64, "n_embd": 24, "n_layer": 2, "n_head": 4}
PIXELS = tiny.normal(2, 3, 12, 12)
IDS = torch.tensor([[16, 0, 3, 7, 7, 15, 12, 3, 9, 1]])


def vit(kind: type = ViTForImageClassification, **changes: Any) -> Any:
    torch.manual_seed(0)
    return shaken(kind(ViTConfig(**{**VIT, **changes})))


@pytest.mark.parametrize(
    "changes", [{}, {"qkv_bias": False}, {"num_channels": 1}, {"hidden_act": "relu", "layer_norm_eps": 0.1}], ids=str
)
def test_vit_equals_transformers_and_is_read_back(changes: dict[str, Any], tmp_path: Path) -> None:
    model = vit(**changes)
    pixels = PIXELS[:, : changes.get("num_channels", 3)]
    checkpoint = opened(model, tmp_path / "theirs")
    assert checkpoint.config.context == 10
    assert checkpoint.config.head.classes == 5
    with torch.no_grad():
        expected = model(pixels, output_attentions=True)
    trace = run(checkpoint.model, pixels)
    equal(trace["logits"], expected.logits)
    equal_patterns(trace, "attn.pattern", expected.attentions)
    with torch.no_grad():
        again = written_back(checkpoint, tmp_path / "ours", ViTForImageClassification)(pixels).logits
    equal(trace["logits"], again)


@pytest.mark.parametrize("pooler", [True, False])
def test_vits_body_equals_transformers(pooler: bool, tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = shaken(ViTModel(ViTConfig(**VIT), add_pooling_layer=pooler))
    checkpoint = opened(model, tmp_path)
    assert checkpoint.config.head.pooler is pooler
    trace = run(checkpoint.model, PIXELS)
    with torch.no_grad():
        expected = model(PIXELS)
    equal(trace["final_norm.out"], expected.last_hidden_state)
    if pooler:
        equal(trace["pooler.out"], expected.pooler_output)
        with torch.no_grad():
            again = written_back(checkpoint, tmp_path / "ours", ViTModel)(PIXELS)
        equal(trace["pooler.out"], again.pooler_output)


@pytest.mark.parametrize("changes", [{}, {"n_inner": 40}, {"activation_function": "gelu"}], ids=str)
def test_imagegpt_equals_transformers_and_is_read_back(changes: dict[str, Any], tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = shaken(ImageGPTForCausalImageModeling(ImageGPTConfig(**IMAGEGPT | changes)))
    checkpoint = opened(model, tmp_path / "theirs")
    trace = run(checkpoint.model, IDS)
    assert trace["logits"].shape == (1, 10, 16)
    with torch.no_grad():
        expected = model(IDS, output_attentions=True)
        again = written_back(checkpoint, tmp_path / "ours", ImageGPTForCausalImageModeling)(IDS).logits
    equal(trace["logits"], expected.logits)
    equal_patterns(trace, "attn.pattern", expected.attentions)
    equal(trace["logits"], again)


@pytest.mark.parametrize(
    "processor", [ImageProcessor((12, 12)), PalettePixels.grey((8, 8), 16)], ids=["ViT", "palette"]
)
def test_the_processor_comes_and_goes_with_a_checkpoint(processor: Any, tmp_path: Path) -> None:
    checkpoint = opened(vit(), tmp_path / "theirs")
    assert checkpoint.processor is None
    Checkpoint(checkpoint.model, processor=processor).save(tmp_path / "ours")
    assert load(tmp_path / "ours").processor == processor


def test_a_processor_that_cannot_be_read_is_a_note_and_not_a_failure(tmp_path: Path) -> None:
    opened(vit(), tmp_path)
    (tmp_path / "preprocessor_config.json").write_text('{"image_processor_type": "LevitImageProcessor"}')
    checkpoint = load(tmp_path)
    assert checkpoint.processor is None
    assert "No processor of pictures: " in str(checkpoint.report)


def test_a_processor_goes_by_the_type_of_its_model_and_a_size_that_does_not_fit_is_a_note(tmp_path: Path) -> None:
    checkpoint = opened(vit(), tmp_path)
    patches = checkpoint.config.embedding.patches
    assert patches is not None
    fitting: dict[str, Any] = {"size": patches.image, "image_mean": 0.4}
    (tmp_path / "preprocessor_config.json").write_text(json.dumps(fitting))
    fitted = load(tmp_path)
    assert fitted.processor == ImageProcessor((patches.image,) * 2, mean=(0.4,) * 3)
    assert fitted.report.notes == checkpoint.report.notes
    (tmp_path / "preprocessor_config.json").write_text(json.dumps(fitting | {"do_mirror": True}))
    (note,) = set(load(tmp_path).report.notes) - set(checkpoint.report.notes)
    assert re.fullmatch(r"preprocessor_config\.json has keys that .*, so not obeyed: 'do_mirror'\.", note)
    (tmp_path / "preprocessor_config.json").write_text("{}")
    assert f"224 x 224 pixels large and the model reads {patches.image} x " in str(load(tmp_path).report)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"image_size": 13}, "patches.size must divide the image's 13 pixels, got 4"),
        ({"pooler_output_size": 8, "architectures": ["ViTModel"]}, "pooler_output_size must be its hidden_size, got 8"),
        ({"architectures": ["ViTForMaskedImageModeling"]}, "architectures must be one of ViTForImageClassification, "),
    ],
    ids=str,
)
def test_what_loupe_cannot_represent_is_said_in_one_sentence(
    changes: dict[str, Any], message: str, tmp_path: Path
) -> None:
    (vit(ViTModel) if "pooler_output_size" in changes else vit()).save_pretrained(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text()) | changes
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(ValueError, match=message) as raised:
        load(tmp_path)
    assert "\n" not in str(raised.value)
