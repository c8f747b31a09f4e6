"""A program of a few lines that a person writes on a page: its field, what it predicts, and its model."""

from __future__ import annotations

from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import streamlit as st

from engine.budget import budget
from engine.checkpoints import Checkpoint
from engine.compiled.functions import MAPS, NUMBERS, WHERE
from engine.compiled.interpret import interpret
from engine.compiled.program_text import LONGEST_TEXT, CheckedModel, compile_text, write_program
from engine.compiled.programs import compiled_programs
from engine.plurals import count_words
from engine.runtime import library
from pages.controls.state.session import set_widget, widget_value
from views.core.markdown import escape_markdown

SAMPLES = 6  # texts whose predictions are shown
FIRST = "induction"


def draw_program(key: str) -> CheckedModel | None:
    """Draws the field under that key, and what its program predicts; None, with a sentence, where it is none."""
    programs = compiled_programs()
    if widget_value(key) is None:
        set_widget(key, write_program(programs[FIRST]))
    begun = f"{key} begun"
    st.selectbox("begin with", list(programs), list(programs).index(FIRST), key=begun, width=220, on_change=begin,
                 args=(key, begun))  # fmt: skip
    st.text_area(
        "program: three lines of what it reads, then its own, of which the last is predicted", key=key, height=220,
        max_chars=LONGEST_TEXT,
    )  # fmt: skip
    with st.popover("Its functions"):
        st.markdown("Of a select:")
        st.dataframe(
            [{"function": one.__name__, "selects where": said} for one, said in WHERE.items()], hide_index=True
        )
        st.markdown("Of values, in a line of their own, or around the values of an aggregate, whose mean it is then:")
        maps = [{"function": one.__name__, "of": takes, "makes": said} for one, (takes, said) in MAPS.items()]
        around = [
            {"function": one.__name__, "of": 1, "makes": f"around values: {said}"} for one, said in NUMBERS.items()
        ]
        st.dataframe([*maps, *around], hide_index=True)
    try:
        made = compile_text(str(widget_value(key)))
    except ValueError as error:
        st.warning(escape_markdown(str(error)[:1].upper() + str(error)[1:]))
        return None
    draw_predictions(made)
    return made


def open_model(checkpoint: Checkpoint, title: str, name: str = "") -> str:
    """Opens it as what a person uploads is opened, under that name or one that nobody guesses. Raises ValueError where
    the server cannot make a folder."""
    try:
        folder = TemporaryDirectory(prefix="loupe-upload-", dir=budget.uploads_folder or None)
        checkpoint.save(Path(folder.name) / title)
    except OSError as error:
        told = str(error.strerror).lower()
        raise ValueError(
            f"the server must make a folder for a model, and cannot ({told}); tell whoever runs Loupe."
        ) from error
    return library.offer(library.LoadOptions(Path(folder.name) / title, title=title, folder=folder), name)


def begin(key: str, begun: str) -> None:
    set_widget(key, write_program(compiled_programs()[widget_value(begun)]))


def draw_predictions(made: CheckedModel) -> None:
    """A few of the texts, drawn at random, the same ones each time; and what was compared."""
    program, rows, draw = made.program, list[dict[str, str]](), Random(0)
    for _ in range(SAMPLES):
        text = draw.choices(program.vocabulary, k=program.longest)
        rows.append({"text": " ".join(text), "predicts": " ".join(interpret(program, [text])[0])})
    st.dataframe(rows, hide_index=True)
    st.caption(
        f"The weights predict the same at each position of all {count_words(made.texts, 'text')} that it reads, with "
        f"a lead of {made.margin:.2g} in the logits or more."
    )
