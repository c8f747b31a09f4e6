"""A class looks for the circuit of a model whose program only its teacher has."""

import json
from pathlib import Path

import pytest

from engine.checkpoints.locate import ANSWER_KEY
from engine.compiled.program_text import write_program
from engine.compiled.programs import compiled_programs
from engine.runtime import library
from pages.controls.classes.kind import check_step, grade, kinds
from server.classes.steps import Step, from_json, to_json
from server.classes.store import Classes
from tests.pages.test_class_session import classes, learner, opened, texts  # noqa: F401 - a fixture
from views.classes.tally import list_answers

OWN = """tokens: x y z
longest: 5
sees: full
number = width(select(tokens, tokens, is_same))
parity = is_even(number)"""


def test_the_class_gets_the_weights_alone_and_is_graded_by_the_key(classes: Classes) -> None:  # noqa: F811
    app = opened("teach")
    app.selectbox(key="class kind").set_value("circuit").run()
    app.selectbox(key="class page").set_value("interventions").run()
    assert not [one for one in app.selectbox if one.key == "class model"] and "5,460" not in texts(app)
    app.text_area(key="class program").set_value(OWN.replace("is_even", "eval")).run()
    assert "Line 5: there is no 'eval'" in texts(app)
    app.button(key="class add").click().run()
    app.text_area(key="class program").set_value(OWN).run()
    assert "at each position of all 363 texts" in texts(app)
    app.button(key="class add").click().run()
    app.button(key="class edit 0").click().run()
    assert app.text_area(key="class program").value == OWN
    app.button(key="class add").click().run()
    app.button(key="class start").click().run()
    assert not app.exception, app.exception
    code = app.query_params["room"]
    (step,) = classes.find(code).steps
    assert step.program == OWN and step.query == {"model": step.query["model"], "text": "x y z x y"}

    ada = learner(code, "Ada")
    for name, value in step.query.items():
        ada.query_params[name] = value
    for page in ("analyse/interventions", "inspect/checkpoint"):
        ada.switch_page(f"pages/{page}.py").run()
        assert not ada.exception, ada.exception
        shown = texts(ada) + " ".join(str(one) for kind in ("code", "json", "html") for one in ada.get(kind))
        assert "answer key" not in shown and "is_even" not in shown and "parity" not in shown
    opened_model = library.checkpoint(step.query["model"])
    assert opened_model.source is not None and not (opened_model.source / ANSWER_KEY).exists()
    files = b"".join(file.read_bytes() for file in opened_model.source.iterdir())
    assert not any(word in files for word in (b"is_even", b"number", b"parity", b"select("))

    ada.session_state["class open 0"] = True
    ada.run()
    (field,) = ada.multiselect
    assert field.options == ["block 1, head 1", "block 1, head 2", "block 1, MLP"]
    ada.button(key="class hand in").click().run()
    assert "answer first" in texts(ada) or "choose one or several" in texts(ada).lower()
    ada.multiselect(key="class answer").select("block 1, head 1").select("block 1, head 2").run()
    ada.button(key="class hand in").click().run()
    assert "handed in: block 1, head 1 · block 1, head 2" in texts(ada) and "precision" not in texts(ada)
    bo = learner(code, "Bo")
    bo.session_state["class open 0"] = True
    bo.run()
    bo.multiselect(key="class answer").select("block 1, head 1").select("block 1, MLP").run()
    bo.button(key="class hand in").click().run()
    app.run()
    assert "precision" not in texts(app) and "0 of 2" not in texts(app)
    app.button(key="class reveal").click().run()
    assert "**1 of 2 answers** right" in texts(app)
    truth = "block 1, head 1 · block 1, MLP (precision 50%, recall 50%)"
    assert f"it is {truth}" in texts(app).replace("\\", "")
    for one, said in ((ada, truth), (bo, "right: block 1, head 1 · block 1, MLP")):
        one.run()
        assert said in texts(one).replace("\\", "")
    rows = list_answers(*classes.find_all(code))
    assert sorted((one["name"], one["right"], one["score"]) for one in rows) == [("Ada", False, 0.5), ("Bo", True, 1.0)]
    again = opened("teach", steps=json.dumps([to_json(step)]))
    assert "Interventions: find the circuit" in texts(again) and "could not be read" not in texts(again)


def test_the_tally_counts_each_part_and_the_model_comes_back_after_a_restart(monkeypatch: pytest.MonkeyPatch) -> None:
    kind = kinds()["circuit"]
    step = kind.prepare(Step("attention", kind="circuit", program=write_program(compiled_programs()["induction"])))
    assert check_step(from_json(json.loads(json.dumps(to_json(step))))) == step == kind.prepare(step)
    wrong = grade(step, None, [("head", 0, 0), ("MLP", 1, None)])
    right = grade(step, None, kind.sample(step, None))
    assert (wrong.right, wrong.score, right.right, right.score) == (False, 0.5, True, 1.0)
    assert kind.chart is not None
    data = json.loads(kind.chart([{"parts": one.parts} for one in (wrong, right)], True, "light").to_json())
    (rows,) = data["datasets"].values()
    counted = {(one["answer"], one["kind"]): one["learners"] for one in rows if one["learners"]}
    assert counted == {
        ("block 1, head 1", "right"): 2, ("block 2, head 1", "right"): 1, ("block 2, MLP", "wrong"): 1,
    }  # fmt: skip
    with pytest.raises(ValueError, match="choose one or several"):
        grade(step, None, [("head", 7, 0)])
    for changed in ({**step.query, "model": "stories"}, {}):
        with pytest.raises(ValueError, match="needs the model of its program"):
            check_step(Step("attention", changed, "circuit", program=step.program))
    for text in ("", "a b z", "a b c d a b c d"):
        with pytest.raises(ValueError, match="is made of a b c d, with spaces between them, and has 7 tokens"):
            check_step(Step("attention", {**step.query, "text": text}, "circuit", program=step.program))
    with pytest.raises(ValueError, match="begins with tokens"):
        check_step(Step("attention", step.query, "circuit"))
    monkeypatch.setattr(library, "_offers", library.LruCache(2**30))  # as a new process has it
    assert not library.knows(step.query["model"])
    assert kind.prepare(step) == step and Path(library.parse_name(step.query["model"]).source).is_dir()
