"""Whose turn it is to train, with no process that keeps the order.

    .queue/lock               held for a moment by who takes a ticket
    .queue/0000012.my run     a ticket: locked by the process that waits with it, and gone once it trains
    .queue/slots              how many may train at a time
    .queue/slot-1             locked by a process that trains

The kernel frees a lock when the process that has it ends, however that happens, so that nobody waits for the dead and
nothing is lost with a server. A training that is paused frees that of its slot where somebody waits for one, and ends.
Locks are flock(2)'s: the folder must be on a disk of this machine, whose containers may share it. Standard library
only: who waits imports this before PyTorch.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

SLOT = "LOUPE_SLOT"  # the variable that says which descriptor is that of the slot of a process that trains


@dataclass(frozen=True)
class Ticket:
    """`descriptor` holds its lock; a process that inherits that waits with it."""

    path: Path
    descriptor: int


class Queue:
    """Queue of the trainings whose run directories are in `runs`."""

    def __init__(self, runs: Path | str) -> None:
        self.folder = Path(runs) / ".queue"

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Nobody else takes a ticket meanwhile."""
        self.folder.mkdir(parents=True, exist_ok=True)
        held = os.open(self.folder / "lock", os.O_RDWR | os.O_CREAT, 0o666)
        try:
            fcntl.flock(held, fcntl.LOCK_EX)
            yield
        finally:
            os.close(held)

    def take_ticket(self, name: str, slots: int) -> Ticket:
        """The last place in the queue, where from now on `slots` may train at a time. Within `lock`."""
        numbered = self._tickets()
        for _, path in numbered:
            if not is_held(path):
                path.unlink(missing_ok=True)
        number = 1 + max((number for number, _ in numbered), default=0)
        path = self.folder / f"{number:07d}.{name}"
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        partial = self.folder / "slots.partial"
        partial.write_text(f"{slots}\n")
        os.replace(partial, self.folder / "slots")
        return Ticket(path, descriptor)

    def names(self) -> list[str]:
        """The names of those that wait, the next one first."""
        return [path.name.partition(".")[2] for _, path in self._tickets() if is_held(path)]

    def position(self, name: str) -> int | None:
        """1: the next to train. None where no such run waits."""
        names = self.names()
        return names.index(name) + 1 if name in names else None

    def training(self) -> int:
        """Counts the trainings that have a slot."""
        return sum(is_held(path) for path in self.folder.glob("slot-*"))

    def turn(self, ticket: Path) -> int | None:
        """The descriptor of a slot where one is free and no living ticket is before this one, which then is gone; None:
        ask again later."""
        before = [path for _, path in self._tickets() if path.name < ticket.name]
        if any(is_held(path) for path in before):
            return None
        with self.lock():
            for index in range(1, self._slots() + 1):
                slot = os.open(self.folder / f"slot-{index}", os.O_RDWR | os.O_CREAT, 0o666)
                try:
                    fcntl.flock(slot, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    os.close(slot)
                else:
                    ticket.unlink(missing_ok=True)
                    return slot
        return None

    def give_way(self) -> bool:
        """Frees the slot of this process where more wait than there are free ones; True: it is another's now."""
        slot = self._own_slot() if self.names() else None
        if slot is None:
            return False
        with self.lock():
            if len(self.names()) <= max(0, self._slots() - self.training()):
                return False
            os.close(slot)
        return True

    def _own_slot(self) -> int | None:
        """Descriptor of the slot of this process; None where it has none of this queue's."""
        try:
            slot = int(os.environ.get(SLOT, ""))
            ours = os.fstat(slot)
        except (ValueError, OSError):
            return None
        return slot if any(os.path.samestat(ours, path.stat()) for path in self.folder.glob("slot-*")) else None

    def _slots(self) -> int:
        return int((self.folder / "slots").read_text())

    def _tickets(self) -> list[tuple[int, Path]]:
        """Tickets in the order in which they were taken, those of the dead included."""
        if not self.folder.is_dir():
            return []
        files = [path for path in self.folder.iterdir() if path.name.partition(".")[0].isdecimal()]
        return sorted((int(path.name.partition(".")[0]), path) for path in files)


def is_held(path: Path) -> bool:
    """Tells whether a living process has locked this file; one that has gone meanwhile is nobody's."""
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False
