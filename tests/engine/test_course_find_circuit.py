"""The parts of compiled models, swapped, zeroed and attributed: against sweeps of heads, and against the answer key."""

import pytest
import torch

from engine.analysis.interventions.patching import Constant
from engine.analysis.interventions.sweep import Sweep
from engine.course.find_circuit import MODELS, answer_key, find_swap, list_answers, measure_parts, read, read_vocabulary
from engine.runtime import library

TEXTS = {1: "a b c d a", 2: "a b a c", 3: "3 1 2 1"}


@pytest.mark.parametrize("model", TEXTS)
def test_heads_do_what_a_sweep_finds(model: int) -> None:
    text, transformer = TEXTS[model].split(), library.checkpoint(MODELS[model]).model
    swaps = (find_swap(model, text, part) for part in answer_key(model).nodes())
    place, token = next(one for one in swaps if one)
    other = [*text[:place], token, *text[place + 1 :]]
    answers = zip(list_answers(model, text), list_answers(model, other), strict=True)
    at = max(at for at, (one, another) in enumerate(answers) if one != another)
    effects, runs = measure_parts(model, text, other, at), (read(model, text), read(model, other))
    ids = [int(trace["logits"][0, at + 1].argmax()) for trace in runs]
    swept = Sweep(transformer, *runs, "logit", at + 1, *ids, "break").patch("z", ("head",)).effect
    zeroed = Sweep(transformer, runs[0], Constant(), "logit", at + 1, ids[0]).patch("z", ("head",)).effect
    heads = [number for number, part in enumerate(effects.parts) if part[0] == "head"]
    torch.testing.assert_close(effects.swapped[heads], swept.flatten())
    torch.testing.assert_close(effects.zeroed[heads], zeroed.flatten())


@pytest.mark.parametrize("model", TEXTS)
def test_every_needed_part_is_seen_in_some_swap_and_no_idle_one(model: int) -> None:
    text, key = TEXTS[model].split(), answer_key(model)
    assert all(find_swap(model, text, part) for part in key.nodes())
    assert not any(find_swap(model, text, part) for part in key.idle_nodes())


def test_no_swap_shows_what_counts_the_tokens_and_a_shorter_text_does() -> None:
    text, counting = "a b c d".split(), answer_key(4).lines[0].part
    assert find_swap(4, text, counting) is None
    found = measure_parts(4, text, text[:-1], 0)
    assert counting in found.list_found(found.swapped)
    with pytest.raises(ValueError, match="answered alike"):
        measure_parts(1, "a b c".split(), "a d c".split(), 2)
    assert read_vocabulary(3) == (("1", "2", "3", "4"), 6)
