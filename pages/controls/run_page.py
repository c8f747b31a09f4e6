"""A page about one run: what is around its questions and charts. Model and text, What if, link and export, answers.

    run_page("Logit lens", "logit_lens", LENS, charts=CHARTS)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import streamlit as st

from engine.edits import AttentionTemperature, Edit
from pages.controls.model_input.model_input import subject
from pages.controls.share.links import RUN as RULES
from pages.controls.share.links import Rule, as_text, honour_link, whole_number
from pages.controls.share.question_chart import Chart, show_question
from pages.controls.share.run_export import run_context, run_export
from pages.controls.what_if.experiment import what_if
from views.core.component import courier
from views.core.lanes import lanes
from views.core.questions import Axis, Question, Registry
from views.core.run_context import RUN, RunContext
from views.what_if.questions import WHAT_IF

MOST_OPTIONS = 50  # in a list to choose from; of a larger vocabulary the likeliest, and what is typed
TITLES = {"row": "position"}
DEFAULTS = {"row": -1}  # the last row, which says what comes next
CHOSEN: dict[str, Rule] = {"row": whole_number(), "candidate": whole_number()}
Charts = Mapping[str, tuple[str, Chart]]


def attention_temperature() -> None:
    st.slider(
        "attention temperature", 0.1, 4.0, 1.0, 0.05, key="attention", bind="query-params", width=165,
        help="Divides the scores inside every head before its softmax: low makes attention sharp, high makes it even. "
        "It changes everything after it. 1 is the model as it was trained.",
    )  # fmt: skip


def temperature_edits() -> list[Edit]:
    """What the slider changes of a run."""
    temperature = st.session_state.attention
    return [] if temperature == 1 else [AttentionTemperature(temperature)]


def run_page(
    title: str,
    name: str,
    registry: Registry,
    charts: Charts,
    *,
    check: Callable[[RunContext], None] = lambda _: None,
) -> None:
    """Draws the page at the address `name`: `charts` are by their titles a question of `registry` and its chart, with a
    control for each parameter of that question. `check` raises ValueError, with a sentence, for a run that the page
    cannot show."""
    honour_link(RULES | CHOSEN)
    looked_at = subject(attention_temperature)
    conducted = what_if(looked_at, temperature_edits())
    run = run_context(looked_at, conducted.trace, lanes(looked_at.checkpoint, looked_at.reading), conducted.before)
    export = run_export(title, name, looked_at, run, ("attention", "what if"))
    page = export.answers(b"", (RUN, run), (registry, run))
    courier("courier", page.with_registry(WHAT_IF, conducted).answer)
    try:
        check(run)
    except ValueError as error:
        st.warning(str(error))
        return
    for place, (heading, (ask, chart)) in enumerate(charts.items()):
        st.markdown(f"**{heading}**")
        chosen = choose_arguments(registry.questions[ask], run)
        header = {**export.header, "link": {**export.header["link"], **{key: str(at) for key, at in chosen.items()}}}
        query = {"ask": ask, "trace": run.digest, **chosen}
        show_question(page, query, chart, title=heading, header=header, key=f"{name} {place}")


def choose_arguments(question: Question, run: RunContext) -> dict[str, Any]:
    """A control for each parameter that counts along an axis; what is chosen stands in the address."""
    chosen: dict[str, Any] = {}
    counted = {name: axis for name, kind in question.parameters.items() if (axis := axis_of(kind))}
    if not counted:
        return chosen
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        for name, axis in counted.items():
            chosen[name] = choose_candidate(name, run, chosen) if axis == "vocab" else choose_place(name, axis, run)
    return chosen


def axis_of(annotation: Any) -> str | None:
    """Name of the axis that a parameter counts along."""
    return next((one.name for one in getattr(annotation, "__metadata__", ()) if isinstance(one, Axis)), None)


def choose_place(name: str, axis: str, run: RunContext) -> int:
    places, labels = run.choices(axis, {}), run.labels(axis, {})
    assert isinstance(places, range)
    default = places[DEFAULTS.get(axis, 0)]
    asked = st.query_params.get(name, "")
    first = int(asked) if asked.isdecimal() and int(asked) in places else default
    key = f"{name} {run.digest}"

    def keep() -> None:
        st.query_params[name] = str(st.session_state[key])

    return st.selectbox(
        TITLES.get(axis, axis), places, places.index(first), key=key, width=220, on_change=keep,
        format_func=lambda at: f"{at + 1} {labels[at]}" if labels else str(at + 1), disabled=len(places) == 1,
    )  # fmt: skip


def choose_candidate(name: str, run: RunContext, chosen: Mapping[str, Any]) -> int:
    """Chooses among the candidates that are likeliest in the end, at the row that is `chosen`; any other is typed."""
    count = len(run.choices("vocab", {}))
    ids = run.likeliest(chosen.get("row", len(run.rows) - 1), min(count, MOST_OPTIONS))
    asked = st.query_params.get(name, "")
    first = int(asked) if asked.isdecimal() and int(asked) < count else ids[0]
    options = [*([] if first in ids else [first]), *ids]
    key = f"{name} {run.digest} {chosen.get('row')}"

    def keep() -> None:
        if (id := known_candidate(run, st.session_state[key])) is not None:
            st.query_params[name] = str(id)

    said = st.selectbox(
        name, options, options.index(first), key=key, width=220, on_change=keep, accept_new_options=True,
        format_func=lambda id: name_of(run, id), help="The likeliest in the end come first; type any other.",
    )  # fmt: skip
    id = known_candidate(run, said)
    if id is None:
        st.caption(f"“{as_text(str(said))}” is not among what this model chooses from; the likeliest is drawn.")
        return ids[0]
    return id


def name_of(run: RunContext, id: int | str) -> str:
    return id if isinstance(id, str) else run.name_candidate(id)


def known_candidate(run: RunContext, said: int | str) -> int | None:
    """The candidate that is chosen or typed: by its name, else the first token of what is typed."""
    if isinstance(said, int):
        return said
    count = len(run.choices("vocab", {}))
    named = (id for id in range(count) if run.name_candidate(id) == said)
    if (id := next(named, None)) is not None:
        return id
    tokenizer = None if run.model.config.head.over_classes else run.checkpoint.tokenizer
    ids = tokenizer.encode(said, special=False).ids if tokenizer and said else ()
    return ids[0] if ids and ids[0] < count else None
