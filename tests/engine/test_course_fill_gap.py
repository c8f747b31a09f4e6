"""The same gap in three ways: what is read, who sees whom, and the probabilities that the models give."""

import pytest
import torch

from engine.course.fill_gap import ask_masks, ask_sentinels, ask_span, words_of
from engine.generation.generate import generate
from engine.inputs.readers import tokens
from engine.runtime import library
from engine.runtime.run import run
from pages.learn.lessons.fill_gap.lesson import BERT, GLM, T5

PARTS = words_of("The small dog sees a white cat.", 3, 4)


def test_a_span_is_seen_and_written_as_glm_does() -> None:
    assert PARTS == ("The small dog", "sees a", "white cat.")
    span = ask_span(GLM, *PARTS)
    start = len(span.reads) - len(span.asked) - 1
    assert span.reads[start] == "[sop]" and "".join(span.asked).replace("·", " ") == " sees a"
    assert span.sees[:start, :start].all() and not span.sees[:start, start:].any()  # the text sees itself, whole
    assert torch.equal(span.sees[start:, start:], torch.ones(len(span.asked) + 1, len(span.asked) + 1).tril().bool())
    gap = span.reads.index("[gMASK]")
    assert span.positions[0, start:].unique().tolist() == [gap] and span.positions[1, start:].tolist() == [
        *range(1, len(span.asked) + 2)
    ]
    first, *_ = generate(library.checkpoint(GLM), "The small dog[gMASK] white cat.", greedy=True, max_tokens=1)
    assert span.probabilities[0] <= float(first.distribution.probabilities.max()) + 1e-4


def test_sentinels_stand_around_what_a_decoder_writes_and_masks_are_guessed_at_once() -> None:
    asked = ask_sentinels(T5, *PARTS)
    assert "<extra_id_0>" in asked.reads and asked.asked[0] == "<extra_id_0>" and asked.asked[-1] == "<extra_id_1>"
    assert torch.equal(asked.sees, torch.ones_like(asked.sees).tril()) and len(asked.target) == len(asked.asked) + 1
    masked = ask_masks(BERT, *PARTS)
    assert masked.reads.count("[MASK]") == len(masked.asked) and bool(masked.sees.all())
    checkpoint = library.checkpoint(BERT)
    assert checkpoint.tokenizer is not None
    read = tokens(checkpoint, f"The small dog {'[MASK] ' * len(masked.asked)}white cat.")
    probabilities = run(checkpoint.model, read, keep=["probs"])["probs"][0]
    at = read.pieces.index("[MASK]")
    wanted = checkpoint.tokenizer.encode("sees a", special=False).ids
    expected = [float(probabilities[at + place, id]) for place, id in enumerate(wanted)]
    assert masked.probabilities == pytest.approx(expected, rel=1e-4)
