"""The notebooks of the course: as their lessons ask today, graded right with their answers and wrong without them."""

import doctest
import json
import math
import re
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from engine.course.grading import is_right, seal
from pages.controls.learn import course
from pages.controls.learn.notebooks import FOLDER, for_students
from pages.controls.learn.notes import print_notes, read_note
from pages.controls.learn.words import CATALOGUE, languages
from scripts.notebooks import DIGITS, notebook, write_json
from tests.pages.test_course import opened

EVERYDAY = "norms"
ALL = [pytest.param(name, marks=() if name == EVERYDAY else pytest.mark.long) for name in course.names()]


def grade(text: str, monkeypatch: pytest.MonkeyPatch) -> dict[str, bool]:
    """Runs a notebook from its first cell to its last, with Otter's grader played by doctest, which it uses, too."""
    read = json.loads(text)
    tests, scope, graded = read["metadata"]["otter"]["tests"], dict[str, Any](), dict[str, bool]()

    def check(name: str) -> None:
        (suite,) = tests[name]["suites"]
        (case,) = suite["cases"]
        test = doctest.DocTestParser().get_doctest(case["code"], dict(scope), name, None, 0)
        graded[name] = doctest.DocTestRunner(verbose=False).run(test, out=lambda _line: None).failed == 0

    monkeypatch.setitem(sys.modules, "otter", SimpleNamespace(Notebook=lambda _path: SimpleNamespace(check=check)))
    for cell in read["cells"]:
        if cell["cell_type"] == "code":
            exec("".join(cell["source"]), scope)
    assert graded.keys() == tests.keys()
    return graded


def kept(name: str, lang: str = "en") -> str:
    return Path(FOLDER / lang / f"{name}.ipynb").read_text(encoding="utf-8")


NUMBER = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?(?:e[-+]?\d+)?(?![\w.]*\w)")
ROUNDING = 1e-5  # relative: numbers of six digits that were rounded to either side of an edge differ by no more


def same_but_for_rounding(one: str, other: str) -> bool:
    """Whether two texts are the same, and their decimals as near as another processor computes and rounds them."""
    return NUMBER.split(one) == NUMBER.split(other) and all(
        near(*pair) for pair in zip(NUMBER.findall(one), NUMBER.findall(other), strict=True)
    )


def near(one: str, other: str) -> bool:
    if "." not in one + other and "e" not in one + other:
        return one == other
    places = [len(number.partition(".")[2]) for number in (one, other) if "e" not in number]
    last = 10.0 ** -max(places) if places else 0.0  # a table has two places
    return math.isclose(float(one), float(other), rel_tol=ROUNDING, abs_tol=1.01 * last)


def significant(number: str) -> int:
    return len(re.sub(r"e.*|\D", "", number).lstrip("0"))


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("answer_1 = 62.4844", "answer_1 = 62.4845", True),
        ("[1.92707e-07, 0.7]", "[1.92708e-07, 0.700001]", True),
        ("| 0.33 | -0.00 |", "| 0.34 | 0.00 |", True),
        ("1e-05", "9.99999e-06", True),
        ("answer_1 = 62.4844", "answer_1 = 62.49", False),
        ("[1.92707e-07]", "[1.92807e-07]", False),
        ("ids=[4, 17]", "ids=[4, 18]", False),
        ("answer_1 = 0.7", "answer_2 = 0.7", False),
        ("x = 0.7, 1.5", "x = 0.7", False),
    ],
)
def test_only_roundings_are_the_same(one: str, other: str, same: bool) -> None:
    assert same_but_for_rounding(one, other) == same


def test_no_number_of_a_notebook_has_more_digits_than_every_processor_computes() -> None:
    assert significant("0.00019633304327726364") == 17 and significant("1.92707e-07") == 6
    for path in FOLDER.rglob("*.ipynb"):
        decimals = [number for number in NUMBER.findall(path.read_text(encoding="utf-8")) if "." in number]
        assert not [number for number in decimals if significant(number) > DIGITS], path


@pytest.mark.parametrize("name", ALL)
def test_a_notebook_asks_what_its_lesson_asks_and_its_answers_are_right(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert same_but_for_rounding(write_json(notebook(name, "en")), kept(name))
    assert all(grade(kept(name), monkeypatch).values())
    assert not any(grade(for_students(kept(name)), monkeypatch).values())


@pytest.mark.parametrize(
    ("answer", "right", "wrong"),
    [
        ({"is": 2}, [2, 2.0], [1, True, "2", ..., None]),
        ({"near": 64.0, "within": 6.4}, [64, 70.3, 58], [71, -64, ..., [64]]),
        ({"among": [(0, 1), (0, 2)]}, [(0, 1), [0, 2]], [(1, 0), 0, ...]),
    ],
)
def test_a_sealed_answer_is_known_and_not_read(answer: dict[str, Any], right: list[Any], wrong: list[Any]) -> None:
    sealed = seal(answer)
    assert all(is_right(one, sealed) for one in right) and not any(is_right(one, sealed) for one in wrong)
    assert json.dumps(answer) not in sealed
    with pytest.raises(ValueError, match="download"):
        is_right(1, "nonsense")


@pytest.mark.parametrize("lang", languages(CATALOGUE))
def test_no_check_prints_its_answer(lang: str) -> None:
    """Otter prints the lines of a test that fails: none compares with a number."""
    for name in course.names():
        tests = json.loads(kept(name, lang))["metadata"]["otter"]["tests"]
        (case,) = tests["q1"]["suites"][0]["cases"]
        assert re.fullmatch(
            r">>> from engine.course.grading import is_right\n>>> is_right\(answer_1, '[\w=-]+'\)\nTrue", case["code"]
        ), name


def test_every_lesson_has_a_note_of_five_parts_in_every_language_which_is_drawn_and_printed() -> None:
    for lang in languages(CATALOGUE):
        for name in course.names():
            note = (CATALOGUE / lang / "teacher" / f"{name}.md").read_text(encoding="utf-8")
            assert len(re.findall(r"^## ", note, re.M)) == 5 and note.count("\n**") == 2, (lang, name)
            assert sum(map(int, re.findall(r"\((\d+) min\)", note))) == 10, (lang, name)
    app = opened(lesson="norms", lang="fr")
    shown = " ".join(one.value for one in app.markdown)
    assert "##### Idée fausse" in shown and "La moyenne de LayerNorm porte sur les jetons." in shown
    printed = print_notes([("11. Norms", read_note("norms")), ("12 <b>", "## Goal\n\nx & y")], "en")
    assert printed.count("<article>") == 2 and "12 &lt;b&gt;" in printed
    assert "<h2>Goal</h2>\n<p>x &amp; y</p>" in printed


def test_every_language_has_every_notebook_with_the_same_tests() -> None:
    for lang in languages(CATALOGUE):
        for name in course.names():
            ours, english = (json.loads(kept(name, one)) for one in (lang, "en"))
            assert ours["metadata"] == english["metadata"]
            assert [cell["cell_type"] for cell in ours["cells"]] == [cell["cell_type"] for cell in english["cells"]]
