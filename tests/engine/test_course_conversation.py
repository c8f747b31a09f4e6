"""A turn in a conversation: what a template writes and marks as learned, and losses as the models have them."""

import pytest
import torch
from torch.nn.functional import cross_entropy

from engine import load
from engine.course.conversation import TEMPLATES, compare_losses, read_prompt, render_turns, write_turns

USER, MARK, ANSWER = "I see the dog.", "[toFrench]", "Je vois le chien."


def test_the_answer_and_its_end_are_learned_and_nothing_else() -> None:
    turns = write_turns(USER, MARK, ANSWER)
    learned = [piece for piece, one in zip(turns.pieces, turns.learned, strict=True) if one]
    assert "".join(learned).replace("·", " ") == f" {ANSWER}<|endoftext|>"
    assert turns.pieces[len(turns.prompt) - 1] == MARK and turns.asked == 5


@pytest.mark.parametrize("name", TEMPLATES)
def test_every_template_marks_the_answer_and_what_ends_it(name: str) -> None:
    found = render_turns(name, "Hi", "Hello", MARK)
    ((start, end),) = found.assistant
    assert found.text[start:end].strip().startswith("Hello") and found.text[start:end].strip().endswith(">")
    assert "Hi" in found.text[:start] and found.text[end:] in ("", "\n")


def test_losses_are_those_of_the_tokens_of_each_part() -> None:
    turns, (base, instructed) = write_turns(USER, MARK, ANSWER), compare_losses(USER, MARK, ANSWER)
    ids = torch.tensor([turns.ids])
    with torch.no_grad():
        logits = load("instruct").model(ids)[0]
    first = len(turns.prompt)
    assert instructed.answer == pytest.approx(float(cross_entropy(logits[first - 1 : -1], ids[0, first:])), abs=1e-4)
    assert instructed.asked == pytest.approx(float(cross_entropy(logits[:4], ids[0, 1:5])), abs=1e-4)
    assert base.answer > instructed.answer + 5 and instructed.asked > base.asked + 3
    assert instructed.written == f" {ANSWER}<|endoftext|>" != base.written


def test_without_the_mark_the_turn_ends() -> None:
    kept, alone = read_prompt(f"{USER} {MARK}", ANSWER), read_prompt(USER, ANSWER)
    assert kept.p_answer > 0.8 and kept.p_end < 0.01 and kept.next != 0 == alone.next
    assert alone.p_answer < 1e-6 and alone.p_end == alone.p_next > 0.99
