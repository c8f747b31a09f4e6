"""A model that reads a prompt and what is written behind it under edits, or while one of its values is looked at."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from engine.edits import AnchoredEdit, Edit
from engine.generation.prompt import LAST, Prompt, Reader
from engine.model.hooks import active
from engine.runtime.batch import Input
from engine.runtime.recording import Recording
from engine.runtime.run import layer_of, layers_of, resolve_edits, run


def fit_edits(prompt: Prompt, edits: Sequence[Edit]) -> tuple[Edit, ...]:
    """The edits of a prompt as they apply to it and to what follows it, with the values they name."""
    if not edits:
        return ()
    source = prompt.encoder_input
    read: tuple[Input, Input | None] = (prompt.ids, None) if source is None else (source, prompt.ids)
    return tuple(AnchoredEdit(edit, len(prompt.ids)) for edit in resolve_edits(prompt.checkpoint.model, edits, *read))


class EditedReader:
    """Reader under `edits`; of a hook that is `watched`, `seen` is the value at the positions read last.

    A cache holds what the prompt's positions gave, so that edits of those alone are over once it is read. Where an edit
    lets a position depend on what comes after it, all is read again for each token.
    """

    def __init__(self, prompt: Prompt, room: int, edits: tuple[Edit, ...], watched: str | None = None) -> None:
        self.model, self.edits, self.watched = prompt.checkpoint.model, edits, watched
        self.source = prompt.encoder_input
        self.rows: list[tuple[int, ...]] = []
        self.recording = Recording(self.model, frozenset({watched} if watched else ()), edits, None)
        again = any(self.reads_again(edit, name) for name, found in self.recording.edits.items() for edit in found)
        self.cached = None if again else Reader(prompt, room, slice(None) if watched else LAST)
        self.seen = torch.empty(0)

    def reads_again(self, edit: Edit, name: str) -> bool:
        reach = edit.reach(self.model.hooks[name])
        config = self.model.config
        behind = layer_of(name, layers_of(self.model), config.encoder.layers if config.encoder else 0)
        return reach == "whole" or (reach == "prompt" and behind == layers_of(self.model))  # of which the last is read

    def read(self, rows: Sequence[Sequence[int]]) -> Tensor:
        """batch vocab, as `Reader.read`."""
        before = self.rows or [()] * len(rows)
        self.rows = [(*old, *new) for old, new in zip(before, rows, strict=True)]
        if self.cached is None:
            return self.read_again()
        with active(self.recording):
            logits = self.cached.read(rows)
        if self.watched:
            self.seen = self.recording.values[self.watched]
        self.recording = self.recording.behind()
        return logits

    def read_again(self) -> Tensor:
        keep = ("logits", self.watched) if self.watched else ("logits",)
        read: tuple[Input, Input | None] = (self.rows, None)
        if self.source is not None:
            read = (self.source.expand(len(self.rows), *self.source.shape[1:]), self.rows)
        trace = run(self.model, read[0], keep, self.edits, target=read[1])
        if self.watched:
            self.seen = trace[self.watched]
        return trace["logits"][:, -1]

    def reorder(self, rows: Sequence[int]) -> None:
        """Reorders the rows as `Reader.reorder` does."""
        self.rows = [self.rows[row] for row in rows]
        if self.cached is not None:
            self.cached.reorder(rows)
