"""Whisper against transformers: log-mel frames, all numbers of both stacks, and what is saved."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import WhisperConfig, WhisperForAudioClassification, WhisperForConditionalGeneration

from engine import load, run
from tests.engine import tiny
from tests.engine.checkpoints.against import TARGET, equal, equal_patterns, opened, shaken, written_back

WHISPER = {"vocab_size": 40, "num_mel_bins": 5, "max_source_positions": 9, "max_target_positions": 24, "d_model": 24}
WHISPER |= {"encoder_layers": 2, "decoder_layers": 3, "encoder_attention_heads": 4, "decoder_attention_heads": 3}
WHISPER |= {"encoder_ffn_dim": 36, "decoder_ffn_dim": 32, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 1}
WHISPER |= {"decoder_start_token_id": 2, "begin_suppress_tokens": None}


def theirs(kind: Any = WhisperForConditionalGeneration, **changes: Any) -> Any:
    torch.manual_seed(0)
    model = kind(WhisperConfig(**WHISPER | changes))
    model.requires_grad_(True)  # the table of sinusoids too, so that it is shaken
    return shaken(model)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"num_mel_bins": 7, "max_source_positions": 4, "max_target_positions": 8, "decoder_layers": 1},
        {"activation_function": "relu", "scale_embedding": True, "tie_word_embeddings": False},
        {"encoder_layers": 1, "decoder_attention_heads": 6, "d_model": 36},
    ],
    ids=str,
)
def test_all_numbers_equal_transformers_and_are_read_back(changes: dict[str, Any], tmp_path: Path) -> None:
    model = theirs(**changes)
    checkpoint = opened(model, tmp_path / "theirs")
    assert checkpoint.report.notes == ()
    sizes = WHISPER | changes
    mel = tiny.normal(2, sizes["num_mel_bins"], 2 * sizes["max_source_positions"])
    target = TARGET.repeat(2, 1)
    trace = run(checkpoint.model, mel, target=target)
    with torch.no_grad():
        given = {"input_features": mel, "decoder_input_ids": target}
        expected = model(**given, output_attentions=True, output_hidden_states=True)
        again = written_back(checkpoint, tmp_path / "ours", WhisperForConditionalGeneration)(**given).logits
    torch.testing.assert_close(trace["logits"], expected.logits, atol=1e-5, rtol=0)
    equal(trace["logits"], again)
    equal_patterns(trace, "encoder.attn.pattern", expected.encoder_attentions)
    equal_patterns(trace, "decoder.attn.pattern", expected.decoder_attentions)
    equal_patterns(trace, "cross_attn.pattern", expected.cross_attentions)
    equal(trace["encoder.blocks.0.resid_pre"], expected.encoder_hidden_states[0])
    with torch.no_grad():
        heard = torch.nn.functional.gelu(model.model.encoder.conv1(mel)).mT
    equal(trace["encoder.embed.conv1.post"], heard)


@pytest.mark.parametrize(
    ("read", "message"),
    [
        (torch.zeros(1, 5, 17), "this model reads sounds, batch x 5 x 18 .mel, frame., got 1 x 5 x 17; make them with"),
        (torch.tensor([[3, 1, 4]]), "this model reads sounds, batch x 5 x 18 .mel, frame., got 1 x 3; make them with"),
    ],
    ids=str,
)
def test_what_it_cannot_read_is_one_sentence(read: torch.Tensor, message: str, tmp_path: Path) -> None:
    model = opened(theirs(), tmp_path).model
    with pytest.raises(ValueError, match=message):
        run(model, read)


def test_a_body_opens_as_what_predicts_by_its_own_table(tmp_path: Path) -> None:
    whole = theirs()
    whole.model.save_pretrained(tmp_path)
    mel, checkpoint = tiny.normal(1, 5, 18), load(tmp_path)
    assert checkpoint.report.ok
    with torch.no_grad():
        expected = whole(input_features=mel, decoder_input_ids=TARGET).logits
    equal(run(checkpoint.model, mel, target=TARGET)["logits"], expected)


def test_a_classifier_of_sounds_is_refused_in_one_sentence(tmp_path: Path) -> None:
    theirs(WhisperForAudioClassification).save_pretrained(tmp_path)
    assert "WhisperForAudioClassification" in json.loads((tmp_path / "config.json").read_text())["architectures"]
    with pytest.raises(ValueError, match="must be one of WhisperForConditionalGeneration, WhisperModel, got"):
        load(tmp_path)
