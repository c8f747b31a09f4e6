"""What is written, and from which distributions, against transformers' `generate` with the same settings."""

from pathlib import Path

import pytest
import torch
from transformers import (
    GPT2Config,
    GPT2LMHeadModel,
    ImageGPTConfig,
    ImageGPTForCausalImageModeling,
    PreTrainedTokenizerFast,
)
from transformers.generation.stopping_criteria import StopStringCriteria

from engine.checkpoints import Checkpoint, load
from engine.edits import PresetMask
from engine.generation.beam import beam
from engine.generation.generate import generate
from engine.generation.prompt import Prompt
from engine.generation.stopping import Stop, stopping_rules
from engine.tokenizers.trainers import train
from tests.engine import tiny
from tests.engine.checkpoints.against import opened, shaken
from tests.engine.twins import START, Twins, random_weights, twins

SOURCE = [5, 9, 7, 4, 12, 6]
KINDS = ("gpt2", "t5", "bart", "imagegpt")
SETTINGS = [
    {"temperature": 0.6},
    {"top_k": 5},
    {"top_p": 0.8},
    {"min_p": 0.1},
    {"typical_p": 0.7},
    {"repetition_penalty": 1.7},
    {"temperature": 1.4, "top_k": 20, "top_p": 0.95, "min_p": 0.01, "typical_p": 0.9, "repetition_penalty": 1.3},
]
TEXTS = [
    "the cat sat on the mat, naïve café € said: stop it now.",
    "a stopper stopped at the stop sign; topping up the tops",
    "abcdef a b c d e f",
]


@pytest.fixture(scope="module")
def pair(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Twins:
    if request.param != "imagegpt":
        return twins(request.param, seed=3, ends=())
    shape = {"vocab_size": 17, "n_positions": 64, "n_embd": 24, "n_layer": 2, "n_head": 4}
    torch.manual_seed(0)
    theirs = shaken(ImageGPTForCausalImageModeling(ImageGPTConfig(**shape)))
    return opened(theirs, tmp_path_factory.mktemp("imagegpt")), theirs


def written_by(theirs, begun: int, **settings):
    """The ids behind the prompt, and what each was chosen from."""
    read = {"input_ids": torch.tensor([prompt_of(theirs)]), "eos_token_id": None, "pad_token_id": 0}
    read["attention_mask"] = torch.ones_like(read["input_ids"])
    torch.manual_seed(1)
    with torch.no_grad():
        found = theirs.generate(**read, return_dict_in_generate=True, output_scores=True, **settings)
    return found.sequences[0, begun:].tolist(), found.scores


def prompt_of(theirs) -> list[int]:
    return [16, *SOURCE] if isinstance(theirs, ImageGPTForCausalImageModeling) else SOURCE


def begun_of(theirs) -> int:
    return 1 if theirs.config.is_encoder_decoder else len(prompt_of(theirs))


@pytest.mark.parametrize("pair", KINDS, indirect=True)
@pytest.mark.parametrize("settings", SETTINGS, ids=lambda settings: "+".join(settings))
def test_tokens_are_drawn_from_the_distributions_that_transformers_draws_from(pair: Twins, settings) -> None:
    ours, theirs = pair
    ids, scores = written_by(theirs, begun_of(theirs), do_sample=True, max_new_tokens=9, **({"top_k": 0} | settings))
    assert len(ids) == 9
    for at, expected in enumerate(scores):
        step = next(generate(ours, SOURCE, 9, begun=ids[:at], **settings))
        assert step.index == at
        torch.testing.assert_close(step.distribution.probabilities, expected[0].softmax(-1), atol=1e-5, rtol=0)


@pytest.mark.parametrize("pair", KINDS, indirect=True)
@pytest.mark.parametrize("penalty", [1.0, 1.5, 3.0, 0.7])
def test_greedy_under_a_repetition_penalty_writes_what_transformers_writes(pair: Twins, penalty: float) -> None:
    ours, theirs = pair
    settings = {"do_sample": False, "num_beams": 1, "repetition_penalty": penalty}
    ids, _ = written_by(theirs, begun_of(theirs), max_new_tokens=20, **settings)
    mine = generate(ours, SOURCE, 20, greedy=True, stop_at_end=False, repetition_penalty=penalty)
    assert [step.id for step in mine] == ids


@pytest.mark.parametrize("pair", ["imagegpt"], indirect=True)
def test_the_beams_of_a_picture_are_those_of_transformers(pair: Twins) -> None:
    ours, theirs = pair
    read = torch.tensor([prompt_of(theirs)])
    settings = {"num_beams": 4, "num_return_sequences": 3, "max_new_tokens": 10, "do_sample": False}
    settings |= {"eos_token_id": None, "pad_token_id": 0, "return_dict_in_generate": True, "output_scores": True}
    with torch.no_grad():
        found = theirs.generate(read, attention_mask=torch.ones_like(read), **settings)
    mine = beam(ours, SOURCE, 4, 10, n_best=3, stop_at_end=False).hypotheses
    assert [list(one.ids) for one in mine] == found.sequences[:, read.shape[1] :].tolist()
    assert [one.score for one in mine] == pytest.approx(found.sequences_scores.tolist(), abs=1e-4)


@pytest.fixture(scope="module")
def short(tmp_path_factory: pytest.TempPathFactory) -> Twins:
    """A GPT-2 with places for 10 tokens, four more than the source."""
    torch.manual_seed(0)
    shape = {"vocab_size": 17, "n_positions": len(SOURCE) + 4, "n_embd": 24, "n_layer": 2, "n_head": 4}
    theirs = shaken(GPT2LMHeadModel(GPT2Config(**shape, bos_token_id=None, eos_token_id=None)))
    return opened(theirs, tmp_path_factory.mktemp("short")), theirs


@pytest.mark.parametrize("cached", [True, False], ids=["cache", "no cache"])
def test_the_last_token_of_a_full_context_is_written_as_transformers_writes_it(short: Twins, cached: bool) -> None:
    """Five tokens after six in a context of ten: the last takes no place, for nothing reads it."""
    ours, theirs = short
    settings = {"max_new_tokens": 5, "use_cache": cached}
    edits = [] if cached else [PresetMask("causal")]  # under which all is read again for each token

    ids, _ = written_by(theirs, len(SOURCE), do_sample=False, **settings)
    steps = list(generate(ours, SOURCE, greedy=True, edits=edits))
    assert [step.id for step in steps] == ids and len(ids) == 5
    assert steps[-1].stopped == Stop("context", count=10)

    sampled, scores = written_by(theirs, len(SOURCE), do_sample=True, top_k=5, temperature=1.5, **settings)
    for at, expected in enumerate(scores):
        step = next(generate(ours, SOURCE, begun=sampled[:at], top_k=5, temperature=1.5, edits=edits))
        torch.testing.assert_close(step.distribution.probabilities, expected[0].softmax(-1), atol=1e-5, rtol=1e-4)
    assert len(scores) == 5 and list(generate(ours, SOURCE, begun=sampled, edits=edits)) == []

    beams, _ = written_by(theirs, len(SOURCE), do_sample=False, num_beams=3, **settings)
    assert list(beam(ours, SOURCE, 3).hypotheses[0].ids) == beams and len(beams) == 5


def contrasted(theirs, source: list[int], begun: list[int], count: int, alpha: float, k: int) -> list[list[tuple]]:
    """Su et al. 2022, equation 5, reading everything again for every candidate: (id, confidence, penalty, score)."""

    def read(ids: list[int]) -> tuple[torch.Tensor, torch.Tensor]:
        if theirs.config.is_encoder_decoder:
            seen = theirs(torch.tensor([source]), decoder_input_ids=torch.tensor([ids]), output_hidden_states=True)
            return seen.logits[0, -1], seen.decoder_hidden_states[-1][0]
        seen = theirs(torch.tensor([ids]), output_hidden_states=True)
        return seen.logits[0, -1], seen.hidden_states[-1][0]

    ids, steps = list(begun), []
    for _ in range(count):
        logits, _ = read(ids)
        found = []
        for id in logits.topk(k).indices.tolist():
            hidden = read([*ids, id])[1]
            penalty = max(float(torch.cosine_similarity(hidden[-1], old, dim=0)) for old in hidden[:-1])
            confidence = float(logits.softmax(-1)[id])
            found.append((id, confidence, penalty, (1 - alpha) * confidence - alpha * penalty))
        best = max(found, key=lambda one: one[-1])
        steps.append([best, *(one for one in found if one is not best)])
        ids.append(best[0])
    return steps


@pytest.mark.parametrize("pair", KINDS, indirect=True)
@pytest.mark.parametrize(("alpha", "k"), [(0.6, 4), (0.9, 7), (1.0, 2)])
def test_contrastive_search_chooses_by_the_papers_formula(pair: Twins, alpha: float, k: int) -> None:
    ours, theirs = pair
    begun = [START] if theirs.config.is_encoder_decoder else prompt_of(theirs)
    with torch.no_grad():
        expected = contrasted(theirs, SOURCE, begun, 8, alpha, k)
    steps = list(generate(ours, SOURCE, 8, penalty_alpha=alpha, top_k=k, stop_at_end=False))
    assert [step.id for step in steps] == [candidates[0][0] for candidates in expected]
    for step, candidates in zip(steps, expected, strict=True):
        assert [one.id for one in step.candidates] == [one[0] for one in candidates]
        for mine, other in zip(step.candidates, candidates, strict=True):
            assert (mine.confidence, mine.penalty, mine.score) == pytest.approx(other[1:], abs=1e-4)
    assert alpha < 1 or {step.rank for step in steps} != {1}


@pytest.fixture(scope="module")
def writers(tmp_path_factory: pytest.TempPathFactory) -> tuple[Checkpoint, GPT2LMHeadModel, PreTrainedTokenizerFast]:
    """A random GPT-2 over letters and a few of their merges."""
    folder = tmp_path_factory.mktemp("writers")
    tokenizer = train("bpe-characters", TEXTS * 5, 70)
    shape = {"n_positions": 80, "n_embd": 16, "n_layer": 2, "n_head": 2}
    model = GPT2LMHeadModel(GPT2Config(vocab_size=tokenizer.vocab_size, **shape))
    random_weights(model, seed=0)
    model.save_pretrained(folder)
    tokenizer.save(folder)
    return load(folder), model, PreTrainedTokenizerFast.from_pretrained(folder)


def test_a_stop_string_ends_a_text_where_it_ends_transformers(writers) -> None:
    ours, theirs, tokenizer = writers
    prompt = "the cat sat"
    read = tokenizer(prompt, return_tensors="pt")
    free = [step.id for step in generate(ours, prompt, 40, greedy=True, stop_at_end=False, repetition_penalty=1.8)]
    pieces = [ours.tokenizer.decode(free[at : at + 3]) for at in (2, 11, 20, 30)]
    stops = set()
    for string in [piece[cut:] for piece in pieces for cut in (0, 1, 2) if "<" not in piece and piece[cut:]]:
        settings = {"max_new_tokens": 40, "repetition_penalty": 1.8, "do_sample": False, "eos_token_id": None}
        found = theirs.generate(**read, stop_strings=[string, "zebra"], tokenizer=tokenizer, **settings)
        wanted = found[0, read["input_ids"].shape[1] :].tolist()
        settings = {"greedy": True, "stop_at_end": False, "repetition_penalty": 1.8}
        mine = list(generate(ours, prompt, 40, stop_strings=["zebra", string], **settings))
        assert [step.id for step in mine] == wanted
        assert mine[-1].stopped is not None and mine[-1].stopped.kind == "string" and mine[-1].stopped.text == string
        assert string in mine[-1].text
        stops.add(len(mine))
    assert len(stops) > 2


@pytest.mark.parametrize("kind", ["byte", "bpe", "bpe-characters", "unigram", "char"])
def test_a_stop_string_is_found_in_any_ids_where_transformers_finds_it(kind: str, tmp_path: Path) -> None:
    """Of tokenizers whose text is that of their tokens one after the other, which transformers takes of all."""
    tokenizer = train(kind, TEXTS * 5)
    tokenizer.save(tmp_path)
    theirs = PreTrainedTokenizerFast.from_pretrained(tmp_path)
    checkpoint = Checkpoint(tiny.model(tiny.config(vocab_size=tokenizer.vocab_size, context=80)), tokenizer)
    drawn = torch.Generator().manual_seed(0)

    def number(below: int) -> int:
        return int(torch.randint(below, (1,), generator=drawn))

    found = []
    for _ in range(150):
        source = tokenizer.encode(TEXTS[number(2)]).ids
        ids = list(source[(at := number(max(len(source) - 12, 1))) : at + 2 + number(10)])
        if number(3) == 0:
            ids[number(len(ids))] = number(tokenizer.vocab_size)
        text = tokenizer.decode(ids)
        string = text[(at := number(len(text))) : at + 1 + number(5)]
        expected = bool(StopStringCriteria(theirs, [string, "top"])(torch.tensor([ids]), None)[0])
        ending = stopping_rules(Prompt(checkpoint, (0,)), strings=[string, "top"])
        assert (ending.string(ids[:-1], ids[-1]) is not None) == expected, (text, string)
        found.append(expected)
    assert 20 < sum(found) < 130


@pytest.mark.parametrize("early_stopping", [False, True])
def test_beams_end_at_a_stop_string_as_in_transformers(writers, early_stopping: bool) -> None:
    ours, theirs, tokenizer = writers
    prompt = "the cat sat"
    read = tokenizer(prompt, return_tensors="pt")
    free = beam(ours, prompt, 3, 12, stop_at_end=False).hypotheses[0]
    string = ours.tokenizer.decode(free.ids[4:6])[-2:]
    settings = {"num_beams": 3, "num_return_sequences": 3, "max_new_tokens": 12, "do_sample": False}
    settings |= {"eos_token_id": None, "return_dict_in_generate": True, "output_scores": True, "pad_token_id": 0}
    found = theirs.generate(
        **read, stop_strings=[string], tokenizer=tokenizer, early_stopping=early_stopping, **settings
    )
    wanted = found.sequences[:, read["input_ids"].shape[1] :].tolist()
    result = beam(ours, prompt, 3, 12, n_best=3, stop_at_end=False, stop_strings=string, early_stopping=early_stopping)
    for row, one in zip(wanted, result.hypotheses, strict=True):
        assert list(one.ids) == row[: len(one.ids)]
    assert [one.score for one in result.hypotheses] == pytest.approx(found.sequences_scores.tolist(), abs=1e-4)
    assert any(one.stopped and one.stopped.kind == "string" for one in result.hypotheses)
