from pathlib import Path

import pytest
import torch

from engine.training.probe import frames as module
from engine.training.probe.frames import Frame, FrameFile, forget_older, pack_frame, read_frames


def made(step: int, kept: bool = False, size: int = 3) -> Frame:
    return Frame(step, {"ids": torch.arange(size, dtype=torch.int32), "scores.own": torch.full((1, 2), step / 7)}, kept)


def test_a_frame_comes_back_as_it_was_written(tmp_path: Path) -> None:
    file = FrameFile(tmp_path / "a.bin")
    file.append(made(0, kept=True))
    file.append(made(5))
    found = read_frames(file.path).frames
    assert [(one.step, one.kept) for one in found] == [(0, True), (5, False)]
    for one, other in zip(found, (made(0), made(5)), strict=True):
        assert one.tensors.keys() == other.tensors.keys()
        assert all(torch.equal(one.tensors[name], other.tensors[name]) for name in one.tensors)


@pytest.mark.parametrize("cut", [1, 3, 4, 5, 12, 40, -1])
def test_a_frame_that_is_half_written_is_left_for_later(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "a.bin"
    whole, more = pack_frame(made(0)), pack_frame(made(1))
    path.write_bytes(whole + more[:cut])
    first = read_frames(path)
    assert [one.step for one in first.frames] == [0]
    path.write_bytes(whole + more)
    assert [one.step for one in read_frames(path, first.place).frames] == [1]


def test_a_start_forgets_later_frames_and_a_torn_one(tmp_path: Path) -> None:
    path = tmp_path / "a.bin"
    path.write_bytes(b"".join(pack_frame(made(step)) for step in (0, 3, 6, 9)) + pack_frame(made(12))[:30])
    place = read_frames(path).place
    file = FrameFile(path)
    file.rewind(6)
    file.append(made(7))
    again = read_frames(path, place)
    assert again.anew and [one.step for one in again.frames] == [0, 3, 6, 7]
    torn = tmp_path / "b.bin"
    torn.write_bytes(pack_frame(made(0)) + pack_frame(made(1))[:9])
    file = FrameFile(torn)
    file.rewind(0)
    file.append(made(2))
    assert [one.step for one in read_frames(torn).frames] == [0, 2]


def test_a_file_grows_to_a_bound_and_keeps_the_frames_of_snapshots(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST", 40)
    file = FrameFile(tmp_path / "a.bin")
    snapshots = {0, 1, 2, 50, 100, 400}
    for step in range(500):
        file.append(made(step, kept=step in snapshots))
        assert len(file.records) <= 40 and file.last == step
    found = read_frames(file.path).frames
    steps = [one.step for one in found]
    assert snapshots <= set(steps) and steps == sorted(steps)
    assert len(steps) >= 20 and max(b - a for a, b in zip(steps, steps[1:], strict=False)) < 100


def test_large_frames_stay_within_the_bytes_even_where_all_belong_to_snapshots(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "LARGEST", 100_000)
    file = FrameFile(tmp_path / "a.bin")
    for step in range(60):
        file.append(made(step, kept=True, size=2000))
        assert file.path.stat().st_size <= 100_000
    assert read_frames(file.path).frames[-1].step == 59


def test_what_is_no_frame_is_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "a.bin"
    path.write_bytes(pack_frame(made(0)) + (9).to_bytes(4, "little") + b"\xff" * 9 + pack_frame(made(1)))
    assert [one.step for one in read_frames(path).frames] == [0, 1]


def test_the_frames_of_probes_that_nobody_watches_any_more_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "FILES", 3)
    for i in range(6):
        FrameFile(tmp_path / f"{i}.bin").append(made(0))
        (tmp_path / f"{i}.json").write_text("{}")
        forget_older(tmp_path, tmp_path / f"{i}.bin")
    left = sorted(file.name for file in tmp_path.iterdir())
    assert left == [f"{i}.{end}" for i in (3, 4, 5) for end in ("bin", "json")]
