"""A page about one run: what is around its picture and charts. Model and text, What if, link and export, answers.

run_page("Logit lens", state_of("logit_lens"), LENS, charts=CHARTS)
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from functools import cache, partial
from typing import Any, Literal, get_args, get_origin

import streamlit as st

from engine.budget import budget
from engine.edits import AttentionTemperature, Edit
from engine.plurals import count_words
from pages.controls.model_input.model_input import Subject, look, subject, subject_alone
from pages.controls.model_input.notice import cut_notice
from pages.controls.model_input.parameters import ATTENTION, INPUT
from pages.controls.prediction import await_guess
from pages.controls.share.export import Export, draw_page
from pages.controls.share.links import honour_link
from pages.controls.share.measure import measurement
from pages.controls.share.question_chart import Chart, show_question
from pages.controls.share.run_export import run_export
from pages.controls.state.history import is_fragment
from pages.controls.state.page_state import Here, PageState
from pages.controls.state.parameter import Number, Parameter, Text
from pages.controls.state.session import selected
from pages.controls.what_if.experiment import run as run_subject
from pages.controls.what_if.experiment import what_if
from views.charts.template import PICKED
from views.core.lanes import is_long, lanes
from views.core.markdown import escape_markdown
from views.core.questions import Axis, Context, Page, Registry
from views.core.run_context import RUN, HeadOfRun, Run
from views.core.turns import turns
from views.what_if.questions import WHAT_IF

HEAD = ("side", "focus", "layer", "head")
NONE = -1  # no candidate
SLICE = 0.5  # seconds of measuring, after which a button is heard
PACE = 1.0  # seconds between two looks at what another machine measures
MOST_OPTIONS = 50  # in a list to choose from; of a larger vocabulary the likeliest, and what is typed
TITLES = {"row": "position", "pos": "query", "side": "stack", "focus": "attention", "layer": "block"}
ATTENTIONS = {"attn": "self-attention", "cross_attn": "cross-attention"}
PLACES = ("row", "candidate", "layer", "head", "neuron", "pos", "key")
LINKED = (*(Number(name, 0, 0, 2**31 - 1) for name in PLACES), Number("against", -1, -1, 2**31 - 1))
CHOSEN = (*LINKED, Text("side", "", 20), Text("focus", "attn", 20))
Charts = Mapping[str, tuple[str, Chart]]


@cache
def state_of(page: str, *more: Parameter) -> PageState:
    """State of a page about one run, whose script asks for it with every run."""
    return PageState(page, *INPUT, ATTENTION, *CHOSEN, *more)


def attention_temperature(here: Here) -> None:
    here.slider("attention", width=165)


def temperature_edits(here: Here) -> list[Edit]:
    """Edits that the temperature slider makes to a run."""
    temperature = here["attention"]
    return [] if temperature == 1 else [AttentionTemperature(temperature)]


@st.fragment  # what is around it stays as it is while a text is changed
@turns.take()
def run_page(
    title: str,
    state: PageState,
    registry: Registry,
    *,
    charts: Charts | None = None,
    controls: Callable[[Here], None] = attention_temperature,
    linked: Sequence[str] = ("attention", "what if"),
    context: Callable[[Here, Subject, Run], Run] = lambda _here, _subject, run: run,
    draw: Callable[[Here, Subject, Run, Export], bytes] | None = None,
    mount: Callable[[bytes], Any] | None = None,
    long: bool = False,
    alone: bool = False,
    exported: Callable[[Run], Mapping[str, Any]] = lambda _: {},
    check: Callable[[Run], None] = lambda _: None,
    tell: Callable[[Run, Mapping[str, Any]], None] = lambda _run, _chosen: None,
    about: str = "",
) -> None:
    """Draws the page of that state, whose view is called like its address, with the questions of `registry`.

    `charts` are by their titles a question and its chart, with a control for each parameter of that question; below a
    view they are drawn once somebody opens them. `draw` makes the payload that `mount` draws, `exported` options of the
    export. With `long`, a text too long to be drawn whole is run in pieces, and has the charts of questions with steps,
    unless `context` makes a run that holds what all read. `alone`: the page is about a model and texts of its own, so
    that it has neither a text nor edits.
    `controls` stand beside the text, and `linked` are their keys. `context` adds to a run what the questions of the
    page are about besides. `check` raises ValueError, with a sentence, for a run that the page cannot show. `tell` says
    above the charts what is found at the places that the question `about`, or else that of the first chart, is about,
    which the others may share, or raises ValueError where the charts cannot be drawn.
    """
    honour_link(state.rules)
    here = state.open()
    unsaved: list[tuple[Registry, Context]] = []
    if alone:
        looked_at = subject_alone(here)
        drawn = run_subject(looked_at, ())
    else:
        looked_at = subject(here, controls, budget.long_tokens if long else budget.max_tokens)
        whole = not long or not is_long(lanes(looked_at.checkpoint, looked_at.reading))
        drawn, edits = what_if(looked_at, temperature_edits(here), whole)
        unsaved = [(WHAT_IF, edits)]
        if edits.before is edits.after:  # else what the edits did is guessed at
            await_guess(drawn.digest)
    run = context(here, looked_at, drawn)
    if not draw and (cut := cut_notice(looked_at)):
        st.caption(escape_markdown(cut))
    export = run_export(title, here, looked_at, run, tuple(linked), **exported(run))
    payload = draw(here, looked_at, run, export) if draw else b""
    page = draw_page(export, payload, mount, (RUN, run), (registry, run), unsaved=unsaved)
    asked = registry.of(run)
    charts = {heading: one for heading, one in (charts or {}).items() if run.whole or asked[one[0]].steps}
    if not charts:
        return
    try:
        check(run)
    except ValueError as error:
        st.warning(escape_markdown(error))
        return
    show = partial(show_chart, here, page, registry, run, export)
    if mount:
        offer_charts(charts, partial(show, {}))
        return
    first = asked[about or next(iter(charts.values()))[0]]
    chosen = choose_arguments(here, first.parameters, first.defaults, run, {})
    if first.steps and (steps := first.steps(run, **first.bind(run, chosen))):
        measure_steps(state.page, tuple(chosen.items()), steps)
    show = partial(show, chosen)
    try:
        tell(run, chosen)
    except ValueError as error:
        st.warning(escape_markdown(error))
        return
    for heading, (ask, chart) in charts.items():
        st.markdown(f"**{escape_markdown(heading)}**")
        show(heading, ask, chart)


def offer_charts(charts: Charts, show: Callable[[str, str, Chart], None]) -> None:
    """Draws one of the charts once somebody opens the section."""
    section = st.expander("Charts over all layers", key="charts", on_change="rerun", icon=":material/bar_chart:")
    if not section.open:
        return
    with section:
        first = next(iter(charts))
        heading = st.selectbox("chart", list(charts), key="chart", width=420) if len(charts) > 1 else first
        show(heading, *charts[heading])


def show_chart(
    here: Here, page: Page, registry: Registry, run: Run, export: Export, shared: Mapping[str, Any], heading: str,
    ask: str, chart: Chart,
) -> None:  # fmt: skip
    question, key = registry.of(run)[ask], f"{here.state.page} {heading}"
    own = {name: kind for name, kind in question.parameters.items() if name not in shared}
    said = {name: value for name, value in shared.items() if name in question.parameters}
    chosen = said | choose_arguments(here, own, question.defaults, run, said)
    query = {"ask": ask, "trace": run.digest, **chosen}
    if question.steps and (steps := question.steps(run, **question.bind(run, query))):
        measure_steps(key, tuple(query.items()), steps)
    kept = {one.name: str(chosen[one.name]) for one in LINKED if chosen.get(one.name) is not None}
    header = {**export.header, "link": {**export.header["link"], **kept}}
    pick = partial(pick_place, here, run, f"{key} {shared}")
    show_question(page, query, chart, title=heading, header=header, key=key, on_pick=(f"{key} {shared}", pick))


def pick_place(here: Here, run: Run, key: str) -> None:
    """Looks at the place of a cell that is clicked."""
    for place in selected(key, PICKED):
        for name, at in place.items():
            here.state.choose(name, at)
        if "candidate" in place:
            st.session_state[candidate_key("candidate", run, place)] = place["candidate"]


def measure_steps(
    name: str,
    subject: Hashable,
    steps: Sequence[Callable[[], Any]],
    partial: bool = False,
    wait: Callable[[int], str] = lambda step: "",
) -> None:
    """Draws how far the steps are, until all are done; what is below is not drawn before, but for what can be drawn of
    a `partial` result once somebody stopped it, or while a step waits for another machine: `wait` says what for, empty
    where it does not. Those that are done once the run keeps, so that it goes on where it was stopped."""
    measuring = measurement(name, subject, is_active=True)
    if len(measuring.found) == len(steps):
        return
    place = st.empty()
    st.button("Stop" if measuring.is_active else "Go on", key=f"measure {name}", on_click=measuring.toggle)

    def draw() -> None:
        done = len(measuring.found)
        place.progress(done / len(steps), f"{done} of {count_words(len(steps), 'part')} measured")

    def take_ready() -> Iterator[Any]:
        for number, step in enumerate(steps):
            if number >= len(measuring.found) and wait(number):
                st.rerun(scope="fragment" if is_fragment() else "app")
            yield step()

    def follow() -> None:
        if says := wait(len(measuring.found)):
            st.caption(escape_markdown(says))
        else:
            st.rerun()

    draw()
    if measuring.is_active and wait(len(measuring.found)):
        st.fragment(follow, run_every=PACE)()
    else:
        measuring.go_on(take_ready(), draw, SLICE)
    if not (partial and measuring.found):
        st.stop()


def choose_arguments(
    here: Here, parameters: Mapping[str, Any], defaults: Mapping[str, Any], run: Run, said: Mapping[str, Any]
) -> dict[str, Any]:
    """A control for each parameter that counts along an axis with more than one place; what is chosen stands in the
    address. The last place is the first to be shown: the stack with the head, and what comes next."""
    chosen: dict[str, Any] = {**said}
    counted = {name: axis for name, kind in parameters.items() if (axis := axis_of(kind))}
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        for name, kind in parameters.items():
            if name in here.parameters and get_origin(kind) is Literal:
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

    title = escape_markdown(TITLES.get(axis, axis))
    return st.selectbox(title, places, key=key, width=220, on_change=keep, format_func=place_name)


def choose_candidate(here: Here, name: str, run: Run, chosen: Mapping[str, Any], optional: bool) -> int | None:
    """Chooses among the candidates that are likeliest in the end, at the row that is `chosen`; any other is typed. One
    that is `optional` is none at first."""
    count = len(run.choices("vocab", {}))
    ids = run.likeliest(chosen.get("row", 0), min(count, MOST_OPTIONS))
    here.adjust(name, high=count - 1, default=NONE if optional else ids[0])
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
        st.caption(f"This model cannot choose “{escape_markdown(str(said))}”. Using the most likely candidate.")
        return None if optional else ids[0]
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
