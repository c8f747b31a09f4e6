"""From vector to word: temperature by the numbers, the tied table, where writing ends, sums of log-probabilities."""

import math

import pytest
import torch

from engine.course.vector_to_word import (
    at_temperature,
    compare_continuations,
    list_candidates,
    measure_path,
    next_logits,
    sample_text,
    search_beams,
    softmax_terms,
    unembed,
)
from engine.runtime import library

MODEL, TEXT = "bilingual", "The red book is"
LOGITS = torch.tensor([2.0, 4.0, 5.0])


def ids_of(text: str, name: str = MODEL) -> list[int]:
    tokenizer = library.checkpoint(name).tokenizer
    assert tokenizer is not None
    return list(tokenizer.encode(text).ids)


def test_temperature_divides_logits_before_the_softmax() -> None:
    assert [round(p, 4) for p in at_temperature(LOGITS, 1).tolist()] == [0.0351, 0.2595, 0.7054]
    for temperature in (0.1, 0.5, 2.0, 3.0):
        assert torch.allclose(at_temperature(LOGITS, temperature), (LOGITS / temperature).softmax(0))
    assert at_temperature(LOGITS, 0).tolist() == [0, 0, 1]
    assert at_temperature(LOGITS, 0.5)[2] > at_temperature(LOGITS, 1)[2] > at_temperature(LOGITS, 2)[2]
    terms, total = softmax_terms(LOGITS)
    assert terms[2] == 1 and round(1 / total, 4) == 0.7054


@pytest.mark.parametrize("name", ["bilingual", "stories"])
def test_a_tied_table_gives_the_logits_of_the_model(name: str) -> None:
    ids = ids_of(TEXT, name)
    found = unembed(name, ids)
    model = library.checkpoint(name).model
    assert found.tied and found.saved == found.table.numel()
    assert found.table.data_ptr() == model.embed.tokens.weight.data_ptr()
    assert torch.allclose(found.logits, next_logits(name, ids), atol=1e-4)


def test_writing_ends_with_the_end_token_or_at_the_maximum_length() -> None:
    (end,) = library.checkpoint(MODEL).end_ids
    kinds = set()
    for seed in range(8):
        steps = sample_text(MODEL, TEXT, 1.0, 3, seed)
        stopped = steps[-1].stopped
        assert stopped is not None and end not in [step.id for step in steps[:-1]]
        assert (stopped.kind == "end") == (steps[-1].id == end) and (stopped.kind == "end" or len(steps) == 3)
        kinds.add(stopped.kind)
        assert len(sample_text(MODEL, TEXT, 1.0, 20, seed, stop_at_end=False)) == 20
    assert kinds == {"end", "max_tokens"}


def test_beam_search_adds_log_probabilities() -> None:
    steps, before = search_beams(MODEL, TEXT, 3, 10), ids_of(TEXT)
    for one in steps[-1].best:
        path = measure_path(MODEL, before, one.ids)
        assert one.score == pytest.approx(path.total, abs=1e-3)
        assert path.probability == pytest.approx(math.prod(path.log_probabilities.exp().tolist()))
    for at in range(len(steps)):
        rows = list_candidates(steps, at)
        assert all(row.before + row.added == pytest.approx(row.total) and row.added <= 0 for row in rows)
        assert [row.total for row in rows] == sorted((row.total for row in rows), reverse=True)
        assert sum(row.fate == "kept" for row in rows) == len(steps[at].kept)


def test_greedy_misses_the_better_text_and_multiplied_logits_say_the_contrary() -> None:
    before = ids_of(TEXT)
    (greedy,) = search_beams(MODEL, TEXT, 1, 10)[-1].best
    found = search_beams(MODEL, TEXT, 3, 10)[-1].best[0]
    first, second = (measure_path(MODEL, before, one.ids) for one in (greedy, found))
    assert second.total > first.total and second.product < first.product
    more = measure_path(MODEL, before, found.ids, added=10.0)
    assert more.total == pytest.approx(second.total) and more.product > 2 * second.product
    steps = sample_text(MODEL, TEXT, 0.0, 10, 0)
    assert tuple(step.id for step in steps) == greedy.ids


def test_a_product_underflows_where_a_sum_does_not() -> None:
    assert math.prod([0.0001] * 100) == 0.0 and round(100 * math.log(0.0001)) == -921


def test_words_after_contexts_have_the_sum_over_their_tokens() -> None:
    contexts, words = ("She saw the red", "They began to"), ("house", "shout", "shiny")
    found = compare_continuations("everyday", contexts, words)
    assert len(ids_of("a shiny", "everyday")) > 2  # a word of several tokens
    for row, context in enumerate(contexts):
        for column, word in enumerate(words):
            before, ids = ids_of(context, "everyday"), ids_of(f"{context} {word}", "everyday")
            total = 0.0
            for at in range(len(before), len(ids)):
                total += float(next_logits("everyday", ids[:at]).double().log_softmax(0)[ids[at]])
            assert found[row, column] == pytest.approx(total, abs=1e-3)
    assert found[0, 0] > found[0, 1] and found[1, 0] < found[1, 1]
