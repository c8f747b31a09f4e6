"""Sweeps over many pairs of prompts: the mean effect of each place, how sure it is, and each pair behind it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from torch import Tensor

from engine.analysis.interventions.metric import MetricKind
from engine.analysis.interventions.patching import By, check_by
from engine.analysis.interventions.sites import SITES
from engine.analysis.interventions.sweep import Direction, Effects, Sweep
from engine.checkpoints import Checkpoint
from engine.data.table import Table, read_table
from engine.inputs.readers import kind, read_text
from engine.plurals import count_words
from engine.runtime.run import run

COLUMNS = ("clean", "corrupted", "answer", "wrong")  # of a file of pairs; the last may be left out
MOST = 1_000  # pairs of a sweep
RESAMPLES = 2_000
SURE = 0.95


@dataclass(frozen=True)
class PromptPair:
    """Two prompts, the `answer` that the first is followed by, and the `wrong` one that the second is; "": no lead."""

    clean: str
    corrupted: str
    answer: str
    wrong: str = ""


@dataclass(frozen=True, kw_only=True)
class SweepOptions:
    """A plan: what is patched over pairs, and what that is measured by; counted `by` head where the site is of heads,
    else by position, unless that is given. Raises ValueError for a site that there is not, and for places that it has
    not."""

    site: str = "z"
    by: tuple[By, ...] = ()
    metric: MetricKind = "logit"
    direction: Direction = "restore"

    def __post_init__(self) -> None:
        if self.site not in SITES:
            raise ValueError(f"site must be one of {', '.join(SITES)}, got {self.site!r:.80}; name one of them.")
        _ = self.places

    @property
    def places(self) -> tuple[By, ...]:
        site = SITES[self.site]
        return check_by(site, self.by or (("head",) if site.by_head else ("pos",)))

    @property
    def arguments(self) -> tuple[str, tuple[By, ...], MetricKind, Direction]:
        """Arguments of `sweep_pairs`."""
        return self.site, self.places, self.metric, self.direction


@dataclass(frozen=True)
class Interval:
    """Mean over pairs, and where it lies with a probability of SURE: percentiles of RESAMPLES means of pairs drawn with
    replacement (Efron 1979, "Bootstrap Methods"); NaN of one pair."""

    mean: Tensor
    low: Tensor
    high: Tensor


def read_pairs(file: Path | str) -> list[PromptPair]:
    """Pairs of a .csv, .tsv, .jsonl or .parquet file. Raises ValueError, in one sentence, for a file without COLUMNS or
    with more than MOST rows, and as the readers of data do. Of what a sweep wrote they are the pairs with effects."""
    return pairs_of(read_table(file), Path(file).name)


def pairs_of(table: Table, name: str) -> list[PromptPair]:
    lacking = [column for column in COLUMNS[:3] if column not in table.columns]
    if lacking:
        raise ValueError(
            f"{name} must have the columns clean, corrupted and answer, and may have wrong; it lacks "
            f"{', '.join(lacking)} and has {', '.join(table.columns)[:200]}. Name its columns so."
        )
    if {"pair", "effect"} <= set(table.columns):
        lines = dict(zip(table.cells("pair"), table.rows, strict=True))  # those of a pair have the same prompts
        table = replace(table, rows=tuple(lines.values()))
    if table.count > MOST:
        raise ValueError(f"{name} must have at most {MOST:,} pairs, got {table.count:,}; take fewer.")
    named = [column for column in COLUMNS if column in table.columns]
    return [PromptPair(*row) for row in zip(*map(table.texts, named), strict=True)]


def open_pair(
    checkpoint: Checkpoint, pair: PromptPair, metric: MetricKind = "logit", direction: Direction = "restore"
) -> Sweep:
    """The sweep of a pair, measured behind both prompts. Raises ValueError for a pair that has none: equal prompts, an
    answer that is no token, runs that predict the same."""
    if kind(checkpoint) != "text" or checkpoint.tokenizer is None:
        raise ValueError("pairs of prompts are for a model that reads one text; choose another model.")
    limit = checkpoint.model.config.context
    clean, other = (
        run(checkpoint.model, read_text(checkpoint, text, limit).read) for text in (pair.clean, pair.corrupted)
    )
    answer = first_token(checkpoint, pair.answer)
    wrong = first_token(checkpoint, pair.wrong) if pair.wrong else None
    return Sweep(checkpoint.model, clean, other, metric, -1, answer, wrong, direction)


def first_token(checkpoint: Checkpoint, text: str) -> int:
    """The first token of what stands behind a prompt: with the space that a word begins with, unless it has its own."""
    assert checkpoint.tokenizer is not None
    ids = checkpoint.tokenizer.ids(text if text[:1].isspace() else f" {text}", special=False)
    pieces = [checkpoint.tokenizer.decode([id]) for id in ids]
    found = next((id for id, piece in zip(ids, pieces, strict=True) if piece.strip()), None)
    if found is None:
        raise ValueError(f"an answer must have a token, got {text!r:.80}; correct the file.")
    return found


def sweep_pairs(
    checkpoint: Checkpoint,
    pairs: Sequence[PromptPair],
    site: str = "z",
    by: Sequence[By] = ("head",),
    metric: MetricKind = "logit",
    direction: Direction = "restore",
    tell: Callable[[int, str], None] = lambda row, why: None,
    rows: range | None = None,
) -> Iterator[tuple[int, Effects]]:
    """Row (from 0) and effects, layer first, of each pair that can be swept, of `rows` alone where they are given;
    `tell` is told which others cannot, and why. Raises ValueError for places by position where texts are not all of one
    length."""
    length = 0
    for row in range(len(pairs)) if rows is None else rows:
        try:
            sweep = open_pair(checkpoint, pairs[row], metric, direction)
            sweep.check_site(site)
        except ValueError as error:
            tell(row, str(error))
            continue
        if "pos" in by:
            length = check_length(row, sweep.base.ids.shape[-1], length)
        yield row, sweep.patch(site, by)


def check_length(row: int, length: int, before: int) -> int:
    """The length of a row's texts. Raises ValueError where those before it have another one, unless that is 0."""
    if before not in (0, length):
        raise ValueError(
            f"places by position are of texts of one length, got {count_words(before, 'token')} and, in row "
            f"{row + 1}, {length}; count by head."
        )
    return length


def mean_of(effects: Sequence[Tensor], seed: int = 0) -> Interval:
    """Raises ValueError for none."""
    if not effects:
        raise ValueError("no pair could be swept, so there is no mean; correct the file.")
    each = torch.stack(list(effects)).double().cpu()
    count = len(each)
    if count == 1:
        nothing = torch.full_like(each[0], torch.nan)
        return Interval(each[0], nothing, nothing)
    drawn = torch.randint(count, (RESAMPLES, count), generator=torch.Generator().manual_seed(seed))
    times = torch.zeros(RESAMPLES, count, dtype=torch.double).scatter_add_(1, drawn, torch.ones(drawn.shape).double())
    means = (times / count) @ each.flatten(1)
    outside = (1 - SURE) / 2
    low, high = means.quantile(torch.tensor([outside, 1 - outside]).double(), dim=0).view(2, *each.shape[1:])
    return Interval(each.mean(0), low, high)
