"""What scripts/gpu_check.sh runs besides the tests, tried without a card: the measures, the report, the exit status."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from bench.gpu import TINY, Bench, Row
from scripts.gpu_report import main, read_step, read_tests

ROOT = Path(__file__).parents[2]
SCRIPT = str(ROOT / "scripts" / "gpu_check.sh")
RUN = """collected 3 items
tests/gpu/test_models.py::test_a[cuda-no blocks] PASSED                  [ 33%]
tests/gpu/test_models.py::test_b[cuda-GPT-2] FAILED                      [ 66%]
tests/gpu/test_trainings.py::test_c[cuda] """
ROW = {"what": "forward", "seconds": 0.5, "tokens_per_second": 2e6, "tflops": 400.0, "share": 0.5, "memory": 3 << 29}


def test_every_measure_is_taken_on_the_cpu_and_one_that_fails_keeps_none_of_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bench = Bench(torch.device("cpu"), TINY[:1], seconds=0.0)
    rows = {row.what.split(",")[0]: row for row in bench.rows()}
    assert list(rows) == [
        "product of two matrices",
        "forward",
        "forward with everything kept",
        "writing with the KV cache",
        "training step",
    ]
    assert not any(row.failed for row in rows.values())
    read, learned, peak = rows["forward"], rows["training step"], rows["product of two matrices"]
    weights = 4 * 12 * 128**2 + 128 * TINY[0].shape.config.vocab_size  # two operations each for a token, and attention
    for row, passes in ((read, 1), (learned, 3)):
        assert row.seconds and row.tokens_per_second == pytest.approx(2 * 32 / row.seconds)
        done = 1e12 * (row.tflops or 0) / row.tokens_per_second
        assert passes * 2 * weights < done < 1.1 * passes * 2 * weights
        assert row.share == pytest.approx((row.tflops or 0) / (peak.tflops or 0))

    def use_up(*given: object) -> Row:
        raise torch.OutOfMemoryError("CUDA out of memory.\nMore of it")

    monkeypatch.setattr(Bench, "traced", use_up)
    failed = [row.failed for row in bench.rows()]
    assert failed == ["", "", "CUDA out of memory.", "", ""]


def test_the_report_says_what_failed_and_where_it_was_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def report(*steps: str) -> int:
        monkeypatch.setattr(sys, "argv", ["gpu_report", str(tmp_path), "--machine", "a card", *steps])
        return main()

    assert report("tests=1:3:170") == 1  # and nothing else is there
    (tmp_path / "tests.txt").write_text(RUN)
    rows = [ROW | {"failed": ""}, {"what": "step", "failed": "no | memory"}]
    (tmp_path / "bench.json").write_text(json.dumps({"device": "H", "torch": "2", "rows": rows}))
    assert report("tests=124:170:170", "bench=0:9:160") == 1
    said = (tmp_path / "report.md").read_text()
    for line in (
        "Something failed: a card; torch 2 on H",
        "| tests | 170 | 170 | stopped |",
        "| bench | 9 | 160 | passed |",
        "Tests: 1 passed, 1 failed",
        "- failed: `tests/gpu/test_models.py::test_b[cuda-GPT-2]`",
        "- running when it was stopped: `tests/gpu/test_trainings.py::test_c[cuda]`",
        "| forward | 0.5 | 2,000,000 | 400 | 50.0% | 1.50 GiB |",
        "| step | no / memory | | | | |",
    ):
        assert line in said.splitlines()
    kept = json.loads((tmp_path / "report.json").read_text())
    assert kept["tests"]["counts"] == {"passed": 1, "failed": 1} and not kept["ok"]
    (tmp_path / "tests.txt").write_text(RUN.splitlines()[1])
    assert report("tests=0:3:170") == 0 and "All went well" in capsys.readouterr().out
    (tmp_path / "tests.txt").write_text("2 skipped")
    assert report("tests=0:3:170") == 1  # where none passed nothing was shown
    assert read_step("tests=137:9:8")["stopped"] and read_tests("")["running"] is None


def check(*arguments: str) -> tuple[int, str]:
    done = subprocess.run(["bash", SCRIPT, *arguments], capture_output=True, text=True, check=False, timeout=100)
    return done.returncode, done.stderr


def test_the_script_says_in_a_sentence_what_it_lacks(tmp_path: Path) -> None:
    assert check() == (2, "expected a folder for the report; name one: scripts/gpu_check.sh OUT\n")
    assert check("--fast", str(tmp_path))[0] == 2
    assert subprocess.run(["bash", "-n", SCRIPT], check=False).returncode == 0
    if torch.cuda.is_available():
        pytest.skip("there is a card here")
    status, said = check("--python", sys.executable, str(tmp_path / "out"))
    assert (status, said.count("\n")) == (3, 1) and "no GPU that PyTorch sees" in said
