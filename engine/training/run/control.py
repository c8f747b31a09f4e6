"""control.json: what a person asks of a run. Written by anyone, read by the run's process before every step."""

from __future__ import annotations

import math
import os
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Literal

from engine.model.from_dict import build_from_valid
from engine.training.run.atomic import explain_closed_folder, read_json, write_json
from engine.training.run.folder import RunFolder
from engine.training.run.status import read_status

SEEN = "LOUPE_ORDERS"  # the variable by which a launcher tells a training which control.json is that of its last start


@dataclass(frozen=True)
class Order:
    """A paused run still takes the steps up to `until`. `lr` holds the learning rate; None follows the schedule.
    `weight` is what `engine.training.learner.Learner` has as its own: lambda of L2 + lambda L1, beta of learning from
    preferences; None is the recipe's."""

    mode: Literal["run", "pause", "stop"] = "run"
    until: int = 0
    lr: float | None = None
    weight: float | None = None

    def __post_init__(self) -> None:
        weight = self.weight
        if weight is not None and not (0 <= weight < math.inf):
            raise ValueError(f"weight must be at least 0, got {weight}; give null for the recipe's again.")
        if self.lr is not None and not (0 <= self.lr < math.inf):
            raise ValueError(f"lr must be at least 0, got {self.lr}; give null to follow the schedule again.")


def read_order(path: Path) -> Order:
    """Order in control.json, without those parts of it that cannot be read."""
    return read_with_faults(path)[0]


def read_with_faults(path: Path) -> tuple[Order, str]:
    """The order, and a sentence about what of it cannot be read and is ignored."""
    try:
        data = read_json(path)
    except ValueError as error:
        return Order(), f"{path.name} is ignored: {error}."
    order, fault = (Order(), "") if data is None else build_from_valid(Order, data)
    return order, f"{path.name} is ignored in part: {fault}." if fault else ""


def pause(folder: Path | str) -> None:
    _change(folder, mode="pause")


def resume(folder: Path | str) -> None:
    _change(folder, mode="run")


def stop(folder: Path | str) -> None:
    """The run saves and ends; starting it again continues it."""
    _change(folder, mode="stop")


def one_step(folder: Path | str) -> None:
    """Asks for one step more, then a pause. Asked twice before the first is done, it is two."""
    n_steps(folder, 1)


def n_steps(folder: Path | str, count: int) -> None:
    """`count` steps more, then pause; those asked for before and not done yet are not forgotten."""
    if count < 1:
        raise ValueError(f"the number of steps must be at least 1, got {count}.")
    run = RunFolder(folder)
    status = read_status(run.status)
    done = status.step if status is not None else 0
    _change(folder, mode="pause", until=max(done, read_order(run.control).until) + count)


def begin_anew(folder: Path | str) -> int:
    """A new start runs, whatever ended the last one; a learning rate and a weight that were set stay set. Returns a
    stamp of the order, by which a later one is told apart."""
    path = RunFolder(folder).control
    write_json(path, asdict(replace(read_order(path), mode="run", until=0)))
    return path.stat().st_mtime_ns


def set_rate(folder: Path | str, lr: float | None) -> None:
    """Sets the learning rate to `lr` from the next step on, whatever the schedule says; None gives the schedule
    back."""
    _change(folder, lr=lr)


def set_weight(folder: Path | str, weight: float | None) -> None:
    """Sets lambda of L2 + lambda L1, or beta of learning from preferences, from the next step on; None gives the
    recipe's back."""
    _change(folder, weight=weight)


@explain_closed_folder()
def _change(folder: Path | str, **change: object) -> None:
    path = RunFolder(folder).control
    write_json(path, asdict(replace(read_order(path), **change)))  # type: ignore[arg-type]


class Orders:
    """control.json, read again only when it has been replaced or rewritten. `fault` says what of it is ignored."""

    def __init__(self, path: Path) -> None:
        self.path, self.fault = path, ""
        self.seen: tuple[int, int, int] | None = None
        self.order = Order()

    def now(self) -> Order:
        try:
            stat = self.path.stat()
        except FileNotFoundError:
            return Order()
        stamp = (stat.st_mtime_ns, stat.st_ino, stat.st_size)
        if stamp != self.seen:
            (self.order, self.fault), self.seen = read_with_faults(self.path), stamp
        return self.order

    def clear(self) -> None:
        """Begins as `begin_anew`, but what a person asked since a launcher did that for this process counts."""
        known = os.environ.get(SEEN)
        if known is None or not self.path.exists() or known == str(self.path.stat().st_mtime_ns):
            begin_anew(self.path.parent)
