"""One session of the page about training: the runs that it follows, and what its controls say."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

import streamlit as st

from engine.budget import budget
from engine.checkpoints.checkpoint import Checkpoint
from engine.places import ASSETS
from engine.training import Recipe
from engine.training.launch.choice import choose_launcher
from engine.training.launch.launcher import Launcher
from engine.training.probe.frames import Frame
from engine.training.probe.probe import Probe
from engine.training.probe.question import Question
from engine.training.run.folder import RunFolder
from engine.training.run.live import Live
from engine.training.run.names import existing_run
from engine.training.run.news import Cursor
from views.core.markdown import escape_markdown
from views.core.questions import BareContext

OTHERS = "Only the owner of this run can change it; fork it to continue from one of its steps."
# The runs that a visitor meets; their name is "".
RECORDED, ADAPTED = ASSETS / "lab" / "recorded", ASSETS / "adapt" / "recorded"
PREFERRED = ASSETS / "preferences" / "recorded"  # one for each objective


@contextmanager
def told_damage() -> Iterator[None]:
    """What of a run's files does not read is a sentence at its place; the rest of the page is drawn."""
    try:
        yield
    except (ValueError, OSError) as error:
        st.warning(escape_markdown(error))


@dataclass
class Reader:
    """Reader of one run in one session. `past` makes the frames that a new probe still lacks."""

    live: Live
    past: Iterator[Frame] | None = None
    probe: ProbeReading | None = None


@dataclass(frozen=True)
class ProbeReading:
    """The probe as the model reads it; `error` is why it cannot."""

    probe: Probe
    checkpoint: Checkpoint | None = None
    question: Question | None = None
    error: str = ""


@dataclass
class Session(BareContext):
    """Context of the page's questions: any run, and `plan`, the recipe that the controls of the page say, None
    where they say none; `contrasts` are variants of it to be compared on one seed. `overlaid` are runs whose curves are
    laid over those of the run that is shown; `problem` is why what was asked of a run could not be done."""

    digest: ClassVar[str] = ""
    model_name: ClassVar[str] = ""

    launcher: Launcher = field(default_factory=choose_launcher)
    readers: dict[str, Reader] = field(default_factory=dict)
    places: OrderedDict[int, tuple[str, Cursor]] = field(default_factory=OrderedDict)
    done: OrderedDict[str, bytes] = field(default_factory=OrderedDict)
    turn: int = 0
    commands: int = 0  # that the table of runs has given, so that the view looks at what comes of them
    visitor: str = ""  # hash of the cookie of whoever looks
    recorded: Path = RECORDED
    at_machine: bool = True  # whether that is the person at the server's own machine, who may change every run
    plan: Recipe | None = None
    name: str = "run"
    contrasts: Mapping[str, Recipe] = field(default_factory=dict)
    overlaid: Sequence[str] = ()
    problem: str = ""
    has_deleted: bool = False

    def reader(self, run: str) -> Reader:
        path = folder_of(run) if run else self.recorded
        known = self.readers.get(run)
        if known is None or known.live.run.path != path:
            known = self.readers[run] = Reader(Live(path))
        return known

    def begin(self, folder: Path) -> str:
        """Keeps whose a new run is; returns its name."""
        if self.visitor:
            with suppress(FileNotFoundError):  # deleted at once
                RunFolder(folder).owner.write_text(self.visitor, encoding="utf-8")
        return folder.name

    def locked(self, folder: Path) -> str:
        """Why this visitor may look at a run and not change it; "" where they may."""
        if self.at_machine:
            return ""
        try:
            owner = RunFolder(folder).owner.read_text(encoding="utf-8", errors="replace")
        except OSError:
            owner = ""
        return "" if owner and owner == self.visitor else OTHERS

    def changeable(self, run: str) -> Path:
        """Folder of a run that this visitor may change. Raises ValueError for another's."""
        folder = own_run(run)
        if why := self.locked(folder):
            raise ValueError(why)
        return folder


def is_recorded(run: Path) -> bool:
    """True for a run that came with Loupe."""
    return run.is_relative_to(ASSETS)


def may_read(session: Session, run: str, recipe: Recipe) -> bool:
    """True if this visitor may read the texts that a run learns from: those that came with Loupe, or their own."""
    path = getattr(recipe.data.table, "path", "")
    return not run or Path(path).is_relative_to(ASSETS) or not session.locked(folder_of(run))


def runs_place() -> Path:
    return Path(budget.runs_folder)


def folder_of(run: str) -> Path:
    return existing_run(run, runs_place()) if run else RECORDED


def own_run(run: str) -> Path:
    """Folder of a run that may be changed."""
    if not run:
        raise ValueError("this run came with Loupe and is finished; press Play to train one of your own.")
    return folder_of(run)
