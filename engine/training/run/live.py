"""What a page shows of a run: everything once, and then only what is new."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from engine.training.launch.pace import time_left
from engine.training.probe.answer import ProbeAnswer, read_answer
from engine.training.probe.frames import Frame
from engine.training.probe.watch import WatchLine
from engine.training.run.atomic import write_json
from engine.training.run.folder import RunFolder
from engine.training.run.marks import Mark, marks
from engine.training.run.news import Cursor, Line, News, news
from engine.training.run.status import ACTIVE, Status, read_status

BUCKETS = 300  # that the lines of a long run are cut into when they are told at once
THINK = 1.0  # seconds between two searches for marks while a run goes on, at least
EXTREMES = ("loss", "held_out_loss", "accuracy", "grad_norm", "tokens_per_second")


@dataclass(frozen=True)
class Update:
    """News since a cursor; `status`, `marks`, `answer` (what became of the probe) and `seconds_left` are as they
    are now. `anew` names those of "metrics", "frames" and "watched" that replace all that was told before. Frames are
    in the order of their steps. `fault` says why probe.json cannot be read.
    """

    status: Status | None
    metrics: tuple[Line, ...]
    frames: tuple[Frame, ...]
    watched: tuple[WatchLine, ...]
    marks: tuple[Mark, ...]
    answer: ProbeAnswer | None
    seconds_left: float | None
    anew: frozenset[str]
    cursor: Cursor
    fault: str = ""


class Live:
    """Reader of one run, for one thread at a time; every reader has a cursor of its own. It keeps what marks are found
    in: all lines of metrics, and of frames the scores."""

    def __init__(self, folder: Path | str, clock: Callable[[], float] = time.monotonic) -> None:
        self.run, self.clock = RunFolder(folder), clock
        self.place = Cursor()
        self.lines: list[Line] = []
        self.scores: dict[int, Frame] = {}
        self.found: tuple[Mark, ...] = ()
        self.changed, self.next_search = False, clock()

    def since(self, cursor: Cursor | None = None) -> Update:
        """Everything without a cursor; of thousands of lines those that hold the extremes. Raises ValueError for a
        status or a line that cannot be read."""
        cursor = cursor or Cursor()
        new = news(self.run, cursor)
        self._remember(new if cursor == self.place else news(self.run, self.place))
        status = read_status(self.run.status)
        return Update(
            status=status,
            metrics=tuple(thin_lines(new.metrics)),
            frames=new.frames,
            watched=new.watched,
            marks=self._marks(status is not None and status.state in ACTIVE),
            answer=None if new.cursor.probe is None else read_answer(self.run, new.cursor.probe),
            seconds_left=None if status is None else time_left(self.lines, status.steps),
            anew=new.anew,
            cursor=new.cursor,
            fault=new.fault,
        )

    def _remember(self, new: News) -> None:
        self.place = new.cursor
        self.changed |= bool(new.metrics or new.frames or new.anew)
        if "metrics" in new.anew:
            self.lines = []
        if "frames" in new.anew:
            self.scores = {}
        self.lines += new.metrics
        self.scores |= {one.step: only_scores(one) for one in new.frames}

    def _marks(self, active: bool) -> tuple[Mark, ...]:
        if self.changed and (not active or self.clock() >= self.next_search):
            self.found = tuple(marks(self.lines, [self.scores[step] for step in sorted(self.scores)]))
            self.changed, self.next_search = False, self.clock() + THINK
        return self.found


def write_marks(run: RunFolder) -> None:
    """marks.json: what has happened up to now."""
    write_json(run.path / "marks.json", [asdict(mark) for mark in Live(run.path).since().marks])


def only_scores(frame: Frame) -> Frame:
    """Copied, so that the rest of the frame can be let go."""
    scores = {name: tensor.clone() for name, tensor in frame.tensors.items() if name.startswith("scores.")}
    return Frame(frame.step, scores, frame.kept)


def thin_lines(lines: Sequence[Line], buckets: int = BUCKETS) -> list[Line]:
    """Thins out lines: as they are if they are few; otherwise of each of `buckets` stretches the lines with the least
    and the greatest of EXTREMES, and the first and the last of all."""
    if len(lines) <= 4 * buckets:
        return list(lines)
    kept = {0, len(lines) - 1}
    for part in range(buckets):
        stretch = range(part * len(lines) // buckets, (part + 1) * len(lines) // buckets)
        for name in EXTREMES:
            there = [(lines[i][name], i) for i in stretch if lines[i].get(name) is not None]
            kept |= {min(there)[1], max(there)[1]} if there else set()
    return [lines[i] for i in sorted(kept)]
