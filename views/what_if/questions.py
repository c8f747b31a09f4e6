"""What the panel What if and the effects below it ask, of a run that is drawn whole and of one of a long text."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from engine.inputs.readers import Reading
from views.core.decision import decision_of
from views.core.payload import pack
from views.core.questions import BareContext, Registry
from views.core.run_context import HeadOfRun, Run
from views.what_if.effects import moved_heads, shift_payload
from views.what_if.paint_ground import painted_on

WHAT_IF = Registry()


@dataclass(frozen=True)
class EditsContext(BareContext):
    """A run before its edits and after them. `without` is the run without one of the edits, by its number; `write` how
    it goes on under both."""

    before: Run
    after: Run
    reading: Reading
    without: Callable[[int | None], Run]
    write: Callable[[], bytes]

    no_script = "What edits did has no script of its own; the page's own Python has the edits."

    @property
    def digest(self) -> str:
        return self.after.digest

    @property
    def model_name(self) -> str:
        return self.after.model_name


@WHAT_IF.question("edit_shift")
def ask_shift(edits: EditsContext, row: int) -> bytes:
    """Change of the distribution at a position; of an answer, at its start (0) or its end (1)."""
    decision = decision_of(edits.after.checkpoint, edits.reading)
    return shift_payload(edits.before, edits.after, decision, row)


@WHAT_IF.question("edit_heads")
def ask_heads(edits: EditsContext, attention: str, layer: int) -> bytes:
    """Share of the weight that moved, by head of one block."""
    return pack({}, {"moved": moved_heads(edits.before, edits.after, attention, layer)})


@WHAT_IF.question("edit_continuation")
def ask_continuation(edits: EditsContext) -> bytes:
    """Greedy continuations, or completed pictures, before the edits and after them."""
    return edits.write()


@WHAT_IF.question("edit_ground")
def ask_ground(
    edits: EditsContext,
    side: str,
    focus: str,
    layer: int,
    head: int,
    without: int | None = None,
    rows: tuple[int, int] | None = None,
) -> bytes:
    """Mask and pattern of a head to paint on: of the run without edit number `without`, where that is one."""
    return painted_on(edits.without(without), HeadOfRun(side, focus, layer, head), rows)
