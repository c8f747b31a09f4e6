"""Why a column of a pattern is bright: what was measured of one key, and a sentence that says it.

A sink gets attention that nothing needs, and gives it a short value vector (Xiao et al. 2024, "Efficient Streaming
Language Models with Attention Sinks"; Kobayashi et al. 2020, "Attention is Not Only a Weight").
"""

from __future__ import annotations

import math
import unicodedata
from dataclasses import dataclass

import torch
from torch import Tensor

from engine.analysis.heads import mean_where
from engine.analysis.recorded_patterns import masks, patterns, recorded_hooks, side_of, tokens
from engine.runtime.trace import Trace
from engine.tokenizers.encoding import Encoding

BRIGHT = 1.5  # times an even spread
SHORT, LONG = 0.8, 1.25  # times the other keys’ median
SPACES = " ·▁Ġ"  # how a space is drawn in front of a token


@dataclass(frozen=True)
class Column:
    """Key column as the queries of a head see it; of several heads, the mean of each number over them.

    `share` is the mean attention of the `queries` that may see the key and another one, `even` what it would be if each
    of these attended to all it may see alike: of the first key of a causal head, the share is its first-token score.
    `value` is the length of the key's value vector, `median` that of the other keys'. `part` is the mean share that
    pattern |v| of this key has of the row's sum of those: what it adds to z, before the vectors cancel each other. NaN
    where there is nothing to measure: no query, no other key. `others` are further occurrences of the same token.
    """

    key: int
    piece: str | None
    heads: int
    queries: int
    share: float
    even: float
    value: float
    median: float
    part: float
    first: bool
    special: bool
    punctuation: bool
    others: int

    @property
    def times(self) -> float:
        """Ratio of the share to an even spread."""
        return self.share / self.even if self.queries else math.nan


def column(
    trace: Trace,
    layer: int,
    key: int,
    head: int | None = None,
    side: str = "",
    crosses: bool = False,
    read: Encoding | None = None,
) -> Column:
    """Column of key `key` in the first text of `trace`, which must hold the layer's pattern, mask and v.

    `head` None averages all. `read` says what stands at the keys where the trace does not (plain ids, a picture).
    Raises ValueError for a layer, head or key that is not there, KeyError for what was not recorded.
    """
    pattern, mask, norms = layer_of(trace, layer, side, crosses)
    if head is not None:
        check_index("head", head, len(pattern))
        pattern, mask, norms = pattern[head, None], mask[head, None], norms[head, None]
    keys = pattern.shape[-1]
    check_index("key", key, keys)
    at = "encoder" if crosses else side_of(trace, side)
    read = text_of_stack(trace, at) if read is None else read
    sees = mask[..., key] & (mask.sum(-1) > 1)  # head pos
    weighted = pattern * norms[:, None]
    total = weighted.sum(-1)
    rest = torch.cat([norms[:, :key], norms[:, key + 1 :]], dim=1)
    ids = tokens(trace, at) if trace.ids.dim() == 2 else None
    return Column(
        key=key,
        piece=None if read is None else read.pieces[key],
        heads=len(pattern),
        queries=int(sees.any(0).sum()),
        share=average(pattern[..., key], sees),
        even=average(1 / mask.sum(-1), sees),
        value=float(norms[:, key].mean()),
        median=float(rest.quantile(0.5, dim=1).mean()) if keys > 1 else math.nan,
        part=average(weighted[..., key] / total, sees & (total > 0)),
        first=key == 0,
        special=read is not None and read.special[key],
        punctuation=read is not None and punctuates(read, key),
        others=0 if ids is None else int((ids == ids[key]).sum()) - 1,
    )


def describe_sink(column: Column, called: str | None = None, same: str = "token") -> str:
    """The measurement in words. It claims no more: what stands beside a share is not said to cause it.

    `called` names a key that is no piece of a text, such as a pixel; `same` is what further occurrences are of.
    """
    known = [fact for fact, holds in facts(column, same) if holds]
    name = column_name(column) if called is None else called
    subject = f"{name}, {join_words(known)}," if known else name
    subject = subject[0].upper() + subject[1:]
    if not column.queries:
        return f"{subject} is seen by no query that may see another key too."
    queries = "one query that may see" if column.queries == 1 else f"{column.queries} queries that may see"
    over = "" if column.heads == 1 else f" (the mean of {column.heads} heads)"
    gets = f"{subject} gets {percent(column.share)} of the attention of the {queries} it and others{over}"
    spread = f"{column.times:.3g} times the {percent(column.even)} of an even spread"
    if math.isnan(column.median) or math.isnan(column.part):
        return f"{gets}, {spread}."
    against = f"{size(column)} ({column.value:.3g}, the other keys’ median is {column.median:.3g})"
    parts = f"{gets}, {spread}; its value vector is {against}"
    return f"{parts}, so it makes up {percent(column.part)} of the rows’ pattern × |v|."


def column_name(column: Column) -> str:
    return f"key {column.key}" if column.piece is None else f"“{column.piece}” (key {column.key})"


def join_words(parts: list[str]) -> str:
    """a; a and b; a, b and c."""
    *first, last = parts
    return f"{', '.join(first)} and {last}" if first else last


def facts(column: Column, same: str) -> list[tuple[str, bool]]:
    return [
        ("the first position", column.first),
        ("a special token", column.special),
        ("punctuation", column.punctuation),
        (f"one of {column.others + 1} occurrences of this {same}", column.others > 0),
    ]


def size(column: Column) -> str:
    """Length of the value vector, in words."""
    if column.value <= SHORT * column.median:
        return "short, as a sink’s is" if column.times >= BRIGHT else "short"
    return "long" if column.value >= LONG * column.median else "of ordinary length"


def percent(share: float) -> str:
    return f"{100 * share:.3g} %"


def layer_of(trace: Trace, layer: int, side: str, crosses: bool) -> tuple[Tensor, Tensor, Tensor]:
    """The pattern and mask (head pos key) of one layer, and the length of v (head key)."""
    found = patterns(trace, side, crosses)
    check_index("layer", layer, len(found))
    pattern, mask = found[layer], masks(trace, side, crosses)[layer]
    hook = recorded_hooks(trace, f"{'cross_attn' if crosses else 'attn'}.v", side_of(trace, side))[layer]
    norms = trace[hook][0, : pattern.shape[-1]].float().norm(dim=-1).T  # those of the groups
    return pattern, mask, norms.repeat_interleave(len(pattern) // len(norms), dim=0)


def text_of_stack(trace: Trace, side: str) -> Encoding | None:
    """The text that a stack read, where the trace came with it."""
    encodings = trace.target_encodings if side == "decoder" else trace.encodings
    return encodings[0] if encodings else None


def punctuates(read: Encoding, key: int) -> bool:
    """True if a token of the text itself is nothing but punctuation; without a text, by how it is drawn."""
    start, end = read.spans[key]
    spelled = read.text[start:end].strip() if read.text else read.pieces[key].strip(SPACES)
    marks = all(unicodedata.category(letter).startswith("P") for letter in spelled)
    return bool(spelled) and marks and not read.special[key]


def average(values: Tensor, counted: Tensor) -> float:
    """Mean of each head over what counts, then over the heads that have any."""
    return float(mean_where(values, counted).nanmean())


def check_index(name: str, value: int, size: int) -> None:
    if not 0 <= value < size:
        raise ValueError(f"{name} must be 0 to {size - 1}, got {value}.")
