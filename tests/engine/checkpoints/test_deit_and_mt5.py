"""The distilled ViT and the multilingual T5 against transformers."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file
from transformers import DeiTConfig, MT5Config, MT5ForConditionalGeneration, T5ForConditionalGeneration

from engine import load
from engine.checkpoints import Checkpoint
from engine.runtime.run import run
from tests.engine import tiny
from tests.engine.checkpoints.against import IDS, equal, equal_pair, equal_patterns, opened, shaken, written_back

DEIT = {"hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 3, "intermediate_size": 96}
DEIT |= {"image_size": 12, "patch_size": 4, "num_channels": 3, "num_labels": 5}
HEADS = ("DeiTForImageClassification", "DeiTForImageClassificationWithTeacher", "DeiTModel")
PIXELS = tiny.normal(2, 3, 12, 12)
MT5 = {"vocab_size": 40, "d_model": 32, "d_kv": 8, "d_ff": 64, "num_layers": 2, "num_decoder_layers": 3, "num_heads": 6}
MT5 |= {"relative_attention_num_buckets": 8, "relative_attention_max_distance": 12}


def deit(name: str, **changes: Any) -> Any:
    torch.manual_seed(0)
    return shaken(getattr(transformers, name)(DeiTConfig(**DEIT | changes)))


def mt5(**changes: Any) -> Any:
    torch.manual_seed(0)
    return shaken(MT5ForConditionalGeneration(MT5Config(**MT5 | changes)))


@pytest.mark.parametrize("changes", [{}, {"qkv_bias": False, "hidden_act": "relu", "layer_norm_eps": 0.1}], ids=str)
@pytest.mark.parametrize("name", HEADS)
def test_deit_equals_transformers_and_is_read_back(name: str, changes: dict[str, Any], tmp_path: Path) -> None:
    model = deit(name, **changes)
    checkpoint = opened(model, tmp_path / "theirs")
    assert checkpoint.config.context == 11
    assert checkpoint.config.head.averaged == name.endswith("Teacher")
    trace = run(checkpoint.model, PIXELS)
    for other in (model, written_back(checkpoint, tmp_path / "ours", type(model))):
        with torch.no_grad():
            expected = other(PIXELS, output_attentions=True)
        equal_patterns(trace, "attn.pattern", expected.attentions)
        if "cls_logits" in expected:
            equal(trace["head.cls"], expected.cls_logits)
            equal(trace["head.distilled"], expected.distillation_logits)
        if "logits" in expected:
            equal(trace["logits"], expected.logits)
        else:
            equal(trace["final_norm.out"], expected.last_hidden_state)
            equal(trace["pooler.out"], expected.pooler_output)


def test_both_first_vectors_stand_before_the_patches(tmp_path: Path) -> None:
    model = deit("DeiTForImageClassificationWithTeacher")
    trace = run(opened(model, tmp_path).model, PIXELS)
    first = model.deit.embeddings
    assert trace["embed.patches"].shape == (2, 11, 24)
    equal(trace["embed.patches"][0, 0], first.cls_token.detach()[0, 0])
    equal(trace["embed.patches"][1, 1], first.distillation_token.detach()[0, 0])


@pytest.mark.parametrize("name", HEADS)
def test_without_an_architecture_the_tensors_tell_the_head(name: str, tmp_path: Path) -> None:
    deit(name).save_pretrained(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    del config["architectures"]
    (tmp_path / "config.json").write_text(json.dumps(config))
    head = load(tmp_path).config.head
    assert (head.averaged, head.pooler) == (name.endswith("Teacher"), name == "DeiTModel")


def test_masked_pictures_are_refused(tmp_path: Path) -> None:
    deit("DeiTForMaskedImageModeling", encoder_stride=4).save_pretrained(tmp_path)
    with pytest.raises(ValueError, match=r"architectures must be one of DeiTForImageClassificationWithTeacher, "):
        load(tmp_path)


@pytest.mark.parametrize("changes", [{}, {"feed_forward_proj": "relu"}], ids=str)
def test_mt5_equals_transformers_and_is_read_back(changes: dict[str, Any], tmp_path: Path) -> None:
    model = mt5(**changes)
    checkpoint = opened(model, tmp_path / "theirs")
    assert checkpoint.config.head.scale == 1.0  # unlike T5's, whose tied head is scaled
    equal_pair(checkpoint, model)
    equal_pair(checkpoint, written_back(checkpoint, tmp_path / "ours", MT5ForConditionalGeneration))


def published(folder: Path) -> None:
    """As mt5-small is: a head of its own, and a config that leaves the kind of MLP to its family."""
    mt5().save_pretrained(folder)
    tensors = load_file(folder / "model.safetensors")
    save_file(tensors | {"lm_head.weight": tiny.normal(40, 32)}, folder / "model.safetensors", {"format": "pt"})
    config = json.loads((folder / "config.json").read_text()) | {"tie_word_embeddings": False}
    for name in ("feed_forward_proj", "dense_act_fn", "is_gated_act"):
        config.pop(name, None)
    (folder / "config.json").write_text(json.dumps(config))


def test_the_published_mt5_has_a_head_of_its_own(tmp_path: Path) -> None:
    published(tmp_path / "theirs")
    checkpoint = load(tmp_path / "theirs")
    assert checkpoint.report.ok and not checkpoint.config.tied
    mlp = checkpoint.config.mlp
    assert mlp is not None and mlp.gated and mlp.activation == "gelu_tanh"
    folder, attention = tmp_path / "theirs", {"attn_implementation": "eager"}
    equal_pair(checkpoint, MT5ForConditionalGeneration.from_pretrained(folder, **attention).eval())
    equal_pair(checkpoint, written_back(checkpoint, tmp_path / "ours", MT5ForConditionalGeneration))


def test_an_mt5_without_its_files_is_written_as_t5(tmp_path: Path) -> None:
    published(tmp_path / "theirs")
    checkpoint = Checkpoint(load(tmp_path / "theirs").model)
    equal_pair(checkpoint, written_back(checkpoint, tmp_path / "ours", T5ForConditionalGeneration))


@pytest.mark.parametrize("name", ["MT5ForSequenceClassification", "MT5ForQuestionAnswering"])
def test_an_mt5_that_judges_its_text_equals_transformers(name: str, tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = shaken(getattr(transformers, name)(MT5Config(**MT5 | {"num_labels": 2 if "Question" in name else 3})))
    checkpoint = opened(model, tmp_path / "theirs")
    ended = torch.tensor([[5, 0, 30, 7, 7, 31, 12, 3, 24, 1]])
    trace = run(checkpoint.model, ended)
    again = written_back(checkpoint, tmp_path / "ours", type(model))
    again.config.pad_token_id = model.config.pad_token_id  # which is the tokenizer's to know, and there is none
    for other in (model, again):
        with torch.no_grad():
            expected = other(ended, output_attentions=True)
        answers = "start_logits" in expected
        wanted = torch.stack([expected.start_logits, expected.end_logits], -1) if answers else expected.logits
        equal(trace["logits"], wanted)
        equal_patterns(trace, "cross_attn.pattern", expected.cross_attentions)


@pytest.mark.parametrize("name", ["MT5EncoderModel", "MT5ForTokenClassification"])
def test_mt5s_encoder_alone_equals_transformers(name: str, tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = shaken(getattr(transformers, name)(MT5Config(**MT5 | {"num_labels": 3})))
    checkpoint = opened(model, tmp_path / "theirs")
    assert checkpoint.config.encoder is None
    trace = run(checkpoint.model, IDS)
    for other in (model, written_back(checkpoint, tmp_path / "ours", type(model))):
        with torch.no_grad():
            expected = other(IDS, output_attentions=True)
        equal_patterns(trace, "attn.pattern", expected.attentions)
        equal(trace["logits"] if "logits" in expected else trace["final_norm.out"], expected[0])
