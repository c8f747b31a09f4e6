"""Tabs of the page Generate: which one is open, what stands on it, and what the browser says of what was written."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from engine.generation.prompt import Prompt
from pages.controls.generate.parameters import GENERATE, TABS
from pages.controls.share.measure import stop_measuring
from pages.controls.state.page_state import Here
from pages.controls.state.session import event_value, find_record
from views.charts.show import NamedChart
from views.core.table_files import Table
from views.generate.availability import missing_tabs
from views.generate.session import GenerationContext
from views.generate.streaming import Live
from views.generate.surprise_cache import SurpriseCache

PICTURE = "generate view"  # key of the component
FALLBACKS = ("write", "surprise", "temperature")  # where the tab that is asked for has nothing to show

Branch = tuple[tuple[int, ...], int | None]  # ids after the prompt, and index of the token that is looked at


@dataclass
class WritingRecord:
    """Record of writing in a session: the branch of each prompt that the browser shows, by the prompt's digest,
    the token of the tab Surprise that is looked at, what is being written, and texts whose surprise was measured."""

    branches: dict[str, Branch] = field(default_factory=dict)
    surprise_token: int | None = None
    live: Live = field(default_factory=Live)
    measured: SurpriseCache = field(default_factory=SurpriseCache)


@dataclass(frozen=True)
class TabContent:
    """Contents of an open tab: a sentence about it, its lines of Python and its tables, each made when they are asked
    for; `header` is for the component, `work` goes on with a measurement once the page is drawn."""

    sentence: str = ""
    python: Callable[[], str] | None = None
    tables: Mapping[str, Callable[[], Table]] = field(default_factory=dict)
    charts: Sequence[NamedChart] = ()
    header: Mapping[str, Any] = field(default_factory=dict)
    work: Callable[[], None] = lambda: None


def open_tab(here: Here, prompt: Prompt) -> str:
    """Draws the tabs that have something to show of the prompt; the name of the open one."""
    without = missing_tabs(prompt)
    here.set_defaults(view=next(name for name in FALLBACKS if name not in without))
    shown = [name for name in TABS if name not in without]
    tab: str = here.segments("view", shown, label_visibility="collapsed", on_change=stop_measuring)
    return tab


def branch_of(writing: GenerationContext) -> Branch:
    """Ids of the branch that the browser shows after the prompt, and which of its tokens is looked at (None: the
    newest), as far as it has said."""
    return find_record(WritingRecord).branches.get(writing.digest, ((), None))


def events(writing: GenerationContext) -> dict[str, Callable[[], None]]:
    """Callbacks of what the component says: a link's keys after the #, the branch that it shows, a token that is looked
    at, a tab to open."""

    def adopt_link() -> None:
        linked = event_value(PICTURE, "link")
        for name, value in linked.items() if isinstance(linked, dict) else ():
            if name in GENERATE.parameters:
                try:
                    GENERATE.choose(name, GENERATE.parameters[name].read(value))
                except ValueError:
                    continue  # what somebody typed into an address

    def adopt_branch() -> None:
        branch = event_value(PICTURE, "branch")
        match branch:
            case {"trace": str(trace), "ids": list(ids), "at": int() | None as at} if trace == writing.digest:
                try:
                    find_record(WritingRecord).branches[trace] = writing.ids(ids), at
                except ValueError:
                    return

    def adopt_look() -> None:
        at = event_value(PICTURE, "look")
        find_record(WritingRecord).surprise_token = at if type(at) is int and at >= 0 else None

    def adopt_tab() -> None:
        if event_value(PICTURE, "open") in TABS:
            GENERATE.choose("view", event_value(PICTURE, "open"))

    return {"link": adopt_link, "branch": adopt_branch, "look": adopt_look, "open": adopt_tab}
