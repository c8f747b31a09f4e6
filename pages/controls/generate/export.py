"""Share & export on the page Generate: what was written and the steps it was written in, and the charts of a tab."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import chain
from typing import Any

import numpy as np

from engine.inputs.readers import kind
from pages.controls.generate.settings import CONTROLLED, USED
from pages.controls.generate.tabs import Shown, changed
from pages.controls.model_input.model_input import FIELDS, given
from pages.controls.share.export import EXPORT, answered, standalone_file
from pages.controls.share.links import VERSION, VERSIONED, address_of, offered
from pages.controls.share.panel import share_panel
from views.charts.standalone import chart_file
from views.core.questions import Page, Query, Registry
from views.generate.availability import missing
from views.generate.beam_search import Wanted
from views.generate.generate import grid, page_payload
from views.generate.questions import GENERATE, TABLES, carried
from views.generate.session import Settings, Writing

WRITTEN = Registry()
WRITTEN.questions |= {name: EXPORT.questions[name] for name in ("export_python", "export_data")}


@dataclass
class Export:
    """Exports of the component of an open tab."""

    writing: Writing
    tab: str
    shown: Shown
    page: Page = field(default_factory=Page)

    @property
    def digest(self) -> str:
        return self.writing.digest

    @property
    def model_name(self) -> str:
        return self.writing.name

    attributes: Mapping[str, str] = field(default_factory=dict)

    def allowed(self, axis: str, query: Query) -> range:
        return self.writing.allowed(axis, query)

    def labels(self, axis: str, query: Query) -> None:
        return None

    def script(self, imports: Mapping[str, set[str]], lines: Sequence[str]) -> str:
        return self.writing.script(imports, lines)

    @property
    def view(self) -> dict[str, Any]:
        """Settings that the payload holds of the open tab; of the others, which a file has too, their defaults."""
        usual = Wanted(stop_at="" if grid(self.writing.checkpoint) else self.writing.settings.stop_at)
        others = {"beam": vars(usual), "surprise": {"reads": "written", "stride": "half", "charted": 0}}
        return {"view": self.tab, **others, **self.shown.header}

    @property
    def header(self) -> dict[str, Any]:
        """Entry `take` of the payload's header, by which the browser knows what there is to export."""
        writing = self.writing
        fields = FIELDS[kind(writing.checkpoint)]
        texts = [str(given(name)) for name in fields if name not in ("picture", "given") and given(name)]
        without = missing(writing.prompt)
        here = (*USED[writing.settings.method], "method", "most", "stop_at", "seed")
        controls = [*fields, "model", *(name for name in CONTROLLED if name in here)]
        return {
            "title": "Generate",
            "model": writing.name,
            "read": " · ".join(texts) or f"picture {given('picture')}",
            "trace": writing.digest,
            "link": {VERSIONED: str(VERSION), **link_of(writing, self.tab)},
            "version": VERSION,
            "controls": offered(controls),
            "matrices": [title for title in TABLES if title.split(":")[0].lower() not in without],
            "data": "a table of a tab",
        }

    def answers(self) -> Page:
        self.page = Page((GENERATE, self.writing), (WRITTEN, self))
        return self.page


@WRITTEN.question("export_html", returns={"file": ("byte",)})
def export_html(export: Export, state: str, asked: list[Any], kept: dict, branch: list[int]) -> np.ndarray:
    """`state` is the part of the address after the #, `asked` the queries that the browser remembers, `kept` the tree
    of what was written, `branch` the ids of the one that is shown."""
    asks = kept.get("asks")
    coming = kept.get("coming")
    here = coming if isinstance(coming, Mapping) else {}
    more = carried(export.writing, branch, bool(here.get("beam")), bool(here.get("surprise")))
    queries: Iterator[Any] = chain(
        asked,
        asks if isinstance(asks, list) else (),
        ({"trace": export.digest, **one} for one in more),
    )
    answers = answered(queries, export.page.answer)
    payload = page_payload(export.writing, {**export.view, "take": export.header, "kept": kept})
    text = standalone_file("generate", export.header, payload, state, answers)
    return np.frombuffer(text.encode(), np.uint8)


def link_of(writing: Writing, tab: str) -> dict[str, str]:
    """The query of a link to what is shown: the prompt, settings and controls of the open tab off their defaults."""
    usual, now = asdict(Settings()), asdict(writing.settings)
    settings = {name: str(value) for name, value in now.items() if value != usual[name]}
    fields = FIELDS[kind(writing.checkpoint)]
    return address_of(writing.name, fields, ()) | settings | {name: str(value) for name, value in changed(tab).items()}


def share_charts(writing: Writing, tab: str, shown: Shown) -> None:
    """Draws the panel of a tab's charts, and of its tables where there are any."""
    title = tab.title()
    caption = (writing.name, shown.sentence)
    share_panel(
        title,
        {VERSIONED: str(VERSION), **link_of(writing, tab)},
        [*FIELDS[kind(writing.checkpoint)], "model"],
        shown.python,
        shown.tables,
        lambda: chart_file(f"{title} · Loupe", [one.figure for one in shown.charts], caption=caption),
        key=f"share {tab}",
        names=[writing.name],
    )
