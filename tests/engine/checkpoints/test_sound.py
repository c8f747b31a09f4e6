"""Whisper against transformers: log-mel frames, all numbers of both stacks, and what is saved."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import (
    GenerationConfig,
    WhisperConfig,
    WhisperFeatureExtractor,
    WhisperForAudioClassification,
    WhisperForConditionalGeneration,
    WhisperTokenizer,
)

from engine import generate, load, run
from engine.edits import SilenceHeads
from engine.inputs.sound import SoundProcessor, Waveform
from engine.tokenizers import train
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


GENERATION = {
    "decoder_start_token_id": 2, "eos_token_id": 1, "pad_token_id": 0, "bos_token_id": 1, "is_multilingual": True,
    "lang_to_id": {"<|en|>": 3, "<|fr|>": 4}, "task_to_id": {"translate": 5, "transcribe": 6},
    "no_timestamps_token_id": 39, "suppress_tokens": [2, 3, 4, 5, 6, 39], "begin_suppress_tokens": [1, 20],
    "return_timestamps": False, "max_length": 24, "alignment_heads": [[0, 0]],
    "forced_decoder_ids": [[1, None], [2, 6]],
}  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "target"),
    [
        ({}, [2, 3, 6, 39]),  # <|startoftranscript|><|en|><|transcribe|><|notimestamps|>
        ({}, None),
        ({"forced_decoder_ids": None}, None),
        ({"language": "fr", "task": "translate"}, None),
        ({"language": "<|fr|>", "forced_decoder_ids": None}, None),
    ],
    ids=str,
)
def test_what_is_written_of_a_sound_is_what_transformers_writes(
    changes: dict[str, Any], target: list[int] | None, tmp_path: Path
) -> None:
    model = theirs(init_std=0.4, tie_word_embeddings=False)
    asked = {name: value for name, value in {**GENERATION, **changes}.items() if value is not None}
    model.generation_config = GenerationConfig(**asked)
    checkpoint = opened(model, tmp_path)
    assert checkpoint.report.notes == ()
    wrote: set[int] = set()
    for seed in range(3):
        mel = tiny.normal(1, 5, 18, seed=seed)
        given = {} if target is None else {"decoder_input_ids": torch.tensor([target])}
        theirs_wrote = model.generate(mel, do_sample=False, num_beams=1, return_dict_in_generate=True, **given)
        whole = theirs_wrote["sequences"][0].tolist()
        steps = list(generate(checkpoint, mel, target=target, greedy=True))
        ours = [*steps[0].before, *(step.id for step in steps)]
        assert [id for id in ours if id != 1] == [id for id in whole if id != 1], seed
        wrote |= {step.id for step in steps}
        again = run(checkpoint.model, steps[-1].source, target=steps[-1].before)["logits"][0, -1]
        equal(steps[-1].logits, again)  # of cached keys and values
    assert len(wrote) > 4
    checkpoint.save(tmp_path / "ours")
    assert load(tmp_path / "ours").writing == checkpoint.writing


def test_a_sound_is_heard_by_the_checkpoint_that_opened_it(tmp_path: Path) -> None:
    model = theirs(max_source_positions=50)
    WhisperFeatureExtractor(feature_size=5, chunk_length=1).save_pretrained(tmp_path)
    checkpoint = opened(model, tmp_path)
    assert checkpoint.processor == SoundProcessor(bins=5, seconds=1)
    checkpoint.save(tmp_path / "ours")
    assert load(tmp_path / "ours").processor == checkpoint.processor
    assert WhisperFeatureExtractor.from_pretrained(tmp_path / "ours").nb_max_frames == 100
    sound = Waveform(0.1 * tiny.normal(7000), 16_000)
    steps = list(generate(checkpoint, sound, max_tokens=3, greedy=True))
    mel = checkpoint.processor.mel(sound)
    assert [step.id for step in steps] == [step.id for step in generate(checkpoint, mel, max_tokens=3, greedy=True)]
    edited = list(generate(checkpoint, sound, max_tokens=3, greedy=True, edits=[SilenceHeads(0, [0], stack="decoder")]))
    assert not torch.equal(edited[0].logits, steps[0].logits)
    with pytest.raises(ValueError, match="this model hears a sound, and got a text"):
        next(generate(checkpoint, "a text"))
    with pytest.raises(ValueError, match="this model reads a text, and got a sound"):
        next(generate(load("stories"), sound))
    (tmp_path / "preprocessor_config.json").write_text(json.dumps({"chunk_length": 2, "feature_size": 5, "dither": 1}))
    notes = load(tmp_path).report.notes
    assert "makes 200 frames of 5 mel bins and the model reads 100 of 5; correct chunk_length" in notes[-1]
    assert "has keys that Loupe does not read for its sounds, so not obeyed: 'dither'" in notes[-2]


SPECIAL = ["<|endoftext|>", "<|startoftranscript|>", "<|en|>", "<|fr|>", "<|translate|>", "<|transcribe|>"]
SPECIAL += ["<|notimestamps|>"]
TIMES = [f"<|{n * 0.02:.2f}|>" for n in range(1501)]


def test_a_transcript_is_read_as_its_tokens_say(tmp_path: Path) -> None:
    learned = json.loads(train("bpe", ["the cat said hello to the dog "] * 5, 300).fast.to_str())["model"]
    words = {word: id for id, word in enumerate(word for word in learned["vocab"] if not word.startswith("<|"))}
    tokenizer = WhisperTokenizer(vocab=words, merges=[tuple(pair) for pair in learned["merges"]])
    tokenizer.add_special_tokens({"extra_special_tokens": SPECIAL})
    tokenizer.add_tokens(TIMES)
    tokenizer.set_prefix_tokens()
    tokenizer.save_pretrained(tmp_path)
    end, start, english, french, translate, transcribe, no_times = tokenizer.convert_tokens_to_ids(SPECIAL)
    ends = {"decoder_start_token_id": start, "eos_token_id": end, "bos_token_id": end, "pad_token_id": end}
    model = theirs(vocab_size=len(tokenizer), init_std=0.4, **ends)
    model.generation_config = GenerationConfig(
        **ends, lang_to_id={"<|en|>": english, "<|fr|>": french}, no_timestamps_token_id=no_times,
        task_to_id={"translate": translate, "transcribe": transcribe}, language="en",
    )  # fmt: skip
    checkpoint = opened(model, tmp_path)
    assert checkpoint.tokenizer is not None and checkpoint.end_ids == (end,)
    assert checkpoint.report.notes == ()
    said = "<|startoftranscript|><|fr|><|translate|><|0.00|> the cat said hello<|2.40|>"
    for text in (" the dog", said, f"{said}<|endoftext|>"):
        assert list(checkpoint.tokenizer.encode(text).ids) == tokenizer(text)["input_ids"]
    written = checkpoint.target(said)
    assert [*written.ids] == tokenizer(said, add_special_tokens=False)["input_ids"]
    assert written.pieces[3] == "<|0.00|>" and checkpoint.target(said[21:]).ids == written.ids
    mel = tiny.normal(1, 5, 18)
    before = {text: next(generate(checkpoint, mel, target=text)).before for text in (said, " the dog")}
    assert before[said] == written.ids
    plain = tokenizer(" the dog", add_special_tokens=False)["input_ids"]
    assert before[" the dog"] == (start, english, transcribe, no_times, *plain)
    checkpoint.save(tmp_path / "ours")
    again = WhisperTokenizer.from_pretrained(tmp_path / "ours")
    assert again(said)["input_ids"] == tokenizer(said)["input_ids"]
