"""What is known of a training by its status, also where its process ended without a word."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from engine import pulse
from engine.training.launch import process
from engine.training.run.status import (
    STALE,
    SURE,
    Status,
    alive,
    as_written,
    last_said,
    read_status,
    watch_status,
    write_status,
)

ALONE = Path(process.__file__).parent  # where process.py is imported without all that trainings need


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    begun = subprocess.Popen([sys.executable, "-S", "-c", "import time; time.sleep(60)"])
    yield begun
    begun.kill()
    begun.wait()


def written(folder: Path, status: Status) -> Path:
    write_status(folder / "status.json", status)
    return folder / "status.json"


def test_a_living_process_is_what_it_says_and_a_killed_one_is_killed(
    tmp_path: Path, sleeper: subprocess.Popen[bytes]
) -> None:
    path = written(tmp_path, Status("running", 7, 9, pid=sleeper.pid))
    status = read_status(path)
    assert status is not None and status.state == "running" and not status.can_resume
    sleeper.send_signal(signal.SIGKILL)
    os.waitid(os.P_PID, sleeper.pid, os.WEXITED | os.WNOWAIT)  # ended, and its parent has not looked
    status = read_status(path)
    assert status is not None and (status.state, status.cause) == ("killed", "killed")
    assert status.error == "its process ended without a word; resume it to go on from step 7."
    assert status.can_resume


def test_another_process_that_got_the_same_number_is_not_taken_for_it(tmp_path: Path) -> None:
    earlier = Status("running", pid=os.getpid(), started="1@00000000")
    status = read_status(written(tmp_path, earlier))
    assert status is not None and status.state == "killed"
    now = read_status(written(tmp_path, Status("running")))
    assert now is not None and now.state == "running"


def test_a_silent_process_is_alive_as_long_as_it_is_there(tmp_path: Path) -> None:
    assert alive(Status("queued", heartbeat=time.time() - 100 * STALE), Path("queued"))
    silent = Status("running", pid=os.getppid(), started="", heartbeat=time.time() - 2 * STALE)
    assert not alive(silent, Path("silent"))


def test_a_status_from_before_processes_were_told_apart_reads(tmp_path: Path) -> None:
    path = tmp_path / "status.json"
    path.write_text(f'{{"state": "running", "pid": {os.getpid()}, "host": "{socket.gethostname()}", "heartbeat": 1.0}}')
    status = read_status(path)
    assert status is not None and status.state == "killed" and status.started == ""


@dataclass
class Clocks:
    """Those of this process, which stand still until a test moves them."""

    now: float = 1e9
    running: float = 1e3

    def go_on(self, seconds: float, jump: float = 0.0) -> None:
        self.now, self.running = self.now + seconds + jump, self.running + seconds


@pytest.fixture
def clocks(monkeypatch: pytest.MonkeyPatch) -> Clocks:
    made = Clocks()
    monkeypatch.setattr(pulse, "_pulses", {})
    monkeypatch.setattr(pulse, "time", SimpleNamespace(time=lambda: made.now, monotonic=lambda: made.running))
    return made


ELSEWHERE = Status("running", 7, 9, host="elsewhere", pid=1, started="1@00000000", heartbeat=1e9)


@pytest.mark.parametrize("state", ["running", "queued"])
def test_of_another_machine_only_the_heartbeat_is_known(state: str, tmp_path: Path, clocks: Clocks) -> None:
    file, there = tmp_path / "status.json", replace(ELSEWHERE, state=state)
    assert alive(there, file)
    clocks.go_on(STALE - 1)
    assert alive(there, file)
    clocks.go_on(2)
    assert not alive(there, file)
    assert alive(replace(there, heartbeat=clocks.now), file)  # it only stalled
    clocks.go_on(STALE - 1)
    later = replace(there, heartbeat=clocks.now - STALE + 2)  # it wrote once more, soon after that look
    assert alive(later, file)
    clocks.go_on(3)
    assert not alive(later, file)


@pytest.mark.parametrize("jump", [-1e6, 1e6])
def test_when_this_clock_jumps_no_run_of_another_machine_dies_or_lives_for_it(
    jump: float, tmp_path: Path, clocks: Clocks
) -> None:
    file = tmp_path / "status.json"
    assert alive(ELSEWHERE, file)
    clocks.go_on(1, jump)
    assert alive(ELSEWHERE, file) and alive(replace(ELSEWHERE, heartbeat=1e9 + 1), file)
    clocks.go_on(1)
    assert alive(replace(ELSEWHERE, heartbeat=1e9 + 1), file)
    clocks.go_on(STALE)
    assert not alive(replace(ELSEWHERE, heartbeat=1e9 + 1), file)


@pytest.mark.parametrize("wrong", [-1e6, 1e6])
def test_a_node_whose_clock_is_wrong_lives_while_it_writes(wrong: float, tmp_path: Path, clocks: Clocks) -> None:
    path = tmp_path / "status.json"
    write_status(path, replace(ELSEWHERE, heartbeat=clocks.now + wrong))
    first = read_status(path)
    assert first is not None and first.state == ("killed" if wrong < 0 else "running")
    for _ in range(3):
        clocks.go_on(1)
        write_status(path, replace(ELSEWHERE, heartbeat=clocks.now + wrong))
        status = read_status(path)
        assert status is not None and status.state == "running"
    clocks.go_on(STALE + 1)
    status = read_status(path)
    assert status is not None and (status.state, status.can_resume) == ("killed", True)


@pytest.mark.parametrize("writes", [True, False])
def test_who_is_about_to_take_a_run_sees_whether_a_node_with_an_old_clock_still_writes(
    writes: bool, tmp_path: Path, clocks: Clocks, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "status.json"
    write_status(path, replace(ELSEWHERE, heartbeat=1.0))

    def sleep(seconds: float) -> None:
        clocks.go_on(seconds)
        if writes and clocks.running > 1e3 + 1:
            write_status(path, replace(ELSEWHERE, heartbeat=2.0))

    monkeypatch.setattr("engine.training.run.status.time", SimpleNamespace(sleep=sleep))
    status = watch_status(path)
    assert status is not None and status.state == ("running" if writes else "killed")
    assert 1 < clocks.running - 1e3 < (1.5 if writes else SURE + 1)
    before = clocks.running
    assert watch_status(path) == status and clocks.running == before  # known by now


def test_a_process_that_ended_while_the_system_ended_one_for_its_memory_is_out_of_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "oom_kills", lambda: 3)
    path = written(tmp_path, Status("running", 40, 90, started="1@00000000"))
    before = read_status(path)
    assert before is not None and before.cause == "killed"
    monkeypatch.setattr(process, "oom_kills", lambda: 4)
    after = read_status(path)
    assert after is not None and (after.state, after.cause) == ("killed", "out of memory")
    assert "lack of memory" in after.error and "resume it to go on from step 40" in after.error
    assert after.can_resume


@pytest.mark.parametrize(
    ("groups", "file", "text"),
    [
        ("0::/slice/loupe\n", "cgroup/slice/loupe/memory.events", "low 0\nhigh 0\nmax 9\noom 2\noom_kill 5\n"),
        ("4:memory:/app\n1:cpu:/\n0::/\n", "cgroup/memory/app/memory.oom_control", "oom_kill_disable 0\noom_kill 5\n"),
        ("0::/outside\n", "cgroup/memory.events", "oom_kill 5\noom_group_kill 0\n"),
        ("", "proc/vmstat", "pgfault 12\noom_kill 5\n"),
    ],
    ids=["cgroup v2", "cgroup v1", "a container", "no groups"],
)
def test_what_was_ended_for_its_memory_is_counted_wherever_the_system_says_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, groups: str, file: str, text: str
) -> None:
    for name in ("proc/self", "cgroup", str(Path(file).parent)):
        (tmp_path / name).mkdir(parents=True, exist_ok=True)
    (tmp_path / "proc/self/cgroup").write_text(groups)
    monkeypatch.setattr(process, "PROC", tmp_path / "proc")
    monkeypatch.setattr(process, "CGROUP", tmp_path / "cgroup")
    assert process.oom_kills() == 0
    (tmp_path / file).write_text(text)
    assert process.oom_kills() == 5


def test_the_last_line_of_the_log_is_the_reason_where_there_is_one(tmp_path: Path) -> None:
    log = tmp_path / "log.txt"
    path = written(tmp_path, Status("preparing", started="1@00000000"))
    log.write_text("--- 2026-01-01 10:00:00\nFinished: checkpoint\n--- 2026-01-02 10:00:00\n")
    assert last_said(log) == ""
    status = read_status(path)
    assert status is not None and status.error == "its process ended without a word; start it again."
    with log.open("a") as file:
        file.write("x" * 10**5 + "\nImportError: libcudart.so.12 is missing\n\n")
    status = read_status(path)
    assert status is not None and status.error.endswith("said last: ImportError: libcudart.so.12 is missing")


def test_a_status_that_is_none_names_its_file(tmp_path: Path) -> None:
    (tmp_path / "status.json").write_text("[1]")
    found = as_written(tmp_path / "status.json")
    assert found is not None and found.can_resume
    assert found.error.startswith("status.json is ignored: it must hold a table, got [1]")


def test_all_threads_of_a_training_give_way() -> None:
    code = """
import os, threading, time
from process import lower_priority
event = threading.Event()
thread = threading.Thread(target=event.wait)
thread.start()
lower_priority()
print([os.getpriority(os.PRIO_PROCESS, tid) for tid in (threading.get_native_id(), thread.native_id)])
event.set()
"""
    said = subprocess.run([sys.executable, "-c", code], cwd=ALONE, check=True, capture_output=True, text=True).stdout
    assert min(json.loads(said)) >= 10


@pytest.mark.skipif(not Path("/proc/self/autogroup").exists(), reason="this system has no sessions that share cores")
@pytest.mark.parametrize("own", [True, False])
def test_a_session_of_its_own_gives_way_to_other_sessions_and_nobody_elses_does(own: bool) -> None:
    code = """
from pathlib import Path
from process import lower_priority
def nice(): return int((Path("/proc/self/autogroup").read_text().split() or ["0"])[-1])  # empty: it shares no group
before = nice()
lower_priority()
print([before, nice()])
"""
    begun = subprocess.run(
        [sys.executable, "-c", code], cwd=ALONE, check=True, capture_output=True, text=True, start_new_session=own
    )
    before, after = json.loads(begun.stdout)
    assert after == (process.GROUP if own else before)
