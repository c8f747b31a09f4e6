"""What of a training a browser looks at, as tables and matrices with named axes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from engine.analysis.heads import CROSS_SCORES, SCORES
from engine.training.probe.frames import Frame
from engine.training.probe.watch import Histogram, WatchLine
from engine.training.run.marks import Mark
from engine.training.run.news import Line
from views.core.matrix_files import Matrix
from views.core.table_files import Table
from views.train.train import metric_columns

BYTE = 255  # of a pattern, stands for 1
UNASKED = -100  # nobody knows what is right there
TITLES = {one.key: one.title for one in (*SCORES, *CROSS_SCORES)}
Named = Callable[[int], str]  # a token or a class by its id


@dataclass(frozen=True)
class FrameSelection:
    """Choice of what is looked at: a step's frame, the one that it is compared with, and one head of one attention,
    counted from 0, by the name that it has in a frame ("attn", "encoder", "cross_attn")."""

    run: str
    frame: Frame
    other: Frame | None
    attention: str
    layer: int
    head: int

    def __post_init__(self) -> None:
        found = self.frame.tensors.get(self.hook)
        if found is None or not (0 <= self.layer < found.shape[0] and 0 <= self.head < found.shape[1]):
            raise ValueError("this run has no such head at this step; look at another one.")

    @property
    def hook(self) -> str:
        return f"patterns.{self.attention}"

    @property
    def title(self) -> str:
        return f"step {self.frame.step}: {self.attention} block {self.layer} head {self.head}.pattern"


def head_matrix(at: FrameSelection, tokens: Mapping[str, Sequence[str]]) -> Matrix:
    """query key: one head's pattern, to within 1 in 510, which is what a look keeps of it."""
    return Matrix(at.title, at.run, shares(at.frame, at)[at.layer, at.head], ("query", "key"), tokens)


def heads_matrix(at: FrameSelection, tokens: Mapping[str, Sequence[str]]) -> Matrix:
    """layer head query key: all heads of that attention."""
    name = f"step {at.frame.step}: {at.attention}.pattern"
    return Matrix(name, at.run, shares(at.frame, at), ("layer", "head", "query", "key"), tokens)


def change_matrix(at: FrameSelection, tokens: Mapping[str, Sequence[str]]) -> Matrix:
    """query key: the pattern of the later step less that of the earlier. Raises ValueError where they do not match."""
    if at.other is None or at.other.tensors.get(at.hook) is None:
        raise ValueError("there is no second step to compare with; choose one.")
    before, after = sorted((at.other, at.frame), key=lambda frame: frame.step)
    first, last = (shares(frame, at) for frame in (before, after))
    if first.shape != last.shape:
        raise ValueError("at the two steps the model read other words here, so that there is no difference.")
    name = f"step {after.step} less step {before.step}: {at.attention} block {at.layer} head {at.head}.pattern"
    return Matrix(name, at.run, (last - first)[at.layer, at.head], ("query", "key"), tokens)


def shares(frame: Frame, at: FrameSelection) -> np.ndarray:
    """layer head query key, float32."""
    return frame.tensors[at.hook].numpy().astype(np.float32) / np.float32(BYTE)


def answer_table(at: FrameSelection, named: Named) -> Table:
    """A row for each position and each of its likeliest answers; `right` marks the one that should have come."""
    ids, chances = (at.frame.tensors[name].numpy() for name in ("top.ids", "top.p"))
    asked = at.frame.tensors["asked"].numpy()
    places = [(row, rank) for row in range(ids.shape[0]) for rank in range(ids.shape[1])]
    return about(
        at.run,
        f"answers at step {at.frame.step}",
        {
            "position": [row for row, _ in places],
            "rank": [rank + 1 for _, rank in places],
            "id": [int(ids[place]) for place in places],
            "answer": [named(int(ids[place])) for place in places],
            "probability": np.array([chances[place] for place in places], np.float32),
            "right": [bool(ids[place] == asked[place[0]]) for place in places],
        },
    )


def loss_table(at: FrameSelection, named: Named) -> Table:
    """A row for each position: what is right there and what it costs in nats; NaN where nobody knows."""
    asked, losses = (at.frame.tensors[name].numpy() for name in ("asked", "loss"))
    return about(
        at.run,
        f"losses at step {at.frame.step}",
        {
            "position": np.arange(len(losses), dtype=np.int32),
            "id": asked.astype(np.int32),
            "right": ["" if id == UNASKED else named(int(id)) for id in asked],
            "loss": losses.astype(np.float32),
        },
    )


def score_table(at: FrameSelection) -> Table:
    """A row for each head and each of its scores on the example."""
    rows = [
        (side or "attn", TITLES.get(key, key), layer, head, np.float32(values[layer, head].item()))
        for name, values in at.frame.tensors.items()
        if name.startswith("scores.")
        for side, _, key in [name.removeprefix("scores.").rpartition(".")]
        for layer in range(values.shape[0])
        for head in range(values.shape[1])
    ]
    names = ("attention", "score", "layer", "head", "value")
    return about(at.run, f"scores at step {at.frame.step}", columns_of(names, rows))


def curve_table(run: str, lines: Sequence[Line]) -> Table:
    """All that was measured, a row for each line of the run's metrics; NaN where a line lacks something."""
    return about(run, "curves", metric_columns(lines))


def mark_table(run: str, found: Sequence[Mark]) -> Table:
    names = ("step", "kind", "sentence", "before", "after")
    return about(run, "what happened", {name: [getattr(mark, name) for mark in found] for name in names})


def gradient_table(run: str, watched: Sequence[WatchLine]) -> Table:
    """A row for each step that was watched and each part: the norm of its gradient, before clipping."""
    rows = [(one.step, part, norm) for one in watched for part, norm in one.gradients.items()]
    return about(run, "gradients", columns_of(("step", "part", "norm"), rows))


def histogram_table(run: str, watched: Sequence[WatchLine], what: str) -> Table:
    """A row for each bin of the histograms of "weights" or "activations"."""
    found = [(one.step, part, each) for one in watched for part, each in getattr(one, what).items()]
    rows = [(step, part, *bin) for step, part, each in found for bin in bins(each)]
    return about(run, what, columns_of(("step", "part", "low", "high", "count"), rows))


def bins(found: Histogram) -> list[tuple[float, float, int]]:
    wide = (found.high - found.low) / len(found.counts)
    return [(found.low + i * wide, found.low + (i + 1) * wide, count) for i, count in enumerate(found.counts)]


def columns_of(names: Sequence[str], rows: Sequence[Sequence[Any]]) -> dict[str, Sequence[Any]]:
    """Rows as columns by name."""
    return {name: [row[i] for row in rows] for i, name in enumerate(names)}


def about(run: str, table: str, columns: Mapping[str, Any]) -> Table:
    return Table(columns, {"model": run, "table": table})
