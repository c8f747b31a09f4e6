"""Share & export for a page that draws a run: the self-contained file, and Python and numbers of the question in view.

The link and the pictures are made in the browser.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

import numpy as np

from engine.inputs.readers import kind
from pages.controls.model_input.model_input import FIELDS, Subject, given
from pages.controls.share.export import MOST_BYTES, answered, fields_of, standalone_file
from pages.controls.share.links import VERSION, address_of, offered
from views.core.matrix_files import Matrix, as_file
from views.core.questions import Answer, Context, Page, Query, Registry
from views.core.run_context import RUN, RunContext
from views.core.table_files import Format, table_file
from views.walkthrough.walkthrough import Lane

EXPORT = Registry()


@dataclass
class Export:
    """A page's title and view, and the run that it draws. `controls` are keys of what stands above the picture.

    `page_name` is the page's if not the view's. A file carries answers within `room` bytes: to the queries that were
    asked, and those that `carry` lists for what is looked at (a query, and its row) or else the page's questions do.
    """

    title: str
    view: str
    subject: Subject
    run: RunContext
    controls: tuple[str, ...] = ()
    payload: bytes = b""
    page: Page = field(default_factory=Page)
    page_name: str | None = None
    carry: Callable[[Query, int], Iterable[Query]] | None = None
    room: int = MOST_BYTES

    attributes: Mapping[str, str] = field(default_factory=dict)

    @property
    def digest(self) -> str:
        return self.run.digest

    @property
    def model_name(self) -> str:
        return self.run.model_name

    def allowed(self, axis: str, query: Query) -> range | Collection[str]:
        return self.run.allowed(axis, query)

    def labels(self, axis: str, query: Query) -> Sequence[str] | None:
        return None

    def script(self, imports: Mapping[str, set[str]], lines: Sequence[str]) -> str:
        return self.run.script(dict(imports), lines)

    @property
    def header(self) -> dict[str, Any]:
        """Entry `take` of the payload's header, by which the browser knows what there is to export."""
        fields = FIELDS[kind(self.subject.checkpoint)]
        texts = [str(given(name)) for name in fields if name not in ("picture", "given") and given(name)]
        read = " · ".join(texts) if texts else f"picture {given('picture')}"
        return {
            "title": self.title,
            "model": self.subject.name,
            "read": read,
            "link": address_of(self.subject.name, fields, self.controls),
            "version": VERSION,
            "controls": offered([*fields, "model", *self.controls]),
            "questions": True,
        }

    def answers(self, payload: bytes, *parts: tuple[Registry, Context]) -> Page:
        """The page's answers: those of the run, of `parts`, and of this export, whose file draws `payload`."""
        self.payload = payload
        self.page = Page((RUN, self.run), *parts, (EXPORT, self))
        return self.page


@EXPORT.question("export_python")
def export_python(export: Export, of: dict, row: int = 0, col: int = 0) -> Answer:
    return Answer(header={"lines": export.page.python(with_digest(of, export.digest), row, col)})


@EXPORT.question("export_data", returns={"file": ("byte",)})
def export_data(export: Export, of: dict, format: Format) -> np.ndarray:
    found = export.page.table(with_digest(of, export.digest))
    content = as_file(found, format) if isinstance(found, Matrix) else table_file(found, format)
    return np.frombuffer(content, np.uint8)


@EXPORT.question("export_html", returns={"file": ("byte",)})
def export_html(
    export: Export, state: str, asked: list[Any], of: dict | None = None, row: int | None = None
) -> np.ndarray:
    """`state` is the part of the address after the #, `asked` the queries that the browser remembers."""
    ahead = export.carry(of or {}, row or 0) if export.carry else export.page.carried()
    queries: Iterator[Any] = chain(asked, ahead)
    kept = answered((one for one in queries if not is_export(one)), export.page.answer, room=export.room)
    text = standalone_file(export.view, export.header, export.payload, state, kept, export.page_name)
    return np.frombuffer(text.encode(), np.uint8)


def is_export(query: Any) -> bool:
    return isinstance(query, Mapping) and query.get("ask") in EXPORT.questions


def with_digest(query: Mapping[str, Any], digest: str) -> dict[str, Any]:
    return {**query, "trace": digest}


def run_context(subject: Subject, trace: Any, lanes: Sequence[Lane], before: Any = None) -> RunContext:
    """The run of a page as its questions see it."""
    return RunContext(subject.name, subject.checkpoint, trace, lanes, before, lambda: fields_of(subject))
