"""The notebook of a lesson, graded by Otter: with answers for a teacher, without for students.

A lesson is asked what it asks a reader, and what it calls: its question becomes one of the notebook, and each call of
the engine whose code it shows an exercise. Cells hold the answers; what students get has blanks there.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.util import find_spec, module_from_spec
from math import isnan
from threading import Lock
from types import FunctionType
from typing import Any

from torch import Tensor

from engine.course.grading import seal
from pages.controls import figures
from pages.controls.learn import fields, predict
from pages.controls.learn.glossary import LINK
from pages.controls.words import ASIDE, use_language
from pages.controls.words import translate as _
from views.core.function_code import round_floats, written_call
from views.core.markdown import Markdown, code_markdown

MOST_CALLS = 5  # exercises of a notebook, beside its question
SEALED = 4  # of an answer in a test, which nobody compares but for rounding
DIGITS = 6  # significant ones of a number that was computed: those after them differ from processor to processor
UNDRAWN = (figures.strip, figures.bars, figures.heads, figures.picked_place, predict.is_answered)
RECORDED = (
    predict.choose, predict.choose_all, predict.estimate, predict.point, predict.show_code, figures.matrix,
    figures.tokens, fields.choose_view,
)  # fmt: skip
ONE_AT_A_TIME = Lock()
READ = {"scriptrunner_utils.script_run_context:get_script_run_ctx": "dccbffa7ec2c9687"}

# A lesson that is recorded draws into no session, of which Streamlit would warn at every element.
logging.getLogger("streamlit.runtime.scriptrunner_utils.script_run_context").addFilter(lambda _record: not ASIDE.get())


@dataclass(frozen=True)
class Exercise:
    """Question in Markdown; the line that answers it; and a test of the name that is bound by that line."""

    text: str
    solution: str
    blank: str
    test: str
    imports: Sequence[str] = ()


@dataclass
class Recorder:
    """Stands in for what a lesson asks by and draws with; every view is opened in turn."""

    view: int = 0
    views: int = 1
    pictures: list[str] = field(default_factory=list)
    key: str = ""  # of the first question, which is that of the lesson
    question: Exercise | None = None
    calls: dict[str, Exercise] = field(default_factory=dict)

    def choose(self, question: str, options: Sequence[str], answer: int, *, key: str, **_more: Any) -> bool:
        note = _("Answer with the number of an option.")
        return self.ask(list_options(question, options, note), str(answer), test_sealed({"is": answer}), key)

    def choose_all(
        self, question: str, options: Sequence[str], answers: Collection[int], *, key: str, **_more: Any
    ) -> bool:
        note, right = _("Answer with a list of the numbers of options, in their order."), sorted(answers)
        return self.ask(list_options(question, options, note), repr(right), test_sealed({"among": [right]}), key)

    def estimate(
        self, question: str, answer: float, tolerance: float, *, key: str, unit: str = "", **_more: Any
    ) -> bool:
        note = _("Answer with a number; ± {tolerance:g} is accepted.").format(tolerance=tolerance)
        test = test_sealed({"near": round_floats(answer, SEALED), "within": tolerance})
        answer = round_floats(answer, DIGITS)
        return self.ask(f"{question}\n\n{note}{f' ({unit})' if unit else ''}", repr(answer), test, key)

    def point(self, question: str, _shape: Any, answers: Collection[Any], *, key: str, **_more: Any) -> bool:
        places = sorted(answers)
        of_cell, of_one = _("Answer with a place, (row, column), counted from 0."), _("Answer with its number, from 0.")
        note = of_one if isinstance(places[0], int) else of_cell
        return self.ask(f"{question}\n\n{note}", repr(places[0]), test_sealed({"among": places}), key)

    def ask(self, text: str, answer: str, test: str, key: str) -> bool:
        if self.question is None:
            self.key, self.question = key, Exercise(text, f"answer_1 = {answer}", "answer_1 = ...", test)
        return True

    def matrix(
        self, values: Tensor, *, key: str, rows: Sequence[str] = (), columns: Sequence[str] = (), **_more: Any
    ) -> None:
        """Keeps the picture of the question, which has its key or stands last before it."""
        if self.question is None or key == f"{self.key} picture":
            head = ["", *(f"{at}: {name}" for at, name in enumerate(columns))]
            body = [
                [f"{at}: {rows[at]}", *("?" if isnan(value) else f"{value:.2f}" for value in row)]  # "?": is covered
                for at, row in enumerate(values.tolist())
            ]
            self.pictures = [markdown_table([head, ["---"] * len(head), *body])]

    def tokens(self, pieces: Sequence[str], _values: Any = None, *, key: str, **_more: Any) -> None:
        """Keeps the tokens in which the question is answered."""
        if key == f"{self.key} picture":
            self.pictures = [code_markdown("  ".join(f"{at}: {piece}" for at, piece in enumerate(pieces)))]

    def choose_view(self, _key: str, views: Mapping[str, str]) -> str:
        self.views = len(views)
        return list(views)[self.view]

    def show_code(self, function: Callable[..., Any], *, key: str, **arguments: Any) -> None:
        try:
            imports, call = written_call(function, arguments, DIGITS)
        except ValueError:
            return  # it has an argument that cannot be written out, as the page says there
        if call not in self.calls and len(self.calls) < MOST_CALLS:
            name = f"result_{len(self.calls) + 2}"
            done = " ".join((function.__doc__ or "").split())
            asked = _("Call `{name}` as the lesson does, and name what it returns `{result}`.")
            given = call.removeprefix(function.__name__)
            named = {"name": Markdown(function.__name__), "result": Markdown(name)}  # both in backticks
            text = f"{asked.format(**named)}\n\n{done}\n\n```python\n{given}\n```"
            tried = [*filter(None, imports), *AGREE, f"agree({name}, {call})"]
            test = "\n".join(f">>> {line}" for line in tried) + "\nTrue"
            self.calls[call] = Exercise(text, f"{name} = {call}\n{name}", f"{name} = ...", test, imports)


def list_options(question: str, options: Sequence[str], note: str) -> str:
    listed = "\n".join(f"{at}. {one}" for at, one in enumerate(options))
    return f"{question}\n\n{listed}\n\n{note}"


def test_sealed(answer: Mapping[str, Any]) -> str:
    """A test that does not print the answer when it fails, as Otter prints the lines of a test."""
    return f">>> from engine.course.grading import is_right\n>>> is_right(answer_1, {seal(answer)!r})\nTrue"


AGREE = ("from engine.course.grading import agree",)


def markdown_table(rows: Sequence[Sequence[str]]) -> str:
    return "\n".join(f"| {' | '.join(cell.replace('|', '/') for cell in row)} |" for row in rows)


@cache
def record(name: str, lang: str) -> list[Exercise]:
    """The exercises of a lesson. What it draws by is exchanged in a module of its own, which no session draws with."""
    spec = find_spec(f"pages.learn.lessons.{name}.lesson")
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    recorder = Recorder()
    stand_ins: dict[Any, Any] = {original: lambda *_values, **_more: None for original in UNDRAWN}
    stand_ins |= {original: getattr(recorder, original.__name__) for original in RECORDED}
    functions = {at: own for at, own in vars(module).items() if isinstance(own, FunctionType)}
    vars(module).update({at: stand_ins[own] for at, own in functions.items() if own in stand_ins})
    with use_language(lang):
        while recorder.view < recorder.views:
            module.experiment()
            recorder.view += 1
    asked = recorder.question
    shown = [replace(asked, text="\n\n".join([*recorder.pictures, asked.text]))] if asked else []
    return [*shown, *recorder.calls.values()]


def write_notebook(name: str, text: str, lang: str, *, answers: bool) -> str:
    """A notebook as nbformat 4.5 has it; `text` is the lesson's, which stands first."""
    with ONE_AT_A_TIME:
        exercises = record(name, lang)
    with use_language(lang):
        cells = list(cells_of(name, text, exercises, answers))
    tests = {f"q{at}": test_of(f"q{at}", exercise.test) for at, exercise in enumerate(exercises, 1)}
    language = {"name": "python", "display_name": "Python 3", "language": "python"}
    content = {
        "cells": [{**cell, "id": f"{name}-{at}".replace("_", "-")} for at, cell in enumerate(cells)],
        "metadata": {"kernelspec": language, "otter": {"OK_FORMAT": True, "assignment_name": name, "tests": tests}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    return json.dumps(content, ensure_ascii=False, indent=1) + "\n"


def cells_of(name: str, text: str, exercises: Sequence[Exercise], answers: bool) -> Iterator[dict[str, Any]]:
    yield markdown(LINK.sub(lambda found: found[2] or found[1], text))
    setting_up = _("Run this in Loupe’s folder, with its packages and `otter-grader` installed; no network is needed.")
    yield markdown(setting_up)
    yield code(f'import otter\n\ngrader = otter.Notebook("{name}.ipynb")')
    for at, exercise in enumerate(exercises, 1):
        heading = _("Question {number}").format(number=at)
        yield markdown(f"## {heading}\n\n{exercise.text}")
        if exercise.imports:
            yield code("\n".join(exercise.imports))
        yield code(exercise.solution if answers else exercise.blank)
        yield code(f'grader.check("q{at}")')


def markdown(text: str) -> dict[str, Any]:
    return {"cell_type": "markdown", "metadata": {}, "source": text.splitlines(keepends=True)}


def code(text: str) -> dict[str, Any]:
    lines = text.splitlines(keepends=True)
    return {"cell_type": "code", "metadata": {}, "source": lines, "outputs": [], "execution_count": None}


def test_of(name: str, lines: str) -> dict[str, Any]:
    """A test as Otter keeps it in a notebook's metadata."""
    case = {"code": lines, "hidden": False, "locked": False}
    suite = {"cases": [case], "scored": True, "setup": "", "teardown": "", "type": "doctest"}
    return {"name": name, "points": 1, "suites": [suite]}
