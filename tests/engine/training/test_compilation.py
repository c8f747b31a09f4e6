"""When a run is compiled, and when it goes back; the compilers and the clock are stand-ins."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch._dynamo.exc import BackendCompilerFailed

from engine.checkpoints import load
from engine.training import Recipe, RunFolder, loop, read_status, train
from engine.training.cluster import compilation as module
from engine.training.cluster.compilation import COST, SAVED, TIMED, Compilation
from engine.training.cluster.parallel import Peers

EAGER, LONG = 0.01, 10**6  # seconds of an update, and updates to come


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(module, "perf_counter", made)
    return made


def taking(clock: Clock, seconds: float) -> Callable[[], str]:
    def forward() -> str:
        clock.now += seconds
        return f"{seconds} s"

    return forward


def compiling(monkeypatch: pytest.MonkeyPatch, compiled: Callable[..., Any]) -> list[object]:
    """What torch.compile was called with, which gives `compiled`."""
    asked: list[object] = []
    monkeypatch.setattr(torch, "compile", lambda forward: asked.append(forward) or compiled)
    return asked


def updates(compilation: Compilation, count: int, left: int = LONG) -> list[object]:
    return [compilation.update(lambda: compilation.forward(), lambda: None, left - i) for i in range(count)]


def made(clock: Clock, allowed: bool = True, at_once: bool = False) -> Compilation:
    return Compilation(taking(clock, EAGER), torch.device("cpu"), Peers(), allowed, at_once)  # type: ignore[arg-type]


def test_the_first_updates_are_eager_and_what_is_faster_stays(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    compilation, times = made(clock), iter([40.0, 12.0])

    def compiled() -> str:
        return taking(clock, next(times, EAGER / 2))()

    compiling(monkeypatch, compiled)
    assert set(updates(compilation, TIMED)) == {"0.01 s"}
    assert updates(compilation, TIMED + 5)[:3] == ["40.0 s", "12.0 s", "0.005 s"]
    assert compilation.forward is compiled and compilation.stage == "settled"
    assert compilation.notes == ["Compiled by now: forward and backward take 5 ms instead of 10."]


def test_what_is_slower_compiled_is_eager_again(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    compilation = made(clock)
    compiling(monkeypatch, taking(clock, 3 * EAGER))
    assert updates(compilation, 2 * TIMED + 2)[TIMED - 1 :] == ["0.01 s", *["0.03 s"] * TIMED, "0.01 s", "0.01 s"]
    assert compilation.notes == ["Uncompiled after all: compiled, forward and backward take 30 ms instead of 10."]


def test_it_compiles_only_where_that_pays_within_the_run(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    asked, enough = compiling(monkeypatch, taking(clock, EAGER / 2)), round(COST / SAVED / EAGER)
    short = made(clock)
    updates(short, 3 * TIMED, enough - 100)
    assert not asked and short.notes[0].startswith("Uncompiled: 19,886 more steps at 10 ms would not win back the 60 s")
    updates(made(clock), TIMED + 1, enough + 100)
    assert len(asked) == 1
    updates(made(clock, allowed=False), 3 * TIMED)
    assert len(asked) == 1
    on = made(clock, at_once=True)
    assert updates(on, 3 * TIMED, 3 * TIMED) == ["0.005 s"] * 3 * TIMED and not on.notes


def test_an_error_that_is_not_the_compilers_comes_through(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> str:
        raise RuntimeError("shapes do not fit")

    compiling(monkeypatch, broken)
    compilation = Compilation(broken, torch.device("cpu"), Peers(), True, at_once=True)  # type: ignore[arg-type]
    with pytest.raises(RuntimeError, match="shapes do not fit"):
        updates(compilation, 1)
    compilation = made(clock, at_once=True)
    compiling(monkeypatch, lambda: {}["key"])
    with pytest.raises(KeyError):
        updates(compilation, 1)


class Later(Peers):
    """The second of two processes; the first one's answers are `told`."""

    def __init__(self, *told: bool) -> None:
        super().__init__(1, 2)
        self.told = list(told)

    def agree(self, value: Any) -> Any:
        return self.told.pop(0)


def test_several_processes_do_as_the_first_and_ask_it_as_often_where_compiling_fails(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails() -> str:
        raise BackendCompilerFailed(fails, OSError("no compiler"), None)

    forward = taking(clock, EAGER)
    compiling(monkeypatch, fails)
    peers = Later(True, True)
    compilation = Compilation(forward, torch.device("cpu"), peers, True)  # type: ignore[arg-type]
    assert set(updates(compilation, 3 * TIMED, 1)) == {"0.01 s"} and not peers.told
    assert compilation.stage == "settled" and compilation.forward is forward
    assert len(compilation.notes) == 1


@pytest.mark.parametrize("part", ["forward", "backward"])
def test_a_run_whose_compiling_fails_is_the_uncompiled_run_and_says_so(
    part: str, recipe: Recipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the backward pass fails, after a part of the batch has left its gradients; with dropout."""
    recipe = replace(recipe, batch=replace(recipe.batch, accumulate=2))
    for _ in train(recipe, tmp_path / "plain"):
        pass
    calls: list[int] = []

    def compile_badly(forward: Callable[..., Any]) -> Callable[..., Any]:
        def compiled(**inputs: Any) -> Any:
            calls.append(1)
            logits, pooled = forward(**inputs)
            if len(calls) == 2:
                error = BackendCompilerFailed(compile_badly, OSError("no compiler"), None)
                if part == "forward":
                    raise error
                logits.register_hook(lambda _: (_ for _ in ()).throw(error))
            return logits, pooled

        return compiled

    monkeypatch.setattr(torch, "compile", compile_badly)
    monkeypatch.setattr(module, "TIMED", 3)
    monkeypatch.setattr(module, "COST", 0.0)
    plan_run = loop.plan_run
    monkeypatch.setattr(loop, "plan_run", lambda *given: replace(plan_run(*given), compile=True))
    steps = list(train(recipe, tmp_path / "failing"))
    assert len(calls) == 2 and steps[-1].step == 12
    status = read_status(RunFolder(tmp_path / "failing").status)
    assert status is not None and status.state == "finished"
    assert "compiling failed (BackendCompilerFailed: " in status.chosen[-1] and "\n" not in status.chosen[-1]
    ours, theirs = (load(tmp_path / name).model.state_dict() for name in ("failing", "plain"))
    assert all(torch.equal(ours[name], theirs[name]) for name in theirs)
