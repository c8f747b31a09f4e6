"""Controls for the places that questions about a run count along: a block, a head, a position, a candidate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, get_args, get_origin

import streamlit as st

from pages.controls.model_input.model_input import look
from pages.controls.state.page_state import Here
from pages.controls.state.parameter import Number, Text
from pages.controls.state.session import read_selection
from views.charts.template import PICKED
from views.core.markdown import escape_markdown
from views.core.questions import Axis
from views.core.run_context import HeadOfRun, Run

HEAD = ("side", "focus", "layer", "head")
NONE = -1  # no candidate
MOST_OPTIONS = 50  # in a list to choose from; of a larger vocabulary the likeliest, and what is typed
TITLES = {
    "row": "position",
    "pos": "query",
    "side": "stack",
    "focus": "attention",
    "layer": "block",
    "swapped": "swapped token",
}
ATTENTIONS = {"attn": "self-attention", "cross_attn": "cross-attention"}
PLACES = ("row", "candidate", "layer", "head", "neuron", "pos", "key")
LINKED = (*(Number(name, 0, 0, 2**31 - 1) for name in PLACES), Number("against", -1, -1, 2**31 - 1))
CHOSEN = (*LINKED, Text("side", "", 20), Text("focus", "attn", 20))


def choose_arguments(
    here: Here, parameters: Mapping[str, Any], defaults: Mapping[str, Any], run: Run, said: Mapping[str, Any]
) -> dict[str, Any]:
    """A control for each parameter that counts along an axis with more than one place; what is chosen stands in the
    address. The last place is the first to be shown: the stack with the head, and what comes next."""
    chosen: dict[str, Any] = {**said}
    counted = {name: axis for name, kind in parameters.items() if (axis := axis_of(kind))}
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        for name, kind in parameters.items():
            if name in run.fixed:
                chosen[name] = run.fixed[name]
            elif name in here.parameters and get_origin(kind) is Literal:
                chosen[name] = here.segments(name)
        for name, axis in counted.items():
            places = list(run.choices(axis, chosen)) if axis != "vocab" else []
            if axis == "vocab":
                chosen[name] = choose_candidate(here, name, run, chosen, name in defaults)
            elif len(places) == 1:
                chosen[name] = places[0]
            else:
                here.set_defaults(**{name: first_place(name, axis, run, chosen, defaults.get(name, places[-1]))})
                chosen[name] = choose_place(here, name, axis, run, places, chosen)
    return chosen


def first_place(name: str, axis: str, run: Run, chosen: Mapping[str, Any], usual: Any) -> Any:
    """The place to show first: what comes next, the head of the model's example, the key that it looks at most."""
    if axis == "row":
        return run.first_row
    if axis == "key" and run.whole and {"side", "focus", "layer", "head", "pos"} <= chosen.keys():
        return int(run.pattern(HeadOfRun(*(chosen[one] for one in HEAD)))[chosen["pos"]].argmax())
    return 0 if axis == "neuron" else look().get(name, usual)


def axis_of(annotation: Any) -> str | None:
    """Name of the axis that a parameter counts along, or may leave out."""
    annotation = next((one for one in get_args(annotation) if hasattr(one, "__metadata__")), annotation)
    return next((one.name for one in getattr(annotation, "__metadata__", ()) if isinstance(one, Axis)), None)


def choose_place(here: Here, name: str, axis: str, run: Run, places: Sequence[Any], chosen: Mapping[str, Any]) -> Any:
    """The address says a place by its number, and not as a label does: its widget is not bound to it."""
    labels = run.labels(axis, chosen)
    here.fit(name, places)
    key = f"{name} {run.digest}"
    st.session_state[key] = here[name]

    def place_name(place: Any) -> str:
        if isinstance(place, str):
            return ATTENTIONS.get(place, place)
        return f"{place + 1} {labels[place]}" if labels else str(place + 1)

    def keep() -> None:
        here.state.choose(name, st.session_state[key])

    title = escape_markdown(TITLES.get(name, TITLES.get(axis, axis)))
    return st.selectbox(title, places, key=key, width=220, on_change=keep, format_func=place_name)


def choose_candidate(here: Here, name: str, run: Run, chosen: Mapping[str, Any], optional: bool) -> int | None:
    """Chooses among the candidates that are likeliest in the end, at the row that is `chosen`; any other is typed. One
    that is `optional` is none at first."""
    count = len(run.choices("vocab", {}))
    ids = run.likeliest(chosen.get("row", 0), min(count, MOST_OPTIONS))
    usual = run.first_candidate(name, chosen.get("row", 0))
    here.adjust(name, high=count - 1, default=NONE if usual is None else usual)
    first: int = here.begin(name)
    options = [*([NONE] if optional else []), *([] if first in (NONE, *ids) else [first]), *ids]
    named = [id for id in options if id != NONE]
    names: dict[Any, str] = dict(zip(named, run.name_candidates(named), strict=True)) | {NONE: "nothing"}
    key = candidate_key(name, run, chosen)

    def keep() -> None:
        if (id := known_candidate(run, st.session_state[key])) is not None:
            here.state.choose(name, id)

    said = st.selectbox(
        escape_markdown(name), options, options.index(first), key=key, width=220, on_change=keep,
        accept_new_options=True,
        format_func=lambda id: names.get(id, id), help="The most likely in the end come first; type any other.",
    )  # fmt: skip
    if said == NONE:
        return None
    id = known_candidate(run, said)
    if id is None:
        instead = "nothing" if usual is None else f"“{run.name_candidates([usual])[0]}”"
        st.caption(f"This model cannot choose “{escape_markdown(str(said))}”. Using {escape_markdown(instead)}.")
        return usual
    if (drawn := run.name_candidates([id])[0]) != names.get(said, said):
        st.caption(f"Using its first token, “{escape_markdown(drawn)}”.")
    return id


def candidate_key(name: str, run: Run, chosen: Mapping[str, Any]) -> str:
    return f"{name} {run.digest} {chosen.get('row')}"


def known_candidate(run: Run, said: int | str) -> int | None:
    """The candidate that is chosen or typed: by its name, else the first token of what is typed."""
    if isinstance(said, int):
        return said
    names = run.name_candidates(range(len(run.choices("vocab", {}))))
    if said in names:
        return names.index(said)
    tokenizer = None if run.model.config.head.over_classes else run.checkpoint.tokenizer
    ids = tokenizer.encode(said, special=False).ids if tokenizer and said else ()
    return ids[0] if ids and ids[0] < len(names) else None


def pick_place(here: Here, run: Run, key: str) -> None:
    """Looks at the place of a cell that is clicked."""
    for place in read_selection(key, PICKED):
        for name, at in place.items():
            here.state.choose(name, at)
        if "candidate" in place:
            st.session_state[candidate_key("candidate", run, place)] = place["candidate"]
