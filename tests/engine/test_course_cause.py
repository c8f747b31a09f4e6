"""Cause and correlation: heads that add, heads that are needed, and the sum that both are measured in."""

import pytest
import torch

from engine import load
from engine.compiled import find_answer_key
from engine.course.cause import (
    TEXTS,
    compare_without,
    measure_heads,
    measure_texts,
    patch_heads,
    repeated_texts,
)
from engine.edits import SilenceHeads
from engine.runtime.run import run

NAME, TEXT = "induction", "b7Kx2qmTb7Kx2qm"


def ids_of(text: str, name: str = NAME) -> tuple[int, ...]:
    tokenizer = load(name).tokenizer
    assert tokenizer is not None
    return tuple(tokenizer.encode(text).ids)


def test_the_head_that_is_needed_adds_nothing_and_those_that_add_are_not_needed() -> None:
    found, checkpoint = measure_heads(NAME, ids_of(TEXT)), load(NAME)
    assert checkpoint.tokenizer is not None and checkpoint.tokenizer.pieces[found.answer] == "T"
    layer, head = found.needed
    assert layer == 0 and abs(float(found.added[layer, head])) < 0.5 and found.lost[layer, head] > 10
    assert found.likeliest[layer, head] != found.answer
    assert (found.added[1] > 2).all() and (found.likeliest[1] == found.answer).all()
    without = run(checkpoint.model, list(ids_of(TEXT)), edits=[SilenceHeads(layer=1, heads=[3])])
    assert found.logit - float(without["logits"][0, -1, found.answer]) == pytest.approx(
        float(found.lost[1, 3]), abs=1e-4
    )


def test_what_is_added_sums_to_the_logit_with_the_head_and_without() -> None:
    ids = ids_of(TEXT)
    found = measure_heads(NAME, ids)
    layer, head = found.loudest
    takeover = compare_without(NAME, ids, layer, head)
    assert float(takeover.before.sum()) == pytest.approx(found.logit, abs=1e-3)
    assert float(takeover.after.sum()) == pytest.approx(found.logit - float(found.lost[layer, head]), abs=1e-3)
    at = next(at for at, one in enumerate(takeover.writers) if (one.layer, one.head) == (layer, head))
    assert takeover.after[at] == 0 and takeover.before[at] == pytest.approx(float(found.added[layer, head]))
    before, after = takeover.scales  # of a head of the last block nothing but the norm takes notice
    others = [place for place, one in enumerate(takeover.writers) if one.head is not None and place != at]
    torch.testing.assert_close(takeover.after[others], takeover.before[others] * before / after, rtol=1e-3, atol=1e-3)


def test_a_value_of_another_text_costs_what_the_texts_differ_in() -> None:
    found = measure_heads(NAME, ids_of(TEXT))
    elsewhere = patch_heads(NAME, ids_of(TEXT), ids_of("hGd4R9aWhGd4R9a"))
    nearly = patch_heads(NAME, ids_of(TEXT), ids_of("A" + TEXT[1:]))
    assert elsewhere[found.needed] > 8 and nearly.abs().max() < 1
    with pytest.raises(ValueError, match="as many tokens"):
        patch_heads(NAME, ids_of(TEXT), ids_of(TEXT[1:]))


def test_a_head_that_goes_with_the_logit_is_needed_in_no_text() -> None:
    found = measure_texts(0)
    changed = found.changed.sum(0)
    assert changed[2] == TEXTS == len(repeated_texts(0)) and changed[int(found.correlation.argmax())] <= 2
    r = torch.corrcoef(torch.stack([found.added[:, 4], found.logits]))[0, 1]
    assert found.correlation[4] == pytest.approx(float(r))


def test_a_program_judges_both_ways() -> None:
    """The head of the first block is needed and adds nothing."""
    name = "compiled-induction"
    key, found = find_answer_key(load(name)), measure_heads(name, ids_of("a b c d a", name))
    assert key is not None
    needed = {("head", *divmod(at, 2)) for at in (found.lost.flatten() > 1).nonzero().flatten().tolist()}
    assert needed == key.nodes() and found.added[0, 0] == 0 < found.added[1, 0]
