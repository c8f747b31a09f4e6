"""What the C library does with memory that is given back to it."""

from __future__ import annotations

import ctypes

TRIM_THRESHOLD, MMAP_THRESHOLD = -1, -3  # of glibc's malloc.h
MIB = 2**20
LARGEST_OF_HEAP = 32 * MIB  # glibc takes no higher MMAP_THRESHOLD


def keep_freed_memory(most: int = 512 * MIB) -> bool:
    """Let this process keep up to `most` bytes that it freed instead of returning them to the system at once.

    A trace holds every intermediate, and the next run wants as much memory again: taken from the system anew, each of
    its pages costs a fault. False where the C library is not glibc.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):
        return False
    return bool(mallopt(TRIM_THRESHOLD, most)) and bool(mallopt(MMAP_THRESHOLD, LARGEST_OF_HEAP))
