"""The things that are compared, A to D: each a model or a step of a training run, what it reads, and edits.

Every control has the letter in front of its key (`a_model`, `b_text`), under which it stands in the address too.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Literal, LiteralString

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from engine.edits import SilenceHeads
from engine.edits.experiment import Experiment
from engine.inputs.readers import Kind, kind
from engine.plurals import count_words
from engine.runtime import library
from engine.runtime.limits import FIRST_MODEL
from pages.controls.compare.defaults import (
    LAST,
    LETTERS,
    LOOKED_AT,
    OWN,
    PICTURE,
    RUN,
    begin,
    empty,
    first_things,
    format_edits,
    key,
    library_name,
    reads_alike,
    remember,
    values_of_example,
)
from pages.controls.compare.picture import picture_of, put
from pages.controls.compare.run import MADE, Side, read_edits, read_side, run
from pages.controls.model_input.model_input import (
    ASKED,
    EMPTY,
    EVERY_FIELD,
    EXAMPLES,
    FIELDS,
    LABELS,
    looked_at,
    pixels,
)
from pages.controls.model_input.text_field import bare_field, several_lines
from pages.controls.visitor import recent
from pages.controls.what_if.adapters import known_adapters
from pages.controls.what_if.edit_panel import EditPanel
from pages.controls.what_if.experiment import MADE as TRIED
from pages.controls.what_if.experiment import run_beginning, shown_picture, write_on
from views.core.markdown import escape_markdown
from views.what_if.experiment import editable
from views.what_if.questions import EditsContext

EDITED = "side that is edited"  # in the session state: its letter


def sides() -> tuple[list[Side], list[EditsContext], DeltaGenerator]:
    """Draws the controls; ends the page with a sentence where fewer than two things are there to compare. Returns the
    sides, and the one whose edits are being made; where nothing else is seen yet and a text is long, a sentence says
    what is being run, for the page to take away."""
    opens = key("A", "model") not in st.session_state
    begin()
    options = models()
    shown = present()
    with st.container(key="sides", gap="xsmall"):
        for letter in shown:
            row(letter, options)
        under(shown)
        panel = st.container()
    several_lines(key(letter, field) for letter in shown for field in FIELDS[reads(letter)[0]] if field in LABELS)
    st.session_state[LAST] = {own: st.session_state[own] for letter in shown for own in keys(letter)}
    st.session_state[LAST][LOOKED_AT] = first_things()
    remember({own: value for letter in shown for own, value in in_address(letter).items()})
    given = [side for letter in shown if (side := read_side(letter)) is not None]
    waiting = st.empty()
    found = run(
        given, (lambda sentence: waiting.caption(escape_markdown(sentence))) if opens else (lambda sentence: None)
    )
    with panel:
        edited = [edit_side(side) for side in found if side.letter == st.session_state.get(EDITED)]
    if len(found) < 2 or found[0].letter != "A":
        st.info("A comparison needs A and one more that can be run; see above what is missing.")
        st.stop()
    return found, edited, waiting


def keys(letter: LiteralString) -> list[str]:
    return [own for field in OWN if (own := key(letter, field)) in st.session_state]


def present() -> LiteralString:
    """The letters that are compared: A and B, and what was added to them."""
    return "AB" + "".join(letter for letter in "CD" if key(letter, "model") in st.session_state)


def in_address(letter: LiteralString, field: Callable[[str], Any] | None = None) -> dict[str, str]:
    """Fields of a side in the address: all that its model reads, so that a link opens the same again. `field` gives
    what they hold, unless it is what stands in the controls."""
    state, named = st.session_state, st.session_state[key(letter, "model")]
    found = {"model": named} | ({"step": state[key(letter, "step")]} if named.startswith(RUN) else {})
    wanted = FIELDS[reads(letter)[0]]
    values = {each: field(each) if field else state[key(letter, each)] for each in wanted}
    found |= {each: value for each, value in values.items() if value != "" or each == wanted[0]}
    if state[key(letter, "edits")].strip():
        found["edits"] = state[key(letter, "edits")]
    return {key(letter, each): str(value) for each, value in found.items()}


def models() -> list[str]:
    """Models of the other pages, those that a side has, and the runs that kept snapshots."""
    state = st.session_state
    asked = [str(state.get(key(letter, "model"), "")) for letter in LETTERS]
    names = (name for name in library.names(*recent(), *asked, looked_at()[0]) if not name.startswith(library.RUN))
    return list(dict.fromkeys([FIRST_MODEL, *names, *(f"{RUN}{run}" for run in library.kept_runs())]))


def row(letter: LiteralString, options: list[str]) -> None:
    """The controls of one side."""
    state = st.session_state
    name = key(letter, "model")
    if state[name] not in options:
        gone = escape_markdown(str(state[name])[:80])
        st.warning(f"{letter}: there is no model called “{gone}” here; this is {escape_markdown(options[0])}.")
        state[name] = options[0]
    labelled: Literal["bottom", "center"] = "bottom" if "picture" in FIELDS[reads(letter)[0]] else "center"
    with st.container(horizontal=True, vertical_alignment=labelled, gap="small", key=f"side {letter}"):
        st.markdown(f"**{letter}**", width=16)
        st.selectbox(
            f"model of {letter}", options, key=name, width=175, label_visibility="collapsed",
            on_change=partial(new_model, letter),
        )  # fmt: skip
        if state[name].startswith(RUN):
            step(letter)
        edits_button(letter)  # before the texts, which on a phone take a line of their own
        fields(letter)
        if {"text", "target", "span"} & set(FIELDS[reads(letter)[0]]):
            about = f"Puts the text here that was written for the model of {letter}."
            put_in = partial(show_example, letter)
            st.button("Example", type="tertiary", key=f"example of {letter}", help=about, on_click=put_in)
        if letter in "CD":
            about = f"Remove {letter} from the comparison"
            st.button("×", key=f"remove {letter}", on_click=partial(remove, letter), help=about)


def step(letter: LiteralString) -> None:
    """Chooses one of the steps that a run kept, the last one unless another was chosen."""
    steps = library.kept_steps(st.session_state[key(letter, "model")].removeprefix(RUN))
    own = key(letter, "step")
    if st.session_state.get(own) not in steps:
        st.session_state[own] = steps[-1]
    st.selectbox(
        f"step of {letter}", steps, key=own, width=120, label_visibility="collapsed",
        format_func=lambda count: f"step {count:,}",
    )  # fmt: skip


def reads(letter: LiteralString) -> tuple[Kind, int]:
    """Draws the field of what a side's model reads, and how many pixels of a picture at most."""
    try:
        opened = library.checkpoint(library_name(letter))
        return kind(opened), pixels(opened)
    except (ValueError, OSError):
        return "text", 1  # `said` says why it does not open


def fields(letter: LiteralString) -> None:
    wanted, most = reads(letter)
    labels = LABELS | (ASKED if wanted == "question" else {})
    for field in FIELDS[wanted]:
        own = key(letter, field)
        st.session_state.setdefault(own, EMPTY.get(field, ""))
        if field == "picture":
            picture_of(letter)
        elif field == "given":
            st.session_state[own] = min(st.session_state[own], most)
            st.slider("pixels given", 0, most, key=own, width="stretch")
        else:
            bare_field(f"{labels[field]} of {letter}", own, labels[field])


def edits_button(letter: LiteralString) -> None:
    """Opens and closes the panel of a side's edits."""
    own = key(letter, "edits")
    st.session_state.setdefault(own, "")
    count = len(read_edits(letter)[0].entries)
    title = count_words(count, "edit") if count else "edits"
    is_open = st.session_state.get(EDITED) == letter
    st.button(
        title, key=f"{own} button", width=105, on_click=put, args=(EDITED, "" if is_open else letter),
        icon=":material/expand_less:" if is_open else ":material/expand_more:", icon_position="right",
        help=f"Changes something inside the model of {letter}",
    )  # fmt: skip


def edit_side(side: Side) -> EditsContext:
    """Draws the panel of a side's edits; what it asks is answered from what it returns."""
    letter = side.letter
    tried = st.session_state.get(TRIED)

    def change(made: Experiment) -> None:
        st.session_state[MADE][letter] = made
        st.session_state[key(letter, "edits")] = format_edits(made)

    adapters = known_adapters(side.name, side.checkpoint, side.experiment)
    plain = side.before.trace if side.run.whole else run_beginning(side.name, side.reading)
    model = editable(side.checkpoint, plain, side.lanes, shown_picture(side.checkpoint, side.field), adapters)
    panel = EditPanel(
        f"what if in {letter}", lambda: read_edits(letter)[0], change, lambda: (side.checkpoint, side.reading),
        lambda: EXAMPLES.get(side.title, {}).get("look", {}),
    )  # fmt: skip
    with st.container(key="side edits", gap="xsmall"):
        st.markdown(f"**Edits of {escape_markdown(letter)}**")
        panel.draw(model, side.run.digest, side.unfit, {})
        if isinstance(tried, Experiment) and tried.entries and tried != side.experiment:
            st.button("Take those of What if", key=f"tried {letter}", on_click=change, args=(tried,))
    write = partial(write_on, side.checkpoint, side.reading, (), side.run.trace.edits)
    return EditsContext(side.before, side.run, side.reading, side.without, write)


def under(shown: str) -> None:
    """Draws the buttons for the sides as a whole."""
    with st.container(horizontal=True, gap="small", key="sides together"):
        st.button("⇄ Swap A and B", key="swap", on_click=swap)
        st.button("A → B", key="copy", on_click=copy, args=("B",), help="B becomes a copy of A")
        if len(shown) < len(LETTERS):
            new = next(letter for letter in LETTERS if letter not in shown)
            about = f"Add {new} to the comparison; it starts as a copy of A"
            st.button(f"+ {new}", key="more", on_click=copy, args=(new,), help=about)


def field_values(letter: LiteralString) -> dict[str, Any]:
    return {field: st.session_state.get(key(letter, field), value) for field, value in empty().items()}


def fill(letter: LiteralString, values: dict[str, Any]) -> None:
    st.session_state.update({key(letter, field): value for field, value in values.items()})


def swap() -> None:
    first, second = field_values("A"), field_values("B")
    fill("A", second)
    fill("B", first)


def copy(letter: LiteralString) -> None:
    fill(letter, field_values("A"))


def remove(letter: LiteralString) -> None:
    for own in keys(letter):
        del st.session_state[own]


def new_model(letter: LiteralString) -> None:
    """Another model reads what its neighbour reads where it can, and its own example otherwise."""
    state = st.session_state
    neighbour = "B" if letter == "A" else "A"
    state[key(letter, "step")] = None
    alike = reads_alike(library_name(letter), library_name(neighbour))
    own = empty() | values_of_example(state[key(letter, "model")])
    read = field_values(neighbour) if alike else own
    fill(letter, {field: read[field] for field in (*EVERY_FIELD, PICTURE)} | {"edits": ""})


def show_example(letter: LiteralString) -> None:
    """A's is the model's own; the others read what differs from it, where there is such a text."""
    named = st.session_state[key(letter, "model")]
    fill(letter, {field: EMPTY.get(field, "") for field in EVERY_FIELD} | values_of_example(named, letter != "A"))


def silence(letter: LiteralString, layer: int, head: int, side: str, crosses: bool) -> None:
    """Adds to a side's edits that a head is silent, or takes that out again."""
    if letter not in present():
        return
    edit = SilenceHeads(layer, [head], stack=side if side in ("encoder", "decoder") else None, cross=crosses)  # type: ignore[arg-type]
    now = read_edits(letter)[0]
    at = next((i for i, entry in enumerate(now.entries) if entry.edit == edit), None)
    st.session_state[key(letter, "edits")] = format_edits(now.add(edit) if at is None else now.remove(at))
