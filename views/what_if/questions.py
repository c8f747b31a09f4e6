"""What the panel What if and the effects below it ask, of a run that is drawn whole and of one of a long text."""

from __future__ import annotations

from abc import ABC, abstractmethod

from views.core.questions import BareContext, Registry

WHAT_IF = Registry()


class EditsContext(BareContext, ABC):
    """A run before its edits and after them, as the questions see it. Methods raise ValueError, with a sentence."""

    no_script = "What edits did has no script of its own; the page's own Python has the edits."

    @property
    @abstractmethod
    def digest(self) -> str:
        """Name of the run after the edits."""

    @property
    @abstractmethod
    def model_name(self) -> str: ...

    @abstractmethod
    def shift(self, row: int) -> bytes:
        """Change of the distribution at a position; of an answer, at its start (0) or its end (1)."""

    @abstractmethod
    def heads_moved(self, attention: str, layer: int) -> bytes:
        """Share of the weight that moved, by head of one block."""

    @abstractmethod
    def continuation(self) -> bytes:
        """Greedy continuations, or completed pictures, before the edits and after them."""

    @abstractmethod
    def ground(
        self, side: str, focus: str, layer: int, head: int, without: int | None, rows: tuple[int, int] | None
    ) -> bytes:
        """Mask and pattern of a head to paint on: of the run without edit number `without`, where that is one."""


@WHAT_IF.question("edit_shift")
def ask_shift(edits: EditsContext, row: int) -> bytes:
    return edits.shift(row)


@WHAT_IF.question("edit_heads")
def ask_heads(edits: EditsContext, attention: str, layer: int) -> bytes:
    return edits.heads_moved(attention, layer)


@WHAT_IF.question("edit_continuation")
def ask_continuation(edits: EditsContext) -> bytes:
    return edits.continuation()


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
    return edits.ground(side, focus, layer, head, without, rows)
