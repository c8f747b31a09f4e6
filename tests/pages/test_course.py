"""The course: every lesson is asked right, wrong and not at all; what it says fits the screen and the glossary."""

import inspect
import json
import re
import sys
from collections.abc import Callable
from functools import partial
from itertools import product
from pathlib import Path
from shutil import copytree
from typing import Any, NamedTuple

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from engine.course.heads import fit_difference
from engine.inputs.readers import tokens
from engine.runtime import library
from pages.controls import words
from pages.controls.figures import PICKED
from pages.controls.learn import course, predict
from pages.controls.learn.chapter_pictures import PICTURES, curve
from pages.controls.learn.glossary import LINK, as_title, link_terms, read_glossary, terms, title_terms
from pages.controls.learn.notebooks import write_notebook
from pages.controls.learn.predict import QUESTIONS
from pages.controls.menu import entries
from pages.controls.model_input.model_input import EXAMPLES
from pages.controls.state.hidden import HIDE, TEACHERS
from pages.learn.lessons.how_much import lesson as how_much
from pages.learn.lessons.in_prompt import lesson as in_prompt
from pages.learn.lessons.masks_and_heads import lesson as masks_and_heads
from pages.learn.lessons.one_step import lesson as one_step
from pages.learn.lessons.residual import lesson as residual
from server.settings import FIRST_MODEL
from tests.pages.mounted import mounted, shared
from tests.pages.pseudo import LEFT, RIGHT, english_of, sentences, write_texts
from views.core.payload import unpack

APP = str(Path(__file__).parents[2] / "app.py")
HOME = "pages/learn/home.py"
LESSONS = course.names()
MOST_WORDS = 150


class Asked(NamedTuple):
    """What a question was told last: which answers are right, what it says is, and the shape of its picture."""

    is_right: Callable[[Any], bool]
    answer: str
    shape: tuple[int, ...]


@pytest.fixture(autouse=True)
def asked(monkeypatch: pytest.MonkeyPatch) -> dict[str, Asked]:
    """Questions by their keys."""
    told = dict[str, Asked]()
    parameters = inspect.signature(predict.reveal)

    def note(*said: Any, **more: Any) -> bool:
        bound = parameters.bind(*said, **more)
        bound.apply_defaults()
        told[bound.arguments["key"]] = Asked(*(bound.arguments[name] for name in Asked._fields))
        return reveal(*said, **more)

    reveal = predict.reveal
    monkeypatch.setattr(predict, "reveal", note)
    return told


@pytest.fixture(autouse=True)
def short_trainings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the lessons that train longest; test_course_true.py and test_course_numbers.py have what whole ones show."""
    monkeypatch.setattr(residual, "STEPS", 20)
    monkeypatch.setattr(how_much, "STEPS", 40)
    monkeypatch.setattr(one_step, "STEPS", 10)
    monkeypatch.setattr(in_prompt, "STEPS", 6)
    monkeypatch.setattr(masks_and_heads, "fit", partial(fit_difference, steps=20))


def opened(**address: str) -> AppTest:
    app = AppTest.from_file(APP, default_timeout=60)
    for name, value in address.items():
        app.query_params[name] = value
    app.switch_page(course.COURSE).run()
    assert not app.exception, app.exception
    return app


def question_of(app: AppTest) -> str:
    """Key of the first question that is not answered yet, which opens the lesson."""
    key, *_others = [one.key for one in app.button if one.key and one.key.endswith(" check")]
    return key.removesuffix(" check")


def say(app: AppTest, key: str, told: Asked, right: bool) -> None:
    """Answers with what is right, or with something else."""
    numbers = [one for one in app.number_input if one.key == f"{key} said"]
    choices = [one for one in app.button_group if one.key == f"{key} said"]
    if numbers:
        value, tolerance = re.match(r"(\S+).*± (\S+)", told.answer.strip(LEFT + RIGHT)).groups()  # type: ignore[union-attr]
        numbers[0].set_value(float(value) + (0 if right else 3 * float(tolerance) + 1)).run()
    elif choices:
        (group,) = choices
        texts = list(group.options)
        ats = [texts.index(course.escape_markdown(one)) for one in told.answer.split(predict.TOGETHER)]
        value = ats if right else ats[:1]  # one of several is not enough
        group.set_value(value if len(ats) > 1 else ats[0] if right else (ats[0] + 1) % len(texts)).run()
    else:  # a click in a picture
        places = (place if len(place) > 1 else place[0] for place in product(*map(range, told.shape)))
        place = next(place for place in places if told.is_right(place) == right)
        app.session_state[PICKED.name][f"{key} picture"] = list(place) if isinstance(place, tuple) else [place]
        app.run()
    app.button(key=f"{key} check").click().run()
    assert not app.exception, app.exception
    assert app.session_state[QUESTIONS.name][key].right == right


def choose_view(app: AppTest, view: str) -> None:
    (views,) = [group for group in app.button_group if (group.key or "").endswith("-view")]
    views.set_value(view).run()
    assert not app.exception, app.exception


@pytest.fixture(scope="module")
def pseudo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A catalogue and lessons with the language xx (pseudo.py)."""
    folder = tmp_path_factory.mktemp("pseudo")
    write_texts(folder)
    return folder


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Sentences of all that any AppTest has shown."""
    run, read = AppTest._run, set[str]()

    def note(self: AppTest, *said: Any, **more: Any) -> AppTest:
        app = run(self, *said, **more)
        read.update(sentences(app))
        return app

    monkeypatch.setattr(AppTest, "_run", note)
    return read


@pytest.mark.parametrize("name", LESSONS)
def test_a_lesson_and_its_views_are_answered_right_and_wrong_and_say_why(
    name: str, asked: dict[str, Asked], pseudo: Path, seen: set[str]
) -> None:
    """First in the language that nobody speaks, which leaves no English where a language could not say it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(words, "CATALOGUE", pseudo)
        patch.setattr(course, "LESSONS", pseudo / "lessons")
        app = opened(lesson=name, lang="xx")
        key = question_of(app)
        first = asked[key]
        say(app, key, first, right=False)
        (wrong,) = app.warning
        assert "You said" in wrong.value and len(wrong.value.split("; it is ")[1]) > len(first.answer) + 10, "no reason"
        (views,) = [group.options for group in app.button_group if (group.key or "").endswith("-view")]
        ask = dict[int, str]()
        for at, view in enumerate(views):
            choose_view(app, view)
            if [one for one in app.button if one.key and one.key.endswith(" check")]:
                ask[at] = question_of(app)
                say(app, ask[at], asked[ask[at]], right=True)
                app.session_state[QUESTIONS.name][ask[at]].first_answer = None  # as if it had been shown
                app.run()
                assert app.info and not app.exception, app.exception
        assert len(set(ask.values())) >= 2
        assert "done" not in app.query_params  # a tick is for the question of the lesson
        app.button(key=f"{key} again").click().run()
        assert not app.exception and question_of(app) == key and not app.warning
        assert app.button(key=f"{key} check").disabled  # until it is answered anew
        app.button(key=f"{key} show").click().run()
        assert app.session_state[QUESTIONS.name][key].about[1] != first.answer
        assert app.info and not app.exception and "done" not in app.query_params  # a tick is for what was found
    assert any(LEFT in one for one in seen)
    assert [one for one in seen if english_of(one)] == []

    app = opened(lesson=name)
    say(app, key, asked[key], right=True)
    assert app.success and not app.warning and app.query_params["done"] == name
    (views,) = [group.options for group in app.button_group if (group.key or "").endswith("-view")]
    for at, asks in ask.items():
        choose_view(app, views[at])
        app.button(key=f"{asks} show")  # nobody has answered it yet
        say(app, asks, asked[asks], right=False)


@pytest.mark.parametrize("name", LESSONS)
def test_a_lesson_is_short_and_what_it_points_at_is_there(name: str) -> None:
    lesson = course.read_lesson(name)
    read = LINK.sub(lambda found: found[2] or found[1], lesson.text)
    spoken = re.sub(r"\$\$.*?\$\$|\$[^$]*\$", " formula ", read, flags=re.DOTALL)
    assert len(spoken.split()) <= MOST_WORDS
    assert lesson.deeper and lesson.minutes and lesson.terms
    link_terms(lesson.text + lesson.deeper)
    assert set(lesson.terms) <= set(terms())
    assert lesson.inside["page"] in [entry.address for entry in entries()]
    assert library.knows(lesson.inside.get("model", "everyday"))


def test_the_chapters_name_every_folder_once() -> None:
    assert sorted(LESSONS) == sorted(path.parent.name for path in course.LESSONS.glob("*/lesson.py"))
    assert [lesson.place for lesson in course.lessons()] == list(range(1, len(LESSONS) + 1))


def test_the_glossary_points_at_itself() -> None:
    for lang in words.languages(words.CATALOGUE):
        with words.use_language(lang):
            for _name, meaning in terms().values():
                assert as_title(link_terms(meaning)) and not set("$\\{}") & set(as_title(meaning))
    pages, _ = read_glossary()
    silent = {entry.address for entry in entries()} - set(pages["pages"])
    assert silent == {"home", "course", "glossary", "teach", "join"}
    assert {term for named in pages["pages"].values() for term in named} <= set(terms())
    linked = title_terms()
    assert set(linked) == set(terms()) and linked["softmax"]["address"] == "/glossary?term=softmax"
    assert "Sennrich" in linked["BPE"]["meaning"] and ". " not in linked["MLP"]["meaning"]


def test_the_map_counts_what_is_done_and_a_wrong_name_is_said() -> None:
    app = opened(done=f"{LESSONS[0]},nonsense")
    assert app.query_params["done"] == LESSONS[0]
    assert any("1 done" in one.value for one in app.markdown)
    headings = [one.value.removeprefix("### ") for one in app.markdown if one.value.startswith("### ")]
    assert headings == list(course.chapters())
    minutes = [int(one.value.removesuffix(" min")) for one in app.caption if one.value.endswith(" min")]
    evening = sum(lesson.minutes for lesson in course.lessons() if lesson.name in course.EVENING)
    assert len(minutes) == 1 + len(headings) + len(LESSONS)
    assert sum(minutes) == evening + 2 * sum(lesson.minutes for lesson in course.lessons())
    assert len(PICTURES) == len(headings)
    losses = json.loads((words.CATALOGUE / "recorded" / "stack.json").read_text(encoding="utf-8"))["with"]["losses"]
    assert list(curve(losses, "light").data["loss"]) == losses  # a point for each that was recorded
    app = opened(lesson="nonsense")
    assert "nonsense" in app.info[0].value


@pytest.mark.parametrize(
    "mark", [{"hide": "lesson fields,lesson show"}, {"hide": ""}, {"instruction": "Look."}, {"predict": "run"}]
)
def test_a_class_sees_nothing_of_what_is_for_teachers(mark: dict[str, str]) -> None:
    app = opened(lesson="averaging", **mark)
    assert not app.expander[-1].key and not app.get("download_button")
    css = " ".join(one.value for one in app.get("html"))
    assert ("question-show" in css) is ("lesson show" in mark.get("hide", ""))
    for one in app.get("page_link"):  # on which a reload, or a new tab, is of the class too
        assert TEACHERS in one.proto.query_string
    for lesson in ("averaging", "", "residual"):
        app.query_params.clear()
        app.query_params["lesson"] = lesson
        app.run()
        assert not app.exception and not app.get("download_button")
        assert TEACHERS in app.query_params[HIDE]
    named = [one.value for one in app.markdown if "/glossary?term" in one.value]
    assert named and all(TEACHERS in one for one in named)
    app.query_params.clear()  # as the menu does
    app.switch_page("pages/learn/home.py").run()
    assert not app.exception and app.query_params[HIDE] == TEACHERS


def test_a_class_that_has_no_button_to_show_answers_first() -> None:
    shown = [
        "block-view" in [one.key for one in opened(lesson="block", done="block", hide=hide).button_group]
        for hide in ("", "lesson show")
    ]
    assert shown == [True, False]


def test_a_lesson_has_a_link_for_a_class() -> None:
    take = shared(opened(lesson="averaging", lang="fr"), "lesson share averaging")
    assert take["controls"] == [["lesson fields", "champs de texte"], ["lesson show", "Montrez-moi"]]
    assert take["open"] == "Partager et exporter"
    assert take["link"] == {"v": "1", "lesson": "averaging", "lang": "fr"} and take["hidden"] == ["teachers"]


def home_columns(app: AppTest) -> tuple[dict[str, Any], dict[str, Any]]:
    (drawn,) = mounted(app, "learn.home")
    return unpack(drawn.bytes)


def test_home_has_one_run_in_five_columns_and_three_steps_that_change_it() -> None:
    app = AppTest.from_file(APP, default_timeout=60).switch_page(HOME).run()
    assert not app.exception
    look, checkpoint = EXAMPLES[FIRST_MODEL]["look"], library.checkpoint(FIRST_MODEL)
    texts = list[str]()
    for _step in range(2):
        texts.append(str(app.text_input(key="home-text").value))
        text = texts[-1]
        header, arrays = home_columns(app)
        trace = library.traces.trace(FIRST_MODEL, tokens(checkpoint, text))
        pattern = trace[f"blocks.{look['layer']}.attn.pattern"][0, look["head"]]
        assert np.allclose(arrays["pattern"].data, pattern.numpy(), atol=1e-5) and header["row"] == len(pattern) - 1
        best, share = header["next"][-1][0]
        assert best == checkpoint.tokenizer.piece(int(trace["logits"][0, -1].argmax()))  # type: ignore[union-attr]
        assert share == pytest.approx(float(trace["logits"][0, -1].softmax(-1).max()))
        app.button(key="home-change").click().run()
    assert len({*texts, app.text_input(key="home-text").value}) == 2  # changed, and back
    app.button(key="home-look").click().run()
    assert home_columns(app)[0]["row"] == len(pattern) - 2
    assert f"3. First lesson: {course.lessons()[0].title}" in [one.proto.label for one in app.get("page_link")]


def test_the_way_of_an_evening_leads_from_one_of_its_lessons_to_the_next() -> None:
    assert set(course.EVENING) <= set(course.names()) and len(course.EVENING) == 8
    assert 90 <= sum(course.read_lesson(name).minutes for name in course.EVENING) <= 110
    app = opened(lesson=course.EVENING[1], way="evening")
    links = {one.proto.label: one.proto.query_string for one in app.get("page_link")}
    assert any(f"lesson={course.EVENING[2]}" in query and "way=evening" in query for query in links.values())
    assert any("2 of 8" in one.value for one in app.caption)


def test_the_address_and_the_keys_do_not_wait_for_what_a_lesson_computes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Until then a browser speaks of the lesson before, and hears no key."""
    order = list[str]()
    real = course.write_address
    experiment = course.read_lesson("residual").experiment
    monkeypatch.setattr(course, "write_address", lambda name: order.append("address") or real(name))
    monkeypatch.setattr(course, "keys", lambda found, **more: order.append("keys"))
    monkeypatch.setattr(sys.modules[experiment.__module__], "experiment", lambda: order.append("experiment") or False)
    opened(lesson="residual")
    assert order == ["address", "keys", "experiment"]


def test_what_does_not_read_is_said_and_the_last_good_picture_stays() -> None:
    app = opened(lesson="averaging")
    app.session_state["averaging-source"] = "own"
    key = question_of(app.run())
    app.button(key=f"{key} show").click().run()
    shown = app.markdown[-1].value
    for bad in ("", "[[1, 3], [2]]", "[[1, a]]", "[[1e999, 1]]", "x", "[" * 2000, "[[" + "1," * 80 + "1]]"):
        app.text_input(key="averaging-x").set_value(bad).run()
        assert not app.exception
        assert [one.value for one in app.caption if "Expected" in one.value], bad
        assert app.markdown[-1].value == shown
    app.text_input(key="averaging-x").set_value("2 4\n4 8").run()
    assert not [one for one in app.caption if "Expected" in one.value]


def test_a_language_is_a_folder_and_what_it_lacks_is_english(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "xx").mkdir()
    (tmp_path / "xx" / "messages.po").write_text('msgid "Check"\nmsgstr "Prüfe"\n')
    copytree(words.CATALOGUE / "en", tmp_path / "en")
    monkeypatch.setattr(words, "CATALOGUE", tmp_path)
    app = opened(lesson="averaging", lang="xx")
    assert [one.label for one in app.button if one.key and one.key.endswith(" check")] == ["Prüfe"]
    assert any("Show me" == one.label for one in app.button)


@pytest.mark.parametrize("name", LESSONS)
def test_no_input_breaks_a_lesson(name: str) -> None:
    app = opened(lesson=name)
    app.button(key=f"{question_of(app)} show").click().run()
    for key in [one.key for one in app.text_input]:
        usual = app.text_input(key=key).value
        for bad in ("", "a", "x " * 3000, "你好 🙂 a\u0301\u202e", "[[1, a]]", "[[1]]", "<b>*x*</b> $y$", usual):
            app.text_input(key=key).set_value(bad).run()
            assert not app.exception, (key, bad[:20], app.exception)
            assert bad != "" or [one for one in app.caption if "Expected" in one.value], (key, "nothing was said")


def test_a_place_that_was_said_is_forgotten_with_the_picture_that_it_was_in() -> None:
    app, said = opened(lesson="in_prompt"), PICKED.name
    app.button(key=f"{question_of(app)} show").click().run()
    key = question_of(app)
    app.session_state[said][f"{key} picture"] = [6, 0]
    app.run()
    app.button(key=f"{key} check").click().run()
    assert "You said" in app.warning[0].value
    rows = app.text_area(key="in-prompt-rows labels")
    rows.set_value("\n".join([*rows.value.split("\n")[:4], rows.value.split("\n")[-1]])).run()
    assert not app.exception and not app.warning and app.button(key=f"{key} check").disabled


BARE = """
import streamlit as st
from pages.controls.learn.predict import choose

def experiment() -> bool:
    return choose("One or two?", ["one", "two"], 1, key="bare")
"""


def test_a_lesson_is_whole_with_two_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, asked: dict[str, Asked]
) -> None:
    """As CONTRIBUTING.md says; of a lesson in one language alone the others read that."""
    folder = tmp_path / "pages" / "learn" / "lessons" / "bare"
    folder.mkdir(parents=True)
    (folder / "lesson.py").write_text(BARE, encoding="utf-8")
    (folder / "en.md").write_text('+++\ntitle = "Bare"\nminutes = 2\n+++\nA *bare* lesson.\n', encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(course, "LESSONS", folder.parent)
    monkeypatch.setattr(course, "chapters", lambda: {words.translate("Attention"): ("bare",)})
    for lang in words.languages(words.CATALOGUE):
        assert any("Bare" in one.proto.label for one in opened(lang=lang).get("page_link"))
        app = opened(lesson="bare", lang=lang)
        assert "A *bare* lesson." in [one.value for one in app.markdown]
        say(app, "bare", asked["bare"], right=True)
        assert app.query_params["done"] == "bare"
        made = json.loads(write_notebook("bare", "# 1. Bare", lang, answers=True))
        assert "answer_1 = 1" in [line for cell in made["cells"] for line in cell["source"]]
