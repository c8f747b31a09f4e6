"""How much memory is free by what the system says, and pages of a file that are given back."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from engine.checkpoints import memory
from engine.checkpoints.weights import open_weights

SMAPS = Path("/proc/self/smaps")


@pytest.mark.parametrize(
    ("limit", "used", "cached", "expected"),
    [
        ("max", "1000000", "0", 8000 * 1024),  # no limit: the machine's
        ("5000000", "4000000", "500000", 1_500_000),  # the container's, without what is only a cache
        ("5000000", "6000000", "0", 0),
        ("90000000", "0", "0", 8000 * 1024),
    ],
)
def test_the_container_counts_where_it_has_less_than_the_machine(
    limit: str, used: str, cached: str, expected: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = {"limit": f"{limit}\n", "used": f"{used}\n", "stat": f"anon 7\ninactive_file {cached}\n"}
    texts["meminfo"] = "MemTotal:       16000 kB\nMemFree:  100 kB\nMemAvailable:    8000 kB\n"
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    files = (str(tmp_path / "limit"), str(tmp_path / "used"), "inactive_file", str(tmp_path / "stat"))
    monkeypatch.setattr(memory, "MEMINFO", tmp_path / "meminfo")
    monkeypatch.setattr(memory, "CGROUPS", (files, ("/nowhere", "/nowhere", "", "/nowhere")))
    assert memory.available_memory() == expected


def test_where_the_system_does_not_say_nothing_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "MEMINFO", Path("/nowhere"))
    monkeypatch.setattr(memory, "CGROUPS", ())
    assert memory.available_memory() is None


@pytest.mark.skipif(not SMAPS.exists(), reason="what a process has in memory is read from Linux's /proc")
def test_pages_that_were_only_read_are_given_back_and_read_again(tmp_path: Path) -> None:
    path = tmp_path / "w.safetensors"
    save_file({"a": torch.arange(2**20, dtype=torch.float32), "b": torch.ones(2**18)}, path)
    weights = open_weights(path)
    total = weights["a"].sum()
    assert resident(path) >= 4096  # kB
    weights.release("a")
    assert resident(path) < 256  # the edges, and what the system read around them
    assert weights["a"].sum() == total
    assert weights["b"].sum() == 2**18


def resident(path: Path) -> int:
    """kB of a file's maps that are in memory."""
    count, inside = 0, False
    for line in SMAPS.read_text().splitlines():
        words = line.split()
        if "-" in words[0]:
            inside = line.endswith(path.name)
        elif inside and words[0] == "Rss:":
            count += int(words[1])
    return count
