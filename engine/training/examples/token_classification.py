"""A class for each word, asked at its first token (Devlin et al. 2019, section 5.3)."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from engine.scoring.examples import UNASKED, Examples
from engine.tokenizers import Encoding
from engine.tokenizers.pieces import SPACE
from engine.training.examples.classification import classification_examples
from engine.training.examples.padding import pad_rows, real


def tagging_examples(rows: Sequence[Encoding], classes: Sequence[Sequence[int]], pad: int) -> Examples:
    """`rows` encode words with spaces between them, and `classes` has one for each word."""
    ids = [torch.tensor(row.ids) for row in rows]
    asked = [answers(row, of) for row, of in zip(rows, classes, strict=True)]
    return classification_examples(pad_rows(ids, pad), pad_rows(asked, UNASKED), real(ids))


def answers(encoding: Encoding, classes: Sequence[int]) -> Tensor:
    """pos: the class of the word that begins there, UNASKED elsewhere."""
    found = torch.full((len(encoding),), UNASKED)
    for at, one in zip(first_tokens(encoding), classes, strict=True):
        if at is not None:
            found[at] = one
    return found


def first_tokens(encoding: Encoding) -> list[int | None]:
    """Finds of each word, what stands between spaces, the first token that has a part of it; None where none has. Where
    the tokenizer marks the space before every word, a token that is this mark alone is one, as by `word_ids` of
    transformers."""
    found: list[int | None] = []
    at, end, marked = 0, 0, marks_spaces(encoding)
    for word in encoding.text.split():
        begin = encoding.text.index(word, end)
        end = begin + len(word)
        while at < len(encoding) and (encoding.spans[at][1] <= begin or encoding.spans[at][0] == encoding.spans[at][1]):
            at += 1
        there = at < len(encoding) and encoding.spans[at][0] < end
        found.append(at - int(marked and is_mark(encoding, at - 1, begin)) if there else None)
    return found


def marks_spaces(encoding: Encoding) -> bool:
    """True where the first token has the mark of a space that the text does not begin with."""
    first = next((at for at, special in enumerate(encoding.special) if not special), None)
    return first is not None and encoding.pieces[first].startswith(SPACE) and not encoding.text[:1].isspace()


def is_mark(encoding: Encoding, at: int, begin: int) -> bool:
    """True for a token of nothing but the space before the word that begins at that character."""
    if at < 0 or encoding.special[at]:
        return False
    start, stop = encoding.spans[at]
    return encoding.pieces[at] == SPACE and begin - 1 <= start and stop <= begin
