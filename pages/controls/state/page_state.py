"""What a page stands at. A page declares its parameters once, opens them at the start of its script, and draws them
through what that gives; no other code reads the address or Streamlit's session for them.

    GENERATE = PageState("generate", Number("temperature", 1.0, 0, 3, carried=True), ...)
    here = GENERATE.open()
    here.slider("temperature")

A parameter whose widget is on the page stands at what that says. Any other stands at what the address says, else at
what it was left at, else at its default. Where the browser's history leads to the page, the entry counts: a widget
that it does not name stands at its default, as the entry names all that was off it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NoReturn

import streamlit as st

from pages.controls.state.hidden import is_hidden
from pages.controls.state.history import (
    drop,
    entry_address,
    is_drawn,
    is_fragment,
    is_heard,
    is_turned,
    led_address,
    went_back,
    write,
)
from pages.controls.state.parameter import Choice, Hideable, Number, Parameter, Rule
from pages.controls.state.session import find_record
from views.core.markdown import escape_markdown


@dataclass
class PageRecord:
    """Values that a page was left at, and the defaults that it had then; what its next run shall set, and the texts
    that it shall read as from an address."""

    values: dict[str, Any] = field(default_factory=dict)
    defaults: dict[str, Any] = field(default_factory=dict)
    wanted: dict[str, Any] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)


@dataclass
class Visits:
    """Records of each page, by its address, and of all that goes along from page to page."""

    pages: dict[str, PageRecord] = field(default_factory=dict)
    carried: PageRecord = field(default_factory=PageRecord)


STATES: list[PageState] = []  # of all pages that are imported


class PageState:
    """State of the page whose address is `page`."""

    def __init__(self, page: str, *declared: Hideable) -> None:
        self.page = page
        self.parameters = {one.name: one for one in declared if isinstance(one, Parameter)}
        self.hideable = {one.name: one for one in declared if one.hidden_as}  # by a class link of this page
        STATES.append(self)

    @property
    def rules(self) -> dict[str, Rule]:
        return {name: parameter.must_be for name, parameter in self.parameters.items()}

    def find_left(self, name: str) -> PageRecord:
        """Finds the record of a parameter."""
        visits = find_record(Visits)
        return visits.carried if self.parameters[name].carried else visits.pages.setdefault(self.page, PageRecord())

    def open(self) -> Here:
        return Here(self)

    def choose(self, name: str, value: Any) -> None:
        """Sets a parameter from a callback, whether it is drawn or not."""
        self.find_left(name).values[name] = value
        if is_drawn(name):
            st.session_state[name] = value
        elif name in st.query_params:
            drop(name)

    def now(self, name: str) -> Any:
        """Value of a parameter in a callback, or once it is drawn."""
        left = self.find_left(name).values
        return st.session_state[name] if is_drawn(name) else left.get(name, self.parameters[name].default)

    def take_former(self, said: Mapping[str, str]) -> None:
        """Sets parameters to what a former link says of them, from a callback."""
        for name, text in said.items():
            self.find_left(name).texts[name] = text

    def rerun_with(self, name: str, value: Any) -> NoReturn:
        """Sets a parameter that this run has drawn already, and runs the page again."""
        self.find_left(name).wanted[name] = value
        st.rerun()

    def reset(self, *names: str) -> None:
        """Sets parameters to their defaults, from a callback."""
        for name in names:
            if name in (known := self.find_left(name).defaults):
                self.choose(name, known[name])


class Here:
    """Values of a page in one run of its script."""

    def __init__(self, state: PageState) -> None:
        self.state = state
        self.entry = entry_address() if went_back() else {}  # of the browser's history, before anything is written
        self.parameters = dict(state.parameters)
        self.defaults = {name: parameter.default for name, parameter in state.parameters.items()}
        self.read = dict[str, Any]()  # of parameters that are not drawn yet
        self.begun = set[str]()  # those that will be
        self.drawn = set[str]()
        for name in state.parameters:
            if name in (wanted := state.find_left(name).wanted):
                self.set(name, wanted.pop(name))

    def set_defaults(self, **defaults: Any) -> None:
        """Sets what parameters stand at by themselves in this run. One that stood at its default before, and now has
        another, stands at that."""
        self.defaults |= defaults

    def set_usual(self, **defaults: Any) -> None:
        """Sets defaults, of which one that stood at its default before stays where it was."""
        self.defaults |= defaults
        for name in defaults:
            self.state.find_left(name).defaults[name] = defaults[name]

    def adjust(self, name: str, **fields: Any) -> None:
        """Declares a parameter otherwise for this run: with the options that this model has."""
        self.parameters[name] = replace(self.parameters[name], **fields)
        self.defaults[name] = self.parameters[name].default

    @property
    def rules(self) -> dict[str, Rule]:
        return {name: parameter.must_be for name, parameter in self.parameters.items()}

    def renew(self) -> Here:
        """Opens the page's state anew where a fragment runs by itself, and gives this one else."""
        if not is_fragment():
            return self
        here = Here(self.state)
        here.parameters, here.defaults = dict(self.parameters), dict(self.defaults)
        return here

    def read_said(self, *names: str) -> dict[str, str]:
        """Lists what the address, or a former link, says of parameters."""
        found = {name: self.state.find_left(name).texts.get(name, st.query_params.get(name)) for name in names}
        return {name: text for name, text in found.items() if text is not None}

    def __getitem__(self, name: str) -> Any:
        """Value of a parameter, whether it is drawn in this run or not."""
        if name in self.drawn:
            return st.session_state[name]
        if name not in self.read:
            self.settle(name, went_back=False)
        return self.read[name]

    def begin(self, name: str) -> Any:
        """Value of a parameter that this run will draw."""
        if name not in self.begun:
            self.begun.add(name)
            said, led = self.entry.get(name), is_turned() and not went_back() and self.parameters[name].carried
            if led and name not in st.query_params and name in (address := led_address()):
                self.state.take_former({name: address[name]})
            if said is not None and name not in st.query_params:
                write(name, said)  # Streamlit forgets it where the page before had a control of that name
            self.settle(name, went_back())
            if name not in st.query_params and not is_drawn(name) and self.read[name] != self.defaults[name]:
                write(name, self.parameters[name].text(self.read[name]))  # a control writes there what it is told
        return self.read[name]

    def settle(self, name: str, went_back: bool) -> None:
        """Finds what a parameter stands at that this run has not drawn yet, and remembers it. What the address says is
        not set but left to Streamlit, or what the widget of a browser that comes back to a server started anew holds
        would not count."""
        parameter, left, state = self.parameters[name], self.state.find_left(name), st.session_state
        default = self.defaults[name]
        former = left.texts.pop(name, None)
        if former is not None and not parameter.must_be(former):
            left.defaults[name] = default
            return self.set(name, parameter.parse(former))
        for older in (one for one in parameter.older if one in st.query_params):
            if not parameter.must_be(st.query_params[older]):
                write(name, st.query_params[older])
                drop(older)
        said = st.query_params.get(name)
        before = default if is_hidden(name) else left.defaults.get(name, default)  # what a link hid keeps its value
        if said is not None and parameter.must_be(said):
            drop(name)
            said = None
        if said is not None and isinstance(parameter, Choice) and said not in parameter.options.values():
            said = parameter.text(parameter.parse(said))
            write(name, said)  # the option's label, which is all that Streamlit reads
        if name in state and is_drawn(name) and not went_back and (said is None or is_heard(name)):
            value = default if state[name] == before else state[name]
            if value != state[name] or not is_heard(name):  # or a link to this page takes it out of the address
                state[name] = value
        elif said is not None:
            value = parameter.parse(said)
            if value == default:  # which Streamlit hears in no address, and writes into none
                state[name] = value
                drop(name)
        else:
            value = default if went_back else left.values.get(name, default)
            value = state[name] = default if value == before else value
        if value != default and not parameter.fits(value):
            value = state[name] = default
        self.read[name] = left.values[name] = value
        left.defaults[name] = default

    def fit(self, name: str, options: Sequence[Any]) -> None:
        """Sets a parameter that will be drawn to its default, or else to the first of the `options`, where it stands at
        none of them."""
        if self.defaults[name] not in options:
            self.defaults[name] = options[0]
        if self.begin(name) not in options:
            self.set(name, self.defaults[name])

    def restart(self, *names: str) -> None:
        """Sets those that the address does not name to their defaults."""
        for name in names:
            if name not in st.query_params and name not in self.entry:
                self.set(name, self.defaults[name])

    def set(self, name: str, value: Any) -> None:
        """Sets a parameter that this run has not drawn yet, whatever the address says."""
        if name in st.query_params:
            drop(name)
        st.session_state[name] = self.read[name] = self.state.find_left(name).values[name] = value

    def assign(self, name: str, value: Any) -> None:
        """Sets a parameter that has no widget, in the address too."""
        if value != self.begin(name):
            self.set(name, value)
            if value != self.defaults[name]:
                write(name, self.parameters[name].text(value))

    def leave_out(self, *names: str) -> None:
        """Takes parameters out of the address that this run does not show, and remembers them."""
        for name in names:
            if self[name] != self.defaults[name] and name in st.query_params:
                drop(name)

    def options(self, name: str, more: Mapping[str, Any]) -> dict[str, Any]:
        """Arguments that every widget of a parameter has; `more` count more."""
        parameter = self.parameters[name]
        self.begin(name)
        label: Any = parameter.label
        return {"label": label, "key": name, "bind": "query-params", "help": parameter.help or None, **more}

    def draw(self, name: str, widget: Callable[..., Any], **more: Any) -> Any:
        """Draws a parameter by one of Streamlit's widgets, with the arguments `more`; its value."""
        widget(**self.options(name, more))
        self.drawn.add(name)
        self.state.find_left(name).values[name] = st.session_state[name]
        return st.session_state[name]

    def ends(self, name: str, high: float | None = None) -> dict[str, Any]:
        """Arguments of a widget for a number, up to `high` if that is lower."""
        parameter = self.parameters[name]
        assert isinstance(parameter, Number)
        kind: Callable[[float], float] = type(parameter.default)
        low, high, value = parameter.low, parameter.high if high is None else high, self.defaults[name]
        ends = {"min_value": low, "max_value": high, "value": min(max(value, low), high), "step": parameter.step}
        return {key: kind(one) for key, one in ends.items()}

    def slider(self, name: str, high: float | None = None, **more: Any) -> Any:
        if high is not None and self.begin(name) > high:
            self.set(name, high)
        return self.draw(name, more.pop("place", st).slider, **self.ends(name, high), **more)

    def number(self, name: str, high: float | None = None, **more: Any) -> Any:
        if high is not None and self.begin(name) > high:
            self.set(name, high)
        return self.draw(name, more.pop("place", st).number_input, **self.ends(name, high), **more)

    def text(self, name: str, **more: Any) -> Any:
        return self.draw(name, more.pop("place", st).text_input, value=self.defaults[name], **more)

    def area(self, name: str, **more: Any) -> Any:
        return self.draw(name, more.pop("place", st).text_area, value=self.defaults[name], **more)

    def toggle(self, name: str, **more: Any) -> bool:
        on: bool = self.draw(name, more.pop("place", st).toggle, value=self.defaults[name], **more)
        return on

    def menu(self, name: str, options: Sequence[Any] = (), **more: Any) -> Any:
        """A list to choose from: of `options`, or of all that the parameter declares."""
        shown, named = self.name_options(name, options)
        if not more.get("accept_new_options"):
            self.fit(name, shown)
        at = shown.index(self.defaults[name]) if self.defaults[name] in shown else 0
        widget = more.pop("place", st).selectbox
        return self.draw(name, widget, options=shown, index=at, format_func=named, **more)

    def scale(self, name: str, **more: Any) -> Any:
        """A slider over the options of a choice."""
        parameter = self.parameters[name]
        assert isinstance(parameter, Choice)
        widget = more.pop("place", st).select_slider
        return self.draw(name, widget, options=tuple(parameter.options), value=self.defaults[name], **more)

    def segments(self, name: str, options: Sequence[Any] = (), **more: Any) -> Any:
        """Segments side by side, one of which is always chosen."""
        shown, named = self.name_options(name, options)
        self.fit(name, shown)
        widget = more.pop("place", st).segmented_control
        more |= {"required": True, "format_func": lambda option: escape_markdown(named(option))}
        return self.draw(name, widget, options=shown, default=self.defaults[name], **more)

    def name_options(self, name: str, options: Sequence[Any]) -> tuple[Sequence[Any], Callable[[Any], str]]:
        parameter = self.parameters[name]
        labels = parameter.options if isinstance(parameter, Choice) else {}
        return options or tuple(labels), lambda option: labels.get(option, str(option) or "none")

    def link(self, *names: str) -> dict[str, str]:
        """Lists the parameters that stand off their defaults, as an address says them."""
        off = (name for name in names if self[name] != self.defaults[name])
        return {name: str(self.parameters[name].text(self[name])) for name in off}
