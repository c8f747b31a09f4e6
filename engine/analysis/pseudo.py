"""How surprising each token of a text is to a model that reads in both directions: the pseudo-log-likelihood."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from engine.analysis.surprise import Surprise, join_windows, measure_rows
from engine.checkpoints import Checkpoint
from engine.scoring.examples import UNASKED, Examples
from engine.scoring.score import score

TOKENS = 2048  # that are read at a time, in all rows together


def scores(checkpoint: Checkpoint) -> bool:
    """True if its texts have a pseudo-log-likelihood: it predicts tokens that are masked, and can mask them."""
    tokenizer = checkpoint.tokenizer
    return checkpoint.config.head.kind == "masked" and tokenizer is not None and tokenizer.mask_id is not None


def asked_of(checkpoint: Checkpoint, ids: Sequence[int]) -> tuple[int, ...]:
    """The places of the tokens that are masked in turn: all but the special ones, the text's own masks among these."""
    assert checkpoint.tokenizer is not None
    special = set(checkpoint.tokenizer.special_tokens.values())
    return tuple(place for place, id in enumerate(ids) if id not in special)


def pseudo_surprise(
    checkpoint: Checkpoint,
    ids: Sequence[int],
    segments: Sequence[int] = (),
    places: Sequence[int] | None = None,
) -> Surprise:
    """The pseudo-log-likelihood (Salazar et al. 2020, Masked Language Model Scoring, section 2): each token is masked
    in turn, and predicted from all the others. `total` is minus that of the text, `perplexity` the pseudo-perplexity;
    they are of another kind than those of a model that writes, and say nothing beside them.

    `ids` are a text with what the tokenizer puts around it, `segments` those of a pair, `places` the tokens to mask
    (None: all but special ones). `at` are their own places, there are no windows, and `training` is the loss that
    training would compute of exactly these rows. Raises ValueError for a model that predicts no masked tokens, and for
    a text that it cannot read.
    """
    if not scores(checkpoint):
        raise ValueError("a pseudo-log-likelihood is of a model that predicts masked tokens, with a mask to hide them.")
    checkpoint.model.check(torch.tensor([list(ids)]))
    wanted = asked_of(checkpoint, ids) if places is None else tuple(places)
    if not wanted:
        raise ValueError("only special tokens stand in this text, and they are not asked for; write a word.")
    rows = max(1, TOKENS // len(ids))
    return join_windows(
        [of_rows(checkpoint, ids, segments, wanted[at : at + rows]) for at in range(0, len(wanted), rows)]
    )


@torch.inference_mode()
def of_rows(checkpoint: Checkpoint, ids: Sequence[int], segments: Sequence[int], places: Sequence[int]) -> Surprise:
    """Each of the `places` masked in a row of its own."""
    assert checkpoint.tokenizer is not None
    model, row, at = checkpoint.model, torch.arange(len(places)), torch.tensor(list(places))
    mask = checkpoint.tokenizer.mask_id
    assert mask is not None
    whole = torch.tensor([list(ids)])
    read = whole.repeat(len(places), 1)
    read[row, at] = mask
    seen = torch.tensor([list(segments)]).repeat(len(places), 1) if segments else None
    last = model.forward_resid(read.to(model.device), segments=None if seen is None else seen.to(model.device))
    logits, _ = model.heads(last[row, at][:, None])  # of the masked places alone
    inputs = {"ids": read} if seen is None else {"ids": read, "segments": seen}
    wanted = whole[0, at]
    examples = Examples(inputs, torch.full_like(read, UNASKED).index_put((row, at), wanted))
    asked = Examples(inputs, wanted[:, None].to(model.device))
    training = float(score((logits, None), asked)["loss"])
    return Surprise(
        wanted, at, **measure_rows(logits[:, 0], wanted), training=training, examples=(examples,), windows=()
    )
