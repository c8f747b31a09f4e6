"""A text too long to be drawn whole, on the page about attention: its view, and the edits that it is run with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from engine.analysis.overview_cache import LongRun
from engine.edits import Edit
from engine.edits.experiment import Experiment
from engine.runtime import library
from engine.runtime.trace import Trace
from engine.tokenizers.encoding import Encoding
from pages.controls.model_input.model_input import Subject, look, notice
from pages.controls.share.export import Export
from pages.controls.share.run_export import fields_of, run_export
from pages.controls.what_if.adapters import known_adapters
from pages.controls.what_if.experiment import (
    current,
    finite,
    guessed_at,
    run_fitting,
    show,
    shown_picture,
    write_on,
)
from views.attention.long import LongContext, attention_long, long_context
from views.attention.long_questions import ATTENTION, carry_long
from views.core.component import plotly_address
from views.core.lanes import Lane
from views.core.payload import pack
from views.core.questions import Page
from views.core.run_context import RUN
from views.what_if.effects_long import asked_later_long, effects_long
from views.what_if.experiment import editable
from views.what_if.paint_ground import painted_on_long
from views.what_if.questions import WHAT_IF, EditsContext

ROOM = 3_600_000  # bytes of answers in a file, which holds little else


def long_text(subject: Subject, lanes: Sequence[Lane], controls: Sequence[Edit]) -> tuple[bytes, Page, Export]:
    """Payload (all heads as overviews, one in tiles), answers and export of the page; draws what edits changed.

    `controls` are the edits that the page's own controls make.
    """
    made = current()
    adapters = known_adapters(subject.name, subject.checkpoint, made)
    before = run(subject, lanes, controls)
    after, unfit = run_edits(subject, lanes, controls, made, before)
    changed = after.made.edits != before.made.edits
    hidden = changed and guessed_at(after.digest)
    long = before if hidden else after
    compared = effects_long(before, after, subject.reading, hidden=hidden) if changed else pack({"trace": None}, {})
    model = editable(subject.checkpoint, run_beginning(subject), lanes, shown_picture(), adapters)
    show(made, model, unfit, compared, after.digest)
    export = run_export(
        "Attention", "attention", subject, long, ("attention", "what if"), carry=partial(carry_long, long), room=ROOM
    )
    about = {"notice": notice(subject), "take": export.header, "plotly": plotly_address()}
    drawn = attention_long(long, name=subject.name, look=look(), notes=about)
    edits = LongEdits(subject, lanes, controls, before, after)
    return drawn, export.answers(drawn, (RUN, long), (ATTENTION, long), (WHAT_IF, edits)), export


@dataclass(frozen=True)
class LongEdits(EditsContext):
    """A long text's run, without the edits and with them."""

    subject: Subject
    lanes: Sequence[Lane]
    controls: Sequence[Edit]
    before: LongContext
    after: LongContext

    @property
    def digest(self) -> str:
        return self.after.digest

    @property
    def model_name(self) -> str:
        return self.subject.name

    def shift(self, row: int) -> bytes:
        return self.later({"effects": "row", "row": row})

    def heads_moved(self, attention: str, layer: int) -> bytes:
        return self.later({"effects": "heads", "attention": attention, "layer": layer})

    def continuation(self) -> bytes:
        return write_on(self.subject, self.before.made.edits, self.after.made.edits)

    def later(self, query: dict[str, Any]) -> bytes:
        return asked_later_long(query, self.before, self.after, self.subject.reading, self.continuation)

    def ground(
        self, side: str, focus: str, layer: int, head: int, without: int | None, rows: tuple[int, int] | None
    ) -> bytes:
        query = {"painted": focus, "side": side, "layer": layer, "head": head, "rows": rows and list(rows)}
        return painted_on_long(self.without(without), query)

    def without(self, number: int | None) -> LongContext:
        """The run that an edit is painted on: without that edit, where it is one of those that are made already."""
        made = current()
        if number is None or not 0 <= number < len(made.entries):
            return self.after
        return run_edits(self.subject, self.lanes, self.controls, made.switch(number, False), self.before)[0]


def run_beginning(subject: Subject) -> Trace:
    """A run on the first token, in which every value has its name; of a picture, which has no first part, on all."""
    read, target = subject.reading.read, subject.reading.target
    if isinstance(read, Encoding):
        read, target = read.first(1), target and target.first(1)
    return library.traces.trace(subject.name, read, (), target)


def run(subject: Subject, lanes: Sequence[Lane], edits: Sequence[Edit], base: LongContext | None = None) -> LongContext:
    """Runs the model on a long text; from a `base`, only what the difference in edits can change is computed again."""
    read = subject.reading
    made = LongRun(subject.checkpoint.model, read.read, tuple(edits), read.target)
    start, fields = base.made if base is not None else None, partial(fields_of, subject)
    found = long_context(subject.name, subject.checkpoint, lanes, made, look(), start, fields)
    finite(found.trace)
    return found


def run_edits(
    subject: Subject, lanes: Sequence[Lane], controls: Sequence[Edit], made: Experiment, before: LongContext
) -> tuple[LongContext, dict[int, str]]:
    """The run under the edits that are on and fit, and by its number why another does not."""
    return run_fitting(made, controls, lambda edits: run(subject, lanes, edits, before), lambda: before)
