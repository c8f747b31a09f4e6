"""Visitors act while workers are killed and files are damaged (bench/chaos.py has the long form)."""

import subprocess
import sys

import pytest

from engine.places import ROOT

pytestmark = pytest.mark.long


def test_nobody_meets_a_traceback_while_processes_die_and_files_are_damaged() -> None:
    command = [sys.executable, "-m", "bench.chaos", "--seed", "3", "--minutes", "0.5"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
