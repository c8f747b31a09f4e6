"""Where an answer stands, against every pair of positions tried; one class, against its definition."""

import math
from itertools import product

import pytest
import torch

from engine.analysis.answers import AnswerSpan, best_answer, logistic, where_answers_stand, words
from engine.data.stories import story
from engine.tokenizers import train
from engine.tokenizers.encoding import Encoding

PIECES = train("wordpiece", [story(1, index) for index in range(20)], 300)
QUESTION, CONTEXT = "Who was sad?", "The dog was sad."
ANYWHERE = torch.ones(7, dtype=torch.bool)


@pytest.mark.parametrize("seed", range(8))
def test_the_best_answer_is_the_best_of_all_pairs_in_order(seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    logits = torch.randn(7, 2, generator=generator)
    allowed = torch.rand(7, generator=generator) > 0.4
    allowed[3] = True
    inside = [i for i in range(7) if allowed[i]]
    tried = {(i, j): float(logits[i, 0] + logits[j, 1]) for i, j in product(inside, inside) if i <= j}
    found = best_answer(logits, allowed)
    assert (found.start, found.end) == max(tried, key=tried.__getitem__)
    assert found.score == pytest.approx(max(tried.values()), abs=1e-6)


def test_the_likeliest_end_may_stand_before_the_likeliest_start() -> None:
    logits = torch.zeros(7, 2)
    logits[5, 0], logits[1, 1] = 3.0, 3.0
    found = best_answer(logits, ANYWHERE)
    assert found.start <= found.end and found.score == 3.0


def test_an_answer_needs_a_place() -> None:
    with pytest.raises(ValueError, match="needs a position"):
        best_answer(torch.zeros(7, 2), ~ANYWHERE)


def test_answers_stand_in_the_second_text_alone() -> None:
    read = PIECES.encode(QUESTION, CONTEXT)
    marks = where_answers_stand(read, QUESTION)
    inside = [segment == 1 and not special for segment, special in zip(read.segments, read.special, strict=True)]
    assert marks.tolist() == inside
    cut = read.first(read.pieces.index("[SEP]") + 1)
    assert where_answers_stand(cut, QUESTION).tolist() == [not special for special in cut.special]


def test_of_one_text_every_token_of_its_own_may_answer_and_of_ids_every_one() -> None:
    read = PIECES.encode(CONTEXT)
    assert where_answers_stand(read).tolist() == [not special for special in read.special]
    assert where_answers_stand(Encoding.from_ids([3, 1, 2])).tolist() == [True] * 3
    assert where_answers_stand(PIECES.encode("")).all()


def test_an_answer_is_a_piece_of_the_text_as_it_is_written() -> None:
    read = PIECES.encode(QUESTION, CONTEXT)
    covered = [i for i, (start, end) in enumerate(read.spans) if end > start >= len(QUESTION) + 1]
    assert words(read, AnswerSpan(covered[0], covered[-1], 0.0)) == CONTEXT
    assert words(Encoding.from_ids([3, 1, 2]), AnswerSpan(1, 2, 0.0)) == "#1 #2"


@pytest.mark.parametrize("temperature", [1.0, 0.5, 3.0])
def test_one_class_holds_with_the_logistic_of_its_logit(temperature: float) -> None:
    logits = torch.tensor([[-2.5], [0.0], [0.7], [40.0]])
    said = logistic(logits, temperature)
    wanted = [1 / (1 + math.exp(-x / temperature)) for x in logits[:, 0].tolist()]
    assert said.probabilities[:, 0].tolist() == pytest.approx(wanted)
    assert said.in_top_p.all()


def test_at_temperature_0_one_class_is_certain() -> None:
    said = logistic(torch.tensor([[-2.5], [0.0], [0.7]]), 0.0)
    assert said.probabilities[:, 0].tolist() == [0.0, 0.5, 1.0]
