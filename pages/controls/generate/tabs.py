"""Tabs of the page Generate and the controls in them: which tab is open, what a link may set, what is remembered."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, LiteralString

import streamlit as st

from engine.generation.prompt import Prompt
from pages.controls.model_input.browser_history import complete
from pages.controls.share.links import Rule, number, one_of, whole_number
from pages.controls.share.measure import stop_measuring
from views.charts.show import NamedChart
from views.core.markdown import escape_markdown
from views.core.table_files import Table
from views.generate.availability import missing_tabs
from views.generate.beam_search import EARLY, MOST, PENALTIES, Wanted
from views.generate.charts import HIGHEST_TEMPERATURE
from views.generate.prompting import LONGEST_LINK, QUERIES, QUERY, TEXT
from views.generate.session import Writing
from views.generate.temperature import FIRST, parse_numbers

KEPT = "controls of generate"  # in the session state, from one visit of a tab or of the page to the next
BRANCHES = "branches of generate"  # there too: (ids, token that is looked at) of each prompt, as the browser says
LOOKED = "looked at in generate"  # there too: index of a token of the tab Surprise
PICTURE = "generate view"  # key of the component

TABS = ("write", "beam", "temperature", "prompting", "cache", "surprise")
PARTS = {"shots": "examples in the prompt", "instructed": "an instruction after the text"}
READS = {"prompt": "as given", "written": "with what was written"}
APART = {"half": "half a window apart", "quarter": "a quarter apart", "whole": "side by side"}
FALLBACKS = ("write", "surprise", "temperature")  # where the tab that is asked for has nothing to show


@dataclass(frozen=True)
class Shown:
    """Contents of an open tab: a sentence about it, its lines of Python and its tables, each made when they are asked
    for; `header` is for the component, `work` goes on with a measurement once the page is drawn."""

    sentence: str = ""
    python: Callable[[], str] | None = None
    tables: Mapping[str, Callable[[], Table]] = field(default_factory=dict)
    charts: Sequence[NamedChart] = ()
    header: Mapping[str, Any] = field(default_factory=dict)
    work: Callable[[], None] = lambda: None


@dataclass(frozen=True)
class Control:
    """Default of a control, and the values that a link may set it to."""

    default: Any
    rule: Rule
    labels: Mapping[str, LiteralString] = field(
        default_factory=dict
    )  # of a choice: code -> what stands on it and in the address

    def parse(self, said: object) -> Any:
        """Value of the widget, of which a link may also give the code. Raises ValueError for what makes no sense."""
        text = ", ".join(map(str, said)) if isinstance(said, list) else str(said)
        if isinstance(said, bool) or (why := self.rule(text)):
            raise ValueError(why or "no truth value")
        return self.labels.get(text, text) if isinstance(self.default, str) else type(self.default)(float(text))


def choice_of(default: str, labels: Mapping[str, str]) -> Control:
    return Control(labels[default], one_of(dict.fromkeys((*labels, *labels.values()))), labels)


def numbers_rule(text: str) -> str:
    try:
        parse_numbers(text)
    except ValueError as error:
        return str(error)
    return ""


def at_most(characters: int) -> Rule:
    return lambda text: "" if len(text) <= characters else f"at most {characters:,} characters"


CONTROLS: Mapping[str, Control] = {
    "view": choice_of("write", {name: name for name in TABS}),  # capitalised by app.css
    "t": Control(1.0, number(0, HIGHEST_TEMPERATURE)),
    "numbers": Control(FIRST, numbers_rule),
    "beam_beams": Control(Wanted().beams, whole_number(1, MOST["beams"])),
    "beam_penalty": Control(Wanted().penalty, number(*PENALTIES)),
    "beam_best": Control(Wanted().best, whole_number(1, MOST["beams"])),
    "beam_early": Control(Wanted().early, one_of(EARLY)),
    "beam_tokens": Control(Wanted().tokens, whole_number(1, MOST["tokens"])),
    "prompting": choice_of("shots", PARTS),
    "p_model": Control("", at_most(200)),
    "p_table": Control("", at_most(200)),
    "p_query": Control("", at_most(QUERY)),
    "p_k": Control(4, whole_number(0, 8)),
    "p_seed": Control(0, whole_number(0, 2**31 - 1)),
    "p_rows": Control("red: rouge\nblue: bleu\ngreen: vert\nwhite: blanc", at_most(LONGEST_LINK)),
    "p_n": Control(30, one_of(QUERIES)),
    "p_instructed": Control("", at_most(200)),
    "p_text": Control("le chat noir dort", at_most(TEXT)),
    "surprise": choice_of("written", READS),
    "surprise_stride": choice_of("half", APART),
}
RULES: dict[str, Rule] = {name: control.rule for name, control in CONTROLS.items()}


def restore(*names: str, **defaults: Any) -> None:
    """Sets what controls open on that neither the address nor a person has set: what they stood at when they were last
    drawn, else their default. Call it right before they are drawn, and `keep` right after."""
    state = st.session_state
    kept = state.setdefault(KEPT, {})
    for name in names:
        complete(name, None)
        if name in state:
            continue
        control, said = CONTROLS[name], st.query_params.get(name)
        if said is None:
            state[name] = kept.get(name, defaults.get(name, control.default))
        elif control.rule(said):
            state[name] = control.default
        elif said in control.labels:
            state[name] = control.labels[said]


def current(name: str) -> Any:
    """Value of a control, or that which it will have once it is drawn: until then its value may be in the address
    alone."""
    state = st.session_state
    return state[name] if name in state else CONTROLS[name].parse(st.query_params[name])


def keep(*names: str) -> None:
    """Remembers what controls stand at; of one that is not drawn, in a link that came, there is nothing to remember."""
    state = st.session_state
    state.setdefault(KEPT, {}).update({name: state[name] for name in names if name in state})


def choose(name: str, value: Any) -> None:
    """Sets a control from a callback, whether it is drawn now or not."""
    st.session_state.setdefault(KEPT, {})[name] = value
    if name in st.session_state or name == "view":
        st.session_state[name] = value


PREFIXES = {
    "beam": ("beam_",),
    "temperature": ("t", "numbers"),
    "prompting": ("prompting", "p_"),
    "surprise": ("surprise",),
}


def changed_controls(tab: str) -> dict[str, Any]:
    """Controls of a tab that stand off their defaults, and the tab itself, for a link."""
    kept = st.session_state.get(KEPT, {})
    own = [name for name in CONTROLS if name == "view" or name.startswith(PREFIXES.get(tab, ("view",)))]
    return {name: kept[name] for name in own if name in kept and kept[name] != CONTROLS[name].default}


def code(name: str) -> str:
    """Code of what a choice stands at."""
    labels = CONTROLS[name].labels
    return next(code for code, label in labels.items() if label == st.session_state[name])


def choose_among(label: LiteralString, name: str, codes: Sequence[str] = (), **options: Any) -> str:
    """Draws a choice, of `codes` or of all; the code of what is chosen."""
    labels = CONTROLS[name].labels
    restore(name)
    shown = [labels[code] for code in codes or labels]
    if st.session_state.get(name, shown[0]) not in shown:
        st.session_state[name] = shown[0]
    st.segmented_control(
        label, shown, required=True, key=name, bind="query-params", format_func=escape_markdown, **options
    )
    keep(name)
    return code(name)


def open_tab(prompt: Prompt) -> str:
    """Draws the tabs that have something to show of the prompt; the name of the open one."""
    without = missing_tabs(prompt)
    first = next(name for name in FALLBACKS if name not in without)
    shown = [name for name in TABS if name not in without]
    restore("view")
    if st.session_state.get("view", first) not in shown:
        st.session_state.view = first
    return choose_among("tab", "view", shown, label_visibility="collapsed", on_change=stop_measuring)


def branch_of(writing: Writing) -> tuple[tuple[int, ...], int | None]:
    """Ids of the branch that the browser shows after the prompt, and which of its tokens is looked at (None: the
    newest), as far as it has said."""
    ids, at = st.session_state.get(BRANCHES, {}).get(writing.digest, ((), None))
    return ids, at


def events(writing: Writing) -> dict[str, Callable[[], None]]:
    """Callbacks of what the component says: a link's keys after the #, the branch that it shows, a token that is looked
    at, a tab to open."""

    def event_value(event: str) -> Any:
        return getattr(st.session_state[PICTURE], event, None)

    def adopt_link() -> None:
        linked = event_value("link")
        for name, value in linked.items() if isinstance(linked, dict) else ():
            if name in CONTROLS:
                try:
                    choose(name, CONTROLS[name].parse(value))
                except ValueError:
                    continue  # what somebody typed into an address

    def adopt_branch() -> None:
        branch = event_value("branch")
        match branch:
            case {"trace": str(trace), "ids": list(ids), "at": int() | None as at} if trace == writing.digest:
                try:
                    st.session_state.setdefault(BRANCHES, {})[trace] = writing.ids(ids), at
                except ValueError:
                    return

    def adopt_look() -> None:
        at = event_value("look")
        st.session_state[LOOKED] = at if type(at) is int and at >= 0 else None

    def adopt_tab() -> None:
        if event_value("open") in TABS:
            choose("view", event_value("open"))

    return {"link": adopt_link, "branch": adopt_branch, "look": adopt_look, "open": adopt_tab}
