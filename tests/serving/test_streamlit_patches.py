"""Each patch is of functions of Streamlit that are as they were when they were read."""

import ast
import hashlib
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

import pytest

from serving import streamlit_patches
from serving.streamlit_patches import PATCHES


def hash_of(place: str) -> str:
    """Of the source of a function, such as "module:Class.function" of streamlit.runtime; without docstring and
    comments."""
    module, _, name = place.partition(":")
    spec = find_spec(f"streamlit.runtime.{module}")
    assert spec is not None and spec.origin is not None, f"Streamlit has no {module} any more"
    node: ast.AST = ast.parse(Path(spec.origin).read_text(encoding="utf-8"))
    for part in name.split("."):
        inner = [one for one in getattr(node, "body", []) if getattr(one, "name", "") == part]
        assert inner, f"Streamlit has no {place} any more: read what took its place"
        node = inner[-1]
    assert isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    body = node.body[1:] if ast.get_docstring(node) is not None else node.body
    return hashlib.sha256("\n".join(map(ast.unparse, [node.args, *body])).encode()).hexdigest()[:16]


@pytest.mark.parametrize("patch", PATCHES, ids=lambda patch: patch.__name__.rpartition(".")[2])
def test_streamlit_is_as_it_was_read(patch: ModuleType) -> None:
    for place, known in patch.READ.items():
        assert hash_of(place) == known, f"{place} changed since it was read: read it again, then write its hash"


def test_every_patch_is_applied_and_listed() -> None:
    folder = Path(streamlit_patches.__file__).parent
    names = {path.stem for path in folder.glob("*.py")} - {"__init__"}
    assert {patch.__name__.rpartition(".")[2] for patch in PATCHES} == names
    listed = (folder.parents[1] / "docs" / "streamlit.md").read_text(encoding="utf-8")
    assert not {name for name in names if f"`{name}.py`" not in listed}
