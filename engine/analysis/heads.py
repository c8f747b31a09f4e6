"""What a head attends to, in numbers measured on one text, and what each of the numbers means."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor
from torch.nn.functional import pad

from engine.analysis.recorded_patterns import holds, masks, patterns, tokens
from engine.runtime.trace import Trace


@dataclass(frozen=True)
class Score:
    """A number of each head: a `share` is in [0, 1], a `ratio` in [-1, 1]; NaN where no position counts."""

    key: str
    title: str
    unit: Literal["share", "bits", "tokens", "ratio"]
    definition: str
    source: str


CLARK = 'Clark et al. 2019, "What Does BERT Look At?"'
SEPARATORS = f"{CLARK}, section 3.2: attention to separator tokens"
VIG = 'Vig & Belinkov 2019, "Analyzing the Structure of Attention in a Transformer Language Model"'
SCORES = (
    Score(
        "previous",
        "Previous token",
        "share",
        "Attention to the token just before, averaged over all positions but the first.",
        f"{CLARK}, section 3.1",
    ),
    Score(
        "duplicate",
        "Same token",
        "share",
        "Attention to the other occurrences of the position's own token, itself left out, averaged over the positions "
        "that may see one.",
        'Wang et al. 2022, "Interpretability in the Wild": duplicate token heads',
    ),
    Score(
        "induction",
        "Induction",
        "share",
        "Attention to the tokens that followed earlier occurrences of the position's own token, averaged over repeated "
        "tokens.",
        'Olsson et al. 2022, "In-context Learning and Induction Heads"',
    ),
    Score(
        "first",
        "First-token sink",
        "share",
        "Attention to the first token, averaged over all positions but the first.",
        'Xiao et al. 2024, "Efficient Streaming Language Models with Attention Sinks"',
    ),
    Score(
        "own",
        "Own position",
        "share",
        "Attention to the position itself, averaged over all positions but the first.",
        f"{CLARK}, section 3.1",
    ),
    Score(
        "entropy",
        "Entropy",
        "bits",
        "-sum p log2 p of a row of the pattern, averaged over all positions but the first: 0 for one key, log2 n for "
        "n keys alike.",
        f"{CLARK}, section 3.3",
    ),
    Score(
        "distance",
        "Distance",
        "tokens",
        "How many positions away the attended keys stand, before or behind, weighted by the pattern and averaged over "
        "all positions but the first.",
        VIG,
    ),
    Score(
        "copying",
        "Copying",
        "ratio",
        "sum(l) / sum(|l|) of the eigenvalues l of W_E, norm, W_V, W_O, W_U, vocab by vocab: 1 where all are positive "
        "and the head makes what it attends to likelier, -1 where less likely. W_E is normalised and both norms' "
        "weights are folded in; biases, positions, the layers in between and the last norm's division are left out.",
        'Elhage et al. 2021, "A Mathematical Framework for Transformer Circuits": copying, eigenvalues of OV',
    ),
    Score(
        "positional",
        "Positional share",
        "share",
        "1 - the total variation distance between the pattern and its mean over the same tokens in other, random "
        "orders (special tokens stay in place), averaged over all positions but the first: 1 where the places of "
        "tokens decide alone, as in an even spread.",
        f"{VIG}: 1 - attention variability",
    ),
)
CROSS_SCORES = (
    Score(
        "strongest",
        "Strongest",
        "share",
        "The largest share that a position of the target gives to one token of the source, averaged over the target.",
        'Voita et al. 2019, "Analyzing Multi-Head Self-Attention", section 4: confidence, which leaves out the end',
    ),
    Score(
        "entropy",
        "Entropy",
        "bits",
        "-sum p log2 p of a row of the pattern, averaged over the target.",
        f"{CLARK}, section 3.3",
    ),
    Score(
        "first", "First token", "share", "Attention to the source's first token, averaged over the target.", SEPARATORS
    ),
    Score("last", "Last token", "share", "Attention to the source's last token, averaged over the target.", SEPARATORS),
    Score(
        "duplicate",
        "Same token",
        "share",
        "Attention to the occurrences in the source of the token that the target has at the position, averaged over "
        "the positions that may see one.",
        'Wang et al. 2022, "Interpretability in the Wild": duplicate token heads, from one text to another',
    ),
)


@dataclass(frozen=True)
class HeadScores:
    """Each is layer head, by the definition that SCORES gives. A row that may see nothing does not count."""

    previous: Tensor
    first: Tensor
    own: Tensor
    induction: Tensor
    entropy: Tensor
    duplicate: Tensor
    distance: Tensor


def head_scores(trace: Trace, side: str = "") -> HeadScores:
    """Scores the self-attention heads of the first text of the batch; `side` picks "encoder" or "decoder" of two
    stacks.

    NaN where no query had a choice: one token only, nothing repeated, a picture's tokens. What a query may see is
    read from the mask, and where none was recorded from where any head of the layer attends. Raises ValueError for a
    run that continued a cache.
    """
    found, ids = patterns(trace, side), tokens(trace, side)
    allowed = masks(trace, side) if holds(trace, "attn.mask", side) else [None] * len(found)
    measured = [vars(scores(one, ids, mask)) for one, mask in zip(found, allowed, strict=True)]
    return HeadScores(**{key: torch.stack([one[key] for one in measured]) for key in measured[0]})


def scores(pattern: Tensor, ids: Tensor | None, mask: Tensor | None = None) -> HeadScores:
    """Scores one layer: `pattern` and `mask` are head pos key, `ids` pos (None: a picture), every score is head."""
    count = pattern.shape[-1]
    later = later_rows(pattern)
    place = torch.arange(count, device=pattern.device, dtype=pattern.dtype)
    away = (place[:, None] - place).abs()
    return HeadScores(
        entropy=mean_where(bits(pattern), later),
        distance=mean_where(sum_over_keys(pattern, away), later),
        **{key: rows.nanmean(-1) for key, rows in row_scores(pattern, ids, mask).items()},
    )


def row_scores(pattern: Tensor, ids: Tensor | None, mask: Tensor | None = None) -> dict[str, Tensor]:
    """The shares of `scores` that a head gives at each position, head pos, by the score's key; NaN where the position
    does not count. Each score is the mean of its share."""
    later = later_rows(pattern)
    nothing = torch.full_like(pattern[..., 0], math.nan)
    shares = {
        "previous": pad(pattern.diagonal(-1, -2, -1), (1, 0)),
        "first": pattern[..., 0],
        "own": pattern.diagonal(0, -2, -1),
    }
    return {
        **{key: share.masked_fill(~later, math.nan) for key, share in shares.items()},
        "induction": nothing if ids is None else induction_rows(pattern, ids),
        "duplicate": nothing if ids is None else duplicate_rows(pattern, ids, mask),
    }


def later_rows(pattern: Tensor) -> Tensor:
    """Rows after the first that attend to anything, bool head pos."""
    return (pattern.sum(-1) > 0) & (torch.arange(pattern.shape[-1], device=pattern.device) > 0)


@dataclass(frozen=True)
class CrossScores:
    """Each is layer head, by the definition that CROSS_SCORES gives."""

    strongest: Tensor
    entropy: Tensor
    first: Tensor
    last: Tensor
    duplicate: Tensor


def cross_scores(trace: Trace) -> CrossScores:
    """Scores the cross-attention heads of the first text of the batch."""
    found = patterns(trace, "decoder", crosses=True)
    target, source = tokens(trace, "decoder"), tokens(trace, "encoder")
    assert target is not None and source is not None
    same = target[:, None] == source
    return CrossScores(
        strongest=torch.stack([one.amax(-1).mean(-1) for one in found]),
        entropy=torch.stack([bits(one).mean(-1) for one in found]),
        first=torch.stack([one[..., 0].mean(-1) for one in found]),
        last=torch.stack([one[..., -1].mean(-1) for one in found]),
        duplicate=torch.stack(
            [mean_where(sum_over_keys(one, same), same.any(-1).expand(len(one), -1)) for one in found]
        ),
    )


def most_telling_head(
    trace: Trace, special: Sequence[bool] = (), side: str = "", crosses: bool = False
) -> tuple[int, int]:
    """The layer and the head whose rows give most to a single key, on average (Voita et al. 2019, section 4), keys left
    out that a head looks at where it finds nothing: `special` ones, and of self-attention the first and a row's own."""
    found = patterns(trace, side, crosses)
    telling = torch.ones(found[0].shape[-2:], dtype=torch.bool, device=found[0].device)
    telling[:, [at for at, one in enumerate(special) if one]] = False
    if not crosses:
        telling = telling.fill_diagonal_(False)
        telling[:, 0] = False
    strongest = torch.stack([(one * telling).amax(-1).mean(-1) for one in found])
    layer, head = divmod(int(strongest.argmax()), strongest.shape[1])
    return layer, head


def bits(pattern: Tensor) -> Tensor:
    """The entropy of each row, ... pos."""
    return -torch.special.xlogy(pattern, pattern).sum(-1) / math.log(2)


def induction(pattern: Tensor, ids: Tensor) -> Tensor:
    """The mean share that a repeated token gives to the tokens that followed its earlier occurrences.

    `pattern` is ... pos key, `ids` pos; the result has the leading axes of `pattern` (Olsson et al. 2022, "In-context
    learning and induction heads"). NaN where no token is repeated.
    """
    return induction_rows(pattern, ids).nanmean(-1)


def induction_rows(pattern: Tensor, ids: Tensor) -> Tensor:
    """The share that `induction` averages, ... pos; NaN at a token that is not repeated."""
    same = (ids[:, None] == ids).tril(-1)  # pos key: the same token, earlier
    followed = same.roll(1, dims=-1)  # the key after it; nothing wraps, for a row's last key is never earlier
    return sum_over_keys(pattern, followed).masked_fill(~same.any(-1), math.nan)


def duplicate_rows(pattern: Tensor, ids: Tensor, mask: Tensor | None = None) -> Tensor:
    """The share that a token gives to other occurrences of itself, head pos; NaN where it may see none.

    `pattern` and `mask` are head pos key, `ids` pos. Without a mask a key may be seen where any head attends to it.
    """
    may = (pattern > 0).any(-3, keepdim=True) if mask is None else mask
    same = (ids[:, None] == ids).fill_diagonal_(False)
    return sum_over_keys(pattern, same).masked_fill(~(same & may).any(-1), math.nan)


def sum_over_keys(pattern: Tensor, weight: Tensor) -> Tensor:
    """The sum over keys, ... pos, of `pattern`, ... pos key, times one `weight` for all heads, pos key."""
    return torch.einsum("...pk,pk->...p", pattern, weight.to(pattern.dtype))  # holds no product


def mean_where(values: Tensor, counted: Tensor) -> Tensor:
    """Over the last axis; NaN where nothing counts."""
    return values.where(counted, 0).sum(-1) / counted.sum(-1)
