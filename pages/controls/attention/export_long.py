"""Take away, on the page about attention where a text is too long to be drawn whole: one head of it at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

from pages.controls.share.export import (
    MOVED,
    MOVES,
    UNKNOWN,
    Answer,
    Taking,
    answered,
    fields_of,
    looked,
    standalone_file,
)
from views.attention.codegen_norms import moved_lines, moved_name
from views.attention.long import Head, Long
from views.attention.long_norms import values_of
from views.attention.long_prefetch import ahead_long
from views.core.codegen import Looked
from views.core.matrix_files import Matrix

ROOM = 3_600_000  # bytes of answers in a file, which holds little else


@dataclass(frozen=True)
class TakingLong(Taking):
    """`trace` holds no pattern: of the head that is looked at, `long` has it."""

    long: Long | None = None

    def written(self, query: Mapping[str, Any]) -> str:
        at, kind = looked(query), query.get(MOVED)
        if at is None or kind not in MOVES or "tab" in query:
            return super().written(query)
        head, subject = self.head_at(at), self.subject
        given = fields_of(subject)
        return moved_lines(subject.name, subject.checkpoint, given, self.trace, at, head.side, kind == "share")

    def python(self, at: Looked | None) -> str:
        if at is None:
            return super().python(None)
        self.head_at(at)
        return super().python(replace(at, alone=True))

    def head_at(self, at: Looked) -> Head:
        """The head that is looked at. Raises ValueError for a cell that it does not have."""
        rows, columns = self.matrix(at.hook, at.head).values.shape
        if not (0 <= at.row < rows and 0 <= at.col < columns):
            raise ValueError(UNKNOWN)
        return self.head(at.hook, at.head)

    def moved(self, pattern: Matrix, head: int, share: bool) -> Matrix:
        assert self.long is not None
        values = values_of(self.long, self.head(pattern.name, head), "share" if share else "length")
        return replace(pattern, name=moved_name(pattern.name, share), values=values.cpu().numpy())

    def html(self, payload: bytes, state: str, asked: Sequence[Any], other: Answer, at: Looked | None) -> str:
        assert self.long is not None
        head = self.head(at.hook, at.head) if at else self.long.shown
        queries = chain(asked, ahead_long(self.long, head, at.row if at else 0))
        answers = answered(queries, other, room=ROOM)
        return standalone_file("attention/long", self.header, payload, state, answers, self.view)

    def matrix(self, hook: str, head: int | None) -> Matrix:
        """Float32 weights, query key. Raises ValueError for what is no head's pattern of this run."""
        wanted = self.head(hook, head)
        assert self.long is not None
        values = self.long.pattern(wanted).detach().cpu().float().numpy()
        lane = next(lane for lane in self.lanes if lane.side == wanted.side)
        source = self.lanes[0] if wanted.focus == "cross_attn" else lane
        return Matrix(hook, self.subject.name, values, ("query", "key"), {"query": lane.pieces, "key": source.pieces})

    def head(self, hook: str, head: int | None) -> Head:
        for lane in self.lanes:
            attention = lane.config.attention
            for layer in range(lane.config.layers):
                for focus in ("attn", *(("cross_attn",) if lane.config.encoder else ())):
                    found = Head(lane.side, focus, layer, head if head is not None else -1)
                    if found.hook == hook and 0 <= found.head < attention.heads:
                        return found
        raise ValueError(UNKNOWN)
