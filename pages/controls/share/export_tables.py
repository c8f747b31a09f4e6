"""Share & export, on pages that show what a model is and costs, and not a run of it: tables, matrices, lines, links."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from pages.controls.share.export import MOST_ANSWERS, STALE, UNKNOWN, Answer, answered, filed, standalone_file
from pages.controls.share.links import VERSION, VERSIONED, offered
from views.core.matrix_files import Matrix, as_file
from views.core.payload import pack
from views.core.table_files import FORMATS, Format, Table, table_file

Query = Mapping[str, Any]
Taken = Table | Matrix


@dataclass(frozen=True)
class Made:
    """What a view gives away. `made` names what it draws, so that nothing is taken that is no longer there.

    `lines` are the lines of Python for what the browser says is looked at, `tables` what there is to choose from by its
    title; where the browser names something else, one of `patterns` for example, `looked` finds it. `rows` are those of
    the toolbar, `controls` what a link can hide, `page` the page's name if not the view's. A file that works alone is
    given the answers to what was asked, and to what the view may ask `ahead`, at most `most` and as far as there is
    room.
    """

    title: str
    view: str
    model: str
    read: str
    made: str
    link: Mapping[str, str]
    lines: Callable[[Query], str]
    rows: Sequence[str] = ("link", "picture", "file", "python", "data")
    tables: Mapping[str, Callable[[], Taken]] = field(default_factory=dict)
    patterns: Sequence[str] = ()
    looked: Callable[[Query], Taken] | None = None
    data: str = "the table that is chosen"
    controls: Sequence[str] = ()
    page: str | None = None
    ahead: Callable[[Query], Iterable[dict[str, Any]]] = lambda _: ()
    most: int = MOST_ANSWERS

    @property
    def header(self) -> dict[str, Any]:
        return {
            "title": self.title,
            "model": self.model,
            "read": self.read,
            "trace": self.made,
            "link": {VERSIONED: str(VERSION), **self.link},
            "version": VERSION,
            "controls": offered(self.controls),
            "rows": list(self.rows),
            "matrices": [*self.tables, *self.patterns],
            "data": self.data,
        }

    def answering(self, payload: bytes, other: Answer) -> Answer:
        """In front of what the page's views ask, and of what its other toolbars do."""

        def answer(query: dict[str, Any]) -> bytes:
            if "take" not in query or query.get("trace") != self.made:
                return other(query)
            match query:
                case {"take": "python"}:
                    return pack({"lines": self.lines(query)}, {})
                case {"take": "data", "format": str(format)} if format in FORMATS:
                    return filed(written(self.taken(query), format))
                case {"take": "html", "state": str(state), "asked": list(asked)} if "file" in self.rows:
                    answers = answered(chain(asked, self.ahead(query)), other, self.most)
                    return filed(standalone_file(self.view, self.header, payload, state, answers, self.page).encode())
            raise ValueError(UNKNOWN)

        return answer

    def taken(self, query: Query) -> Taken:
        """Raises ValueError, with a sentence, for what is not there."""
        name = query.get("matrix")
        if isinstance(name, str) and name in self.tables:
            return self.tables[name]()
        if self.looked is None:
            raise ValueError(UNKNOWN)
        return self.looked(query)


def refuse(query: dict[str, Any]) -> bytes:
    """For a page whose views ask nothing themselves."""
    raise ValueError(STALE if "take" in query else UNKNOWN)


def written(taken: Taken, format: Format) -> bytes:
    return table_file(taken, format) if isinstance(taken, Table) else as_file(taken, format)
