"""Adapting: a change of low rank, beside W or in it; L2 + lambda L1; separators; a reward that is optimised too far."""

import pytest
import torch

from engine.course.adapting import (
    answer_prompt,
    continue_text,
    count_lora,
    fine_tune,
    merge_gap,
    objective,
    open_lora,
    recorded_answers,
    recorded_reward,
    with_label_head,
)
from engine.edits import ApplyAdapter
from engine.generation.generate import generate
from engine.model.layers.lora import Adapter, merge
from engine.runtime import library
from engine.runtime.run import run
from engine.training.policy.rules.happy_words import happy_words

STYLES = ("style-cheerful", "style-old", "style-pirate")


def adapter_of(name: str) -> Adapter:
    (found,) = [one for one in library.adapters_for("everyday") if one.name == name]
    return found


@pytest.mark.parametrize("name", STYLES)
def test_the_change_is_thin_and_of_its_rank(name: str) -> None:
    checkpoint, adapter = library.checkpoint("everyday"), adapter_of(name)
    for matrix in adapter.matrices:
        found = open_lora(checkpoint, adapter, matrix)
        a, b = found.thin
        assert found.rank == found.used == len(a) == b.shape[1] == (0 if matrix.endswith("attn.k") else 4)
        torch.testing.assert_close(found.scale * (b @ a), found.delta)
        assert found.delta.shape == found.w.shape and found.scale == 2
    counted = count_lora(checkpoint, adapter)
    layers, width, wide = checkpoint.config.layers, checkpoint.config.d_model, checkpoint.config.mlp.d_mlp
    assert counted.adapter == layers * 4 * (2 * (width + width) + 2 * (width + wide))
    assert counted.matrices == layers * (2 * width * width + 2 * width * wide)
    assert counted.model == sum(one.numel() for one in checkpoint.model.parameters())


@pytest.mark.parametrize("strength", [0.3, 1.0, 2.0])
def test_lora_merged_is_the_edited_run(strength: float) -> None:
    checkpoint, adapter = library.checkpoint("everyday"), adapter_of("style-pirate")
    assert checkpoint.tokenizer is not None
    encoding = checkpoint.tokenizer.encode("Once upon a time there was a king.")
    edited = run(checkpoint.model, encoding, edits=[ApplyAdapter.of(adapter, strength)])["logits"]
    merged = run(merge(checkpoint.model, {adapter: strength}), encoding)["logits"]
    torch.testing.assert_close(edited, merged, atol=1e-3, rtol=1e-3)
    assert merge_gap(checkpoint, encoding, adapter, strength) < 1e-3
    weight = dict(checkpoint.model.named_parameters())["blocks.0.mlp.pre.weight"]
    found = open_lora(checkpoint, adapter, "blocks.0.mlp.pre")
    into = dict(merge(checkpoint.model, {adapter: strength}).named_parameters())["blocks.0.mlp.pre.weight"]
    torch.testing.assert_close(into, weight + strength * found.delta)


def test_strength_zero_changes_nothing_and_one_does() -> None:
    checkpoint, adapter = library.checkpoint("everyday"), adapter_of("style-pirate")
    plain = [step.text for step in generate(checkpoint, "Once upon a time", 12, greedy=True)][-1]
    assert continue_text(checkpoint, "Once upon a time", adapter, 0.0, 12) == plain
    assert "arr" in continue_text(checkpoint, "Once upon a time", adapter, 1.0, 16)


def test_the_loss_is_l2_and_lambda_times_l1() -> None:
    tokenizer = library.checkpoint("stories").tokenizer
    assert tokenizer is not None
    ids = tokenizer.encode("Max gave the red ball to Anna.").ids
    model = with_label_head("stories")
    logits, language = model.forward_with_pooled(torch.tensor([ids]))
    assert language is not None
    for weight in (0.0, 0.5, 2.0):
        found = {name: float(value.detach()) for name, value in objective(model, ids, 1, weight).items()}
        assert found["label_loss"] == pytest.approx(float(-logits.log_softmax(-1)[0, 1].detach()), rel=1e-4)
        by_hand = torch.nn.functional.cross_entropy(language[0, :-1], torch.tensor(ids[1:]))
        assert found["language_loss"] == pytest.approx(float(by_hand.detach()), rel=1e-4)
        assert found["loss"] == pytest.approx(found["label_loss"] + weight * found["language_loss"], rel=1e-4)
    plain = run(library.checkpoint("stories").model, ids)["logits"]
    torch.testing.assert_close(language.detach(), plain, atol=1e-4, rtol=1e-4)


def test_lambda_keeps_the_language() -> None:
    tokenizer = library.checkpoint("stories").tokenizer
    assert tokenizer is not None
    ids, watched = (tokenizer.encode(text).ids for text in ("The dog chewed the kite.", "She was very happy."))
    alone, both = (fine_tune("stories", ids, 0, weight, 3, watched) for weight in (0.0, 1.0))
    assert alone[0] != both[0] and alone[0][0].label == both[0][0].label and len(both) == 4
    assert alone[-1][0].label < alone[0][0].label and both[-1][0].label < both[0][0].label
    assert both[-1][0].language < alone[-1][0].language and both[-1][0].language < both[0][0].language
    again = fine_tune("stories", ids, 0, 1.0, 3, watched)
    assert again[0] == both[0]  # the model that is shared is not trained


def test_a_separator_is_one_token() -> None:
    checkpoint = library.checkpoint("instruct")
    english = answer_prompt(checkpoint, "Le chat dort.", "[toEnglish]")
    assert english.written == "The cat sleeps." and english.pieces[-1] == "[toEnglish]" and english.separator == 1
    assert answer_prompt(checkpoint, "The cat sleeps.", "[toFrench]").written == "Le chat dort."
    assert answer_prompt(checkpoint, "The cat sleeps.", "[toCode]").written == 'print("The cat sleeps.")'
    assert answer_prompt(checkpoint, "The cat sleeps.", "[toEnglish]").written == "The cat sleeps."
    assert answer_prompt(checkpoint, "Le chat dort.", "").separator is None


def test_a_reward_without_a_price_is_over_optimised() -> None:
    free, held = recorded_reward("ppo-free"), recorded_reward("ppo")
    assert free[0].reward == held[0].reward == pytest.approx(0.7)
    assert free[-1].reward == pytest.approx(11.1) and free[-1].distinct < 0.4 and free[-1].kl > 100
    assert held[-1].reward < 2 and held[-1].distinct > 0.9 and held[-1].kl < 5
    answers = recorded_answers("ppo-free")
    assert max(answers) == free[-1].step
    for one in answers[max(answers)]:
        assert happy_words(str(one["prompt"]), str(one["answer"])) == one["reward"]
