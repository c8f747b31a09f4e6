"""Asks for the heads and MLPs that do the work in a model that was compiled from a program, which only the teacher
has."""

from collections.abc import Mapping
from dataclasses import replace
from hashlib import sha256
from itertools import cycle, islice
from threading import Lock
from typing import Any

import streamlit as st

from engine.analysis.interventions.edges import Node
from engine.analysis.interventions.marks import Mark
from engine.compiled.answer_key import Part
from engine.compiled.program_text import compile_text
from engine.plurals import count_words
from engine.runtime import library
from pages.controls.classes.kind import FIELD, StepKind, always
from pages.controls.program_field import draw_program, open_model
from pages.controls.state.session import widget_value
from pages.controls.words import translate as _
from server.classes.grading import Given, Grade
from server.classes.steps import Step
from views.classes.tally import draw_parts as draw_named
from views.core.markdown import escape_markdown
from views.interventions.questions import node_name

PROGRAM = "class program"
TITLE = "puzzle"
OPENING = Lock()
ABOUT = "Compiled from a program, not trained. Which of its heads and MLPs do the work is to be found."


def list_parts(step: Step) -> list[Part]:
    """Heads and MLPs of the model, block by block."""
    key = compile_text(step.program).checkpoint.key
    return sorted(key.nodes() | key.idle_nodes(), key=lambda part: (part[1] or 0, part[0] == "MLP", part[2] or 0))


def name_part(part: Part) -> str:
    return node_name(Node(*part))  # type: ignore[arg-type]


def name_parts(parts: set[Part], step: Step) -> str:
    return " · ".join(name_part(part) for part in list_parts(step) if part in parts)


def draw(step: Step, given: Given | None) -> None:
    named = {part: escape_markdown(name_part(part)) for part in list_parts(step)}
    st.multiselect("choose", list(named), key=FIELD, format_func=named.__getitem__, label_visibility="collapsed")


def grade(step: Step, given: Given | None, said: Any) -> Grade:
    """Its score is the harmonic mean of precision and recall."""
    parts, needed = list_parts(step), compile_text(step.program).checkpoint.key.nodes()
    chosen = {part for part in parts if part in said}
    if not chosen or len(chosen) < len(said):
        raise ValueError("choose one or several of the heads and MLPs of this model.")
    mark, truth = Mark(TITLE, frozenset(chosen), frozenset(needed)), name_parts(needed, step)
    if chosen != needed:
        truth += f" (precision {mark.precision:.0%}, recall {mark.recall:.0%})"
    score = 2 * len(chosen & needed) / (len(chosen) + len(needed))
    named = {name_part(part): part in needed for part in parts if part in chosen}
    return Grade(name_parts(chosen, step), truth, chosen == needed, score, parts=named)


def name_puzzle(step: Step) -> str:
    """The same of the same program, so that a link to the step leads there after the server was started anew."""
    return f"{TITLE}~{sha256(step.program.encode()).hexdigest()[:10]}"


def prepare(step: Step) -> Step:
    """Opens the weights, without their key, to who has the name."""
    made, name = compile_text(step.program), name_puzzle(step)
    with OPENING:  # a class comes all at once
        if not library.knows(name):
            open_model(made.checkpoint.take_key_off(TITLE, ABOUT), TITLE, name)
    text = " ".join(islice(cycle(made.program.vocabulary), made.program.longest))
    return replace(step, query={"text": text, **step.query, "model": name})


def check(step: Step) -> None:
    program = compile_text(step.program).program
    if step.query.get("model") != name_puzzle(step):
        raise ValueError("a step whose circuit is to be found needs the model of its program; make the step anew.")
    words = step.query.get("text", "").split()
    if not 1 <= len(words) <= program.longest or not set(words) <= set(program.vocabulary):
        raise ValueError(
            f"the text of this step is made of {' '.join(program.vocabulary)}, with spaces between them, and has "
            f"{count_words(program.longest, 'token')} at most; got {' '.join(words)[:40]!r}."
        )


def draw_parts() -> None:
    st.caption("The class gets the weights alone, under a name that says nothing; the program stays with the step.")
    draw_program(PROGRAM)


def read_parts() -> Mapping[str, Any]:
    return {"program": "\n".join(str(widget_value(PROGRAM, "")).splitlines())}


KIND = StepKind(
    name="circuit", place=11, title="find the circuit",
    asks=lambda step: _("Which heads and MLPs do the work in this model?"), draw=draw, grade=grade,
    sample=lambda step, given: compile_text(step.program).checkpoint.key.nodes(), is_graded=always, chart=draw_named,
    again=False, about_run=False, pages=(), brings_model=True, prepare=prepare, check=check, draw_parts=draw_parts,
    read_parts=read_parts,
)  # fmt: skip
