"""Processes of this machine as others see them: whether one lives, and whether the system ended any for its memory.

Standard library only: who waits for a turn to train imports this before PyTorch.
"""

from __future__ import annotations

import os
import re
import time
from pathlib import Path

BACKGROUND = 10  # of nice(2): what is interactive goes first
GROUP = 5  # the same of a whole session, which has a third of the weight of another then
TRIES = 3
PROC, CGROUP = Path("/proc"), Path("/sys/fs/cgroup")


def start_time(pid: int) -> str:
    """Time when a living process began, as its system counts, and since which boot; with `pid` it is nobody else's.

    Empty where there is none, it has ended and its parent has not looked yet, or the system does not say.
    """
    try:
        after_name = (PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
        boot = (PROC / "sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""
    return "" if after_name[0] in "ZX" else f"{after_name[19]}@{boot[:8]}"


def says_when_started() -> bool:
    """Tells whether this system tells of its processes when they began."""
    return bool(start_time(os.getpid()))


def exists(pid: int) -> bool:
    """Tells whether some process has this number now."""
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:  # it runs, as another user
        return True
    return True


def peak_memory() -> int:
    """Bytes that this process, with its libraries, had in memory at most; 0 where the system does not say."""
    try:
        said = re.search(r"VmHWM:\s+(\d+) kB", (PROC / "self/status").read_text())
    except OSError:
        return 0
    return int(said[1]) * 1024 if said else 0


def lower_priority() -> None:
    """Lowers the priority of this process below that of other programs.

    On Linux each thread has a priority, and PyTorch has started some. Where sessions share the cores alike (sched(7),
    "The autogroup feature") it counts only within a session, so that a process with one of its own lowers that, too.
    """
    threads = PROC / "self/task"
    for thread in os.listdir(threads) if threads.is_dir() else ["0"]:
        try:
            os.setpriority(os.PRIO_PROCESS, int(thread), BACKGROUND)
        except ProcessLookupError:  # it has ended meanwhile
            continue
    if os.getsid(0) == os.getpid():
        lower_session_priority()


def lower_session_priority() -> None:
    """Lowers the priority of this session. The system lets all processes without privileges do so ten times a second,
    together."""
    group = PROC / "self/autogroup"
    for _ in range(TRIES):
        try:
            if group.exists():
                group.write_text(f"{GROUP}\n")
            return
        except OSError:
            time.sleep(0.15)


def oom_kills() -> int:
    """Counts the processes that the system has ended for lack of memory: in this control group, or altogether. 0:
    unknown."""
    for file in counters():
        try:
            lines = file.read_text().splitlines()
        except OSError:
            continue
        counted = [line.split()[1] for line in lines if line.startswith("oom_kill ")]
        if counted:
            return int(counted[0])
    return 0


def counters() -> list[Path]:
    """The files that may count them, the nearest first: of cgroup v2, of v1, of the whole machine."""
    try:
        lines = (PROC / "self/cgroup").read_text().splitlines()
    except OSError:
        lines = []
    groups = {kinds: place for _, kinds, place in (line.split(":", 2) for line in lines if line.count(":") >= 2)}
    found = []
    if "" in groups:
        found.append(CGROUP / groups[""].lstrip("/") / "memory.events")
    if "memory" in groups:
        found.append(CGROUP / "memory" / groups["memory"].lstrip("/") / "memory.oom_control")
    return [*found, CGROUP / "memory.events", PROC / "vmstat"]
