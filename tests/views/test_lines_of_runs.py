"""The lines of Python of a page that looks at a training run open the weights that it looks at."""

from pathlib import Path

import pytest

from engine.runtime import library
from views.core.codegen import source_of


def test_a_runs_step_is_opened_by_the_file_of_its_weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(library, "RUNS_FOLDER", str(tmp_path))
    file = tmp_path / "tried" / "snapshots" / "step-0000020.safetensors"
    file.parent.mkdir(parents=True)
    file.write_bytes(b"")
    assert source_of("run:tried@20") == (f'"{file.as_posix()}"', "")
    assert source_of("run:tried@21")[0] == '"models/run:tried@21"'
