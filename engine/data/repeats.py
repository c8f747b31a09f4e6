"""The induction task: random tokens, repeated, so that the only way to predict is to look back and copy.

A segment of random length, drawn uniformly from the vocabulary, is repeated until the context is full. Within
the first copy nothing can be predicted; from the second copy on, everything can. The length differs from
example to example, so that looking back by a fixed number of positions does not work and matching the content
must be learned.
"""

import numpy as np
from numpy.typing import NDArray

Ids = NDArray[np.int64]
Predictable = NDArray[np.bool_]


def batch(
    rng: np.random.Generator, batch: int, context: int, vocab: int, min_length: int, max_length: int
) -> tuple[Ids, Predictable]:
    """(ids, predictable), both `batch pos`. Lengths are uniform from min_length up to max_length itself.

    `predictable[b, pos]`: standing at `pos`, the next token can be found by looking back. True from the first
    token of the second copy on; not at the last token of the first copy, since nothing there tells that a
    copy begins. With targets `ids[:, 1:]` the loss mask is `predictable[:, :-1]`. A token may occur twice
    in a segment, as in any uniform draw; then one token is not enough, and the tokens before it decide.
    """
    if not 1 <= min_length <= max_length:
        raise ValueError(
            "segment lengths should be 1 <= min_length <= max_length, but they are "
            f"{min_length} and {max_length}; swap or raise them."
        )
    if max_length > context - 2:
        raise ValueError(
            f"max_length should be at most context - 2 = {context - 2}, but it is {max_length}; "
            "shorten the segments or lengthen the context, so that there is something to copy."
        )
    if vocab < 2:
        raise ValueError(f"vocab should be at least 2 tokens, but it is {vocab}; 50 to 1000 suit well.")
    lengths = rng.integers(min_length, max_length, size=(batch, 1), endpoint=True)
    segments = rng.integers(vocab, size=(batch, max_length))
    positions = np.arange(context)
    ids = np.take_along_axis(segments, positions % lengths, axis=1)
    return ids, positions >= lengths
