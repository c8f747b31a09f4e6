"""The patches for Streamlit in docs/upstream can be applied to the version that is installed."""

import os
import re
import shutil
import subprocess
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PATCHES = sorted((ROOT / "docs" / "upstream").glob("*.patch"))
MADE_FOR = "1.67.0"


def test_streamlit_is_the_version_that_the_patches_were_made_for() -> None:
    pinned = re.findall(r"^streamlit==(.+)$", (ROOT / "constraints.txt").read_text(encoding="utf-8"), re.MULTILINE)
    assert [MADE_FOR, version("streamlit")] == pinned * 2, (
        f"docs/upstream holds patches for Streamlit {MADE_FOR}: make them anew, or drop those that it has taken in"
    )


def test_there_are_four_and_each_is_listed() -> None:
    assert len(PATCHES) == 4
    listed = (ROOT / "docs" / "upstream" / "README.md").read_text(encoding="utf-8")
    assert not [patch.name for patch in PATCHES if f"`{patch.name}`" not in listed]


@pytest.mark.parametrize("patch", PATCHES, ids=lambda patch: patch.stem)
def test_a_patch_can_be_applied(patch: Path, tmp_path: Path) -> None:
    spec = find_spec("streamlit")
    assert spec is not None and spec.origin is not None
    names = re.findall(r"^--- a/lib/(streamlit/.+)$", patch.read_text(encoding="utf-8"), re.MULTILINE)
    assert names
    for name in names:
        (tmp_path / "lib" / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(Path(spec.origin).parents[1] / name, tmp_path / "lib" / name)
    outside = {**os.environ, "GIT_CEILING_DIRECTORIES": str(tmp_path.parent)}  # in a repository git passes files over
    command = ["git", "apply", "--check", "--verbose", str(patch)]
    answer = subprocess.run(command, cwd=tmp_path, env=outside, capture_output=True, text=True)
    assert answer.returncode == 0 and "Skipped" not in answer.stderr, answer.stderr
    assert all(f"lib/{name}" in answer.stderr for name in names)
