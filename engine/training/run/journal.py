"""What a run writes down while it trains: steps, status, snapshots, latest/, and at the end the checkpoint."""

from __future__ import annotations

import math
import os
import sys
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from threading import RLock

import torch

from engine.checkpoints.adapters.write import write_adapter
from engine.training.base.adapter import FOLDER
from engine.training.launch import process
from engine.training.launch.job import JOB
from engine.training.launch.queue import Queue
from engine.training.probe.watcher import Watcher
from engine.training.recipe.recipe import Recipe
from engine.training.recipe.schedule import snapshot_steps
from engine.training.run.atomic import sweep
from engine.training.run.card import card
from engine.training.run.control import Order, Orders
from engine.training.run.failures import explain_failure, failure_explanations
from engine.training.run.folder import RunFolder
from engine.training.run.live import write_marks
from engine.training.run.patience import Patience
from engine.training.run.repeat import repeat
from engine.training.run.status import ACTIVE, Status, watch_status, write_status
from engine.training.trainer import StepNumbers, Trainer

HEARTBEAT = 1.0  # seconds between two writings of status.json
GAVE_WAY = "a training that waited has its place now; resume it, and it waits for its turn again."
SILENCE = 0.4  # seconds of training after which a step is logged even where log.every says later


@dataclass(frozen=True)
class Step:
    """Record of one update, as it stands in metrics.jsonl. Losses are nats a target, `grad_norm` is before clipping.

    `step` counts the updates made: 0 is the untrained model, of which only held-out numbers exist, over so many
    `held_out_targets`. `tokens` and
    `seconds` are those of all updates so far, and the speed that of the updates since the last Step. `also` has what
    else the objective counts, by name, with "held_out_" before it where it was measured there.
    """

    step: int
    loss: float | None
    accuracy: float | None
    held_out_loss: float | None
    held_out_accuracy: float | None
    held_out_targets: int | None
    lr: float | None
    grad_norm: float | None
    tokens: int
    seconds: float
    tokens_per_second: float | None
    also: dict[str, float] = field(default_factory=dict)


class Journal:
    def __init__(self, run: RunFolder, recipe: Recipe) -> None:
        self.run, self.recipe, self.log = run, recipe, recipe.log
        self.orders = Orders(run.control)
        self.snapshots = snapshot_steps(recipe.schedule.steps, recipe.log.snapshots)
        self.telling = RLock()  # held by who changes the status
        self.status = Status("preparing", steps=recipe.schedule.steps, job=os.environ.get(JOB, ""))
        self.reached = 0  # updates that were made
        self.lap = (0, 0.0)  # tokens and seconds at the last Step
        self.early = early(self.snapshots, recipe.log.held_out_every)
        self.watcher = Watcher(run, self.snapshots)
        self.patience = Patience(run, recipe.train.patience)
        self.queue = Queue(run.path.parent)
        self.gave_way = False  # paused, to another that waited

    @contextmanager
    def session(self) -> Iterator[None]:
        """Take the folder for the length of the block, and leave it saying how that ended."""
        there = watch_status(self.run.status)
        ours = there is not None and (same_process(there, self.status) or there.job == self.status.job != "")
        if there is not None and there.state in ACTIVE and not ours:
            raise ValueError(
                f"{self.run.path} must be free, got a run that process {there.pid} on {there.host} is training; "
                "stop that one first."
            )
        with failure_explanations(self.recipe):
            self.run.adopt(self.recipe)
            sweep(self.run.path)
            self.orders.clear()
            self.write_status("preparing", there.step if there is not None else 0)
            try:
                with repeat(self.beat, HEARTBEAT):
                    yield
            except (GeneratorExit, KeyboardInterrupt):
                self.write_status("stopped")
                raise
            except BaseException as error:  # whatever it was, the folder must not go on saying "running"
                known = explain_failure(error, self.recipe)
                said = f"{type(error).__name__}: {error}" if known is None else str(known)
                self.write_status("failed", error=said, cause="" if known is None else known.cause)
                raise

    def beat(self) -> None:
        """Says how far the run is; each second, also while one step takes long."""
        with self.telling, suppress(OSError):  # which the training meets itself
            if self.status.state in ACTIVE:
                self.write_status(self.status.state)

    def choose(self, sentences: tuple[str, ...]) -> None:
        """Says how the machine is used."""
        with self.telling:
            self.status = replace(self.status, chosen=sentences)

    def write_status(self, state: str, step: int | None = None, error: str = "", cause: str = "") -> None:
        peak = torch.cuda.max_memory_allocated() if torch.cuda.is_initialized() else process.peak_memory()
        with self.telling:
            self.reached = self.reached if step is None else step
            said = {"state": state, "step": self.reached, "error": error, "cause": cause}
            now = {"heartbeat": time.time(), "peak_memory": peak}
            self.status = replace(self.status, **said, **now)  # type: ignore[arg-type]
            write_status(self.run.status, self.status)

    def begin(self, trainer: Trainer) -> Iterator[Step]:
        self.run.rewind(trainer.step or -1)
        self.patience.begin()
        self.lap = (trainer.progress.tokens, trainer.progress.seconds)
        self.write_status("running", trainer.step)
        first = None
        if trainer.step == 0:
            first = self.record(trainer, None)
            self.keep(trainer)
        self.watcher.begin(trainer)
        if first is not None:
            yield first

    def order(self, step: int) -> Order:
        order, self.reached = self.orders.now(), step
        if self.orders.fault != self.status.notice:
            with self.telling:
                self.status = replace(self.status, notice=self.orders.fault)
            if self.orders.fault:
                print(self.orders.fault, file=sys.stderr, flush=True)  # log.txt, where it has one
            self.write_status(self.status.state, step)
        if self.status.state == "paused" and order.mode == "run":
            self.write_status("running", step)
        rests = self.status.state == "paused" and order.mode == "pause" and step >= order.until
        self.gave_way = self.gave_way or (rests and self.queue.give_way())
        return replace(order, mode="stop") if self.patience.is_exhausted or self.gave_way else order

    def due(self, step: int, seconds: float) -> bool:
        """Also where latest/ is saved, so that a loss is looked at before its weights replace the older ones, and where
        the last Step is long ago: `seconds` are those of training in all."""
        late = seconds - self.lap[1] > SILENCE
        return late or step % self.log.every == 0 or step % self.log.latest_every == 0 or self.measures_at(step)

    def measures_at(self, step: int) -> bool:
        return step % self.log.held_out_every == 0 or step in self.early

    def record(self, trainer: Trainer, numbers: StepNumbers | None) -> Step:
        """Write one line of metrics. Raises Diverged where there is nothing left to train."""
        made = trainer.progress
        tokens, seconds = made.tokens - self.lap[0], made.seconds - self.lap[1]
        self.lap = (made.tokens, made.seconds)
        scores = dict(numbers.scores) if numbers else {}
        if numbers is not None:
            trainer.check(numbers, made.step)
        held_out = trainer.measure() if self.measures_at(made.step) else {}
        step = Step(
            step=made.step,
            loss=scores.pop("loss", None),
            accuracy=scores.pop("accuracy", None),
            held_out_loss=held_out.pop("loss", None),
            held_out_accuracy=held_out.pop("accuracy", None),
            held_out_targets=int(held_out.pop("targets")) if held_out else None,
            lr=numbers.lr if numbers else None,
            grad_norm=numbers.grad_norm if numbers and math.isfinite(numbers.grad_norm) else None,
            tokens=made.tokens,
            seconds=made.seconds,
            tokens_per_second=tokens / seconds if seconds else None,
            also=scores | {f"held_out_{name}": value for name, value in held_out.items()},
        )
        self.run.log(asdict(step))
        if samples := trainer.learner.samples(step.step):
            self.run.log_samples(step.step, samples)
        self.patience.see(step.step, step.held_out_loss)
        return step

    def keep(self, trainer: Trainer) -> None:
        if trainer.step in self.snapshots or trainer.step == self.patience.best:
            trainer.save_snapshot(self.run.snapshot(trainer.step))  # whole or not there; latest/ must last
        if trainer.step % self.log.latest_every == 0:
            trainer.save_latest()
            self.patience.prune(self.snapshots)

    def pause(self, trainer: Trainer) -> None:
        if self.status.state != "paused" or self.status.step != trainer.step:
            trainer.save_latest()
            self.write_status("paused", trainer.step)
            self.watcher.look(trainer, {})  # what is seen is the step at which it rests
        self.watcher.look_again(trainer)

    def end(self, trainer: Trainer) -> None:
        trainer.save_latest()
        write_marks(self.run)
        if trainer.step < self.recipe.schedule.steps and not self.patience.is_exhausted:
            why = (GAVE_WAY, "gave way") if self.gave_way else ()
            self.write_status("stopped", trainer.step, *why)
            return
        if self.patience.best is not None:
            trainer.restore(self.run.snapshot(self.patience.best))
        best = {} if self.patience.best is None else {"best_step": self.patience.best}
        checkpoint = trainer.checkpoint(card(trainer, self.run) | best)
        checkpoint.save(self.run.checkpoint)
        if trainer.adapter is not None:
            write_adapter(trainer.whole_adapter(), checkpoint, self.run.path / FOLDER / self.run.path.name)
        self.write_status("finished", trainer.step)


def same_process(one: Status, other: Status) -> bool:
    """Tells whether one process wrote both; in two containers the numbers of processes may be the same."""
    return (one.host, one.pid, one.started) == (other.host, other.pid, other.started)


def early(steps: Collection[int], every: int) -> frozenset[int]:
    """The first and the last of the steps that have a snapshot, and of those before the first measurement of `every`
    steps some, each twice as late as the one before: measuring all of them would take longer than the steps."""
    chosen = [min(steps)]
    for step in sorted(steps):
        if step >= 2 * chosen[-1] and chosen[-1] < step < every:
            chosen.append(step)
    return frozenset((*chosen, max(steps)))
