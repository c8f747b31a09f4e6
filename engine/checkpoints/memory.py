"""Free memory, and giving back the pages of a file that was only read."""

from __future__ import annotations

import ctypes
import mmap
from pathlib import Path

from torch import Tensor

MEMINFO = Path("/proc/meminfo")
CGROUPS = (  # limit, use, and where use says what of it is only a cache; version 2, then version 1
    ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current", "inactive_file", "/sys/fs/cgroup/memory.stat"),
    (
        "/sys/fs/cgroup/memory/memory.limit_in_bytes",
        "/sys/fs/cgroup/memory/memory.usage_in_bytes",
        "total_inactive_file",
        "/sys/fs/cgroup/memory/memory.stat",
    ),
)


def available_memory() -> int | None:
    """Bytes this process may still take, by the machine and by its container; None where the system does not say."""
    found = _fields(MEMINFO).get("MemAvailable:")
    known = [] if found is None else [found * 1024]
    for limit, use, cache, stat in CGROUPS:
        most, used = _number(limit), _number(use)
        if most is not None and used is not None:
            known.append(max(most - used + _fields(Path(stat)).get(cache, 0), 0))
    return min(known, default=None)


def gigabytes(count: int) -> str:
    return f"{count / 1e9:.1f} GB" if count >= 1e8 else f"{count / 1e6:.1f} MB"


def describe_unmapped(path: Path) -> str:
    """Sentence for a file that the system does not map into memory, which it does not read for that."""
    free = available_memory()
    known = "" if free is None else f", and {gigabytes(free)} are free"
    return (
        f"{path} takes {gigabytes(path.stat().st_size)}, which this system does not map into memory{known}; open it on "
        "a machine with more memory, or in smaller shards."
    )


def release_pages(tensor: Tensor) -> None:
    """Give back the whole pages under a tensor that is a private map of a file and was never written to.

    They are read from the file again when they are touched. Elsewhere than on Linux nothing happens.
    """
    advise, advice = _madvise(), getattr(mmap, "MADV_DONTNEED", None)
    start, page = tensor.data_ptr(), mmap.PAGESIZE
    first = -(-start // page) * page
    length = (start + tensor.numel() * tensor.element_size()) // page * page - first
    if advise is not None and advice is not None and length > 0 and tensor.is_contiguous():
        advise(ctypes.c_void_p(first), ctypes.c_size_t(length), advice)


def _madvise() -> ctypes._NamedFuncPointer | None:
    try:
        return ctypes.CDLL(None).madvise
    except (AttributeError, OSError, TypeError):
        return None


def _fields(path: Path) -> dict[str, int]:
    """The first number of each line by the word before it."""
    try:
        lines = [line.split() for line in path.read_text().splitlines()]
    except OSError:
        return {}
    return {words[0]: int(words[1]) for words in lines if len(words) > 1 and words[1].isdigit()}


def _number(path: str) -> int | None:
    try:
        text = Path(path).read_text().strip()
    except OSError:
        return None
    return int(text) if text.isdigit() else None
