"""Where in a text the answer to a question starts and where it ends (Devlin et al. 2019, section 4.2)."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from engine.data.task import Answered
from engine.scoring.examples import Examples
from engine.tokenizers import Encoding
from engine.training.examples.classification import pair_inputs


def span_examples(rows: Sequence[Encoding], answered: Sequence[Answered], pad: int, segments: bool) -> Examples:
    """`rows` encode each question with its context; asked are the first and the last token of the answer.

    The loss is the mean of both cross-entropies over all positions, as of transformers' models for it.
    """
    places = [find_span(row, one) for row, one in zip(rows, answered, strict=True)]
    return Examples(pair_inputs(rows, pad, segments), torch.tensor(places), whole=True, spans=True)


def find_span(row: Encoding, one: Answered) -> tuple[int, int]:
    """The positions of the first and the last token of the answer in a question with its context."""
    begin = (row.second or 0) + one.start
    end = begin + len(one.answer)
    inside = [at for at, (start, stop) in enumerate(row.spans) if start < stop and start < end and stop > begin]
    if not inside:
        raise ValueError(f"each answer must have a token of its context, and {one.answer!r:.80} has none; remove it.")
    return inside[0], inside[-1]
