"""The state of a page against a plain model of what must stand, whatever a person does and in whichever order."""

import json
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from streamlit.proto.WidgetStates_pb2 import WidgetStates
from streamlit.runtime.scriptrunner import RerunData
from streamlit.testing.v1 import AppTest, local_script_runner

from tests.pages.apps.state.declared import KINDS, PAGES, TABS

APP = Path(__file__).parent / "apps/state/app.py"
SOFT = {"count": 1, "share": 0.5, "color": "r", "word": "", "kind": "plain", "tab": "one"}
LABELS = {"r": "deep red", "g": "green"}
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "count": st.integers(0, 9),
    "share": st.sampled_from([0.0, 0.25, 0.5, 1.0]),
    "color": st.sampled_from(["r", "g"]),
    "word": st.sampled_from(["", "a", "b c", "5"]),
    "kind": st.sampled_from(list(KINDS)),
    "tab": st.sampled_from(list(TABS)),
}
NONSENSE = {"count": ["-1", "x", "1.5", "1e999", ""], "share": ["2", "nan"], "color": ["blue"], "word": ["y" * 13]}
HAND = ("kind", "tab", "count", "share", "color", "word")


def default(name: str, kind: str) -> Any:
    return KINDS[kind] if name == "count" else SOFT[name]


def text(name: str, value: Any) -> str:
    return LABELS[value] if name == "color" else str(value)


def drawn(values: dict[str, Any]) -> tuple[str, ...]:
    return "kind", "tab", *TABS[values["tab"]]


@dataclass
class Entry:
    """Of a browser's history: its page, its query, and what its page showed when it was left."""

    page: str
    query: dict[str, str]
    shown: dict[str, Any] = field(default_factory=dict)


@cache
def registered() -> dict[str, Any]:
    return AppTest.from_file(str(APP), default_timeout=30).run()._registered_pages


class Pages(RuleBasedStateMachine):
    """A browser with one tab, and what each page of its session must stand at."""

    def __init__(self) -> None:
        super().__init__()
        self.open("first", {})

    def open(self, page: str, query: dict[str, str]) -> None:
        """A new session opens an address."""
        self.app = AppTest.from_file(str(APP), default_timeout=30)
        self.app._registered_pages = registered()  # a browser knows the addresses of all pages
        self.stands = {name: dict(SOFT) for name in PAGES}
        self.entries, self.at = [Entry(page, {})], 0
        self.go(page, query)

    @property
    def entry(self) -> Entry:
        return self.entries[self.at]

    @property
    def values(self) -> dict[str, Any]:
        return self.stands[self.entry.page]

    def go(self, page: str, query: dict[str, str], back: bool = False, widgets: bool = False) -> None:
        """Runs the entry that is shown, as `page` with `query`; a browser that goes elsewhere says of no widget."""
        self.entry.page, self.entry.query = page, query
        self.app.query_params = dict(query)
        self.app.switch_page(f"{page}.py")
        with patch.object(local_script_runner, "RerunData", partial(RerunData, is_history_navigation=back)):
            self.app.run() if widgets else self.app._run(WidgetStates())
        assert not self.app.exception, self.app.exception
        self.settle()

    def settle(self) -> None:
        self.entry.query = {name: str(value) for name, value in self.app.query_params.items()}
        self.entry.shown = {name: self.values[name] for name in drawn(self.values)}

    def stand(self, name: str, value: Any) -> None:
        """Sets a value; one that stood at its default stands at that of the new kind."""
        if name == "kind" and self.values["count"] == KINDS[self.values["kind"]]:
            self.values["count"] = KINDS[value]
        self.values[name] = value

    @precondition(lambda self: len(self.entries) < 6)
    @rule(name=st.sampled_from(HAND), data=st.data())
    def set_by_hand(self, name: str, data: st.DataObject) -> None:
        if name not in drawn(self.values):
            return
        value = data.draw(VALUES[name])
        widgets = {one.key: one for kind in ("slider", "number_input", "text_input") for one in self.app.get(kind)}
        widgets |= {one.key: one for one in self.app.get("button_group")}
        widgets[name].set_value(value)
        if value == default(name, self.values["kind"]):  # a browser writes into its address what is off its default
            self.app.query_params.pop(name, None)
        else:
            self.app.query_params[name] = text(name, value)
        self.stand(name, value)
        self.app.run()
        self.settle()

    @rule(label=st.sampled_from(["five", "hello"]))
    def press(self, label: str) -> None:
        self.stand(*{"five": ("count", 5), "hello": ("word", "hello")}[label])
        next(one for one in self.app.button if one.label == label).click().run()
        self.settle()

    @precondition(lambda self: len(self.entries) < 6)
    @rule(page=st.sampled_from(list(PAGES)))
    def turn(self, page: str) -> None:
        if page == self.entry.page:
            return
        query = self.entry.query  # Streamlit takes out of it what belongs to the page that is left
        del self.entries[self.at + 1 :]
        self.entries.append(Entry(page, {}))
        self.at += 1
        self.go(page, {name: said for name, said in query.items() if name not in SOFT}, widgets=True)

    @rule(step=st.sampled_from([-1, 1]))
    def walk_history(self, step: int) -> None:
        if not 0 <= self.at + step < len(self.entries):
            return
        self.at += step
        entry, shown = self.entry, dict(self.entry.shown)
        parameters = PAGES[entry.page].parameters
        said = {name: one for name, one in entry.query.items() if not parameters[name].must_be(one)}
        shown |= {name: parameters[name].parse(one) for name, one in said.items() if name not in shown}
        for name in ("kind", *(name for name in shown if name != "kind")):
            self.stand(name, shown[name])
        self.go(entry.page, entry.query, back=True, widgets=True)

    @rule()
    def reload(self) -> None:
        """What stands on tabs that are closed is in no address, but for what a link has said and nobody has touched."""
        entry, shown = self.entry, dict(self.values)
        seen = [*drawn(shown), *entry.query]
        self.open(entry.page, entry.query)
        for name in ("kind", *seen):
            self.stand(name, shown[name])
        self.settle()

    @rule(page=st.sampled_from(list(PAGES)), data=st.data(), soft=st.booleans())
    def follow_link(self, page: str, data: st.DataObject, soft: bool) -> None:
        """To another session, or to the page that is shown."""
        said = data.draw(st.dictionaries(st.sampled_from(HAND), st.just(None)))
        sense: dict[str, Any] = {}
        query: dict[str, str] = {}
        for name in said:
            if name in NONSENSE and data.draw(st.booleans()) and not soft:
                query[name] = data.draw(st.sampled_from(NONSENSE[name]))
            else:
                sense[name] = data.draw(VALUES[name])
                query[name] = data.draw(st.sampled_from([text(name, sense[name]), str(sense[name])]))
        if soft:
            self.entries[self.at + 1 :] = [Entry(self.entry.page, query)]
            self.at += 1
            self.go(self.entry.page, query)
        else:
            self.open(page, query)
        for name in HAND:
            if name in sense:
                self.stand(name, sense[name])
        self.settle()

    @invariant()
    def it_stands_as_it_must(self) -> None:
        found = json.loads(self.app.json[0].value)
        assert found["values"] == self.values
        off = {name: one for name, one in self.values.items() if one != default(name, self.values["kind"])}
        assert found["link"] == {name: text(name, one) for name, one in off.items()}
        for name in drawn(self.values):
            shown = self.app.session_state[name]
            assert shown == self.values[name], name


TestPages = Pages.TestCase
TestPages.settings = settings(max_examples=30, stateful_step_count=12, deadline=None)
