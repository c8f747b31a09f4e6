"""Turns of the visitors' scripts: one after the other, none kept waiting for long."""

from threading import Event, Thread
from time import monotonic

import pytest

from views.core.turns import FairLock

LONG = 60.0  # seconds that no test lasts


def started(turns: FairLock, name: str, order: list[str], go_on: Event) -> Thread:
    """A thread that is in its turn, or waits for it, until `go_on` is set."""

    def script() -> None:
        with turns.take():
            order.append(name)
            go_on.wait(LONG)

    thread = Thread(target=script, daemon=True)
    waiting = len(turns._waiting) + len(order)
    thread.start()
    while len(turns._waiting) + len(order) == waiting:
        pass
    return thread


def test_scripts_run_one_after_the_other_in_the_order_in_which_they_came() -> None:
    turns, order = FairLock(LONG), []
    events = [Event() for _ in "abc"]
    threads = [started(turns, name, order, event) for name, event in zip("abc", events, strict=True)]
    for number, (thread, event) in enumerate(zip(threads, events, strict=True), 1):
        assert order == list("abc"[:number])
        event.set()
        thread.join(LONG)
        while number < 3 and len(order) == number:
            pass
    assert order == list("abc")


def test_a_script_that_takes_longer_than_its_lease_lets_the_next_begin() -> None:
    turns, order, held = FairLock(0.05), [], Event()
    slow = started(turns, "slow", order, held)
    begun = monotonic()
    with turns.take():
        assert 0.0 <= monotonic() - begun < LONG and slow.is_alive()
    held.set()
    slow.join(LONG)
    with turns.take():  # what the slow one gave back late is nobody else's
        assert turns._holder is not None


def test_a_turn_within_a_turn_is_the_same_and_a_fault_ends_it() -> None:
    turns = FairLock(LONG)
    with pytest.raises(KeyError), turns.take(), turns.take():
        raise KeyError
    with turns.take():
        pass
