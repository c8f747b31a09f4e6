"""Take away, on the page Generate: what was written, and the steps it was written in."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from itertools import chain
from typing import Any

from engine.inputs.readers import kind
from pages.controls.generate.settings import CONTROLLED, USED
from pages.controls.generate.tabs import Shown, changed
from pages.controls.model_input.model_input import FIELDS, given
from pages.controls.share.export import UNKNOWN, Answer
from pages.controls.share.export_tables import Made, Query, Taken
from pages.controls.share.links import VERSION, VERSIONED, address_of
from pages.controls.share.panel import share_panel
from views.charts.standalone import chart_file
from views.generate.availability import missing
from views.generate.beam_search import Wanted
from views.generate.generate import drawn, grid
from views.generate.session import Settings, Writing
from views.generate.tables import AHEAD, LINES, TABLES


@dataclass(frozen=True)
class Written:
    """What `Made` gives away, with what was written in the file."""

    made: Made
    writing: Writing
    view: Mapping[str, Any]  # what the payload says of the open tab

    @property
    def header(self) -> dict[str, Any]:
        return self.made.header

    def answering(self, payload: bytes, other: Answer) -> Answer:
        usual = self.made.answering(payload, other)

        def answer(query: dict[str, Any]) -> bytes:
            if query.get("take") != "html" or not isinstance(query.get("kept"), Mapping):
                return usual(query)
            whole = drawn(self.writing, {"take": self.header, "kept": query["kept"], **self.view})
            return self.made.answering(whole, other)(query)

        return answer


def of_writing(writing: Writing, tab: str, shown: Shown) -> Written:
    fields = FIELDS[kind(writing.checkpoint)]
    texts = [str(given(field)) for field in fields if field not in ("picture", "given") and given(field)]
    without = missing(writing.prompt)
    tables = [name for name in (*TABLES, *shown.tables) if name.split(":")[0].lower() not in without]

    def lines(query: Query) -> str:
        tab = query.get("tab")
        if not isinstance(tab, str) or tab not in LINES:
            raise ValueError(UNKNOWN)
        if tab in without:
            raise ValueError(without[tab])
        return LINES[tab](writing, query)

    def looked(query: Query) -> Taken:
        name = query.get("matrix")
        if not isinstance(name, str) or name not in tables:
            raise ValueError(UNKNOWN)
        return shown.tables[name]() if name in shown.tables else TABLES[name](writing, query)

    def ahead(query: Query) -> Iterator[dict[str, Any]]:
        yield from chain.from_iterable(asks(writing, query) for asks in AHEAD)

    # What a file tells the other tabs of the component.
    usual = Wanted(stop_at="" if grid(writing.checkpoint) else writing.settings.stop_at)
    alone = {"beam": vars(usual), "surprise": {"reads": "written", "stride": "half", "charted": 0}}
    here = (*USED[writing.settings.method], "method", "most", "stop_at", "seed")
    used = [name for name in CONTROLLED if name in here]
    return Written(
        Made(
            "Generate", "generate", writing.name, " · ".join(texts) or f"picture {given('picture')}", writing.made,
            link_of(writing, tab), lines, patterns=tables, looked=looked,
            data="a table of a tab", controls=[*fields, "model", *used], ahead=ahead,
        ),
        writing,
        {"view": tab, **alone, **shown.header},
    )  # fmt: skip


def link_of(writing: Writing, tab: str) -> dict[str, str]:
    """The query of a link to what is shown: the prompt, settings and controls of the open tab off their defaults."""
    usual, now = asdict(Settings()), asdict(writing.settings)
    settings = {name: str(value) for name, value in now.items() if value != usual[name]}
    fields = FIELDS[kind(writing.checkpoint)]
    return address_of(writing.name, fields, ()) | settings | {name: str(value) for name, value in changed(tab).items()}


def share_charts(writing: Writing, tab: str, shown: Shown) -> None:
    """Draws the panel of a tab's charts. Of a tab that the component draws, that one gives the rest away."""
    title = tab.title()
    caption = (writing.name, shown.sentence)
    whole = shown.python is not None
    share_panel(
        title,
        {VERSIONED: str(VERSION), **link_of(writing, tab)},
        [*FIELDS[kind(writing.checkpoint)], "model"],
        shown.python,
        shown.tables if whole else None,
        (lambda: chart_file(f"{title} · Loupe", [one.figure for one in shown.charts], caption=caption))
        if shown.charts
        else None,
        key=f"share {tab}",
        names=[writing.name],
    )
