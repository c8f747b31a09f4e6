"""Visitors act while workers are killed and files are damaged: nobody may meet a traceback, the server is there at the
end, and has no more memory than one on which they have acted in calm.

    python -m bench.chaos --seed 7 --minutes 20
"""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from time import monotonic
from urllib.parse import quote

from websockets.exceptions import WebSocketException

from bench.load import PAGES, Action, choose_action, memory_of, perform, session
from tests.browser.harness import UVICORN, served, train_shortly

VISITORS = 20
WORKERS = 2
PAUSE = 0.5  # s between the actions of a visitor
DISASTERS = 1.0  # s between two of them
SETTLED = 5.0  # minutes from which memory is compared
MOST = 1.05  # of the memory of a calm run
RUNS = "first", "second", "third"
OF_RUNS = tuple(
    Action(page, query=f"{key}={run}")
    for run in RUNS
    for page, key in (
        ("train", "run"),
        ("train", "run"),
        ("adapt", "run"),
        ("walkthrough", "model"),
        ("checkpoint", "model"),
    )
)
ADDRESSES = (
    *OF_RUNS,
    *(Action(page) for page in (*PAGES, "fires", "why_token", "why_head", "logit_lens", "teach", "course")),
)
LOST = "closed the connection", "ConnectionClosed", "ConnectionRefused", "InvalidStatus", "InvalidMessage"
HUGE, DEEP = 2**24, 100_000


@dataclass
class Report:
    """`faults` are what a visitor met beside a lost connection; `done` counts all that was done."""

    faults: Counter[str] = field(default_factory=Counter)
    done: Counter[str] = field(default_factory=Counter)


def cut(data: bytes, random: Random) -> bytes:
    return data[: random.randrange(len(data) + 1)]


def fill_with_zeros(data: bytes, random: Random) -> bytes:
    start = random.randrange(len(data) + 1)
    return data[:start] + bytes(min(64, len(data) - start)) + data[start + 64 :]


def exchange(data: bytes, random: Random) -> bytes:
    changed = bytearray(data)
    for _ in range(min(8, len(changed))):
        changed[random.randrange(len(changed))] = random.randrange(256)
    return bytes(changed)


def nest(data: bytes, random: Random) -> bytes:
    return b"[" * DEEP


def enlarge(data: bytes, random: Random) -> bytes:
    return b'{"' + b"a" * HUGE


DAMAGES: tuple[Callable[[bytes, Random], bytes], ...] = (cut, fill_with_zeros, exchange, nest, enlarge)


def damage_file(runs: Path, random: Random) -> str:
    """Damages one file of a run; returns how, and its name."""
    files = sorted(path for path in runs.rglob("*") if path.is_file() and path.stat().st_size < HUGE)
    if not files:
        return "nothing to damage"
    file, damage = random.choice(files), random.choice(DAMAGES)
    file.write_bytes(damage(file.read_bytes(), random))
    return f"{damage.__name__} {file.name}"


def kill_worker(random: Random) -> str:
    """Kills a process that serves: a child of the server, which is a child of this one."""
    workers = [one for server in children(os.getpid()) for one in children(server)]
    if not workers:
        return "nothing to kill"
    with suppress(ProcessLookupError):
        os.kill(random.choice(workers), signal.SIGKILL)
    return "killed a worker"


def children(process: int) -> list[int]:
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if f"PPid:\t{process}\n" in (folder / "status").read_text():
                found.append(int(folder.name))
    return found


async def visit(address: str, random: Random, until: float, report: Report) -> None:
    """One visitor after another, who act until the connection is lost or they leave."""
    while monotonic() < until:
        try:
            async with session(address, quote(f"{random.random()}")) as visitor:
                action = random.choice(ADDRESSES)
                while monotonic() < until and random.random() > 0.05:
                    played = await perform(visitor, action)
                    report.done["actions"] += 1
                    if played.fault:
                        if not any(word in played.fault for word in LOST):
                            report.faults[f"{action.page}?{action.query} {action.widget}: {played.fault[:300]}"] += 1
                        break
                    await asyncio.sleep(PAUSE * random.random())
                    action = choose_action(visitor, random)
                    if not action.widget:
                        action = random.choice(ADDRESSES)
        except (OSError, TimeoutError, WebSocketException, RuntimeError):
            report.done["refused"] += 1
            await asyncio.sleep(PAUSE)


async def break_things(runs: Path, random: Random, until: float, report: Report) -> None:
    while monotonic() < until:
        await asyncio.sleep(DISASTERS * random.random())
        report.done[kill_worker(random) if random.random() < 0.05 else damage_file(runs, random)] += 1


async def rage(address: str, runs: Path | None, seed: int, seconds: float) -> Report:
    """In calm where there are no `runs` to damage."""
    report, until = Report(), monotonic() + seconds
    visitors = [visit(address, Random(f"{seed}:{number}"), until, report) for number in range(VISITORS)]
    breaking = [] if runs is None else [break_things(runs, Random(seed), until, report)]
    await asyncio.gather(*visitors, *breaking)
    async with session(address) as visitor:  # the server is there still
        played = await perform(visitor, Action("attention"))
        if played.fault:
            report.faults[f"at the end: {played.fault}"] += 1
    return report


def play(folder: Path, seed: int, minutes: float, calm: bool) -> tuple[bool, float]:
    """Whether somebody met a fault, and the memory of the server at the end, in MB."""
    runs, log = folder / "runs", folder / "log"
    for name in RUNS:
        train_shortly(runs / name, 20, 2, 1)
    os.environ["LOUPE_RUNS"] = str(runs)
    with served([*UVICORN, "--workers", str(WORKERS)], "/health", log) as address:
        before = memory_of(os.getpid())
        report = asyncio.run(rage(address, None if calm else runs, seed, 60 * minutes))
        after = memory_of(os.getpid())
    said = log.read_text(encoding="utf-8")
    tracebacks = said.count("Traceback (most recent call last)")
    print(f"{'calm' if calm else 'chaos'}, seed {seed}, {minutes:g} minutes: {dict(report.done.most_common(12))}")
    print(f"memory of the server: {before:.0f} MB before, {after:.0f} MB after; {tracebacks} tracebacks in its log")
    for fault, count in report.faults.most_common():
        print(f"{count} times {fault}")
    if tracebacks:
        print(said[-8_000:])
    return bool(report.faults or tracebacks), after


def main(seed: int, minutes: float) -> int:
    """The calm run is as long as the other; before SETTLED there is none, as what is kept still grows."""
    with tempfile.TemporaryDirectory() as calmly, tempfile.TemporaryDirectory() as wildly:
        failed, memory = play(Path(wildly), seed, minutes, calm=False)
        if minutes < SETTLED:
            return int(failed)
        faulty, calm = play(Path(calmly), seed, minutes, calm=True)
    print(f"memory at the end is {memory / calm:.1%} of that of the calm run; at most {MOST:.0%} may be")
    return int(failed or faulty or memory > MOST * calm)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=20.0)
    options = parser.parse_args()
    sys.exit(main(options.seed, options.minutes))
