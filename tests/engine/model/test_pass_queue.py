"""Heavy forward passes compute a few at a time, in the order in which they came; who waits is told of those before."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from queue import Queue

import pytest
import torch

from engine import load, run
from engine.model.pass_queue import pass_queue

IDS = torch.tensor([[1, 2, 3, 4]])


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(pass_queue, "most", 1)
    monkeypatch.setattr(pass_queue, "heavy", 1)
    yield
    assert not pass_queue._busy and not pass_queue._waiting


def test_those_who_wait_are_told_their_place_and_come_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    model = load("stories").model
    inside, told, came = threading.Event(), Queue[tuple[int, int]](), list[int]()
    counts = list[int]()
    here = threading.local()
    monkeypatch.setattr(pass_queue, "on_change", counts.append)
    monkeypatch.setattr(pass_queue, "announce", lambda: lambda before: told.put((here.number, before)))

    def enter(number: int) -> None:
        here.number = number
        with pass_queue.enter(model, [IDS]):
            came.append(number)
            if number == 0:
                inside.wait(30)
            run(model, IDS)  # within its turn a pass needs no second one

    with ThreadPoolExecutor(3) as threads:
        begun = []
        for number in range(3):
            begun.append(threads.submit(enter, number))
            while not came if number == 0 else told.get() != (number, number):
                pass
        inside.set()
        for one in begun:
            one.result(30)
    assert came == [0, 1, 2] and counts[-1] == 0 and max(counts) == 2


def test_a_light_pass_waits_for_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    model = load("stories").model
    monkeypatch.setattr(pass_queue, "heavy", pass_queue.count_multiplications(model, [IDS]) + 1)
    monkeypatch.setattr(pass_queue, "_busy", 1)
    assert run(model, IDS)["logits"].shape[1] == 4
    monkeypatch.setattr(pass_queue, "_busy", 0)
    assert pass_queue.count_multiplications(model, [IDS]) == 4 * sum(
        parameter.numel() for parameter in model.parameters()
    )


def test_who_is_called_away_leaves_the_queue(monkeypatch: pytest.MonkeyPatch) -> None:
    def called(before: int) -> None:
        raise KeyboardInterrupt

    model = load("stories").model
    monkeypatch.setattr(pass_queue, "announce", lambda: called)
    monkeypatch.setattr(pass_queue, "_busy", 1)
    with pytest.raises(KeyboardInterrupt):
        run(model, IDS)
    assert not pass_queue._waiting
    monkeypatch.setattr(pass_queue, "_busy", 0)
    run(model, IDS)
