"""Memory that was freed is taken again without faults, in a process of its own."""

import platform
import subprocess
import sys

import pytest

pytestmark = pytest.mark.long

ROUNDS = """
import resource, sys
import numpy as np
from engine.runtime.memory import keep_freed_memory

def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

def fill():
    return [np.ones(2**18, np.float32) for _ in range(40)]  # 40 MiB

kept = keep_freed_memory() if sys.argv[1] == "keep" else False
for _ in range(2):
    fill()
before = faults()
fill()
print(int(kept), faults() - before)
"""


def again(how: str) -> tuple[int, int]:
    done = subprocess.run([sys.executable, "-c", ROUNDS, how], check=True, capture_output=True, text=True)
    kept, faults = map(int, done.stdout.split())
    return kept, faults


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="the setting is glibc's")
def test_freed_memory_is_kept_for_the_next_run() -> None:
    (_, without), (kept, faults) = again("let go"), again("keep")
    assert kept == 1
    assert without > 2_000  # pages of 4 KiB, of 10,240
    assert faults < without / 20
