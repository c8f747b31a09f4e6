"""The queue with real processes; what they train is a sleep."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from engine.training.launch.queue import SLOT, Queue, Ticket
from engine.training.run.status import Status, read_status, write_status
from tests.engine.training.waiting import command_of, until, wait_in

Waiter = Callable[..., subprocess.Popen[bytes]]


@pytest.fixture
def queue(tmp_path: Path) -> Queue:
    return Queue(tmp_path)


@pytest.fixture
def wait(queue: Queue) -> Iterator[Waiter]:
    """Starts processes, and ends those that are left."""
    begun: list[subprocess.Popen[bytes]] = []

    def start(name: str, slots: int = 1, command: list[str] | None = None) -> subprocess.Popen[bytes]:
        begun.append(wait_in(queue, name, slots, command))
        return begun[-1]

    yield start
    for process in begun:
        process.kill()
        process.wait()


def trains(process: subprocess.Popen[bytes]) -> bool:
    return "sleep(60)" in command_of(process.pid).split("turn.py")[0]


def test_as_many_train_as_there_are_slots_and_the_others_wait_in_the_order_they_came(
    queue: Queue, wait: Waiter
) -> None:
    first, second, third, fourth = (wait(name, slots=2) for name in ("b", "a", "d", "c"))
    until(lambda: queue.names() == ["d", "c"])
    until(lambda: trains(first) and trains(second))
    assert not trains(third) and not trains(fourth)
    assert queue.training() == 2
    assert [queue.position(name) for name in ("b", "d", "c", "never")] == [None, 1, 2, None]
    second.terminate()
    until(lambda: trains(third))
    assert queue.names() == ["c"] and not trains(fourth)


def test_a_training_that_is_killed_frees_its_slot(queue: Queue, wait: Waiter) -> None:
    first, second = wait("first"), wait("second")
    until(lambda: trains(first))
    first.send_signal(signal.SIGKILL)
    until(lambda: trains(second))


def test_one_that_is_killed_while_it_waits_is_waited_for_by_nobody(queue: Queue, wait: Waiter) -> None:
    first, second, third = wait("first"), wait("second"), wait("third")
    until(lambda: trains(first))
    assert queue.names() == ["second", "third"]
    second.send_signal(signal.SIGKILL)
    until(lambda: queue.names() == ["third"])
    first.send_signal(signal.SIGKILL)
    until(lambda: trains(third))
    assert queue.names() == []


def test_a_ticket_holds_from_the_moment_it_is_taken(queue: Queue) -> None:
    with queue.lock():
        mine = queue.take_ticket("mine", 1)
        theirs = queue.take_ticket("theirs", 1)
    assert queue.names() == ["mine", "theirs"]
    assert queue.turn(theirs.path) is None
    os.close(mine.descriptor)  # as its process's end does
    slot = queue.turn(theirs.path)
    assert slot is not None
    assert queue.turn(theirs.path) is None  # the only slot is held
    for descriptor in (slot, theirs.descriptor):
        os.close(descriptor)
    assert queue.names() == [] and queue.training() == 0


def test_a_slot_is_given_to_those_that_wait_and_no_more_of_them(queue: Queue, monkeypatch: pytest.MonkeyPatch) -> None:
    def enter(name: str) -> Ticket:
        with queue.lock():
            return queue.take_ticket(name, 2)

    def give_way(slot: int | str) -> bool:
        monkeypatch.setenv(SLOT, str(slot))
        return queue.give_way()

    slots = [queue.turn(enter(name).path) for name in ("first", "second")]
    assert None not in slots and queue.names() == []
    first, second = map(int, filter(None, slots))
    assert not give_way(first)  # nobody waits
    third = enter("third")
    assert queue.turn(third.path) is None
    with (queue.folder / "lock").open() as another:
        assert not any(map(give_way, ("", "x", "-1", another.fileno(), 10**6)))  # no slot of this process
    assert give_way(first) and queue.training() == 1
    assert not give_way(second)  # one is free for the one that waits
    taken = queue.turn(third.path)
    assert taken is not None and not third.path.exists()
    assert not give_way(second) and not give_way(first)
    fourth, fifth = enter("fourth"), enter("fifth")
    assert give_way(second) and queue.names() == ["fourth", "fifth"]
    assert queue.turn(fifth.path) is None  # in turn
    last = queue.turn(fourth.path)
    assert last is not None
    for descriptor in (taken, last, third.descriptor, fourth.descriptor, fifth.descriptor):
        os.close(descriptor)


def test_tickets_of_the_dead_are_swept_away_and_numbers_go_on(queue: Queue) -> None:
    with queue.lock():
        dead, living = queue.take_ticket("dead", 1), queue.take_ticket("living", 1)
        os.close(dead.descriptor)
        later = queue.take_ticket("later", 1)
    assert not dead.path.exists()
    assert later.path.name > living.path.name
    assert queue.names() == ["living", "later"]
    for ticket in (living, later):
        os.close(ticket.descriptor)


def test_another_number_of_slots_holds_at_once(queue: Queue, wait: Waiter) -> None:
    first, second = wait("first", slots=1), wait("second", slots=1)
    until(lambda: trains(first))
    assert not trains(second)
    third = wait("third", slots=3)
    until(lambda: trains(second) and trains(third))


def test_who_waits_is_light_and_has_not_loaded_pytorch(queue: Queue, wait: Waiter) -> None:
    first, second = wait("first"), wait("second")
    until(lambda: trains(first))
    mapped = Path(f"/proc/{second.pid}/maps").read_text()
    assert "libtorch" not in mapped and "numpy" not in mapped
    resident = int(Path(f"/proc/{second.pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    assert resident < 40 * 2**20


def listens(pid: int) -> bool:
    """Whether the process has come as far as to do something about a SIGTERM."""
    status = Path(f"/proc/{pid}/status").read_text()
    caught = next(line.split()[1] for line in status.splitlines() if line.startswith("SigCgt:"))
    return bool(int(caught, 16) >> (signal.SIGTERM - 1) & 1)


@pytest.mark.parametrize("how", ["control.json", "SIGTERM"])
def test_a_run_that_waits_can_be_cancelled_and_says_that_it_stopped(queue: Queue, wait: Waiter, how: str) -> None:
    first, second, third = wait("first"), wait("second"), wait("third")
    until(lambda: trains(first))
    folder = queue.folder.parent / "second"
    write_status(folder / "status.json", Status("queued", 5, 9, pid=second.pid))
    if how == "control.json":
        (folder / "control.json").write_text('{"mode": "stop"}')
    else:
        until(lambda: listens(second.pid))
        second.terminate()
    assert second.wait(10) == 130
    status = read_status(folder / "status.json")
    assert status is not None and (status.state, status.step, status.error) == ("stopped", 5, "")
    assert queue.names() == ["third"]
    first.kill()
    until(lambda: trains(third))


def test_an_order_that_does_not_read_is_left_to_the_training(queue: Queue, wait: Waiter) -> None:
    (queue.folder.parent / "odd").mkdir()
    (queue.folder.parent / "odd" / "control.json").write_text("{")
    odd = wait("odd")
    until(lambda: trains(odd))


def test_the_process_stays_the_same_and_says_preparing_once_it_is_its_turn(queue: Queue, wait: Waiter) -> None:
    first, second = wait("first"), wait("second")
    until(lambda: trains(first))
    status = queue.folder.parent / "second" / "status.json"
    write_status(status, Status("queued", pid=second.pid))
    queued = read_status(status)
    assert queued is not None and queued.state == "queued" and queued.started
    first.kill()
    until(lambda: trains(second))
    prepared = read_status(status)
    assert prepared is not None and prepared.state == "preparing"
    assert (prepared.pid, prepared.started) == (queued.pid, queued.started)


def test_many_that_start_at_once_train_one_after_the_other_and_each_once(queue: Queue, wait: Waiter) -> None:
    log = queue.folder.parent / "log"
    log.touch()
    brief = "import sys, time; f = open(sys.argv[1], 'a'); print('+', file=f, flush=True); time.sleep(0.02)"
    brief += "; print('-', file=f, flush=True)"
    begun = [wait(f"run {i}", 1, [sys.executable, "-S", "-c", brief, str(log)]) for i in range(8)]
    assert [process.wait(60) for process in begun] == [0] * 8
    assert log.read_text().split() == ["+", "-"] * 8


def test_a_queue_that_was_never_used_is_empty(tmp_path: Path) -> None:
    queue = Queue(tmp_path / "nowhere")
    assert queue.names() == [] and queue.training() == 0 and queue.position("x") is None
