"""What was added to a run's files since a reader was there: metrics, what is watched, frames."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from engine.json_text import parse_json
from engine.training.probe import watch
from engine.training.probe.frames import Frame, read_frames
from engine.training.probe.probe import Probe, read_probe
from engine.training.probe.snapshot_frames import frame_files
from engine.training.probe.watch import WatchLine
from engine.training.run.append_log import LogPosition, read_appended, whole_lines
from engine.training.run.folder import RunFolder, read_line

Kind = TypeVar("Kind")
Line = dict[str, Any]


@dataclass(frozen=True)
class Cursor:
    """Place up to which one reader has been told; of frames, for one probe: those of the run's process, and those of
    its past."""

    metrics: LogPosition = field(default_factory=LogPosition)
    watched: LogPosition = field(default_factory=LogPosition)
    frames: LogPosition = field(default_factory=LogPosition)
    past: LogPosition = field(default_factory=LogPosition)
    probe: Probe | None = None


@dataclass(frozen=True)
class News:
    """`anew` names what is all there is, because a file was replaced: "metrics", "watched", "frames". `fault` says why
    probe.json cannot be read."""

    metrics: tuple[Line, ...]
    watched: tuple[WatchLine, ...]
    frames: tuple[Frame, ...]
    anew: frozenset[str]
    cursor: Cursor
    fault: str = ""


def news(run: RunFolder, since: Cursor) -> News:
    """Raises ValueError for a line that cannot be read."""
    metrics, measured, lines_anew = lines(run.metrics, since.metrics, partial(read_line, name=run.metrics.name))
    told, watched, watched_anew = lines(run.path / watch.FILE, since.watched, read_watched)
    probe, fault = None, ""
    try:
        probe = read_probe(run.path)
    except ValueError as error:
        fault = str(error)
    frames, ours, past, frames_anew = frames_of(run, probe, since)
    replaced = {"metrics": lines_anew, "watched": watched_anew, "frames": frames_anew}
    return News(
        metrics,
        told,
        frames,
        frozenset(name for name, anew in replaced.items() if anew),
        Cursor(measured, watched, ours, past, probe),
        fault,
    )


def lines(path: Path, since: LogPosition, read: Callable[[bytes], Kind]) -> tuple[tuple[Kind, ...], LogPosition, bool]:
    more = read_appended(path, since, whole_lines)
    return tuple(map(read, more.data.splitlines())), more.place, more.anew


def read_watched(line: bytes) -> WatchLine:
    return watch.read_line(parse_json(line))


def frames_of(
    run: RunFolder, probe: Probe | None, since: Cursor
) -> tuple[tuple[Frame, ...], LogPosition, LogPosition, bool]:
    """All of them where the probe is another one, a file was replaced, or older ones were made of its snapshots."""
    if probe is None:
        return (), LogPosition(), LogPosition(), since.probe is not None
    ours, past = frame_files(run.path, probe)
    if probe == since.probe:
        new, older = read_frames(ours, since.frames), read_frames(past, since.past)
        if not (older.frames or older.anew or new.anew):
            return new.frames, new.place, older.place, False
    new, older = read_frames(ours), read_frames(past)
    merged = {one.step: one for one in (*older.frames, *new.frames)}
    return tuple(merged[step] for step in sorted(merged)), new.place, older.place, since.probe is not None
