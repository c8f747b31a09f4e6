"""A page's component, the answers to what is asked on it, and its Share & export: the self-contained file, and Python
and numbers of the question in view.

The link and the pictures are made in the browser; all else is made when it is asked for.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import chain
from typing import Any
from urllib.parse import urlencode

import numpy as np

from pages.controls.share.class_link import class_link
from pages.controls.share.hiding import hideable_controls
from pages.controls.share.links import VERSION, VERSIONED, fit_address
from pages.controls.share.panel import data_file
from views.core.component import courier
from views.core.export import MOST_ANSWERS, MOST_BYTES, PackedAnswer, answer_all, self_contained
from views.core.questions import Answer, BareContext, Context, Page, Query, Registry
from views.core.table_files import Format

EXPORT = Registry()
UNLINKED = "The text is too long for a link; paste it into Loupe to see this there."
ROOM = 3_600_000  # the same, of a file that holds little else


@dataclass
class Export(BareContext):
    """Export of the component `view` about `context`, which its questions are about; `read` is what that reads.

    `tables` are the questions of the data to choose from, by their titles; without any, or with the title "", it is
    that of what is looked at.
    `edits` says in words what was changed of the run, for captions.
    `link` is the query of a link, `controls` are keys of what it can hide, `page_name` is the page's if not the view's.
    `predicts` says that a link can ask for a guess first.
    A file draws `payload` and carries at most `most` answers within `room` bytes: to the queries that were asked, and
    those that `carry` lists for what is looked at (a query, and its row) or else the page's questions do.
    """

    title: str
    view: str
    context: Context
    read: str
    link: Mapping[str, str]
    controls: Iterable[str] = ()
    tables: Mapping[str, Query] = field(default_factory=dict)
    data: str = "the table that is chosen"
    model: str = ""
    page_name: str | None = None
    predicts: bool = False
    edits: str = ""
    carry: Callable[[Query, int], Iterable[Query]] | None = None
    room: int = MOST_BYTES
    most: int = MOST_ANSWERS
    payload: bytes | Callable[[Query], bytes] = b""
    page: Page = field(default_factory=Page)

    @property
    def digest(self) -> str:
        return self.context.digest

    @property
    def model_name(self) -> str:
        return self.context.model_name

    @property
    def header(self) -> dict[str, Any]:
        """Entry `take` of the payload's header, by which the browser knows what there is to export."""
        named = {title: query for title, query in self.tables.items() if title}
        chosen = {"tables": named, "matrices": [*self.tables], "data": self.data} if self.tables else {}
        return {
            "title": self.title,
            "model": self.model or self.context.model_name,
            "read": self.read,
            "edits": self.edits,
            "trace": self.digest,
            "link": {VERSIONED: str(VERSION), **self.link},
            "version": VERSION,
            "controls": hideable_controls(self.controls),
            "predicts": self.predicts,
            **chosen,
        }

    def answers(self, payload: bytes | Callable[[Query], bytes], *parts: Any) -> Page:
        """Returns the page's answers: those of `parts` (see `Page`), and of this export, whose file draws `payload`:
        made for what is looked at where it is a function."""
        self.payload = payload
        self.page = Page(*parts, (EXPORT, self))
        return self.page


def draw_page(
    export: Export,
    payload: bytes,
    mount: Callable[[bytes], Any] | None,
    *parts: tuple[Registry, *tuple[Context, ...]],
    unsaved: Sequence[tuple[Registry, Context]] = (),
    in_file: Callable[[Query], bytes] | None = None,
) -> Page:
    """Draws `payload` by `mount`, and answers what is asked on the page: by `parts` (see `Page`), which its file holds
    too, and by those that are `unsaved`. The file draws the payload too, or what `in_file` makes of what is looked at.
    Returns the answers, for the charts below."""
    page = export.answers(in_file or payload, *parts)
    for registry, context in unsaved:
        page = page.with_registry(registry, context)
    if mount:
        mount(payload)
    courier("courier", page.answer, page.parts)
    return page


@EXPORT.question("export_python")
def export_python(export: Export, of: dict, row: int = 0, col: int = 0) -> Answer:
    return Answer(header={"lines": export.page.python({**of, "trace": export.digest}, row, col)})


@EXPORT.question("export_class_link")
def export_class_link(export: Export, address: str) -> Answer:
    return Answer(header=asdict(class_link(address)))


@EXPORT.question("export_data", returns={"file": ("byte",)})
def export_data(export: Export, of: dict, format: Format) -> np.ndarray:
    return np.frombuffer(data_file(export.page.table({**of, "trace": export.digest}), format), np.uint8)


@EXPORT.question("export_html", returns={"file": ("byte",)})
def export_html(
    export: Export, state: str, asked: list[Any], of: dict | None = None, row: int | None = None
) -> np.ndarray:
    """`state` is the part of the address after the #, `asked` the queries that the browser remembers."""
    ahead = export.carry(of or {}, row or 0) if export.carry else export.page.carried_queries()
    kept = answer_all(distinct(chain(asked, ahead)), export.page.answer, export.most, export.room)
    payload = export.payload if isinstance(export.payload, bytes) else export.payload(of or {})
    text = standalone_file(export.view, export.header, payload, state, kept, export.page_name)
    return np.frombuffer(text.encode(), np.uint8)


def standalone_file(
    view: str,
    header: Mapping[str, Any],
    payload: bytes,
    state: str,
    answers: Sequence[PackedAnswer] = (),
    page: str | None = None,
) -> str:
    """Returns the file of a view; `header` is entry "take" of its payload, `page` the page's name if not the view's."""
    link = f"/{page or view}?{urlencode(header['link'])}{state}"  # on whichever Loupe
    linked = f"In Loupe: {link}" if fit_address(header["link"]) == header["link"] else UNLINKED
    caption = caption_of(header), linked
    title = f"{header['title']} · Loupe"
    return self_contained(view, payload, title=title, caption=caption, state=state, answers=answers)


def caption_of(header: Mapping[str, Any]) -> str:
    """Says of which run a figure is: the model, what it read, what it was changed by."""
    return " · ".join(filter(None, (header["model"], header["read"], header["edits"])))


def distinct(queries: Iterable[Any]) -> Iterator[dict[str, Any]]:
    """Queries that ask for no export, each once."""
    seen = set[str]()
    for query in queries:
        key = json.dumps(query, sort_keys=True)
        if isinstance(query, dict) and query.get("ask") not in EXPORT.questions and key not in seen:
            seen.add(key)
            yield query
