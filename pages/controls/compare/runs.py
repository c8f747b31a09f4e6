"""The things that are compared, A to D: each a model or a step of a training run, what it reads, and edits.

Every control has the letter in front of its key (`a_model`, `b_text`), under which it stands in the address too.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Literal, LiteralString

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from engine.edits import SilenceHeads
from engine.edits.experiment import Experiment
from engine.inputs.readers import Kind, kind
from engine.plurals import count_words
from engine.runtime import library
from pages.controls.compare.defaults import (
    RUN,
    Sides,
    empty,
    format_edits,
    library_name,
    offer_steps,
    open_sides,
    reads_alike,
    values_of_example,
)
from pages.controls.compare.parameters import COMPARE, LETTERS, OWN, TOGETHER, fill, key, value
from pages.controls.compare.picture import picture_of
from pages.controls.compare.run import Side, read_edits, read_side, run
from pages.controls.model_input.model_input import (
    ASKED,
    EVERY_FIELD,
    EXAMPLES,
    FIELDS,
    LABELS,
    looked_at,
    pixels,
)
from pages.controls.model_input.text_field import several_lines
from pages.controls.share.links import honour_link
from pages.controls.state.history import is_drawn
from pages.controls.state.page_state import Here
from pages.controls.state.session import find_record
from pages.controls.visitor import recent
from pages.controls.what_if.adapters import known_adapters
from pages.controls.what_if.edit_panel import EditPanel
from pages.controls.what_if.experiment import EditTrial, run_beginning, shown_picture, write_on
from server.settings import FIRST_MODEL
from views.core.markdown import escape_markdown
from views.what_if.experiment import editable
from views.what_if.questions import EditsContext


def sides() -> tuple[list[Side], list[EditsContext], DeltaGenerator]:
    """Draws the controls; ends the page with a sentence where fewer than two things are there to compare. Returns the
    sides, and the one whose edits are being made; where nothing else is seen yet and a text is long, a sentence says
    what is being run, for the page to take away."""
    opens, here = not is_drawn(key("A", "model")), COMPARE.open()
    said = here.read_said(*COMPARE.parameters)
    for letter in LETTERS:
        offer_steps(here, letter)
    honour_link(here.rules)
    open_sides(here, said)
    shown = "AB" + "".join(letter for letter in "CD" if value(letter, "model"))
    options = models(here)
    with st.container(key="sides", gap="xsmall"):
        for letter in shown:
            row(here, letter, options)
        under(shown)
        panel = st.container()
    several_lines(key(letter, field) for letter in shown for field in FIELDS[reads(letter)[0]] if field in LABELS)
    given = [side for letter in shown if (side := read_side(letter)) is not None]
    waiting = st.empty()
    found = run(
        given, (lambda sentence: waiting.caption(escape_markdown(sentence))) if opens else (lambda sentence: None)
    )
    with panel:
        edited = [edit_side(side) for side in found if side.letter == find_record(Sides).edited]
    if len(found) < 2 or found[0].letter != "A":
        st.info("A comparison needs A and one more that can be run; see above what is missing.")
        st.stop()
    return found, edited, waiting


def models(here: Here) -> list[str]:
    """Models of the other pages, those that a side has, and the runs that kept snapshots."""
    asked = [here[key(letter, "model")] for letter in LETTERS]
    names = (name for name in library.names(*recent(), *asked, looked_at()[0]) if not name.startswith(library.RUN))
    return list(dict.fromkeys([FIRST_MODEL, *names, *(f"{RUN}{run}" for run in library.kept_runs())]))


def row(here: Here, letter: LiteralString, options: list[str]) -> None:
    """The controls of one side."""
    name = key(letter, "model")
    if (named := here.begin(name)) not in options:
        gone = escape_markdown(named[:80])
        st.warning(f"{letter}: there is no model called “{gone}” here; this is {escape_markdown(options[0])}.")
        here.set(name, options[0])
    labelled: Literal["bottom", "center"] = "bottom" if "picture" in FIELDS[reads(letter)[0]] else "center"
    with st.container(horizontal=True, vertical_alignment=labelled, gap="small", key=f"side {letter}"):
        st.markdown(f"**{letter}**", width=16)
        bare = {"label_visibility": "collapsed"}
        here.menu(
            name, options if letter in "AB" else ["", *options], width=175, on_change=partial(new_model, letter), **bare
        )
        if offer_steps(here, letter):
            here.menu(key(letter, "step"), width=120, **bare)
        edits_button(here, letter)  # before the texts, which on a phone take a line of their own
        fields(here, letter)
        if {"text", "target", "span"} & set(FIELDS[reads(letter)[0]]):
            about = f"Puts the text here that was written for the model of {letter}."
            put_in = partial(show_example, letter)
            st.button("Example", type="tertiary", key=f"example of {letter}", help=about, on_click=put_in)
        if letter in "CD":
            about = f"Remove {letter} from the comparison"
            st.button("×", key=f"remove {letter}", on_click=fill, args=(letter, {"model": ""}), help=about)


def reads(letter: LiteralString) -> tuple[Kind, int]:
    """Kind of what a side's model reads, and how many pixels of a picture at most."""
    try:
        opened = library.checkpoint(library_name(letter))
        return kind(opened), pixels(opened)
    except (ValueError, OSError):
        return "text", 1  # `said` says why it does not open


def fields(here: Here, letter: LiteralString) -> None:
    wanted, most = reads(letter)
    labels = LABELS | (ASKED if wanted == "question" else {})
    for field in FIELDS[wanted]:
        if field == "picture":
            picture_of(here, letter)
        elif field == "given":
            here.slider(name=key(letter, field), high=most, label="pixels given", width="stretch")
        else:
            here.text(
                key(letter, field),
                label=f"{labels[field]} of {letter}",
                placeholder=labels[field],
                live="150ms",
                width="stretch",
                label_visibility="collapsed",
            )


def edits_button(here: Here, letter: LiteralString) -> None:
    """Opens and closes the panel of a side's edits."""
    own, sides = key(letter, "edits"), find_record(Sides)
    here.begin(own)
    count = len(read_edits(letter)[0].entries)
    title = count_words(count, "edit") if count else "edits"
    is_open = sides.edited == letter
    st.button(
        title,
        key=f"{own} button",
        width=105,
        on_click=partial(setattr, sides, "edited", "" if is_open else letter),
        icon=":material/expand_less:" if is_open else ":material/expand_more:",
        icon_position="right",
        help=f"Changes something inside the model of {letter}",
    )


def edit_side(side: Side) -> EditsContext:
    """Draws the panel of a side's edits; what it asks is answered from what it returns."""
    letter = side.letter
    tried = find_record(EditTrial).experiment

    def change(made: Experiment) -> None:
        find_record(Sides).experiments[letter] = made
        fill(letter, {"edits": format_edits(made)})

    adapters = known_adapters(side.name, side.checkpoint, side.experiment)
    plain = side.before.trace if side.run.whole else run_beginning(side.name, side.reading)
    model = editable(side.checkpoint, plain, side.lanes, shown_picture(side.checkpoint, side.field), adapters)
    panel = EditPanel(
        f"what if in {letter}",
        lambda: read_edits(letter)[0],
        change,
        lambda: (side.checkpoint, side.reading),
        lambda: EXAMPLES.get(side.title, {}).get("look", {}),
    )
    with st.container(key="side edits", gap="xsmall"):
        st.markdown(f"**Edits of {escape_markdown(letter)}**")
        panel.draw(model, side.run.digest, side.unfit, {})
        if tried.entries and tried != side.experiment:
            st.button("Take those of What if", key=f"tried {letter}", on_click=change, args=(tried,))
    write = partial(write_on, side.checkpoint, side.reading, (), side.run.trace.edits)
    return EditsContext(side.before, side.run, side.reading, side.without, write)


def under(shown: str) -> None:
    """Draws the buttons for the sides as a whole."""
    with st.container(horizontal=True, gap="small", key=TOGETHER):
        st.button("⇄ Swap A and B", key="swap", on_click=swap)
        st.button("A → B", key="copy", on_click=copy, args=("B",), help="B becomes a copy of A")
        if len(shown) < len(LETTERS):
            new = next(letter for letter in LETTERS if letter not in shown)
            about = f"Add {new} to the comparison; it starts as a copy of A"
            st.button(f"+ {new}", key="more", on_click=copy, args=(new,), help=about)


def side_values(letter: LiteralString) -> tuple[dict[str, Any], bytes]:
    """All that is set of a side, and the person's own picture."""
    return {field: value(letter, field) for field in OWN}, find_record(Sides).pictures.get(letter, b"")


def put(letter: LiteralString, values: dict[str, Any], picture: bytes = b"") -> None:
    fill(letter, values)
    find_record(Sides).pictures[letter] = picture


def swap() -> None:
    first, second = side_values("A"), side_values("B")
    put("A", *second)
    put("B", *first)


def copy(letter: LiteralString) -> None:
    put(letter, *side_values("A"))


def new_model(letter: LiteralString) -> None:
    """Another model reads what its neighbour reads where it can, and its own example otherwise."""
    neighbour: LiteralString = "B" if letter == "A" else "A"
    COMPARE.reset(key(letter, "step"))
    alike = reads_alike(library_name(letter), library_name(neighbour))
    own = empty() | values_of_example(value(letter, "model"))
    read, picture = side_values(neighbour) if alike else (own, b"")
    put(letter, {field: read[field] for field in EVERY_FIELD} | {"edits": ""}, picture)


def show_example(letter: LiteralString) -> None:
    """A's is the model's own; the others read what differs from it, where there is such a text."""
    found = empty() | values_of_example(value(letter, "model"), letter != "A")
    fill(letter, {field: found[field] for field in EVERY_FIELD})


def silence(letter: str, layer: int, head: int, side: str, crosses: bool) -> None:
    """Adds to a side's edits that a head is silent, or takes that out again."""
    if letter not in LETTERS or not value(letter, "model"):
        return
    edit = SilenceHeads(layer, [head], stack=side if side in ("encoder", "decoder") else None, cross=crosses)  # type: ignore[arg-type]
    now = read_edits(letter)[0]
    at = next((i for i, entry in enumerate(now.entries) if entry.edit == edit), None)
    fill(letter, {"edits": format_edits(now.add(edit) if at is None else now.remove(at))})
