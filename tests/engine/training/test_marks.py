"""Marks on curves whose course is known, and none on noise."""

from typing import Any

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.training.probe.frames import Frame
from engine.training.run.marks import Mark, marks

Line = dict[str, Any]


def lines(steps: np.ndarray, **columns: np.ndarray) -> list[Line]:
    """NaN is what was not measured."""
    given = {name: [None if np.isnan(one) else float(one) for one in column] for name, column in columns.items()}
    return [{"step": int(step), **{name: one[i] for name, one in given.items()}} for i, step in enumerate(steps)]


def frames(steps: np.ndarray, heads: np.ndarray, name: str = "induction") -> list[Frame]:
    """`heads` is frame layer head."""
    return [
        Frame(int(step), {f"scores.{name}": torch.tensor(one, dtype=torch.float32)})
        for step, one in zip(steps, heads, strict=True)
    ]


def noisy(seed: int, curve: np.ndarray, sd: float) -> np.ndarray:
    return curve + np.random.default_rng(seed).normal(0, sd, curve.shape)


def sigmoid(steps: np.ndarray, at: float, width: float) -> np.ndarray:
    return 1 / (1 + np.exp(-(steps - at) / width))


def only(found: list[Mark], kind: str) -> Mark:
    assert [one.kind for one in found] == [kind], found
    return found[0]


def test_the_head_that_forms_is_marked_where_its_score_takes_off() -> None:
    steps = np.arange(0, 1000, 20)
    heads = noisy(0, np.full((50, 2, 4), 0.05), 0.02)
    heads[:, 1, 2] += 0.85 * sigmoid(steps, 500, 20)
    mark = only(marks([], frames(steps, heads)), "head")
    assert mark.where == {"layer": 1, "head": 2} and mark.what == "induction"
    assert 460 <= mark.step <= 520
    assert mark.before < 0.1 and mark.after > 0.85 and "block 2 head 3" in mark.sentence
    assert "heads rose" not in mark.sentence
    heads[:, :, :2] += 0.75 * sigmoid(steps, 600, 20)[:, None, None]  # four more, with a little less of it
    heads[:, 0, 3] += 0.8  # as much, and from the beginning
    assert "5 of 8 heads rose and end within 0.25 of it" in only(marks([], frames(steps, heads)), "head").sentence


def test_a_head_that_is_there_from_the_beginning_or_comes_and_goes_is_not_marked() -> None:
    steps = np.arange(0, 1000, 20)
    always = noisy(1, np.full((50, 1, 2), 0.8), 0.02)
    passing = noisy(2, np.full((50, 1, 2), 0.05), 0.02)
    passing[10:14] += 0.8
    assert not marks([], frames(steps, always)) and not marks([], frames(steps, passing))


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 400), st.sampled_from([0.001, 0.05, 0.3, 1.0]))
def test_noise_has_no_marks(seed: int, count: int, sd: float) -> None:
    draw = np.random.default_rng(seed)
    steps = np.arange(count) * 10
    told = lines(
        steps,
        loss=3 + draw.normal(0, sd, count),
        accuracy=np.clip(0.5 + draw.normal(0, sd / 5, count), 0, 0.94),
        held_out_loss=3 + draw.normal(0, sd, count),
        held_out_accuracy=np.clip(0.5 + draw.normal(0, sd / 5, count), 0, 0.89),
        grad_norm=np.exp(draw.normal(0, sd, count)),
    )
    assert not marks(told, frames(steps, draw.uniform(0, 1, (count, 2, 2))))


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_a_loss_that_only_falls_has_no_plateau_and_one_that_stood_has_one(seed: int) -> None:
    steps = np.arange(600)
    falling = noisy(seed, 0.3 + 3 * np.exp(-steps / 120), 0.03)
    assert not marks(lines(steps, loss=falling), [])
    stood = noisy(seed, 0.4 + 2 * np.exp(-steps / 15) + 2 * (1 - sigmoid(steps, 320, 8)), 0.03)
    mark = only(marks(lines(steps, loss=stood), []), "plateau")
    assert 270 <= mark.step <= 345 and abs(mark.before - 2.4) < 0.05 and mark.after < mark.before - 0.4


def test_grokking_names_both_steps() -> None:
    steps = np.arange(0, 4000, 10)
    held_out = np.where(steps % 100 == 0, noisy(3, 0.02 + 0.97 * sigmoid(steps, 3000, 60), 0.005), np.nan)
    known = np.clip(noisy(4, 0.05 + 0.95 * sigmoid(steps, 300, 20), 0.01), 0, 1)
    mark = only(marks(lines(steps, accuracy=known, held_out_accuracy=held_out), []), "grokking")
    assert 330 <= mark.where["trained"] <= 400 and 3100 <= mark.step <= 3300
    assert f"{mark.where['trained']:,}" in mark.sentence and f"{mark.step:,}" in mark.sentence


def test_what_generalises_as_it_is_learned_does_not_grok() -> None:
    steps = np.arange(0, 2000, 10)
    curve = np.clip(sigmoid(steps, 300, 40), 0, 0.995)
    assert not marks(lines(steps, accuracy=noisy(5, curve, 0.003), held_out_accuracy=noisy(6, curve, 0.003)), [])


def test_the_lowest_held_out_loss_before_it_rises_is_where_overfitting_begins() -> None:
    steps = np.arange(0, 2000, 20)
    own = noisy(7, 0.2 + 3 * np.exp(-steps / 300), 0.02)
    held_out = noisy(8, 1 + 2.5 * np.exp(-steps / 200) + steps / 1500, 0.01)
    mark = only(marks(lines(steps, loss=own, held_out_loss=held_out), []), "overfitting")
    best = steps[np.argmin(2.5 * np.exp(-steps / 200) + steps / 1500)]
    assert abs(mark.step - best) <= 100 and mark.after > mark.before
    worse = lines(steps, loss=own + steps / 500, held_out_loss=held_out)  # training fails as well: not overfitting
    assert "overfitting" not in [one.kind for one in marks(worse, [])]


def test_a_task_is_learned_where_all_held_out_answers_are_right_and_stay_so() -> None:
    steps = np.arange(0, 600, 20)
    right = np.minimum(1.0, steps / 400)
    right[-2] = 1.0
    mark = only(marks(lines(steps, held_out_accuracy=right), []), "learned")
    assert mark.step == 400 and mark.before == 0.95
    known = only(marks(lines(steps, held_out_accuracy=right, held_out_targets=np.full(30, 64.0)), []), "learned")
    assert "all 64 held-out answers are right from step 400 on" in known.sentence
    assert not marks(lines(steps, held_out_accuracy=right, held_out_targets=np.full(30, 29.0)), [])
    right[21:] = 0.97
    assert not marks(lines(steps, held_out_accuracy=right), [])


def test_a_spike_of_the_gradient_is_marked_once_and_a_slow_change_is_not() -> None:
    steps = np.arange(500)
    norms = np.exp(noisy(9, np.linspace(1.5, -2, 500), 0.1))
    assert not marks(lines(steps, grad_norm=norms), [])
    norms[300:304] *= [30, 50, 12, 8]
    mark = only(marks(lines(steps, grad_norm=norms), []), "spike")
    assert mark.step == 301 and 30 < mark.after / mark.before < 80


def test_marks_come_in_the_order_of_the_steps_and_of_empty_things_there_are_none() -> None:
    assert marks([], []) == []
    assert marks([{"step": 0, "loss": None}], []) == []
    steps = np.arange(0, 1000, 20)
    heads = noisy(0, np.full((50, 1, 1), 0.05), 0.02)
    heads[:, 0, 0] += 0.85 * sigmoid(steps, 600, 10)
    right = np.where(steps > 300, 1.0, 0.5)
    found = marks(lines(steps, held_out_accuracy=right), frames(steps, heads))
    assert [one.kind for one in found] == ["learned", "head"]
