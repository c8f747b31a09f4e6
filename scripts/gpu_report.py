"""Sums up what scripts/gpu_check.sh found, by nothing but Python: `python -m scripts.gpu_report OUT STEP ...`.

A STEP is name=status:seconds:limit. Exit status 1 where one failed or no test passed."""

from __future__ import annotations

import json
import re
import sys
from argparse import ArgumentParser
from collections import Counter
from pathlib import Path
from typing import Any

TEST = re.compile(r"(tests/\S+::.+?) (PASSED|FAILED|ERROR|SKIPPED)\b")
BEGUN = re.compile(r"tests/\S+::")
STOPPED = (124, 137)  # what `timeout` ends with
TAIL = 30  # lines of a step that failed
COLUMNS = ("tokens_per_second", "tflops", "share", "memory")


def read_step(text: str) -> dict[str, Any]:
    name, _, rest = text.partition("=")
    status, seconds, limit = map(int, rest.split(":"))
    return {"name": name, "status": status, "seconds": seconds, "limit": limit, "stopped": status in STOPPED}


def read_tests(output: str) -> dict[str, Any]:
    """Counts by result, names of tests that failed, and the test that was running when time was up."""
    lines = [line.strip() for line in output.splitlines() if BEGUN.match(line)]
    results = [found.groups() for line in lines if (found := TEST.match(line))]
    counts = Counter(result.lower() for _, result in results)
    failed = [name for name, result in results if result in ("FAILED", "ERROR")]
    running = next((line for line in lines if not TEST.match(line)), None)
    return {"counts": dict(counts), "failed": failed, "running": running}


def summarise(out: Path, machine: str, steps: list[dict[str, Any]]) -> dict[str, Any]:
    tests = read_tests(read_text(out / "tests.txt"))
    bench = json.loads(read_text(out / "bench.json") or "{}")
    ok = all(step["status"] == 0 for step in steps) and tests["counts"].get("passed", 0) > 0
    return {"ok": ok, "machine": machine, "steps": steps, "tests": tests, "bench": bench}


def read_text(file: Path) -> str:
    return file.read_text(encoding="utf-8", errors="replace") if file.exists() else ""


def format_report(report: dict[str, Any], out: Path) -> str:
    bench, tests = report["bench"], report["tests"]
    on = f"; torch {bench['torch']} on {bench['device']}" if bench else ""
    verdict = "All went well" if report["ok"] else "Something failed"
    lines = ["# GPU check", "", f"{verdict}: {report['machine']}{on}", ""]
    lines += ["| step | seconds | at most | result |", "|---|---|---|---|"]
    for step in report["steps"]:
        result = "stopped" if step["stopped"] else "passed" if step["status"] == 0 else f"status {step['status']}"
        lines.append(f"| {step['name']} | {step['seconds']} | {step['limit']} | {result} |")
    counts = ", ".join(f"{count} {name}" for name, count in tests["counts"].items()) or "none ran"
    lines += ["", f"Tests: {counts}"]
    lines += [f"- failed: `{name}`" for name in tests["failed"]]
    if tests["running"]:
        lines.append(f"- running when it was stopped: `{tests['running']}`")
    lines += ["", "| measured | seconds | tokens/s | TFLOP/s | share of the peak | peak memory |"]
    lines += ["|---|---|---|---|---|---|"]
    lines += [format_row(row) for row in bench.get("rows", ())]
    for step in report["steps"]:
        if step["status"]:
            tail = read_text(out / f"{step['name']}.txt").splitlines()[-TAIL:]
            lines += ["", f"The end of {step['name']}.txt:", "", *(f"    {line}" for line in tail)]
    return "\n".join(lines) + "\n"


def format_row(row: dict[str, Any]) -> str:
    if row["failed"]:
        return f"| {row['what']} | {row['failed'].replace('|', '/')} | | | | |"
    speed, tflops, share, memory = (row[name] for name in COLUMNS)
    cells = [
        f"{row['seconds']:.4g}",
        "" if speed is None else f"{speed:,.0f}",
        "" if tflops is None else f"{tflops:.3g}",
        "" if share is None else f"{share:.1%}",
        "" if memory is None else f"{memory / 2**30:.2f} GiB",
    ]
    return f"| {row['what']} | {' | '.join(cells)} |"


def main() -> int:
    parser = ArgumentParser(prog="python -m scripts.gpu_report")
    parser.add_argument("out", type=Path)
    parser.add_argument("steps", nargs="+", type=read_step)
    parser.add_argument("--machine", default="")
    asked = parser.parse_args()
    report = summarise(asked.out, asked.machine, asked.steps)
    (asked.out / "report.json").write_text(json.dumps(report, indent=1), encoding="utf-8")
    text = format_report(report, asked.out)
    (asked.out / "report.md").write_text(text, encoding="utf-8")
    print(text)
    return 0 if report["ok"] else 1


if __name__ == "__main__":
    sys.exit(main())
