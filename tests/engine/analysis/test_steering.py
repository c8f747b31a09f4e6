"""Steering vectors: closed form on a linear model, a loop of plain runs, and files that come back as they went."""

import json
import math
from dataclasses import replace

import pytest
import torch
from safetensors.torch import save
from torch import Tensor

from engine import load, run
from engine.analysis.interventions.pair_set import mean_of
from engine.analysis.steering import (
    FORMAT,
    PROMPTS,
    STRENGTHS,
    PromptReadings,
    SteeringVector,
    find_direction,
    pack_vector,
    reading_of,
    steer_corpus,
    steering_of,
    unpack_vector,
)
from engine.checkpoints import Checkpoint
from engine.edits import AddDirection, Source, Steer, edit_from_dict
from engine.inputs.corpus import Corpus
from engine.inputs.samples import samples
from tests.engine import tiny

GIRLS = ("The girl lost her hat.", "She was a quiet girl.", "Mia told her mom.")
BOYS = ("The boy lost his hat.", "He was a quiet boy.", "Max told his dad.")
TEXTS = Corpus("mine", ("The dog was tired, so", "Anna saw the ball and", "One day"))


def test_a_linear_model_moves_by_the_strength_times_the_vector_times_the_unembedding() -> None:
    model = tiny.model(tiny.config("none", norm=tiny.Norm("none"), layers=1))
    for name, weight in model.named_parameters():
        if name.startswith("blocks."):
            weight.zero_()  # the stream goes through as it is
    linear = Checkpoint(model.double())
    vector = find_direction(linear, ("3 1 4", "1 5"), ("9 2",))
    embedded = run(model, [4, 5, 2], ["blocks.0.resid_pre"])["blocks.0.resid_pre"][0]
    torch.testing.assert_close(vector.direction.double(), embedded[:2].mean(0) - embedded[2], atol=1e-6, rtol=0)
    unit = torch.eye(model.config.d_model, dtype=torch.float64)
    at = lambda x: run(model, [4], ["logits"], [AddDirection("blocks.0.resid_pre", x.tolist(), amount=1.0)])  # noqa: E731
    plain = run(model, [4], ["logits"])["logits"][0, -1]
    unembedding = torch.stack([at(one)["logits"][0, -1] - plain for one in unit])  # d_model candidate
    found = steer_corpus(linear, vector, 7, 3)
    moved = (vector.direction.double() @ unembedding)[[7, 3]]
    expected = torch.tensor(found.strengths).double() * (moved[0] - moved[1])
    torch.testing.assert_close(found.interval.mean - found.interval.mean[3], expected, atol=1e-5, rtol=0)
    assert found.kl[3] == 0 and found.loss.isfinite().all() and found.texts == 32


def test_what_a_corpus_does_is_a_loop_of_plain_runs() -> None:
    stories = load("stories")
    vector = find_direction(stories, GIRLS, BOYS, "MLP", 2, "mean")
    assert vector.hook == "blocks.2.mlp.out"
    she = stories.tokenizer.ids(" she", special=False)[0]  # type: ignore[union-attr]
    found = steer_corpus(stories, vector, she, corpus=TEXTS, strengths=(-2.0, 0.0, 1.5))
    assert steering_of(stories, vector, she, None, TEXTS, (-2.0, 0.0, 1.5)).steps == []  # it was kept
    metric, loss, kl, tokens, positions = [], torch.zeros(3).double(), torch.zeros(3).double(), 0, 0
    for text in TEXTS.texts:
        read = stories.tokenizer.encode(text)  # type: ignore[union-attr]
        each = []
        for strength in found.strengths:
            edits = [AddDirection(vector.hook, vector.direction.tolist(), amount=strength * vector.length)]
            each.append(run(stories.model, read, ["logits"], edits)["logits"][0].double().log_softmax(-1))
        plain = run(stories.model, read)["logits"][0].double().log_softmax(-1)
        metric.append(torch.stack([one[-1, she] for one in each]))
        loss -= torch.stack([one[range(len(read) - 1), list(read.ids[1:])].sum() for one in each])
        kl += torch.stack([(plain.exp() * (plain - one)).sum() for one in each])
        tokens, positions = tokens + len(read) - 1, positions + len(read)
    torch.testing.assert_close(found.metric, torch.stack(metric), atol=1e-5, rtol=0)
    torch.testing.assert_close(found.loss, loss / tokens, atol=1e-5, rtol=0)
    torch.testing.assert_close(found.kl, kl / positions, atol=1e-6, rtol=0)
    torch.testing.assert_close(found.interval.low, mean_of(metric).low, atol=1e-5, rtol=0)


@pytest.mark.parametrize("read", ["last", "mean"])
def test_of_one_prompt_each_it_is_the_edit_steer_and_without_a_second_set_the_mean(read: str) -> None:
    stories = load("stories")
    encode = stories.tokenizer.encode  # type: ignore[union-attr]
    vector = find_direction(stories, GIRLS[:1], BOYS[:1], layer=1, read=read)  # type: ignore[arg-type]
    sources = [Source(list(encode(one).ids)) for one in (GIRLS[0], BOYS[0])]
    steer = Steer(vector.hook, *sources, factor=-1.5, read=read)  # type: ignore[arg-type]
    ours, theirs = (
        run(stories.model, encode("One day"), ["logits"], [one])["logits"] for one in (vector.edit(-1.5), steer)
    )
    torch.testing.assert_close(ours, theirs, atol=1e-3, rtol=0)
    alone = [find_direction(stories, one, (), layer=1, read=read).direction for one in (GIRLS[:1], BOYS[:1])]  # type: ignore[arg-type]
    torch.testing.assert_close(vector.direction, alone[0] - alone[1], atol=1e-4, rtol=0)


def test_prompts_are_held_out_line_by_line() -> None:
    toward, away = tiny.normal(5, 4), tiny.normal(3, 4, seed=1) - 2
    readings = PromptReadings(("one",), toward[None], away[None])
    one, other = (sets.double() for sets in (toward, away))

    def along(x: Tensor, up: Tensor, down: Tensor) -> float:
        return float((x - (up + down) / 2) @ (up - down) / (up - down).norm())

    own = readings.values(0)
    assert float(own[0].mean()) == pytest.approx(-float(own[1].mean())), "0 is halfway between both means"
    assert own[0].tolist() == pytest.approx([along(x, one.mean(0), other.mean(0)) for x in one])
    out = lambda x, i: torch.cat([x[:i], x[i + 1 :]]).mean(0)  # noqa: E731
    held = [along(one[i], out(one, i), out(other, i)) for i in range(5)]
    below = [along(other[i], out(one, i), out(other, i)) for i in range(3)]
    assert [each.tolist() for each in readings.values(0, held_out=True)] == [pytest.approx(held), pytest.approx(below)]
    spread = (torch.tensor(held).double().var() * 4 + torch.tensor(below).double().var() * 2) / 6
    apart = (sum(held) / 5 - sum(below) / 3) / math.sqrt(spread)
    assert float(readings.separation) == pytest.approx(apart, rel=1e-5)
    single = PromptReadings(("one",), toward[None, :1], away[None, :0])
    assert bool(single.separation.isnan()) and single.values(0)[0].tolist() == pytest.approx([float(one[0].norm())])


def test_a_masked_model_predicts_its_masked_token_and_an_encoder_decoder_its_first() -> None:
    bert = load("tales-bert")
    vector = find_direction(bert, GIRLS, BOYS, layer=1, read="mean")
    found = steer_corpus(bert, vector, 5, corpus=Corpus("one", ("The king loved his wife.",)), strengths=(0.0,))
    ids = list(bert.tokenizer.encode("The king loved his wife.").ids)  # type: ignore[union-attr]
    row = len(ids) - 2  # in front of [SEP]
    masked = [*ids[:row], bert.tokenizer.mask_id, *ids[row + 1 :]]  # type: ignore[union-attr]
    log_p = run(bert.model, masked)["logits"][0, row].double().log_softmax(-1)
    assert float(found.loss[0]) == pytest.approx(-float(log_p[ids[row]]), abs=1e-5)
    assert float(found.metric[0, 0]) == pytest.approx(float(log_p[5]), abs=1e-5)
    french = load("translate-en-fr")
    vector = find_direction(french, GIRLS, BOYS, layer=1, stack="encoder")
    reading = next(samples(french, 1, 64))
    expected = run(french.model, reading.read, target=reading.target)["logits"][0, 0].double().log_softmax(-1)
    found = steer_corpus(french, vector, 5, strengths=(0.0, 1.0))
    assert float(found.metric[0, 0]) == pytest.approx(float(expected[5]), abs=1e-5) and float(found.kl[1]) > 0


def test_what_cannot_be_steered_is_said_in_one_sentence() -> None:
    stories = load("stories")
    for toward, away, says in [
        ((), (), "must have a prompt to steer toward, got none"),
        ((" ",), (), "must have a token, got ' '"),
        (("He",) * 10_000, (), f"at most {PROMPTS} prompts, got 10,000"),
        (GIRLS, GIRLS[::-1], "Both sets of prompts have the same mean at blocks.0.resid_pre"),
    ]:
        with pytest.raises(ValueError, match=says):
            find_direction(stories, toward, away)
    for name, says in [("digits-vit", "reads pictures"), ("infill", "fills gaps")]:
        with pytest.raises(ValueError, match=says):
            reading_of(load(name), GIRLS)
    with pytest.raises(ValueError, match="A block must be one of 0 to 3, got 4"):
        find_direction(stories, GIRLS, layer=4)
    vector = find_direction(stories, GIRLS)
    for candidate, strengths, says in [(1024, STRENGTHS, "0 to 1,023, got 1024"), (1, (math.nan,), "finite")]:
        with pytest.raises(ValueError, match=says):
            steer_corpus(stories, vector, candidate, strengths=strengths)
    with pytest.raises(ValueError, match="must be finite, got"):
        AddDirection("blocks.0.resid_pre", [1.0], amount=1e300, strength=1e300)


def test_a_vector_comes_back_from_its_file_to_the_last_bit() -> None:
    stories = load("stories")
    vector = replace(find_direction(stories, GIRLS, BOYS, "attention", 2), strength=-1.25)
    back = unpack_vector(pack_vector(vector, stories), stories)
    assert torch.equal(back.direction.view(torch.int32), vector.direction.view(torch.int32))
    assert (back.hook, back.toward, back.away, back.read) == ("blocks.2.attn.out", GIRLS, BOYS, "last")
    assert back.edit() == vector.edit() == edit_from_dict(json.loads(json.dumps(back.edit().to_dict())))
    assert back.edit().strength == -1.25 and back.edit().amount == vector.length


def test_a_file_that_does_not_fit_or_lies_is_refused() -> None:
    stories = load("stories")
    vector = find_direction(stories, GIRLS)
    whole = pack_vector(vector, stories)
    length = int.from_bytes(whole[:8], "little")
    about = json.loads(whole[8 : 8 + length])["__metadata__"]

    def file(direction: Tensor = vector.direction, hook: str = vector.hook, **changes: str) -> bytes:
        return save({hook: direction}, about | changes)

    header = json.loads(whole[8 : 8 + length])
    header[vector.hook]["shape"] = [2**40]
    lying = json.dumps(header).encode()
    assert about["format"] == FORMAT and unpack_vector(file(), stories).digest == vector.digest
    for data, says in [
        (whole[:-1], "was cut off"),
        (len(lying).to_bytes(8, "little") + lying + whole[8 + length :], "tells of more than it holds"),
        (b"no tensor at all", "does not begin like one"),
        (b"\0" * 2**23, "at most 4,194,304 bytes"),
        (save({"x": torch.zeros(3)}), "must hold one steering vector"),
        (file(torch.zeros(64)), r"must hold 128 numbers for a hook of this model, got \[64\]"),
        (file(hook="blocks.9.resid_pre"), "for blocks.9.resid_pre"),
        (file(hook="blocks.0.attn.z"), "for blocks.0.attn.z"),
        (file(weights="0"), "is a vector of the model “stories”"),
        (file(vector.direction * math.nan), "must hold finite numbers that are not all 0"),
        (file(vector.direction * 0), "must hold finite numbers that are not all 0"),
        (file(vector.direction.half()), "what does not read"),
        (file(strength="inf"), "what does not read"),
        (file(toward="[1]"), "what does not read"),
        (file(toward="7"), "what does not read"),
        (file(read="first"), "what does not read"),
        (file(toward="[]"), "must have a prompt"),
    ]:
        with pytest.raises(ValueError, match=says) as refused:
            unpack_vector(data, stories)
        assert "vector.safetensors" not in str(refused.value)
    with pytest.raises(ValueError, match="and that which is open has other weights; open that one"):
        unpack_vector(whole, load("induction"))
    assert isinstance(vector, SteeringVector)
