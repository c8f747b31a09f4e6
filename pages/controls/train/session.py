"""One session of the page about training: the runs that it follows, and what its controls say."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from engine.checkpoints.checkpoint import Checkpoint
from engine.runtime.limits import RUNS_FOLDER
from engine.training import Recipe, warm_trainer
from engine.training.frames import Frame
from engine.training.launcher import Launcher, Processes
from engine.training.live import Live
from engine.training.names import existing
from engine.training.news import Cursor
from engine.training.probe import Probe
from engine.training.question import Question

RECORDED = Path(__file__).parents[3] / "assets" / "lab" / "recorded"  # the run that a visitor meets; its name is ""
Query = Mapping[str, Any]


@dataclass
class Reader:
    """One run as one session follows it. `past` makes the frames that a new probe still lacks."""

    live: Live
    past: Iterator[Frame] | None = None
    looked: Looked | None = None


@dataclass(frozen=True)
class Looked:
    """The probe as the model reads it; `error` is why it cannot."""

    probe: Probe
    checkpoint: Checkpoint | None = None
    question: Question | None = None
    error: str = ""


@dataclass
class Session:
    """`plan` is the recipe that the controls of the page say, None where they say none; `contrasts` are variants of it
    to be compared on one seed."""

    launcher: Launcher = field(default_factory=lambda: Processes(warm=warm_trainer.shared))
    readers: dict[str, Reader] = field(default_factory=dict)
    places: OrderedDict[int, tuple[str, Cursor]] = field(default_factory=OrderedDict)
    done: OrderedDict[str, bytes] = field(default_factory=OrderedDict)
    turn: int = 0
    plan: Recipe | None = None
    name: str = "run"
    contrasts: Mapping[str, Recipe] = field(default_factory=dict)

    def reader(self, run: str) -> Reader:
        path = folder_of(run)
        known = self.readers.get(run)
        if known is None or known.live.run.path != path:
            known = self.readers[run] = Reader(Live(path))
        return known


def folder_of(run: str) -> Path:
    return existing(run, Path(RUNS_FOLDER)) if run else RECORDED


def named(query: Query) -> str:
    run = query.get("run")
    if not isinstance(run, str):
        raise ValueError(f"run must be the name of one, got {run!r}.")
    return run


def own(query: Query) -> str:
    """A run that may be changed."""
    if not named(query):
        raise ValueError("this run came with Loupe and is finished; press Play to train one of your own.")
    return named(query)


def number(query: Query, name: str, least: float = 0) -> float:
    value = query.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float) or not value >= least:
        raise ValueError(f"{name} must be a number from {least:g} on, got {value!r}.")
    return float(value)
