"""What heads say that are asked about a text itself: where an answer stands in it, and whether each token is true."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from engine.generation.sampling import Distribution
from engine.tokenizers.encoding import Encoding


@dataclass(frozen=True)
class AnswerSpan:
    """The tokens from position `start` to `end`, the last one included; `score` is the sum of the two logits."""

    start: int
    end: int
    score: float


def best_answer(logits: Tensor, allowed: Tensor) -> AnswerSpan:
    """The pair start <= end with the highest sum of logits (Devlin et al. 2019, section 4.2).

    `logits` is pos 2 (start, end), `allowed` is bool pos. Raises ValueError where no position is allowed.
    """
    if not bool(allowed.any()):
        raise ValueError("an answer needs a position where it may stand, got none; give the model a longer text.")
    start, end = logits.double().masked_fill(~allowed[:, None], -torch.inf).unbind(-1)
    backwards = torch.ones(len(logits), len(logits), dtype=torch.bool).tril(-1)  # start key, the end before the start
    scores = (start[:, None] + end).masked_fill(backwards, -torch.inf)
    first, last = divmod(int(scores.argmax()), len(logits))
    return AnswerSpan(first, last, float(scores[first, last]))


def where_answers_stand(encoding: Encoding, question: str = "") -> Tensor:
    """bool pos: the tokens of the text behind `question`; of a text alone all that a tokenizer did not add.

    All positions where that leaves none, as with a context that was cut away.
    """
    own = [not special for special in encoding.special]
    behind = len(question) + 1 if encoding.text.startswith(f"{question}\n") and question.strip() else 0
    second = [mine and start >= behind for mine, (start, _) in zip(own, encoding.spans, strict=True)]
    found = next((marks for marks in (second, own) if any(marks)), [True] * len(encoding))
    return torch.tensor(found)


def words(encoding: Encoding, answer: AnswerSpan) -> str:
    """The text that an answer covers; its pieces where the tokens come from no text."""
    (first, _), (_, last) = encoding.spans[answer.start], encoding.spans[answer.end]
    return encoding.text[first:last] or " ".join(encoding.pieces[answer.start : answer.end + 1])


def logistic(logits: Tensor, temperature: float = 1.0) -> Distribution:
    """Independent class that holds or does not: 1 / (1 + e^-x), as in Clark et al. 2020, section 2. No cut leaves it
    out.

    At temperature 0 the probability is 0 or 1, as in the limit.
    """
    certain = torch.where(logits == 0, 0.0, logits.sign() * torch.inf)
    scaled = logits / temperature if temperature > 0 else certain
    shares = torch.sigmoid(scaled)
    kept = torch.ones_like(shares, dtype=torch.bool)
    return Distribution(logits, logits, scaled, shares, kept, kept, kept, kept, shares)
