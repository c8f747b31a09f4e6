"""Share & export: what a page gives a person to keep.

The link and the pictures are made in the browser; here are the self-contained file, the Python and the numbers,
made when they are asked for.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

import numpy as np

from engine.checkpoints import Checkpoint
from engine.inputs.readers import kind
from engine.runtime.trace import Trace
from pages.controls.model_input.model_input import FIELDS, Subject, given, seed
from pages.controls.share.links import VERSION, address_of, fitting, offered
from views.attention.codegen_norms import norm_lines, norm_matrix
from views.core.codegen import Fields, Looked, lines
from views.core.export import Answered, packed, self_contained
from views.core.export_prefetch import ahead
from views.core.matrix_files import Matrix, as_file, matrix_of
from views.core.payload import pack
from views.core.table_files import FORMATS
from views.walkthrough.walkthrough import Lane, digest

Answer = Callable[[dict[str, Any]], bytes]

STALE = "The text, the model or the edits have changed since; ask again."
UNKNOWN = "The page asked for something that cannot be taken away; reload the page."
UNLINKED = "The text is too long for a link; paste it into Loupe to see this there."
MOST_ANSWERS = 1000  # of what a view asks, in one file
MOST_BYTES = 3_000_000  # of those answers, as they stand in the file
LEAST = 300  # bytes of one of them
MOVED, MOVES = "moved", ("length", "share")  # of a map that shows what weights move in place of weights


@dataclass(frozen=True)
class Taking:
    """A page's title and module, and the run that it draws. `controls` are keys of what stands above the picture."""

    title: str
    view: str
    subject: Subject
    trace: Trace
    lanes: Sequence[Lane]
    controls: tuple[str, ...] = ()

    @property
    def header(self) -> dict[str, Any]:
        """For the payload's header: by it the browser knows that there is something to take, and how to call it."""
        fields = FIELDS[kind(self.subject.checkpoint)]
        texts = [str(given(field)) for field in fields if field not in ("picture", "given") and given(field)]
        read = " · ".join(texts) if texts else f"picture {given('picture')}"
        here = [*fields, "model", *self.controls]
        return {
            "title": self.title,
            "model": self.subject.name,
            "read": read,
            "link": address_of(self.subject.name, fields, self.controls),
            "version": VERSION,
            "controls": offered(here),
        }

    def answering(self, payload: bytes, other: Answer) -> Answer:
        """What the toolbar asks, in front of what the page's views ask; `payload` is what the view draws."""

        def answer(query: dict[str, Any]) -> bytes:
            if "take" not in query:
                return other(query)
            if query.get("trace") != digest(self.subject.name, self.trace):
                raise ValueError(STALE)
            match query:
                case {"take": "python"}:
                    return pack({"lines": self.written(query)}, {})
                case {"take": "data", "hook": str(hook), "format": str(format)} if format in FORMATS:
                    head = query.get("head")
                    matrix = self.matrix(hook, head if isinstance(head, int) else None)
                    if isinstance(head, int) and query.get(MOVED) in MOVES:
                        matrix = self.moved(matrix, head, query[MOVED] == "share")
                    return filed(as_file(matrix, format))
                case {"take": "html", "state": str(state), "asked": list(asked)}:
                    return filed(self.html(payload, state, asked, other, looked(query)).encode())
            raise ValueError(UNKNOWN)

        return answer

    def written(self, query: Mapping[str, Any]) -> str:
        at = looked(query)
        if at is None or at.head is None or query.get(MOVED) not in MOVES:
            return self.python(at)
        more = norm_lines(self.trace, at.hook, at.head, at.row, at.col, query[MOVED] == "share")
        return "\n".join([self.python(None).rstrip("\n"), *more]) + "\n"

    def python(self, at: Looked | None) -> str:
        subject = self.subject
        return lines(subject.name, subject.checkpoint, fields_of(subject), self.trace, at)

    def matrix(self, hook: str, head: int | None) -> Matrix:
        return matrix_of(self.trace, self.lanes, self.subject.name, hook, head)

    def moved(self, pattern: Matrix, head: int, share: bool) -> Matrix:
        """What the weights of a pattern move, in their place."""
        return norm_matrix(self.subject.checkpoint, self.trace, pattern, head, share)

    def html(self, payload: bytes, state: str, asked: Sequence[Any], other: Answer, at: Looked | None) -> str:
        queries = [*asked, *ahead(self.view, digest(self.subject.name, self.trace), self.lanes)]
        return standalone_file(self.view, self.header, payload, state, answered(queries, other))


def standalone_file(
    view: str,
    header: Mapping[str, Any],
    payload: bytes,
    state: str,
    answers: Sequence[Answered] = (),
    page: str | None = None,
) -> str:
    """The file of a view; `header` is what its payload says under "take", `page` the page's name if not the view's."""
    link = f"/{page or view}?{urlencode(header['link'])}{state}"  # on whichever Loupe
    linked = f"In Loupe: {link}" if fitting(header["link"]) == header["link"] else UNLINKED
    caption = (" · ".join(filter(None, (header["model"], header["read"]))), linked)
    title = f"{header['title']} · Loupe"
    return self_contained(view, payload, title=title, caption=caption, state=state, answers=answers)


def filed(content: bytes) -> bytes:
    """A file as the toolbar takes it."""
    return pack({}, {"file": np.frombuffer(content, np.uint8)})


def looked(query: Mapping[str, Any]) -> Looked | None:
    """The element that a browser says is looked at, or None where it names none."""
    match query:
        case {"hook": str(hook), "row": int(row), "col": int(col)}:
            head = query.get("head")
            return Looked(hook, head if isinstance(head, int) else None, row, col)
    return None


def answered(
    queries: Iterable[Any], other: Answer, most: int = MOST_ANSWERS, room: int = MOST_BYTES
) -> list[Answered]:
    """The queries that can be answered, each once, up to `most` of them and `room` bytes."""
    found: list[Answered] = []
    seen = set[str]()
    for query in queries:
        if len(found) == most or room < LEAST:
            break
        key = json.dumps(query, sort_keys=True)
        if not isinstance(query, dict) or "take" in query or key in seen:
            continue
        seen.add(key)
        try:
            payload = other(query)
        except ValueError:
            continue
        answer = Answered(query, packed(payload))
        if len(answer.packed) <= room:
            found.append(answer)
            room -= len(answer.packed)
    return found


def fields_of(subject: Subject) -> Fields:
    """What stands in the page's fields now."""
    return fields_said(subject.checkpoint, subject.limit, given)


def fields_said(checkpoint: Checkpoint, limit: int, said: Callable[[str], Any]) -> Fields:
    """`said` gives what stands in a field by its name."""
    asked = kind(checkpoint)
    here = FIELDS[asked]
    own = bool(said("upload"))
    return Fields(
        kind=asked,
        limit=limit,
        **{field: said(field) for field in ("text", "second", "target", "span", "given") if field in here},
        picture=None if own or "picture" not in here else int(said("picture")),
        settings={key: said(key) for key in ("temperature", "top_k", "top_p")} if asked == "pixels" else {},
        seed=seed(),
    )
