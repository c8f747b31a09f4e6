"""A page's component, the answers to what is asked on it, and its Share & export: rows of assets/views/share/share.js,
for the self-contained file, and Python and numbers of the question in view.

The link and the pictures are made in the browser; all else is made when it is asked for.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from itertools import chain
from typing import Any
from urllib.parse import urlencode

import numpy as np

from pages.controls.share.class_link import class_link
from pages.controls.share.hiding import hideable_controls
from pages.controls.share.links import VERSION, VERSIONED, fit_address
from pages.controls.share.rows import ROWS
from pages.controls.state.session import SessionValue, widget_value
from pages.controls.words import translate
from pages.controls.words import translate as _
from views.core.component import TURNED, courier
from views.core.export import MOST_ANSWERS, MOST_BYTES, PackedAnswer, answer_all, self_contained
from views.core.matrix_files import Matrix, as_file
from views.core.questions import Answer, BareContext, Context, Page, Query, Registry
from views.core.table_files import Format, Table, table_file

EXPORT = Registry()
# What the page on screen has to export of its charts, by key.
BELOW = SessionValue[dict[str, Page]]("exports of charts", dict)
UNLINKED = "The text is too long for a link; paste it into Loupe to see this there."
ROOM = 3_600_000  # the same, of a file that holds little else
MOST_ROWS = 2**20  # of a table; what spreadsheets open


@dataclass
class Export(BareContext):
    """Export of the component `view` about `context`, which its questions are about; `read` is what that reads.

    `tables` are the questions of the data to choose from, by their titles; without any, or with the title "", it is
    that of what is looked at.
    `edits` says in words what was changed of the run, for captions.
    `rows` are names of ROWS. `link` is the query of a link, or makes it when somebody copies it; `controls` are keys of
    what it can hide, `hidden` of what each link for a class hides, `page_name` is the page's if not the view's.
    `predicts` says that a link can ask for a guess first. Files are called by `title` and `names`: the model, what is
    chosen in it. Several exports of a page each have a `key`, and a `label` where it tells them apart. `html` makes the
    file of what is no component.
    A file draws `payload` and carries at most `most` answers within `room` bytes: to the queries that were asked, and
    those that `carry` lists for what is looked at (a query, and its row) or else the page's questions do.
    """

    title: str
    view: str
    context: Context
    read: str
    link: Mapping[str, str] | Callable[[], Mapping[str, str]]
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
    rows: Sequence[str] = ("link", "class", "picture", "file", "python", "data")
    names: Sequence[str] = ()
    hidden: Sequence[str] = ()
    key: str = ""
    label: str = ""
    html: Callable[[], str] | None = None

    @property
    def digest(self) -> str:
        return self.key or self.context.digest

    @property
    def model_name(self) -> str:
        return self.context.model_name

    @property
    def header(self) -> dict[str, Any]:
        """Entry `take` of the payload's header, by which the browser knows what there is to export."""
        named = {title: query for title, query in self.tables.items() if query}
        chosen = {"tables": named, "matrices": [*self.tables], "data": self.data} if self.tables else {}
        model = self.model or self.context.model_name
        return {
            "title": self.title,
            "model": model,
            "names": [*filter(None, (self.title, *(self.names or [model])))],
            "read": self.read,
            "edits": self.edits,
            "trace": self.digest,
            "link": None if callable(self.link) else {VERSIONED: str(VERSION), **self.link},
            "version": VERSION,
            "controls": [[key, translate(name)] for key, name in hideable_controls(self.controls)],
            "hidden": [*self.hidden],
            "open": translate(self.label) if self.label else _("Share & export"),
            "rows": [{"row": name, **ROWS[name]()} for name in self.rows],
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
    if widget_value(TURNED, False):
        BELOW.get().clear()
    courier("courier", partial(answer_on, page), page.parts)
    return page


def answer_on(page: Page, query: Query) -> bytes:
    """Answers a question about the page, or about what its charts export."""
    return BELOW.get().get(str(query.get("trace")), page).answer(query)


@EXPORT.question("export_python")
def export_python(export: Export, of: dict, row: int = 0, col: int = 0) -> Answer:
    return Answer(header={"lines": export.page.python({**of, "trace": export.context.digest}, row, col)})


@EXPORT.question("export_link")
def export_link(export: Export) -> Answer:
    return Answer(header={"link": export.link() if callable(export.link) else export.link})


@EXPORT.question("export_class_link")
def export_class_link(export: Export, address: str) -> Answer:
    return Answer(header=asdict(class_link(address)))


@EXPORT.question("export_data", returns={"file": ("byte",)})
def export_data(export: Export, of: dict, format: Format) -> np.ndarray:
    return np.frombuffer(data_file(export.page.table({**of, "trace": export.context.digest}), format), np.uint8)


@EXPORT.question("export_html", returns={"file": ("byte",)})
def export_html(
    export: Export, state: str, asked: list[Any], of: dict | None = None, row: int | None = None
) -> np.ndarray:
    """`state` is the part of the address after the #, `asked` the queries that the browser remembers."""
    if export.html:
        return np.frombuffer(export.html().encode(), np.uint8)
    ahead = export.carry(of or {}, row or 0) if export.carry else export.page.carried_queries()
    kept = answer_all(distinct(chain(asked, ahead)), export.page.answer, export.most, export.room)
    payload = export.payload if isinstance(export.payload, bytes) else export.payload(of or {})
    text = standalone_file(export.view, export.header, payload, state, kept, export.page_name)
    return np.frombuffer(text.encode(), np.uint8)


def data_file(data: Table | Matrix, format: Format) -> bytes:
    """Raises ValueError for a table of more rows than a program that reads tables opens."""
    rows = data.values.size if isinstance(data, Matrix) else len(next(iter(data.columns.values())))
    if rows > MOST_ROWS and format != "npz":
        raise ValueError(f"This table has {rows:,} rows and a {format} file takes {MOST_ROWS:,}; choose npz.")
    return table_file(data, format) if isinstance(data, Table) else as_file(data, format)


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
