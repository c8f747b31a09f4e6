"""The notebook of a lesson, which `scripts/notebooks.py` writes: with answers for a teacher, without for students."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pages.controls.learn.words import CATALOGUE, ENGLISH, language

FOLDER = CATALOGUE.parent / "notebooks"


def notebook_path(name: str) -> Path | None:
    """The file with the answers, in the reader's language, or in English; None where there is none."""
    paths = (FOLDER / lang / f"{name}.ipynb" for lang in (language(), ENGLISH))
    return next((path for path in paths if path.is_file()), None)


def for_students(text: str) -> str:
    """The notebook with what is to be filled in where its answers stand."""
    notebook = json.loads(text)
    notebook["cells"] = [without_answer(cell) for cell in notebook["cells"]]
    return json.dumps(notebook, ensure_ascii=False, indent=1)


def without_answer(cell: dict[str, Any]) -> dict[str, Any]:
    blank = cell["metadata"].get("blank")
    return cell if blank is None else cell | {"source": [blank], "metadata": {}}
