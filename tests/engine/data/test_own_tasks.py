"""What tells a person's own rows apart: all that a model reads of them, and nothing that it is to answer."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from engine.data.kinds.rows import Rows
from engine.data.own_tasks import Own, task_of

TEXTS = [f"text {n}" for n in range(4)]
FORMS: dict[str, tuple[list[dict[str, Any]], dict[str, str], Callable[[Any], Any]]] = {
    "labels": (
        [{"a": text, "l": label} for text, label in product(TEXTS, "xy")],
        {"text": "a", "label": "l"},
        lambda task: task.texts,
    ),
    "pairs of texts": (
        [{"a": "one premise", "b": text, "l": label} for text, label in product(TEXTS, "xy")],
        {"text": "a", "pair": "b", "label": "l"},
        lambda task: task.texts,
    ),
    "targets": (
        [{"a": text, "b": target} for text, target in product(TEXTS, "xy")],
        {"source": "a", "target": "b"},
        lambda task: task.pairs,
    ),
    "tags": (
        [{"a": text, "b": f"{tag} O"} for text, tag in product(TEXTS, "XY")],
        {"tokens": "a", "tags": "b"},
        lambda task: task.sentences,
    ),
    "questions": (
        [{"q": "What is it?", "c": f"It is a {text}", "a": "It", "s": "0"} for text in TEXTS],
        {"question": "q", "context": "c", "answer": "a", "start": "s"},
        lambda task: task.answers,
    ),
}
READ = {"text", "pair", "source", "words", "question", "context"}  # fields of an example that a model reads


@pytest.mark.parametrize("form", FORMS)
def test_rows_are_told_apart_by_all_that_is_read_and_never_by_an_answer(form: str, tmp_path: Path) -> None:
    rows, columns, draw = FORMS[form]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    task = task_of(Rows(path=str(tmp_path / "rows.jsonl"), held_out=0.5, **columns))
    assert isinstance(task, Own)
    parts = []
    for part in ("train", "held_out"):
        found = list(draw(task)(part, 3))
        parts.append({tuple(str(value) for name, value in vars(one).items() if name in READ) for one in found})
        assert len(parts[-1]) == 2 and len(found) == len(rows) // 2  # half of the four inputs, with all their answers
    assert not parts[0] & parts[1]
