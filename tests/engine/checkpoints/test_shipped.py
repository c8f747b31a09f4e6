"""The shipped checkpoints can do what their cards say, on data they were not trained on."""

import json

import numpy as np
import pytest
import torch
from torch.nn.functional import cross_entropy

from engine import generate, load, run
from engine.analysis.heads import induction
from engine.checkpoints.facts import read_facts
from engine.checkpoints.locate import SHIPPED, locate, shipped_names
from engine.data.repeats import batch
from engine.data.stories import story

UNSEEN = 987_654  # a seed that no recipe uses


@pytest.mark.parametrize("name", ["stories", "induction", "bilingual"])
def test_it_is_small_whole_and_has_a_card(name: str) -> None:
    checkpoint = load(name)
    assert checkpoint.report.ok and not checkpoint.report.notes
    assert (SHIPPED / name / "model.safetensors").stat().st_size < 8e6
    assert checkpoint.tokenizer is not None and checkpoint.tokenizer.vocab_size == checkpoint.config.vocab_size
    assert {"about", "data", "steps", "loss", "sample", "seconds", "device"} <= set(checkpoint.card)
    assert set(checkpoint.card["loss"]) >= {"training", "held_out"}


@pytest.mark.parametrize("name", shipped_names())
def test_its_card_states_the_licence_of_the_project(name: str) -> None:
    place = locate(name)
    card = json.loads((SHIPPED / name / "card.json").read_text())
    project = (SHIPPED.parents[1] / "LICENSE").read_text().split(maxsplit=1)[0]
    assert read_facts(place, card).licence.startswith(project)
    assert ("CC-BY-4.0" in card["licence"]) == ("digits" in card.get("data", {}))  # UCI's, and nobody else's data


def test_an_induction_head_is_plain_to_see() -> None:
    checkpoint = load("induction")
    symbols = [i for p, i in vocabulary(checkpoint.tokenizer.pieces).items() if len(p) == 1]
    drawn, predictable = batch(np.random.default_rng(UNSEEN), 32, checkpoint.config.context, len(symbols), 4, 32)
    ids = torch.tensor(np.array(symbols)[drawn])
    trace = run(checkpoint.model, ids)
    right = trace["logits"][:, :-1].softmax(-1).gather(-1, ids[:, 1:, None])[..., 0]
    assert right[torch.tensor(predictable[:, :-1])].mean() > 0.8
    patterns = trace.stack("attn.pattern")  # layer batch head pos key
    scores = torch.stack([induction(patterns[:, i], ids[i]) for i in range(len(ids))]).nanmean(0)  # layer head
    assert scores.max() > 0.8
    assert scores[0].max() < 0.5  # it takes two layers


def vocabulary(pieces: tuple[str, ...]) -> dict[str, int]:
    return {piece: i for i, piece in enumerate(pieces)}


def test_stories_predicts_unseen_stories_as_well_as_its_card_says() -> None:
    checkpoint = load("stories")
    losses = []
    for index in range(20):
        ids = torch.tensor(checkpoint.tokenizer.encode(story(UNSEEN, index)).ids[: checkpoint.config.context])
        logits = run(checkpoint.model, ids, keep="logits")["logits"][0]
        losses.append(cross_entropy(logits[:-1], ids[1:]).item())
    assert np.mean(losses) < checkpoint.card["loss"]["held_out"] + 0.15


def test_stories_writes_sentences_made_of_known_words_and_ends_them() -> None:
    checkpoint = load("stories")
    known = {word for index in range(3000) for word in words(story(0, index))}
    (*_, last) = generate(checkpoint, "Once upon a time", max_tokens=240, greedy=True)
    assert last.id == checkpoint.tokenizer.end_id
    text = last.text.removesuffix("<|endoftext|>")
    assert len(text) > 200 and text.strip()[-1] in '.!?"'
    assert [word for word in words(text) if word not in known] == []


def words(text: str) -> list[str]:
    return [word.strip('.,!?"').lower() for word in text.split()]


def test_transformers_reads_the_shipped_stories_to_the_same_logits() -> None:
    transformers = pytest.importorskip("transformers")
    theirs = transformers.AutoModelForCausalLM.from_pretrained(SHIPPED / "stories").eval()
    checkpoint = load("stories")
    ids = torch.tensor([checkpoint.tokenizer.encode("The little dog was sad because").ids])
    with torch.no_grad():
        expected = theirs(ids).logits
    assert torch.allclose(run(checkpoint.model, ids)["logits"], expected, atol=1e-4)


def test_the_space_before_a_gap_is_part_of_its_mark() -> None:
    tokenizer = load("infill").tokenizer
    assert tokenizer is not None
    spaced, joined = (tokenizer.encode(f"a{space}[gMASK] b") for space in (" ", ""))
    assert spaced.ids == joined.ids and spaced.spans[1] == (1, 9)
