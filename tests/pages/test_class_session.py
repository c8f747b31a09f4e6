"""The pages of a class session, of which the engine's own tests hold what is kept and what is right."""

import codecs
import csv
import io
import json
import time
from datetime import datetime
from pathlib import Path

import pandas as pd
import pytest
from starlette.requests import Request
from streamlit.testing.v1 import AppTest

from pages.controls.classes import grades, who
from server.classes import store
from server.classes.steps import Step, to_json
from server.classes.store import Classes, open_classes
from server.http import class_news
from server.http.class_news import tell_news
from server.lti import launches, scores
from server.settings import CLASSES_PLACE
from tests.coroutines import finish
from tests.views.test_markdown import PAYLOADS
from views.classes.tally import compare_rooms, list_answers, list_questions, tabulate
from views.core.table_files import table_file

APP = str(Path(__file__).resolve().parents[2] / "app.py")
QUERY = {"model": "stories", "text": "Once upon a time"}


@pytest.fixture
def classes(monkeypatch: pytest.MonkeyPatch) -> Classes:
    monkeypatch.setattr(store, "PAUSE", 0.0)
    return open_classes(CLASSES_PLACE)


def opened(page: str, **address: str) -> AppTest:
    app = AppTest.from_file(APP, default_timeout=60)
    for name, value in address.items():
        app.query_params[name] = value
    app.switch_page(f"pages/learn/{page}.py").run()
    assert not app.exception, app.exception
    return app


def texts(app: AppTest) -> str:
    return " ".join(one.value for kind in ("markdown", "caption", "warning", "info") for one in getattr(app, kind))


def learner(code: str, name: str) -> AppTest:
    app = opened("join", code=code.lower())
    app.text_input(key="class name").set_value(name)
    app.button(key="class join").click().run()
    assert not app.exception, app.exception
    return app


def test_a_session_is_made_started_and_taught(classes: Classes) -> None:
    app = opened("teach", step=json.dumps({"page": "attention", "query": QUERY, "sentence": "Look."}))
    assert "step" not in app.query_params and "Look." in texts(app)
    app.selectbox(key="class kind").set_value("say").run()
    app.button(key="class add").click().run()
    assert "needs the word" in texts(app)
    app.text_input(key="class wanted").set_value("hat").run()
    app.button(key="class add").click().run()
    app.button(key="class start").click().run()
    assert not app.exception, app.exception
    code = app.query_params["room"]
    app.switch_page("pages/explore/generate.py").run()
    app.query_params["step"] = json.dumps({"page": "generate", "query": QUERY})  # shared while the class goes on
    app.query_params["room"] = code
    app.switch_page("pages/learn/teach.py").run()
    app.query_params["step"] = json.dumps({"page": "generate", "query": QUERY})  # as the browser says once more
    app.run()
    assert [one.page for one in classes.find(code).steps][2:] == ["generate"]
    again = opened("teach", room=code, secret=classes.renew_secret(code), step=json.dumps({"page": "train"}))
    assert not again.exception
    assert len(classes.find(code).steps) == 3  # a reload, of an address that has done its work
    kinds = [one.kind for one in classes.find(code).steps]
    assert kinds == ["look", "say", "look"] and "secret" not in app.query_params
    ada = learner(code, "Ada")
    assert "**Ada**" in texts(ada) and "Look." in texts(ada)
    taken = opened("join", code=code)
    taken.text_input(key="class name").set_value("ada")
    taken.button(key="class join").click().run()
    assert "taken" in texts(taken)
    app.button(key="class go 1").click().run()
    (known,) = classes.learners(code)
    classes.hand_in(known, 1, {"said": "A man has a", "truth": "p of hat: 12%", "right": None, "score": 0.12,
                               "number": None, "true": None, "page": "walkthrough", "link": QUERY,
                               "picture": [[255, 0], [128, 127]]})  # fmt: skip
    app.run()
    assert len(app.get("image")) == 1  # the attention that was handed in
    assert "A man has a · p of hat: 12%" in texts(app) and "**Ada**" not in texts(app)
    app.toggle(key="class names").set_value(True).run()
    assert "**Ada**" in texts(app)
    app.button(key=f"class ask {known.id} 1").click().run()
    ada.run()
    ada.button(key="class consent given 1").click().run()
    app.run()
    app.button(key=f"class show {known.id} 1").click().run()
    assert classes.find(code).at == 3 and dict(classes.find(code).step.query) == QUERY
    app.toggle(key="class sure").set_value(True).run()
    app.button(key="class delete").click().run()
    assert not app.exception and "room" not in app.query_params
    ada.run()
    assert not ada.exception and "step 4" not in texts(ada)


def test_the_steps_of_a_draft_are_edited_moved_copied_and_refused_where_nobody_could_answer(classes: Classes) -> None:
    app = opened("teach", steps=json.dumps([{"page": "attention", "query": QUERY, "sentence": "Look."}]))
    app.selectbox(key="class kind").set_value("choice").run()
    app.button(key="class add").click().run()
    assert "needs two options" in texts(app)
    app.text_area(key="class options").set_value("keys\n\nvalues").run()
    app.selectbox(key="class right").set_value(2).run()
    app.selectbox(key="class seconds").set_value(120).run()
    app.toggle(key="class closes").set_value(True).run()
    app.button(key="class add").click().run()
    assert "keys / values · 2 min, then closed" in texts(app)
    assert app.selectbox(key="class seconds").value == 120
    app.button(key="class arrow_upward 1").click().run()
    app.button(key="class edit 1").click().run()
    assert "edited below" in texts(app) and app.text_input(key="class text").value == QUERY["text"]
    app.selectbox(key="class kind").set_value("head").run()
    app.selectbox(key="class pattern").set_value("induction").run()
    app.button(key="class add").click().run()
    assert "no head can look so" in texts(app)  # in this text no word comes twice
    app.text_input(key="class text").set_value("The cat saw the cat").run()
    app.button(key="class add").click().run()
    app.button(key="class content_copy 1").click().run()
    app.button(key="class delete 2").click().run()
    app.button(key="class start").click().run()
    assert not app.exception, app.exception
    first, second = classes.find(app.query_params["room"]).steps
    assert (first.kind, first.options, first.right) == ("choice", ("keys", "values"), 1)
    assert (first.seconds, first.closes) == (120, True)
    assert (second.kind, second.pattern, second.query["text"]) == ("head", "induction", "The cat saw the cat")
    screen = opened("teach", room=app.query_params["room"], screen="projector")
    assert not screen.get("iframe") or "names" not in texts(screen)


def test_what_a_teacher_may_not_do_is_a_sentence(classes: Classes) -> None:
    code, secret = classes.start("somebody", [Step("walkthrough", QUERY, "words")])
    teacher = opened("teach", room=code, secret=secret)
    classes.add_steps(code, [Step("attention", QUERY)], go=True)  # by another device
    teacher.button(key="class reveal").click().run()
    assert not teacher.exception and "The class is at another step now" in texts(teacher)
    classes.delete(code)
    teacher.button(key="class go 1").click().run()
    assert not teacher.exception and "There is no session" in texts(teacher)


def test_nobody_teaches_without_the_link_that_starting_gave(classes: Classes) -> None:
    code, secret = classes.start("somebody", [Step("walkthrough", QUERY)])
    for wrong in ({}, {"secret": "x" * 24}):
        app = opened("teach", room=code, **wrong)
        assert "needs the link" in texts(app) and f"# {code}" not in [one.value for one in app.markdown]
    app = opened("teach", room=code, secret=secret)
    assert f"# {code}" in [one.value for one in app.markdown] and "secret" not in app.query_params


def test_two_sessions_are_compared_and_what_a_lesson_taught_is_counted_without_names(classes: Classes) -> None:
    steps = [Step("walkthrough", QUERY, "choice", options=("a", "b"), right=0), Step("walkthrough", QUERY, "scale")]
    codes, secrets = zip(*(classes.start("owner", steps) for _ in range(2)), strict=True)
    asked = {"How many?": {"said": "3", "right": False, "why": "Letters are no tokens."}}
    for code, right in zip(codes, (1, 2), strict=True):
        for number in range(2):
            one = classes.join(code, f"Pupil {number}", f"{number}")
            classes.hand_in(one, 0, {"said": "a", "truth": "a", "right": number < right, "score": None, "number": None,
                                     "page": "walkthrough", "link": {}, "questions": asked})  # fmt: skip
    rooms = {code: (classes.find(code), classes.answers(code)) for code in codes}
    choice, scale = compare_rooms(rooms)
    assert [choice[f"{code}: right"] for code in codes] == ["50%", "100%"] and scale[f"{codes[0]}: answers"] == 0
    (line,) = list_questions([one.content for one in rooms[codes[0]][1]])
    assert (line["answer"], line["learners"], line["why"]) == ("3", 2, "Letters are no tokens.")
    app = opened("teach", room=codes[0], secret=secrets[0])
    shown = [frame.value for frame in app.dataframe if "why" in frame.value]
    assert shown and not any("Pupil" in str(frame) for frame in shown)


def test_each_goes_at_their_own_pace_for_points_and_everybodys_page_is_seen_at_a_glance(classes: Classes) -> None:
    choice = Step("walkthrough", QUERY, "choice", "Which?", options=("keys", "values"), right=1)
    code, secret = classes.start("somebody", [choice, Step("attention", QUERY, "words", "What is seen?"), choice])
    teacher, ada = opened("teach", room=code, secret=secret), learner(code, "Ada")
    assert not [one for one in ada.button if one.key == "class forward"]  # the class goes on together
    teacher.button(key="class free").click().run()
    teacher.toggle(key="class points").set_value(True).run()
    ada.run()
    assert "step 1 of 3 · 0 points" in texts(ada)
    for _ in range(2):
        ada.button(key="class forward").click().run()
    assert "step 3 of 3" in texts(ada) and ada.button(key="class forward").disabled and classes.find(code).at == 0
    (known,) = classes.learners(code)
    right = {"said": "values", "truth": "values", "right": True, "score": None, "number": None, "true": None,
             "page": "walkthrough", "link": QUERY}  # fmt: skip
    classes.hand_in(known, 2, right)
    ada.run()
    assert "0 points" in texts(ada)  # what is right of it is not shown yet
    classes.go_to(code, 2)
    classes.change(code, revealed=True)
    classes.go_to(code, 1)
    ada.run()
    assert "step 3 of 3 · 1 point" in texts(ada)
    with pytest.raises(ValueError, match="shown already"):
        classes.hand_in(known, 2, right, again=True)
    with pytest.raises(ValueError, match="another step"):
        classes.hand_in(known, 3, right)
    classes.go_to(code, 2)
    assert "Ada: 1" in texts(opened("teach", room=code, secret=secret, screen="projector"))
    ada.query_params.update(QUERY)
    ada.switch_page("pages/explore/attention.py").run()
    teacher.toggle(key="class everybody").set_value(True).run()
    assert not teacher.exception and len(teacher.get("image")) == 1
    assert f"{QUERY['text']} → " in texts(teacher) and "**Ada**" not in texts(teacher)
    ada.switch_page("pages/learn/glossary.py").run()
    teacher.toggle(key="class names").set_value(True).run()
    assert not teacher.get("image") and "**Ada**" in texts(teacher)
    classes.change(code, free=False)
    ada.run()
    assert "step 3 of 3" in texts(ada) and not [one for one in ada.button if one.key == "class forward"]


def test_a_learner_who_leaves_takes_their_answers_along(classes: Classes) -> None:
    code, _secret = classes.start("somebody", [Step("walkthrough", QUERY, "words")])
    app = learner(code, "Bo")
    (known,) = classes.learners(code)
    classes.hand_in(known, 0, {"said": "It sees."})
    app.button(key="class leave").click().run()
    assert not classes.learners(code) and not classes.answers(code)


def test_a_teacher_takes_somebody_out_and_says_whether_others_may_come_in(classes: Classes) -> None:
    code, secret = classes.start("somebody", [Step("walkthrough", QUERY, "words")])
    bo, cy = learner(code, "Bo"), learner(code, "Cy")
    classes.hand_in(
        classes.learners(code)[0],
        0,
        {
            "said": "It sees.",
            "truth": "",
            "right": None,
            "score": None,
            "number": None,
            "true": None,
            "page": "walkthrough",
            "link": QUERY,
        },
    )
    app = opened("teach", room=code, secret=secret)
    app.session_state["class people"] = True
    app.run()
    app.toggle(key="class open").set_value(False).run()
    app.button(key=f"class remove {classes.learners(code)[0].id}").click().run()
    assert [one.name for one in classes.learners(code)] == ["Cy"] and not classes.answers(code)
    bo.run()
    assert not bo.exception and "**Bo**" not in texts(bo)
    cy.run()
    assert "**Cy**" in texts(cy)
    for name in ("Bo", "Di"):
        late = opened("join", code=code)
        late.text_input(key="class name").set_value(name)
        late.button(key="class join").click().run()
        assert "obody new can join this session now" in texts(late) and len(classes.learners(code)) == 1
    app.toggle(key="class open").set_value(True).run()
    learner(code, "Bo")
    assert len(classes.learners(code)) == 2


def test_the_answers_of_a_lesson_are_handed_in_by_themselves(classes: Classes) -> None:
    code, _secret = classes.start("somebody", [Step("course", {"lesson": "averaging"})])
    app = learner(code, "Cy")
    app.query_params["lesson"] = "averaging"
    app.switch_page("pages/learn/course.py").run()
    app.button(key="averaging question show").click().run()
    app.run()
    (answer,) = classes.answers(code)
    assert answer.content["said"] == "0 of 1 question right" and answer.content["link"]["lesson"] == "averaging"


def test_without_its_database_a_class_says_so_and_then_goes_on(
    classes: Classes, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    code, secret = classes.start("somebody", [Step("walkthrough", QUERY, "words")])
    ada, teacher = learner(code, "Ada"), opened("teach", room=code, secret=secret)
    sentence = "Loupe expected the database of the class sessions to answer, got no answer; try again soon."
    request = Request({"type": "http", "query_string": f"room={code}".encode(), "headers": []})
    now = json.loads(finish(tell_news(request)).body)["now"]  # by which a browser whose clock is wrong counts down
    assert 0 <= time.time() - now < 60
    with monkeypatch.context() as patch:
        for module in (who, class_news):
            patch.setattr(module, "CLASSES_PLACE", str(tmp_path))  # a folder is no database
        ada.run()
        teacher.button(key="class close").click().run()
        for app in (ada, teacher):
            assert not app.exception and sentence in texts(app), app.exception
        assert b"unreachable" in finish(tell_news(request)).body
        assert sentence in texts(opened("teach")) and sentence not in texts(opened("join"))
    ada.run()
    teacher.run()
    assert "**Ada**" in texts(ada) and f"# {code}" in texts(teacher) and not classes.find(code).closed
    for app in (ada, teacher):
        assert not app.exception and sentence not in texts(app)


def test_a_damaged_file_is_said_on_the_pages_of_a_class_alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    place = tmp_path / "classes.sqlite"
    place.write_bytes(b"damaged" * 1000)
    for module in (who, grades, launches, scores, class_news):
        monkeypatch.setattr(module, "CLASSES_PLACE", str(place))
    monkeypatch.setattr(grades, "LTI_FILE", "lti.toml")
    for page in ("join", "teach", "glossary"):
        assert ("got a damaged one" in texts(opened(page))) == (page != "glossary")


@pytest.mark.parametrize("kind", ["next", "loss", "words"])
def test_what_a_pupil_sends_is_only_text(kind: str, classes: Classes) -> None:
    code, secret = classes.start("somebody", [Step("walkthrough", QUERY, kind)])  # type: ignore[arg-type]
    payloads = [*PAYLOADS, "=HYPERLINK(1)", "<script>alert(1)</script>"]
    for number, said in enumerate(payloads):
        one = classes.join(code, f"p {number}", str(number))
        classes.hand_in(one, 0, {"said": said, "truth": said, "right": False, "score": None, "number": 1.0, "true": 1.1,
                                 "page": said[:20], "link": {"text": said}})  # fmt: skip
    classes.change(code, revealed=True)
    app = opened("teach", room=code, secret=secret)
    assert not any("elsewhere.example" in one.value.replace("​", "") and "](" in one.value for one in app.markdown)
    assert not any("<script>" in one.value for one in app.get("html"))


def test_who_missed_a_step_stands_in_the_table(classes: Classes) -> None:
    words = Step("walkthrough", QUERY, "words")
    code, _secret = classes.start("somebody", [words, Step("walkthrough", QUERY), words, words])
    ada, _bo = classes.join(code, "Ada", "a"), classes.join(code, "Bo", "b")
    classes.hand_in(ada, 0, {"said": "It sees."})
    for number in (1, 3):
        classes.go_to(code, number)
    rows = list_answers(*classes.find_all(code))
    assert [(one["step"], one["name"], one["said"]) for one in rows] == [
        (1, "Ada", "It sees."),
        (1, "Bo", ""),
        (4, "Ada", ""),
        (4, "Bo", ""),
    ]
    assert datetime.fromisoformat(rows[0]["time"]).timestamp() == pytest.approx(time.time(), abs=60)


def test_no_cell_of_the_table_is_a_formula() -> None:
    said = ("=1+1", "+1", "-1", "@x", "＝1+1", "＠x", "\t=1", "\r=1", "plain", "José")
    table = tabulate([{"name": one, "said": one, "step": -1} for one in said])
    raw = table_file(table, "csv")
    read = list(csv.DictReader(io.StringIO(raw.decode("utf-8-sig"), newline="")))
    assert [one["said"] for one in read] == [f"'{one}" for one in said[:8]] + [*said[8:]] and read[0]["step"] == "-1"
    assert raw.startswith(codecs.BOM_UTF8)  # by which Excel knows its letters
    assert pd.read_parquet(io.BytesIO(table_file(table, "parquet")))["said"].tolist() == list(said)


@pytest.mark.parametrize("said", ["x", "[]", "[1]", "{}", '{"page": "walkthrough", "kind": "x"}', "[" * 10_000])
def test_steps_that_cannot_be_read_are_said(said: str) -> None:
    assert "could not be read" in texts(opened("teach", steps=said)) or said == "[]"


def test_a_session_is_repeated_by_its_link(classes: Classes) -> None:
    steps = [Step("walkthrough", QUERY, "next", "Guess."), Step("attention", QUERY, "head", pattern="first")]
    app = opened("teach", steps=json.dumps([to_json(one) for one in steps]))
    app.button(key="class start").click().run()
    assert classes.find(app.query_params["room"]).steps == tuple(steps)
