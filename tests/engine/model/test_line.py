"""Heavy forward passes compute a few at a time, in the order in which they came; who waits is told of those before."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from queue import Queue

import pytest
import torch

from engine import load, run
from engine.model.line import line

IDS = torch.tensor([[1, 2, 3, 4]])


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(line, "most", 1)
    monkeypatch.setattr(line, "heavy", 1)
    yield
    assert not line._busy and not line._waiting


def test_those_who_wait_are_told_their_place_and_come_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    model = load("stories").model
    inside, told, came = threading.Event(), Queue[tuple[int, int]](), list[int]()
    counts = list[int]()
    here = threading.local()
    monkeypatch.setattr(line, "watch", counts.append)
    monkeypatch.setattr(line, "greet", lambda: lambda before: told.put((here.number, before)))

    def enter(number: int) -> None:
        here.number = number
        with line.enter(model, [IDS]):
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
    monkeypatch.setattr(line, "heavy", line.reckon(model, [IDS]) + 1)
    monkeypatch.setattr(line, "_busy", 1)
    assert run(model, IDS)["logits"].shape[1] == 4
    monkeypatch.setattr(line, "_busy", 0)
    assert line.reckon(model, [IDS]) == 4 * sum(parameter.numel() for parameter in model.parameters())


def test_who_is_called_away_leaves_the_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def called(before: int) -> None:
        raise KeyboardInterrupt

    model = load("stories").model
    monkeypatch.setattr(line, "greet", lambda: called)
    monkeypatch.setattr(line, "_busy", 1)
    with pytest.raises(KeyboardInterrupt):
        run(model, IDS)
    assert not line._waiting
    monkeypatch.setattr(line, "_busy", 0)
    run(model, IDS)
