"""What Loupe replaces in Streamlit or counts on is as it was when it was read, and patches act in their order."""

import ast
import hashlib
from importlib.util import find_spec
from pathlib import Path

import pytest
import requests
from streamlit.web.server.server_util import is_url_from_allowed_origins

from server.http import streamlit_patches
from server.http.streamlit_patches import PATCHES
from tests.test_house import ROOT, RUNS


def hash_of(place: str) -> str:
    """Of a function's source, such as "module:Class.function" of streamlit.runtime, or "streamlit.module:function";
    without docstring and comments."""
    module, _, name = place.partition(":")
    spec = find_spec(module if module.startswith("streamlit.") else f"streamlit.runtime.{module}")
    assert spec is not None and spec.origin is not None, f"Streamlit has no {module} any more"
    node: ast.AST = ast.parse(Path(spec.origin).read_text(encoding="utf-8"))
    for part in name.split("."):
        inner = [one for one in getattr(node, "body", []) if getattr(one, "name", "") == part]
        assert inner, f"Streamlit has no {place} any more: read what took its place"
        node = inner[-1]
    assert isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    body = node.body[1:] if ast.get_docstring(node) is not None else node.body
    return hashlib.sha256("\n".join(map(ast.unparse, [node.args, *body])).encode()).hexdigest()[:16]


def tables() -> dict[str, dict[str, str]]:
    """READ of each file that has one. `check_private_parts` in tests/test_house.py says which must."""
    found = {}
    files = {path for place in RUNS for path in ROOT.glob(f"{place}**/*.py" if place.endswith("/") else place)}
    for path in sorted(files):
        text = path.read_text(encoding="utf-8")
        for node in ast.parse(text).body if "\nREAD = {" in text else ():
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "READ":
                found[path.relative_to(ROOT).as_posix()] = ast.literal_eval(node.value)
    return found


@pytest.mark.parametrize(("path", "table"), tables().items(), ids=tables())
def test_streamlit_is_as_it_was_read(path: str, table: dict[str, str]) -> None:
    for place, known in table.items():
        assert hash_of(place) == known, f"{path}: {place} changed since it was read: read it again, write its hash"


def test_every_patch_is_applied_and_listed() -> None:
    folder = Path(streamlit_patches.__file__).parent
    names = {path.stem for path in folder.glob("*.py")} - {"__init__"}
    assert {patch.__name__.rpartition(".")[2] for patch in PATCHES} == names
    listed = (folder.parents[2] / "docs" / "streamlit.md").read_text(encoding="utf-8")
    assert not {name for name in names if f"`{name}.py`" not in listed}


def test_a_foreign_origin_is_refused_and_no_other_host_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    def ask(*given: object, **named: object) -> None:
        raise AssertionError(f"{given} is asked")

    monkeypatch.setattr(requests, "get", ask)
    streamlit_patches.patch_streamlit()
    assert not is_url_from_allowed_origins("https://elsewhere.example")
    assert is_url_from_allowed_origins("http://localhost:8501")
