"""The table of what is measured, part by part; exit status 1 where a reach is missed."""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from os import getloadavg

import torch
from playwright.sync_api import Error as PlaywrightError
from transformers.utils import logging

from bench import (
    attention,
    browser,
    finetuning,
    forward,
    generation,
    live_training,
    memory,
    opening,
    pages,
    preferences,
    streaming,
    training,
    why,
)
from bench.paired import Row
from engine.runtime.memory import keep_freed_memory

THREADS = 2
TIMED = {
    "opening": opening.rows,
    "forward": forward.rows,
    "attention": attention.rows,
    "why": why.rows,
    "generation": generation.rows,
    "streaming": streaming.rows,
    "training": training.rows,
    "finetuning": finetuning.rows,
    "preferences": preferences.rows,
    "pages": pages.rows,
}
TOLD = {
    "attention": attention.lines,
    "memory": memory.lines,
    "browser": browser.lines,
    "live_training": live_training.lines,
    "finetuning": finetuning.lines,
}


def line(row: Row) -> str:
    reach = "" if row.reach is None else f"<= {row.reach:.2f} {'yes' if row.reached else 'NO'}"
    spread = "" if row.spread is None else "{:.2f}-{:.2f}".format(*row.spread)
    times = f"{row.ours * 1e3:10.2f}  {row.theirs * 1e3:10.2f}  {row.ratio:6.2f}  {spread:9}  {reach:12}"
    return f"{row.what:58}{times}{row.rounds:6}  {row.note}"


def main(names: list[str], threads: int) -> int:
    known = TIMED | TOLD
    unknown = [name for name in names if name not in known]
    if unknown:
        print(f"expected some of {', '.join(known)}, got {unknown[0]}", file=sys.stderr)
        return 2
    keep_freed_memory()  # as the app does
    torch.set_num_threads(threads)
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    print(
        f"{threads} threads, torch {torch.__version__}; load {getloadavg()[0]:.1f}; "
        "medians of paired, alternating repetitions"
    )
    print(f"{'':58}{'ours, ms':>10}  {'theirs, ms':>10}  {'ratio':>6}  {'quartiles':9}  {'reach':12}{'rounds':>6}")
    missed = False
    for name in names or known:
        try:
            for row in TIMED[name]() if name in TIMED else ():
                print(line(row), flush=True)
                missed |= not row.reached
            for told in TOLD[name]() if name in TOLD else ():
                print(told, flush=True)
        except (RuntimeError, PlaywrightError) as error:  # the other parts are measured all the same
            print(f"{name}: not measured: {str(error).splitlines()[0]}", flush=True)
            missed = True
    return int(missed)


if __name__ == "__main__":
    parser = ArgumentParser(prog="python -m bench")
    parser.add_argument("parts", nargs="*", help=f"some of {', '.join(TIMED | TOLD)}; all where none is named")
    parser.add_argument("--threads", type=int, default=THREADS, help="for both sides; a busy machine wants 1")
    arguments = parser.parse_args()
    sys.exit(main(arguments.parts, arguments.threads))
