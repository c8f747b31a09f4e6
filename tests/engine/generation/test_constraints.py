"""What a checkpoint asks for when it writes, against transformers' `generate` of the same folder."""

import json
from dataclasses import replace
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoModelForSeq2SeqLM, GenerationConfig, GPT2Config, GPT2LMHeadModel

from engine.checkpoints import load
from engine.checkpoints.generation_config import read_generation
from engine.generation.beam import beam
from engine.generation.generate import generate
from tests.engine.twins import random_weights, twins

SOURCE = [5, 9, 7, 4, 12, 6]
ROOM = 12
ENDS = [3, 8]
ASKED: list[dict[str, Any]] = [
    {"forced_bos_token_id": 7},
    {"forced_eos_token_id": 3},
    {"forced_eos_token_id": [8, 3]},
    {"bad_words_ids": [[7], [12, 9], [3], [5, 6, 7]]},
    {"suppress_tokens": list(range(0, 17, 2))},
    {"begin_suppress_tokens": list(range(10)), "forced_bos_token_id": 7},
    {"no_repeat_ngram_size": 1},
    {"no_repeat_ngram_size": 2},
    {"encoder_no_repeat_ngram_size": 1},
    {"encoder_no_repeat_ngram_size": 2, "no_repeat_ngram_size": 3},
    {"encoder_repetition_penalty": 3.0},
    {"repetition_penalty": 1.8},
    {"min_length": 11},
    {"min_new_tokens": 9, "repetition_penalty": 1.3},
    {"sequence_bias": [[[4], 5.0], [[4, 6], -50.0]]},
    {"exponential_decay_length_penalty": [2, 1.6]},
    {"bad_words_ids": [[7]], "no_repeat_ngram_size": 2, "min_length": 9, "forced_eos_token_id": 8, "num_beams": 3,
     "length_penalty": 2.0, "early_stopping": True, "renormalize_logits": True},
]  # fmt: skip


def pair(kind: str, asked: dict[str, Any], folder: Path):
    """The model of a folder whose generation_config.json asks for so much, as Loupe and as transformers read it."""
    _, theirs = twins(kind, seed=3, ends=ENDS)
    theirs.generation_config = GenerationConfig()
    theirs.save_pretrained(folder)
    start = theirs.config.decoder_start_token_id if theirs.config.is_encoder_decoder else None
    said = {"eos_token_id": ENDS, "pad_token_id": 0, "decoder_start_token_id": start, **asked}
    (folder / "generation_config.json").write_text(json.dumps(said))
    reads = AutoModelForSeq2SeqLM if theirs.config.is_encoder_decoder else AutoModelForCausalLM
    return load(folder), reads.from_pretrained(folder).eval()


def written_by(theirs, **settings) -> list[int]:
    read = torch.tensor([SOURCE])
    found = theirs.generate(read, attention_mask=torch.ones_like(read), **settings)[0].tolist()
    return found[1 if theirs.config.is_encoder_decoder else len(SOURCE) :]


@pytest.mark.parametrize("kind", ["gpt2", "bart"])
@pytest.mark.parametrize("asked", ASKED, ids=lambda asked: "+".join(asked))
def test_greedy_and_beams_write_what_transformers_writes(kind: str, asked: dict[str, Any], tmp_path: Path) -> None:
    ours, theirs = pair(kind, asked, tmp_path)
    greedy = written_by(theirs, max_new_tokens=ROOM, do_sample=False, num_beams=1)
    assert [step.id for step in generate(ours, SOURCE, ROOM, greedy=True)] == greedy
    count = asked.get("num_beams", 4)
    searched = written_by(theirs, max_new_tokens=ROOM, do_sample=False, num_beams=count)
    best = beam(ours, SOURCE, None if "num_beams" in asked else count, ROOM).hypotheses[0].ids
    certain = len(best) - isinstance(asked.get("forced_eos_token_id"), list)  # of two that are forced either may come
    assert list(best[:certain]) == searched[:certain]
    assert set(searched[len(best) :]) <= {0}  # padding


EACH: list[tuple[str, Any]] = [
    ("forced_bos_token_id", 7),
    ("forced_eos_token_id", 3),
    ("bad_words_ids", [[7], [7], [12, 9], [3]]),
    ("suppress_tokens", [8, 1, 8]),
    ("begin_suppress_tokens", [7, 3, 11]),
    ("sequence_bias", [[[8], -9.0], [[8], 3.0], [[7, 8], 5.0], [[7, 8], -50.0]]),
    ("no_repeat_ngram_size", 1),
    ("encoder_repetition_penalty", 2.5),
    ("exponential_decay_length_penalty", [1, 1.7]),
    ("min_length", 9),
    ("min_new_tokens", 2),
    ("max_length", 7),
    ("max_new_tokens", 6),
    ("repetition_penalty", 1.9),
    ("eos_token_id", [3, 8, 3]),
]


def test_of_any_two_settings_each_counts_as_much_as_in_transformers(tmp_path: Path) -> None:
    torch.manual_seed(3)
    theirs = GPT2LMHeadModel(GPT2Config(vocab_size=17, n_positions=32, n_embd=16, n_layer=1, n_head=2)).eval()
    random_weights(theirs, 3)
    theirs.save_pretrained(tmp_path)
    ours, differ = load(tmp_path), []
    for one, other in combinations(EACH, 2):
        said = {"max_new_tokens": 6, "eos_token_id": 3, "num_beams": 1, "pad_token_id": 0, **dict((one, other))}
        if "max_length" in (one[0], other[0]) and "max_new_tokens" not in (one[0], other[0]):
            del said["max_new_tokens"]
        ends = said["eos_token_id"] if isinstance(said["eos_token_id"], list) else [said["eos_token_id"]]
        asked, notes = read_generation(said, {}, 17)
        read = torch.tensor([SOURCE])
        settings = {"generation_config": GenerationConfig(**said), "attention_mask": torch.ones_like(read)}
        expected = theirs.generate(read, do_sample=False, **settings)[0, len(SOURCE) :].tolist()
        written = [step.id for step in generate(replace(ours, writing=asked, end_ids=tuple(ends)), SOURCE, greedy=True)]
        differ += [(one, other)] if written != expected or notes else []
    assert differ == []


def test_what_leaves_no_room_or_no_token_is_said(tmp_path: Path) -> None:
    ours, theirs = pair("gpt2", {"max_length": len(SOURCE)}, tmp_path)
    for write in (lambda: list(generate(ours, SOURCE)), lambda: beam(ours, SOURCE, 2)):
        with pytest.raises(ValueError, match="max_length, 6, counts the prompt too, which has 6 tokens"):
            write()
    assert len(list(generate(ours, SOURCE, 3, stop_at_end=False))) == 3
    _, notes = read_generation({"forced_eos_token_id": [3, 3], "suppress_tokens": [3]}, {}, 17)
    assert notes == (
        "generation_config.json's forced_eos_token_id forces what suppress_tokens forbids, [3, 3]: it is not obeyed.",
    )
    ours, _ = pair("gpt2", {"suppress_tokens": list(range(theirs.config.vocab_size))}, tmp_path)
    ways = [{"greedy": True}, {"top_k": 3}, {"top_p": 0.5}, {"top_k": 4, "penalty_alpha": 0.6}]
    for write in (*(partial(generate, **way) for way in ways), lambda *given: beam(*given, 2).steps):
        with pytest.raises(ValueError, match="^suppress_tokens of the .* leaves no token to follow 0 tokens; take"):
            list(write(ours, SOURCE))
    ids = [*range(theirs.config.vocab_size)]
    ours, _ = pair("gpt2", {"suppress_tokens": ids[:9], "no_repeat_ngram_size": 1, "bad_words_ids": [[9]]}, tmp_path)
    with pytest.raises(ValueError, match="^no_repeat_ngram_size, bad_words_ids, suppress_tokens of .* leave no token"):
        list(generate(ours, SOURCE, 30, stop_at_end=False, temperature=2.0))


@pytest.mark.parametrize("kind", ["gpt2", "bart"])
@pytest.mark.parametrize("length", [{"max_length": 9}, {"max_new_tokens": 5}])
def test_nobody_naming_settings_the_checkpoints_hold(kind: str, length: dict[str, int], tmp_path: Path) -> None:
    ours, theirs = pair(kind, {"do_sample": False, "repetition_penalty": 1.4, **length}, tmp_path)
    assert [step.id for step in generate(ours, SOURCE)] == written_by(theirs)
    asked = {"do_sample": True, "temperature": 0.5, "top_k": 4, "top_p": 0.9, "min_p": 0.01, "typical_p": 0.95}
    ours, _ = pair(kind, asked, tmp_path)
    step = next(generate(ours, SOURCE))
    given = {name: value for name, value in asked.items() if name != "do_sample"}
    assert step.sampling == next(generate(ours, SOURCE, **given)).sampling
    assert step.sampling.temperature == 0.5
    assert next(generate(ours, SOURCE, temperature=1.0, top_k=0)).sampling.temperature == 1.0


def test_every_step_keeps_the_distribution_it_was_chosen_from(tmp_path: Path) -> None:
    ours, _ = pair("gpt2", {"suppress_tokens": [1, 2], "no_repeat_ngram_size": 1}, tmp_path)
    for step in generate(ours, SOURCE, 5, seed=1):
        assert not step.distribution.probabilities[[1, 2, *step.before]].any()
        assert step.logits.isfinite().all()  # those of the model
