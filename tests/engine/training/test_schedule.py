import pytest

from engine.training.recipe.recipe import Schedule
from engine.training.recipe.schedule import learning_rate, snapshot_steps


def test_the_rate_warms_up_in_a_line_and_falls_by_half_a_cosine_to_the_floor() -> None:
    schedule = Schedule(steps=110, warmup=10, floor=0.1)
    rates = {step: learning_rate(step, schedule, 1.0) for step in (1, 5, 10, 60, 110)}
    assert rates == pytest.approx({1: 0.1, 5: 0.5, 10: 1.0, 60: 0.55, 110: 0.1})
    assert learning_rate(35, schedule, 1.0) == pytest.approx(0.1 + 0.9 * 0.8535534)  # a quarter: (1 + cos 45°) / 2


def test_without_warm_up_the_first_update_is_already_on_the_cosine() -> None:
    assert learning_rate(1, Schedule(steps=2, floor=0.0), 1.0) == pytest.approx(0.5)
    assert learning_rate(1, Schedule(steps=1, floor=0.25), 1.0) == pytest.approx(0.25)


@pytest.mark.parametrize(("steps", "count"), [(6000, 24), (100, 10), (5, 24), (1, 2), (60, 61), (1_000_000, 32)])
def test_snapshots_are_capped_and_hold_the_first_and_the_last_step(steps: int, count: int) -> None:
    chosen = sorted(snapshot_steps(steps, count))
    assert len(chosen) <= count
    assert chosen[0] == 0 and chosen[-1] == steps
    assert len(chosen) > min(steps, count) // 2


def test_snapshots_grow_further_apart() -> None:
    chosen = sorted(snapshot_steps(6000, 24))
    gaps = [b - a for a, b in zip(chosen, chosen[1:], strict=False)]
    assert gaps[-1] > 1000 and gaps[0] == 1 and gaps[-1] > 1.2 * gaps[-2]


def test_a_line_falls_evenly_and_a_constant_rate_stays() -> None:
    line = Schedule(steps=110, warmup=10, floor=0.1, shape="linear")
    rates = {step: learning_rate(step, line, 1.0) for step in (5, 10, 35, 60, 110)}
    assert rates == pytest.approx({5: 0.5, 10: 1.0, 35: 0.775, 60: 0.55, 110: 0.1})
    constant = Schedule(steps=110, warmup=10, shape="constant")
    assert [learning_rate(step, constant, 2.0) for step in (5, 10, 60, 110)] == [1.0, 2.0, 2.0, 2.0]
