"""The run's process looks at itself: frames of what a person watches, and what is measured of the model, in time that
is a small share of the training's.

It reads the model and writes files, and nothing of it reaches what is learned.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path

from torch import Tensor

from engine.runtime.trace import Trace
from engine.training.probe.answer import ProbeAnswer, write_answer
from engine.training.probe.frames import FOLDER, FrameFile, forget_older
from engine.training.probe.probe import FILE, default_probe, read_probe, watch
from engine.training.probe.probe_frame import build_frame, run_probe
from engine.training.probe.question import Question, question
from engine.training.probe.snapshot_frames import frame_files
from engine.training.probe.watch import FILE as LINES
from engine.training.probe.watch import WatchFile, WatchLine, activations, certain_shares, quiet_shares, weights
from engine.training.run.folder import RunFolder
from engine.training.trainer import Trainer

PACE = 0.3  # seconds between two looks, at least
SHARE = 0.02  # of the time that looking may take
LONGEST = 2.0  # seconds that a row of looks, such as those of the first steps' snapshots, puts off the next
LINE_PACE = 0.5  # seconds between two lines of watch.jsonl, at least


class Watcher:
    """`kept` are the steps that get a snapshot, and so a frame whatever it costs."""

    def __init__(self, run: RunFolder, kept: frozenset[int], clock: Callable[[], float] = time.perf_counter) -> None:
        self.run, self.kept, self.clock = run, kept, clock
        self.lines = WatchFile(run.path / LINES)
        self.next_look = self.next_line = self.next_ask = clock()
        self.stamp: tuple[int, int, int] | None = None
        self.question: Question | None = None
        self.file: FrameFile | None = None

    def begin(self, trainer: Trainer) -> None:
        """Forget what an earlier start saw after the step that this one goes on from, and choose a probe where nobody
        has."""
        (self.run.path / FOLDER).mkdir(exist_ok=True)
        last = trainer.step or -1
        for path in (self.run.path / FOLDER).glob("*.bin"):
            FrameFile(path).rewind(last)
        self.lines.rewind(last)
        if not (self.run.path / FILE).exists():
            try:
                watch(self.run.path, default_probe(trainer.recipe, trainer.source))
            except ValueError:  # nothing of the data can be shown; a person may find something
                self.question = None
        self.look(trainer, {})

    def wants(self, step: int) -> bool:
        """Tells whether the model is to be looked at after update `step`. Asked before it, so that gradients can be
        kept."""
        return step in self.kept or self.clock() >= self.next_look or self._has_changed()

    def look(self, trainer: Trainer, gradients: Mapping[str, Tensor]) -> None:
        """Records one frame, and now and then a line of watch.jsonl, with the norms of the last update's
        `gradients`."""
        began = self.clock()
        if stamp(self.run.path / FILE) != self.stamp:
            self._ask(trainer)
        trace = self._frame(trainer)
        if began >= self.next_line and trainer.step > self.lines.last:
            shown = ({}, {}, {}) if trace is None else (activations(trace), certain_shares(trace), quiet_shares(trace))
            norms = {part: float(norm) for part, norm in gradients.items()}
            kept = trainer.step in self.kept
            self.lines.append(WatchLine(trainer.step, norms, weights(trainer.result), *shown, kept=kept))
            self.next_line = self.clock() + LINE_PACE
        self._wait(began)

    def _frame(self, trainer: Trainer) -> Trace | None:
        """Parts of the probe's frame; None where there is nothing to watch, or this step is known."""
        step, checkpoint = trainer.step, trainer.checkpoint()
        if self.question is None or self.file is None or self.file.last >= step:
            return None
        with trainer.evaluation_mode():
            trace, written = run_probe(checkpoint, self.question)
            self.file.append(build_frame(trace, checkpoint, self.question, written, step, step in self.kept))
        return trace

    def _wait(self, began: float) -> None:
        """Every look since `began` puts off the next, those of snapshots too; a row of them for LONGEST at most."""
        now = self.clock()
        owed = max(self.next_look - now, 0) + (now - began) / SHARE
        self.next_look = now + max(PACE, min(owed, max(LONGEST, (now - began) / SHARE)))

    def look_again(self, trainer: Trainer) -> None:
        """While the run is paused: only where somebody asks for something else."""
        if self._has_changed():
            self.look(trainer, {})

    def _has_changed(self) -> bool:
        """Tells whether probe.json is another one than was read last; not asked of the disk at every step."""
        now = self.clock()
        if now < self.next_ask:
            return False
        self.next_ask = now + PACE
        return stamp(self.run.path / FILE) != self.stamp

    def _ask(self, trainer: Trainer) -> None:
        """Read probe.json. One that the model cannot read is answered, and nothing is watched until another comes."""
        self.stamp = stamp(self.run.path / FILE)
        self.question, self.file = None, None
        try:
            probe = read_probe(self.run.path)
        except ValueError:  # whoever reads the file hears why
            return
        if probe is None:
            return
        ours, _ = frame_files(self.run.path, probe)
        answer = ProbeAnswer(probe)
        try:
            self.question = question(probe, trainer.checkpoint(), trainer.recipe)
            answer = ProbeAnswer(probe, "", self.question.pieces, self.question.target_pieces)
        except ValueError as error:
            answer = ProbeAnswer(probe, str(error))
        write_answer(self.run, answer)
        if self.question is not None:
            self.file = FrameFile(ours)
            forget_older(ours.parent, ours)


def stamp(path: Path) -> tuple[int, int, int] | None:
    try:
        stat = path.stat()
    except FileNotFoundError:
        return None
    return stat.st_mtime_ns, stat.st_ino, stat.st_size
