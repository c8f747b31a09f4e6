"""The notebook that reckons what many learners take runs with what was measured."""

import json
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "capacity"


def test_the_notebook_runs_and_its_sizes_follow_from_what_was_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(FOLDER)
    cells = json.loads((FOLDER / "capacity.ipynb").read_text(encoding="utf-8"))["cells"]
    names: dict[str, Any] = {}
    for cell in cells:
        if cell["cell_type"] == "code":
            exec("".join(cell["source"]), names)
    table, measured = names["learners"], names["measured"]
    cores = 1_000 / names["seconds_between_actions"] * measured["cpu_seconds_an_action"] / names["busy"]
    assert table.loc["cores", 1_000] == pytest.approx(cores, abs=0.1)
    assert table.loc["replicas", 30] == 1 <= table.loc["replicas", 1_000] < table.loc["replicas", 100_000]
    assert all(value > 0 for value in measured.values())
    assert names["lab"]["weights of one model, GB"] == pytest.approx(13.48)
