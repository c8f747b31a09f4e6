"""Take away, on pages that show what a model is and costs, and not a run of it: tables, matrices, lines, links."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pages.controls.links import VERSION, VERSIONED
from pages.controls.take import STALE, UNKNOWN, Answer, alone, filed
from views.matrix_files import Matrix, as_file
from views.payload import pack
from views.table_files import FORMATS, Format, Table, table_file

Query = Mapping[str, Any]
Taken = Table | Matrix


@dataclass(frozen=True)
class Made:
    """What a view gives away. `made` names what it draws, so that nothing is taken that is no longer there.

    `lines` are the lines of Python for what the browser says is looked at, `tables` what there is to choose from by its
    title; where the browser names a matrix instead, `looked` finds it. `rows` are those of the toolbar.
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
    looked: Callable[[Query], Taken] | None = None
    data: str = "the table that is chosen"

    @property
    def header(self) -> dict[str, Any]:
        return {
            "title": self.title,
            "model": self.model,
            "read": self.read,
            "trace": self.made,
            "link": {VERSIONED: str(VERSION), **self.link},
            "version": VERSION,
            "controls": [],
            "rows": list(self.rows),
            "matrices": list(self.tables),
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
                case {"take": "html", "state": str(state)} if "file" in self.rows:
                    return filed(alone(self.view, self.header, payload, state).encode())
            raise ValueError(UNKNOWN)

        return answer

    def taken(self, query: Query) -> Taken:
        """Raises ValueError, with a sentence, for what is not there."""
        if self.looked is not None:
            return self.looked(query)
        name = query.get("matrix")
        if not isinstance(name, str) or name not in self.tables:
            raise ValueError(UNKNOWN)
        return self.tables[name]()


def refuse(query: dict[str, Any]) -> bytes:
    """For a page whose views ask nothing themselves."""
    raise ValueError(STALE if "take" in query else UNKNOWN)


def written(taken: Taken, format: Format) -> bytes:
    return table_file(taken, format) if isinstance(taken, Table) else as_file(taken, format)
