"""The kinds of steps of a class: what each needs, and right answers against an independent reading of the same run."""

import ast
import json
from pathlib import Path
from typing import Any

import pytest
import torch

from engine import run
from engine.collect import collect
from engine.compiled.program_text import write_program
from engine.compiled.programs import compiled_programs
from engine.edits import AttentionTemperature
from engine.inputs.readers import tokens
from engine.places import ROOT
from engine.runtime import library
from pages.controls.classes.kind import StepKind, check_step, grade, kinds
from server.classes.grading import PICTURE, Given, grade_page, heads, next_tokens
from server.classes.steps import Step, from_json, to_json

TEXT = "The cat sat by the door, and the cat"


def given(text: str = TEXT, model: str = "stories", edited: bool = False) -> Given:
    checkpoint = library.checkpoint(model)
    read = tokens(checkpoint, text)
    edits = [AttentionTemperature(3.0)] if edited else []
    return Given(checkpoint, read, library.traces.trace(model, read, edits))


@pytest.mark.parametrize("edited", [False, True])
def test_the_next_token_and_its_share_are_those_of_the_run_that_is_shown(edited: bool) -> None:
    seen = given(edited=edited)
    p = seen.trace["logits"][0, -1].double().softmax(-1)
    step = Step("walkthrough", kind="next")
    offered = next_tokens(seen)[1]
    assert sorted(offered) == sorted(p.topk(4).indices.tolist())
    assert [grade(step, seen, id).right for id in offered] == [id == int(p.argmax()) for id in offered]
    found = grade(Step("walkthrough", kind="share"), seen, float(p.max()) + 0.04)
    assert found.right and found.true == pytest.approx(float(p.max()), abs=1e-6)
    assert not grade(Step("walkthrough", kind="share"), seen, float(p.max()) - 0.06).right
    with pytest.raises(ValueError, match="offered"):
        grade(step, seen, -1)


def test_the_loss_is_the_mean_over_the_text() -> None:
    seen = given()
    log_p = seen.trace["logits"][0, :-1].double().log_softmax(-1)
    loss = -float(log_p.gather(1, torch.tensor(seen.read.ids[1:])[:, None]).mean())
    found = grade(Step("walkthrough", kind="loss"), seen, loss + 0.2)
    assert found.right and found.true == pytest.approx(loss, abs=1e-4)
    assert not grade(Step("walkthrough", kind="loss"), seen, loss + 0.3).right


def test_the_head_that_looks_most_at_the_token_before_is_found_in_the_patterns() -> None:
    seen = given()
    step = Step("attention", kind="head", pattern="previous")
    measured = {
        (layer, head): float(seen.trace[f"blocks.{layer}.attn.pattern"][0, head].diagonal(-1).mean())
        for layer, head in heads(seen)
    }
    best = max(measured, key=measured.__getitem__)
    assert grade(step, seen, best).right and f"block {best[0] + 1}" in grade(step, seen, best).truth
    worst = min(measured, key=measured.__getitem__)
    assert not grade(step, seen, worst).right and grade(step, seen, worst).score == pytest.approx(measured[worst])
    pattern = seen.trace[f"blocks.{best[0]}.attn.pattern"][0, best[1]]
    assert grade(step, seen, best).picture == (pattern * 255).round().int().tolist()
    with pytest.raises(ValueError, match="choose a block"):
        grade(step, seen, (99, 0))
    with pytest.raises(ValueError, match="comes twice"):
        grade(Step("attention", kind="head", pattern="induction"), given("The cat"), best)


def test_a_page_is_handed_in_as_its_text_its_next_token_and_the_head_it_looks_at() -> None:
    seen = given(edited=True)
    p = seen.trace["logits"][0, -1].softmax(-1)
    pattern = seen.trace["blocks.1.attn.pattern"][0, 2]
    found = grade_page(seen, {"layer": "1", "head": "2"})
    assert found.said.startswith(f"{TEXT} → ") and found.said.endswith(f" {float(p.max()):.0%}")
    assert found.picture == (pattern * 255).round().int().tolist()
    mean = seen.trace[f"blocks.{seen.checkpoint.config.layers - 1}.attn.pattern"][0].mean(0)
    assert grade_page(seen, {}).picture == (mean * 255).round().int().tolist()
    anything = {"layer": "99", "head": "99"}  # as a link may say
    assert grade_page(seen, anything).picture == grade_page(seen, {}).picture
    long = grade_page(given(" ".join([TEXT] * 5)), {"layer": "0", "head": "0"}).picture
    assert len(long) == len(long[0]) == PICTURE and max(map(max, long)) == 255
    assert grade_page(given("My cat sleeps.", "translate-en-fr"), {}).picture


def test_a_text_scores_what_it_makes_of_the_word_however_that_is_cut() -> None:
    step, seen = Step("walkthrough", kind="say", wanted="elephant"), given("The cat saw an", edited=True)
    model, tokenizer = seen.checkpoint.model, seen.checkpoint.tokenizer
    assert tokenizer is not None
    p = 0.0
    for cut in (tokenizer.encode(one, special=False).ids for one in ("elephant", " elephant")):
        assert len(cut) == 6
        each, read = 1.0, list(seen.read.ids)
        for id in cut:  # one forward pass a token
            each *= float(run(model, read, edits=[AttentionTemperature(3.0)])["logits"][0, -1].softmax(-1)[id])
            read.append(id)
        p += each
    found = grade(step, seen, None)
    assert found.score == pytest.approx(p, rel=1e-4) and found.said == "The cat saw an"
    with pytest.raises(ValueError, match="no tokens"):
        grade(Step("walkthrough", kind="say", wanted="été"), given("b7Kx", "induction"), None)


@pytest.mark.parametrize(
    ("kind", "model", "suits"),
    [
        ("next", "stories", True), ("next", "tales-bert", False), ("loss", "translate-en-fr", False),
        ("head", "tales-bert", True), ("head", "translate-en-fr", False), ("say", "digits-vit", False),
        ("words", "digits-vit", True), ("look", "infill", True), ("share", "infill", False),
    ],
)  # fmt: skip
def test_a_model_is_asked_what_it_can_answer(kind: str, model: str, suits: bool) -> None:
    assert (kinds()[kind].unsuited(library.checkpoint(model)) == "") is suits


@pytest.mark.parametrize("kind", kinds())
def test_a_step_is_read_as_it_was_written(kind: str) -> None:
    named: dict[str, Any] = {"options": ("few", "many")} if kind in ("choice", "scale") else {}
    named |= {"program": write_program(compiled_programs()["induction"])} if kind == "circuit" else {}
    step = Step(
        "walkthrough", {"text": "a b"}, kind, "Look.", "hat", at_once=True, seconds=60, closes=True,
        own_text=True, looked="#head=1", right=1 if kind == "choice" else -1, **named,
    )  # fmt: skip
    step = kinds()[kind].prepare(step)
    assert from_json(json.loads(json.dumps(to_json(step)))) == step == check_step(step)


@pytest.mark.parametrize(
    "said",
    [
        [], {}, {"page": 3}, {"page": "x", "kind": "nonsense"}, {"page": "x", "query": {"a": 1}}, {"page": "x" * 50},
        {"page": "x", "seconds": True}, {"page": "x", "kind": "say"}, {"page": "x", "more": ""},
        {"page": "x", "sentence": "y" * 501}, {"page": "x", "seconds": -1}, {"page": "x", "pattern": "entropy"},
        {"page": "x", "kind": "choice", "options": ["a"]}, {"page": "x", "kind": "scale", "options": ["a"]},
        {"page": "x", "kind": "choice", "options": ["a", "b"], "right": 2}, {"page": "x", "options": [1]},
        {"page": "x", "program": 1}, {"page": "x", "program": "y" * 2_001},
    ],
)  # fmt: skip
def test_what_is_no_step_is_refused_in_a_sentence(said: object) -> None:
    with pytest.raises(ValueError, match="step|kind|pattern|sentence|page|option|scale"):
        check_step(from_json(said))


def test_a_kind_is_known_in_its_own_file_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the rooms of a class no other file names one, but for "look", which is what a step is that asks nothing."""
    names = kinds().keys() - {"look"}
    files = [path for room in ("pages/controls", "engine", "views") for path in (ROOT / room / "classes").glob("*.py")]
    known = [
        f"{path.name}:{node.lineno}"
        for path in files
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Compare | ast.match_case | ast.Dict)
        for part in ast.walk(node)
        if isinstance(part, ast.Constant) and part.value in names
    ]
    assert not known
    (tmp_path / "halves").mkdir()
    (tmp_path / "halves" / "__init__.py").touch()
    (tmp_path / "halves" / "one.py").write_text("KIND = 'no kind'")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(TypeError, match="halves.one to be a StepKind"):
        collect("halves", "KIND", StepKind)
