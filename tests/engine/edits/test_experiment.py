import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.budget import budget
from engine.edits import AttentionTemperature, DrawMask, Patch, Scale, SilenceHeads, Source, Steer
from engine.edits.experiment import REMEMBERED, Entry, Experiment
from tests.engine.edits.test_edits import EDITS

QUIET, HOT, HALF = SilenceHeads(1, [0]), AttentionTemperature(2.0), Scale("logits", 0.5)


def made(*edits) -> Experiment:
    found = Experiment()
    for edit in edits:
        found = found.add(edit)
    return found


def test_edits_are_listed_in_their_order_and_a_switch_leaves_one_out() -> None:
    experiment = made(QUIET, HOT, HALF)
    assert experiment.edits == (QUIET, HOT, HALF)
    off = experiment.switch(1, False)
    assert off.edits == (QUIET, HALF)
    assert off.entries == (Entry(QUIET), Entry(HOT, False), Entry(HALF))
    assert off.switch(1, True).edits == (QUIET, HOT, HALF)
    assert experiment.switch_all(False).edits == ()
    assert experiment.edits == (QUIET, HOT, HALF)


def test_edits_are_changed_moved_and_taken_out() -> None:
    experiment = made(QUIET, HOT, HALF)
    assert experiment.move(2, 0).edits == (HALF, QUIET, HOT)
    assert experiment.move(0, 2).edits == (HOT, HALF, QUIET)
    assert experiment.remove(1).edits == (QUIET, HALF)
    assert experiment.clear().edits == ()
    changed = experiment.switch(0, False).change(0, SilenceHeads(2, [1]))
    assert changed.entries[0] == Entry(SilenceHeads(2, [1]), False)


def test_every_change_can_be_taken_back_and_made_again() -> None:
    states = [made(QUIET)]
    for step in (
        lambda e: e.add(HOT),
        lambda e: e.switch(0, False),
        lambda e: e.move(0, 1),
        lambda e: e.change(1, HALF),
        lambda e: e.remove(0),
        lambda e: e.clear(),
    ):
        states.append(step(states[-1]))
    current = states[-1]
    for earlier in reversed(states[:-1]):
        current = current.undo()
        assert current == earlier
    assert current.undo().entries == () and current.undo().undo() == Experiment()
    for later in states[1:]:
        current = current.redo()
        assert current == later
    assert current.redo() is current


def test_a_change_after_going_back_forgets_what_was_gone_back_from() -> None:
    experiment = made(QUIET, HOT).undo().add(HALF)
    assert experiment.edits == (QUIET, HALF)
    assert experiment.redo() is experiment
    assert experiment.undo().undo().redo().edits == (QUIET,)


def test_what_changes_nothing_is_no_step_to_take_back() -> None:
    experiment = made(QUIET, HOT).undo()
    assert experiment.switch(0, True) is experiment
    assert experiment.move(0, 0) is experiment
    assert experiment.redo().edits == (QUIET, HOT)


def test_only_so_many_states_are_remembered() -> None:
    experiment = made(QUIET)
    for number in range(1, REMEMBERED + 51):
        experiment = experiment.change(0, SilenceHeads(number, [0]))
    assert len(experiment.past) == REMEMBERED
    for _ in range(REMEMBERED + 50):
        experiment = experiment.undo()
    assert experiment.edits == (SilenceHeads(50, [0]),)


def test_an_experiment_has_no_more_edits_than_a_link_may_hold() -> None:
    full = made(*[SilenceHeads(0, [0])] * budget.max_edits)
    assert Experiment.from_value(full.to_value()) == full
    with pytest.raises(ValueError, match=f"at most {budget.max_edits} edits"):
        full.add(QUIET)
    with pytest.raises(ValueError, match=f"at most {budget.max_edits} edits, got {budget.max_edits + 1}"):
        Experiment.from_value([*full.to_value(), QUIET.to_dict()])


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (Scale("logits", 1.0).to_dict() | {"factor": float("nan")}, "factor must be a number from"),
        (Scale("logits", 1.0).to_dict() | {"factor": 1e39}, "factor must be a number from"),
        (Scale("logits", 1.0).to_dict() | {"factor": 10**400}, "factor must be a number from .* got one beyond"),
        (QUIET.to_dict() | {"layer": 2**60}, "layer must be a number from"),
        (QUIET.to_dict() | {"heads": [10**30]}, "heads must be a number from"),
        (Scale("q" * 201, 1.0).to_dict(), "hook must be at most 200 characters long, got 201"),
        ({"edit": "Replace", "hook": "logits", "value": [[[[[[[[[0]]]]]]]]]}, "at most 8 lists in each other"),
        ({"edit": "Patch", "hook": "z", "source": {"ids": [1] * (budget.long_tokens + 1)}}, "a run of at most"),
        ({"edit": "Scale", "hook": "z", "factor": 1, "at": {"p" * 999: 0}}, "a field must be at most 200"),
    ],
)
def test_an_edit_from_a_link_is_bounded_before_it_is_made(data: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=f"edit 0: .*{message}"):
        Experiment.from_value([data])


def test_a_link_holds_what_differs_from_the_defaults_and_no_history() -> None:
    steer = Steer("blocks.1.resid_pre", Source([1, 2]), Source([3], edits=[HALF.to_dict()]), 4.0)
    experiment = made(QUIET, steer).switch(0, False)
    assert experiment.to_value() == [
        {"edit": "SilenceHeads", "layer": 1, "heads": [0], "off": True},
        {
            "edit": "Steer",
            "hook": "blocks.1.resid_pre",
            "toward": {"ids": [1, 2]},
            "away": {"ids": [3], "edits": [HALF.to_dict()]},
            "factor": 4.0,
        },
    ]
    again = Experiment.from_value(json.loads(json.dumps(experiment.to_value())))
    assert again == experiment and again.past == ()
    assert made(Patch("logits")).to_value() == [{"edit": "Patch", "hook": "logits"}]


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(st.one_of(*EDITS.values()), st.booleans()), max_size=4))
def test_every_experiment_survives_a_link(listed: list[Any]) -> None:
    experiment = Experiment(tuple(Entry(edit, on) for edit, on in listed))
    assert Experiment.from_value(json.loads(json.dumps(experiment.to_value()))) == experiment


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"edit": "Scale"}, "an experiment must be a list of edits, got {'edit': 'Scale'}"),
        (["Scale"], "edit 0 must be a table, got 'Scale'"),
        ([QUIET.to_dict(), {"edit": "Scale", "hook": "z"}], "edit 1: Scale lacks factor"),
        ([QUIET.to_dict() | {"off": 1}], "off of edit 0 must be true or false, got 1"),
        ([{"edit": "Delete"}], "edit 0: edit must be one of"),
    ],
)
def test_a_link_that_is_no_experiment_says_so(value: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Experiment.from_value(value)


@pytest.mark.parametrize("number", [-1, 2])
def test_an_edit_there_is_not_is_named(number: int) -> None:
    experiment = made(QUIET, DrawMask(0, [[True]]))
    for step in (
        lambda: experiment.remove(number),
        lambda: experiment.switch(number, False),
        lambda: experiment.change(number, HOT),
        lambda: experiment.move(0, number),
        lambda: experiment.move(number, 0),
    ):
        with pytest.raises(ValueError, match=f"counted from 0 and below 2, got {number}"):
            step()
