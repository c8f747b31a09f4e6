"""The notebooks of the course: graded right with their answers and wrong without them, in every language alike."""

import doctest
import json
import re
import sys
from threading import Thread
from types import SimpleNamespace
from typing import Any

import pytest

from engine.course.grading import is_right, seal
from pages.controls.learn import course
from pages.controls.learn.notebooks import DIGITS, record, write_notebook
from pages.controls.learn.notes import print_notes
from pages.controls.words import CATALOGUE, languages, use_language
from tests.pages.test_course import opened

EVERYDAY = "norms"
ALL = [pytest.param(name, marks=() if name == EVERYDAY else pytest.mark.long) for name in course.names()]
NUMBER = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?(?:e[-+]?\d+)?(?![\w.]*\w)")


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


def made(name: str, lang: str = "en", *, answers: bool = True) -> str:
    with use_language(lang):
        return write_notebook(name, course.read_lesson(name).text, lang, answers=answers)


def significant(number: str) -> int:
    return len(re.sub(r"e.*|\D", "", number).lstrip("0"))


@pytest.mark.parametrize("name", ALL)
def test_a_notebook_is_graded_right_with_its_answers_and_wrong_without(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert all(grade(made(name), monkeypatch).values())
    assert not any(grade(made(name, answers=False), monkeypatch).values())


@pytest.mark.parametrize("name", ALL)
def test_a_notebook_has_the_same_tests_in_every_language_and_none_prints_an_answer(name: str) -> None:
    """Otter prints the lines of a test that fails: none compares with a number. No number has more digits than every
    processor computes."""
    english = json.loads(made(name))
    for lang in languages(CATALOGUE):
        found = json.loads(text := made(name, lang))
        assert found["metadata"] == english["metadata"]
        assert [cell["cell_type"] for cell in found["cells"]] == [cell["cell_type"] for cell in english["cells"]]
        (case,) = found["metadata"]["otter"]["tests"]["q1"]["suites"][0]["cases"]
        assert re.fullmatch(
            r">>> from engine.course.grading import is_right\n>>> is_right\(answer_1, '[\w=-]+'\)\nTrue", case["code"]
        )
        decimals = [number for number in NUMBER.findall(text) if "." in number]
        assert not [number for number in decimals if significant(number) > DIGITS]
    assert significant("0.00019633304327726364") == 17 and significant("1.92707e-07") == 6


def test_a_notebook_is_made_while_others_draw_its_lesson(caplog: pytest.LogCaptureFixture) -> None:
    """On a thread of its own, which has no session, in the language of whoever asks; nothing that they draw by is
    exchanged, and Streamlit does not warn of the missing session."""
    record.cache_clear()
    lesson = sys.modules[course.read_lesson(EVERYDAY).experiment.__module__]
    before, texts = dict(vars(lesson)), list[str]()
    making = Thread(target=lambda: texts.append(made(EVERYDAY, "fr")))
    making.start()
    assert any(one.value == "### Norms and the MLP" for one in opened(lesson=EVERYDAY).markdown)
    making.join()
    assert "Répondez" in texts[0] and vars(lesson) == before
    assert not [one for one in caplog.records if one.threadName == making.name]


@pytest.mark.parametrize(
    ("answer", "right", "wrong"),
    [
        ({"is": 2}, [2, 2.0], [1, True, "2", ..., None]),
        ({"near": 64.0, "within": 6.4}, [64, 70.3, 58], [71, -64, ..., [64]]),
        ({"among": [(0, 1), (0, 2)]}, [(0, 1), [0, 2]], [(1, 0), 0, ...]),
        ({"among": [0, 2]}, [0, 2.0], [1, True, (0,), ...]),
    ],
)
def test_a_sealed_answer_is_known_and_not_read(answer: dict[str, Any], right: list[Any], wrong: list[Any]) -> None:
    sealed = seal(answer)
    assert all(is_right(one, sealed) for one in right) and not any(is_right(one, sealed) for one in wrong)
    assert json.dumps(answer) not in sealed
    with pytest.raises(ValueError, match="download"):
        is_right(1, "nonsense")


def test_every_lesson_has_a_note_of_five_parts_in_every_language_which_is_drawn_and_printed() -> None:
    for lang in languages(CATALOGUE):
        for name in course.names():
            note = (course.LESSONS / name / f"teacher.{lang}.md").read_text(encoding="utf-8")
            assert len(re.findall(r"^## ", note, re.M)) == 5 and note.count("\n**") == 2, (lang, name)
            assert sum(map(int, re.findall(r"\((\d+) min\)", note))) == 10, (lang, name)
    app = opened(lesson="norms", lang="fr")
    shown = " ".join(one.value for one in app.markdown)
    assert "##### Idée fausse" in shown and "La moyenne de LayerNorm porte sur les jetons." in shown
    printed = print_notes([("11. Norms", course.read_lesson("norms").note), ("12 <b>", "## Goal\n\nx & y")], "en")
    assert printed.count("<article>") == 2 and "12 &lt;b&gt;" in printed
    assert "<h2>Goal</h2>\n<p>x &amp; y</p>" in printed


def test_a_question_that_is_answered_in_tokens_has_them_numbered_above_it() -> None:
    (cell,) = [one for one in json.loads(made("tokens"))["cells"] if "".join(one["source"]).startswith("## Question 1")]
    assert "`0: p  1: h  2: o  3: n  4: e  5: ,  6: ·" in "".join(cell["source"])
