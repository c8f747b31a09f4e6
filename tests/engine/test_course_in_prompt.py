"""The rows of a prompt, and the same rows trained into the weights: against the generator and torch.optim."""

from copy import deepcopy

import pytest
import torch

from engine.course.in_prompt import fine_tune, shots
from engine.generation.few_shot import PromptTable, few_shot, prompt_of
from engine.runtime import library
from engine.scoring.score import cross_entropy

MODEL = "in-context"
ROWS = (("bake", "ekab"), ("cart", "trac"), ("hen", "neh"))
QUERY, ANSWER = "egg", "gge"


def test_a_prompt_is_that_of_the_page_and_its_answer_has_the_probability_of_its_letters() -> None:
    table = PromptTable("rows", (*ROWS, (QUERY, ANSWER)))
    assert sorted(prompt_of(ROWS, QUERY).split("\n")) == sorted(few_shot(table, 3, QUERY).split("\n"))
    found = shots(MODEL, ROWS, QUERY, ANSWER)
    assert [shot.k for shot in found] == [0, 1, 2, 3]
    checkpoint = library.checkpoint(MODEL)
    assert checkpoint.tokenizer is not None
    for shot in found:
        before, whole = (checkpoint.tokenizer.encode(text).ids for text in (shot.prompt, f"{shot.prompt} {ANSWER}\n"))
        logs = checkpoint.model(torch.tensor([whole]))[0].log_softmax(-1)
        letters = [float(logs[at - 1, whole[at]]) for at in range(len(before), len(whole))]
        assert shot.probability == pytest.approx(torch.tensor(letters).sum().exp().item(), rel=1e-3)
    assert found[-1].written == ANSWER and found[-1].probability > found[0].probability


def test_fine_tuning_is_adam_on_the_answers_and_leaves_the_model_as_it_was() -> None:
    checkpoint = library.checkpoint(MODEL)
    before = {name: weight.clone() for name, weight in checkpoint.model.named_parameters()}
    found = fine_tune(MODEL, ROWS, QUERY, ANSWER, steps=2, rate=1e-3)
    assert all(torch.equal(weight, before[name]) for name, weight in checkpoint.model.named_parameters())
    assert found.probabilities[0] == pytest.approx(shots(MODEL, ROWS, QUERY, ANSWER)[0].probability, rel=1e-4)
    model, tokenizer = deepcopy(checkpoint.model), checkpoint.tokenizer
    assert tokenizer is not None
    for weight in model.parameters():
        weight.requires_grad_()
    optimiser, losses = torch.optim.Adam(model.parameters(), lr=1e-3), []
    for _step in range(3):
        rows = []
        for query, answer in ROWS:
            prompt = tokenizer.encode(f"{query}:").ids
            ids = torch.tensor([*prompt, *tokenizer.encode(f" {answer}\n", special=False).ids])
            logits = model(ids[None])[0, len(prompt) - 1 : -1]
            rows.append(cross_entropy(logits, ids[len(prompt) :])[0] * len(logits))
        loss = torch.stack(rows).mean()
        losses.append(loss.item())
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    assert found.losses == pytest.approx(losses, rel=1e-3)
