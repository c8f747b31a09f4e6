"""What happened while a model learned, and at which step: a head formed, a plateau ended, it began to overfit."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from engine.analysis.heads import CROSS_SCORES, SCORES
from engine.plurals import count_words
from engine.training.probe.frames import Frame
from engine.training.run.changes import (
    Change,
    Curve,
    bucket_medians,
    first_lasting,
    noise,
    plateau_ends,
    rise,
    smooth,
    spikes,
    turn,
)

RISE = 0.25  # of attention: so much further up than before, and a head has formed
RISING = ("previous", "duplicate", "induction", "cross.aligned", "cross.mirrored", "cross.duplicate")
TITLES = {one.key: one.title for one in SCORES} | {f"cross.{one.key}": f"Cross: {one.title}" for one in CROSS_SCORES}
TITLES |= {"cross.aligned": "Cross: same place", "cross.mirrored": "Cross: same place from the end"}
TRAINED, GENERAL = 0.95, 0.9  # accuracy on what was trained on, and on what was not: grokking lies between
PERFECT = 1 - 1e-9
ENOUGH = 30  # held-out targets: all of them are right in one of 24 models that err once in ten
Line = Mapping[str, Any]


@dataclass(frozen=True)
class Mark:
    """`kind` is "head", "plateau", "grokking", "overfitting", "learned" or "spike"; the sentence says what was
    measured, `before` and `after` are its numbers. `where` has the layer and head, counted from 0, and of "grokking"
    the step `trained` at which the training data was known; `what` names a head's score."""

    step: int
    kind: str
    sentence: str
    before: float
    after: float
    where: Mapping[str, int] = field(default_factory=dict)
    what: str = ""


def marks(metrics: Sequence[Line], frames: Sequence[Frame]) -> list[Mark]:
    """Finds the marks of a run, in the order of the steps. `metrics` are lines of metrics.jsonl; of `frames` only the
    scores are read."""
    found = [*heads(frames), *plateaus(metrics), *grokking_marks(metrics), *overfitting_marks(metrics)]
    return sorted([*found, *learning_marks(metrics), *jumps(metrics)], key=lambda mark: (mark.step, mark.kind))


def series(metrics: Sequence[Line], name: str) -> tuple[Curve, Curve]:
    """The steps at which `name` was measured, and what it was."""
    pairs = [(line["step"], line[name]) for line in metrics if isinstance(line.get(name), int | float)]
    finite = [(step, value) for step, value in pairs if math.isfinite(value)]
    steps, values = zip(*finite, strict=True) if finite else ((), ())
    return np.array(steps, dtype=np.float64), np.array(values, dtype=np.float64)


def heads(frames: Sequence[Frame]) -> Iterator[Mark]:
    """Finds for each score the head that has most of it in the end, if it has not had it from the beginning."""
    for name in RISING:
        seen = [one for one in frames if f"scores.{name}" in one.tensors]
        if len({tuple(one.tensors[f"scores.{name}"].shape) for one in seen}) != 1:
            continue
        values = np.stack([one.tensors[f"scores.{name}"].numpy() for one in seen]).astype(np.float64)
        last = np.nan_to_num(np.median(values[-max(len(values) // 5, 1) :], axis=0), nan=-1.0)
        layer, head = (int(i) for i in np.unravel_index(int(last.argmax()), last.shape))
        curve = values[:, layer, head]
        change = rise(curve, RISE) if np.isfinite(curve).all() else None
        if change is not None:
            near = values[:, last >= last.max() - RISE].T  # series of the heads that end with about as much
            alike = sum(bool(np.isfinite(one).all()) and rise(one, RISE) is not None for one in near)
            there = float(curve[change.at])
            yield head_mark(seen[change.at].step, name, (layer, head), there, change, (alike, last.size))


def head_mark(
    step: int, name: str, where: tuple[int, int], there: float, change: Change, alike: tuple[int, int]
) -> Mark:
    title = TITLES[name]
    read = "random tokens twice" if name == "induction" else "the probe"
    layer, head = where
    sentence = (
        f"{title}, block {layer + 1} head {head + 1}, on {read}: "
        f"{change.before:.3f} in the median before, {there:.3f} at step {step:,} and {change.after:.3f} since."
    )
    if alike[0] > 1:
        sentence += f" {alike[0]} of {count_words(alike[1], 'head')} rose and end within {RISE} of it, which has most."
    return Mark(step, "head", sentence, change.before, change.after, {"layer": layer, "head": head}, name)


def plateaus(metrics: Sequence[Line]) -> Iterator[Mark]:
    steps, losses = bucket_medians(*series(metrics, "loss"))
    for change in plateau_ends(losses):
        step = int(steps[change.at])
        end = int(steps[(change.until or len(steps)) - 1])
        sure = min((change.before - change.after) / max(change.noise, 1e-6 * abs(change.before)), 999)
        yield Mark(
            step,
            "plateau",
            f"The loss stood at {change.before:.3f} and from step {step:,} on fell to {change.after:.3f} by step "
            f"{end:,}, {sure:.0f} times as far as it varies from step to step.",
            change.before,
            change.after,
        )


def grokking_marks(metrics: Sequence[Line]) -> Iterator[Mark]:
    """Marks the step at which what was trained on is known long before the rest: twice as many steps, and three
    measurements in between."""
    (steps, known), (measured, general) = series(metrics, "accuracy"), series(metrics, "held_out_accuracy")
    first, last = first_lasting(smooth(known), TRAINED), first_lasting(general, GENERAL)
    if first is None or last is None:
        return
    trained, step = int(steps[first]), int(measured[last])
    between = general[(measured >= trained) & (measured < step)]
    if step < 2 * trained or len(between) < 3 or between[0] > GENERAL - 0.2:
        return
    yield Mark(
        step,
        "grokking",
        f"Grokking: the training data was known at step {trained:,} (accuracy {known[first]:.3f}) while held-out "
        f"accuracy was {between[0]:.3f}; that is {general[last]:.3f} at step {step:,} only.",
        float(between[0]),
        float(general[last]),
        {"trained": trained},
    )


def overfitting_marks(metrics: Sequence[Line]) -> Iterator[Mark]:
    """Held-out loss rises while the loss in training does not."""
    (steps, losses), (trained, own) = series(metrics, "held_out_loss"), series(metrics, "loss")
    change = turn(losses)
    if change is None or not len(own):
        return
    step = int(steps[change.at])
    width = max(len(own) // 20, 1)
    nearest = int(np.searchsorted(trained, step))
    then, now = (float(np.median(own[max(at - width, 0) : at + width + 1])) for at in (nearest, len(own) - 1))
    if now > then + noise(own):
        return
    yield Mark(
        step,
        "overfitting",
        f"Overfitting: held-out loss was lowest at step {step:,} ({change.before:.3f}) and is {change.after:.3f} now, "
        f"while the loss in training went from {then:.3f} to {now:.3f}.",
        change.before,
        change.after,
    )


def learning_marks(metrics: Sequence[Line]) -> Iterator[Mark]:
    """Nothing of what is held out, ENOUGH targets, is wrong three measurements in a row. Runs of earlier versions did
    not write down how many they were."""
    steps, right = series(metrics, "held_out_accuracy")
    (_, targets), at = series(metrics, "held_out_targets"), first_lasting(right, PERFECT)
    if at is None or at == 0 or len(targets) and targets.min() < ENOUGH:
        return
    step, before = int(steps[at]), float(right[at - 1])
    told = f"all {count_words(int(targets.min()), 'held-out answer')}" if len(targets) else "all held-out answers"
    sentence = f"Learned: {told} are right from step {step:,} on; just before, {before:.4f} were."
    yield Mark(step, "learned", sentence, before, 1.0)


def jumps(metrics: Sequence[Line]) -> Iterator[Mark]:
    steps, norms = series(metrics, "grad_norm")
    for change in spikes(norms):
        step = int(steps[change.at])
        yield Mark(
            step,
            "spike",
            f"The gradient's norm was {change.after:.3g} at step {step:,}, {change.after / change.before:.0f} times "
            f"the median of the steps before ({change.before:.3g}).",
            change.before,
            change.after,
        )
