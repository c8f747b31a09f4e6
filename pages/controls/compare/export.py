"""Take away, on the page about comparisons: of two runs or more, and of what they differ in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Any

import streamlit as st

from engine.inputs.readers import kind
from pages.controls.attention.long_text import ROOM
from pages.controls.compare.defaults import PICTURE, RUN, key
from pages.controls.compare.picture import standing
from pages.controls.compare.run import LIMIT, Side
from pages.controls.compare.runs import in_address
from pages.controls.model_input.model_input import FIELDS
from pages.controls.share.export import STALE, UNKNOWN, Answer, answered, fields_said, filed, standalone_file
from pages.controls.share.links import VERSION, VERSIONED, offered
from views.compare.codegen import comparison_lines
from views.compare.compare import ahead, named
from views.compare.long import ahead_long_comparison
from views.compare.pair import Compared
from views.compare.tables import looked_at, matrix, names
from views.core.codegen import Fields
from views.core.matrix_files import as_file
from views.core.payload import pack
from views.core.table_files import FORMATS

VIEW, LONG_VIEW = "compare", "compare/long"
TOGETHER = "sides together"  # the key of what swaps, copies and adds sides


@dataclass(frozen=True)
class Comparing:
    """The sides as they stand in the controls, and the pairs that are drawn."""

    sides: Sequence[Side]
    pairs: Sequence[Compared]

    @property
    def header(self) -> dict[str, Any]:
        link = {VERSIONED: str(VERSION)}
        for side in self.sides:
            link |= in_address(side.letter)
        titles = list(dict.fromkeys(side.title for side in self.sides))
        return {
            "title": "Compare",
            "model": " and ".join(titles),
            "read": " · ".join(f"{side.letter}: {read_by(side)}" for side in self.sides),
            "link": link,
            "version": VERSION,
            "controls": offered(chain.from_iterable(controls(side) for side in self.sides)) + offered([TOGETHER]),
            "matrices": names(self.pairs),
        }

    def answering(self, payload: bytes, other: Answer) -> Answer:
        """As `Taking.answering`."""

        def answer(query: dict[str, Any]) -> bytes:
            if "take" not in query:
                return other(query)
            if query.get("trace") != named(self.pairs):
                raise ValueError(STALE)
            match query:
                case {"take": "python"}:
                    return pack({"lines": self.python(query)}, {})
                case {"take": "data", "matrix": str(name), "format": str(format)} if (
                    format in FORMATS and name in names(self.pairs)
                ):
                    return filed(as_file(matrix(self.pairs, looked_at(query, self.pairs), name), format))
                case {"take": "html", "state": str(state), "asked": list(asked)}:
                    return filed(self.html(payload, state, asked, other, query).encode())
            raise ValueError(UNKNOWN)

        return answer

    def html(self, payload: bytes, state: str, asked: Sequence[Any], other: Answer, query: dict[str, Any]) -> str:
        if self.sides[0].long is None:
            return standalone_file(VIEW, self.header, payload, state, answered([*asked, *ahead(self.pairs)], other))
        more = ahead_long_comparison(self.pairs, looked_at(query, self.pairs))
        answers = answered(chain(asked, more), other, room=ROOM)
        return standalone_file(LONG_VIEW, self.header, payload, state, answers, VIEW)

    def python(self, query: dict[str, Any]) -> str:
        given = {side.letter: fields_of(side) for side in self.sides}
        return comparison_lines(self.pairs, given, looked_at(query, self.pairs))


def controls(side: Side) -> list[str]:
    """The keys of what stands in a side's row."""
    stepped = st.session_state[key(side.letter, "model")].startswith(RUN)
    fields = ("model", *(("step",) if stepped else ()), "edits", *FIELDS[kind(side.checkpoint)])
    return [key(side.letter, field) for field in fields]


def read_by(side: Side) -> str:
    """What a side reads, for a caption."""
    fields = [field for field in FIELDS[kind(side.checkpoint)] if field not in ("picture", "given")]
    texts = [str(text) for field in fields if (text := standing(side.letter, field))]
    if texts:
        return " / ".join(texts)
    return "a picture of one’s own" if standing(side.letter, PICTURE) else f"picture {standing(side.letter, 'picture')}"


def fields_of(side: Side) -> Fields:
    return fields_said(side.checkpoint, LIMIT, partial(standing, side.letter))

