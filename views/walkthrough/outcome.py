"""What a model says of what it has read: the distributions of its head, and the row of them to read first."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch

from engine.analysis.answers import AnswerSpan, best_answer, logistic, where_answers_stand
from engine.checkpoints import Checkpoint
from engine.generation.sampling import Distribution, Sampling, distribution, draw
from engine.inputs.readers import Reading, kind
from engine.model.config import Link
from engine.model.layers.softmax import softmax
from engine.runtime.trace import Trace
from engine.tokenizers.encoding import Encoding
from views.core.decision import Reads, decision_of


@dataclass(frozen=True)
class Outcome:
    """Distributions of the head at every position (pos vocab), once (1 class), or of all positions (2 pos: start and
    end).

    `reads` is "next" (token), "here" (what stands at the position, or which class it has), "class" or "answer". `link`
    is what makes probabilities of logits; "identity" leaves scores, which are none. `noun` is what is
    distributed over, in the plural. `sampled` is the token drawn at the end, `follows` the probability that the second
    of two texts follows the first. The `answer` is one to a question, in the tokens of `read`.
    """

    following: Distribution
    names: tuple[str, ...] | None
    reads: Reads = "next"
    sampled: int | None = None
    follows: float | None = None
    link: Link = "softmax"
    answer: AnswerSpan | None = None
    read: Encoding | None = None
    noun: str = "tokens"


def outcome_of(
    checkpoint: Checkpoint,
    trace: Trace,
    reading: Reading,
    sampling: Sampling,
    *,
    text: str = "",
    second: str = "",
    seed: int = 0,
) -> Outcome | None:
    """None of a model without a head. Where it continues a text that it did not write, a token is drawn with `seed`.

    `text` and `second` are what was read, before it was made tokens: a question and its context, or a pair.
    """
    decision = decision_of(checkpoint, reading)
    if decision is None:
        return None
    logits = trace["logits"][0].float()
    rows = logits[None] if decision.reads == "class" else logits.mT if decision.reads == "answer" else logits
    following = logistic(rows, sampling.temperature) if decision.link == "logistic" else distribution(rows, sampling)
    said = Outcome(following, decision.names, decision.reads, link=decision.link, noun=noun_of(checkpoint))
    if decision.reads == "answer" and isinstance(reading.read, Encoding):
        asked = text if kind(checkpoint) == "question" and second.strip() else ""
        answer = best_answer(logits, where_answers_stand(reading.read, asked))
        return replace(said, answer=answer, read=reading.read)
    if decision.reads == "here" and "next_sentence" in trace and second.strip():
        return replace(said, follows=float(softmax(trace["next_sentence"][0])[0]))
    if decision.reads == "next" and not reading.written:
        return replace(said, sampled=draw(following.probabilities[-1], torch.Generator().manual_seed(seed)))
    return said


def noun_of(checkpoint: Checkpoint) -> str:
    """Plural noun for what the checkpoint's head chooses among."""
    head = checkpoint.model.config.head
    if head.over_classes:
        return "positions" if head.kind == "span" else "classes"
    return "colours" if kind(checkpoint) == "pixels" else "tokens"


def first_row(checkpoint: Checkpoint, reading: Reading, said: Outcome | None, pixels: int) -> int | None:
    """The row to read first: a masked token, the one that speaks for all, the first pixel that was not given, the start
    of an answer or of what fills a gap, the token that most likely is not the true one.

    A model that completes pictures reads `pixels` of one.
    """
    config, read = checkpoint.model.config, reading.read
    if kind(checkpoint) == "pixels":
        return min(reading.given, pixels - 1)
    if config.head.kind == "sequence":
        if config.head.read != "last" or not isinstance(read, Encoding):
            return 0
        whole = torch.tensor([read.ids])
        return int(checkpoint.model.find_last(whole, None, whole)[0])
    if said is not None and said.answer is not None:
        return said.answer.start
    if said is not None and said.link == "logistic":
        return int(said.following.probabilities[:, 0].argmax())
    special = list(read.special) if isinstance(read, Encoding) else []
    if config.head.kind == "token":
        return special.index(False) if False in special else None
    ids = list(read.ids) if isinstance(read, Encoding) else []
    if config.infill is not None and reading.written:
        return ids.index(config.infill.start) if config.infill.start in ids else None
    mask = checkpoint.tokenizer.mask_id if checkpoint.tokenizer else None
    return ids.index(mask) if config.head.kind == "masked" and mask in ids else None
