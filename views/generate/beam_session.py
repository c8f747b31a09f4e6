"""A beam search that goes on when it is asked to, so that what it has found is seen, and nobody must await its end."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import replace
from threading import Lock

from torch import Tensor

from engine.generation.beam import BeamStep, search
from engine.generation.generate import Step
from engine.generation.stopping import Stop, stopping
from views.generate.beam_search import Greedy, Search, Wanted
from views.generate.session import Writing

Token = tuple[int, Tensor, Stop | None]  # its log-probability is an array without axes


class Searching:
    """It goes on by a step of the search, and by a token of the greedy text beside it. Of what is over no KV cache is
    kept. Raises ValueError where there is no room for a token, and for stop strings that no text can hold."""

    def __init__(self, writing: Writing, wanted: Wanted) -> None:
        ending = stopping(writing.prompt, wanted.tokens, True, wanted.greedy.strings)
        if not ending.room:
            raise ValueError(f"{ending.limit.sentence} There is nothing to search.")
        self.writing, self.beam, self.room = writing, wanted.beam, ending.room
        self.search: Iterator[BeamStep] | None = search(ending, wanted.beam)
        self.text: Iterator[Step] | None = writing.generating(wanted.greedy, wanted.tokens)
        self.steps: list[BeamStep] = []
        self.tokens: list[Token] = []
        self.count = 0
        self.one_at_a_time = Lock()

    @property
    def is_over(self) -> bool:
        return self.search is None and self.text is None

    def go_on(self) -> None:
        behind = self.count
        with self.one_at_a_time:
            if self.count == behind and not self.is_over:
                self.go_on_alone()

    def go_on_alone(self) -> None:
        if self.search is not None:
            step = next(self.search)
            self.steps.append(step)
            if self.beam.is_over(step, self.room):
                self.search = None
        if self.text is not None:
            token = next(self.text)
            own = token.logits.float().log_softmax(-1)[token.id].cpu()
            self.tokens.append((token.id, own, token.stopped))
            if token.stopped is not None:
                self.text = None
        self.count += 1

    def found(self, wanted: Wanted, most: int | None = None) -> Search:
        """In the first `most` times that it went on."""
        with self.one_at_a_time:
            count = self.count if most is None else min(most, self.count)
            greedy = Greedy.of(self.tokens[:count])
            return Search(self.writing, wanted, tuple(self.steps[:count]), greedy, self.is_over and count == self.count)


def searched(writing: Writing, wanted: Wanted, most: int | None = None) -> Search:
    """All of it, or the first `most` steps. Raises ValueError as `Searching`."""
    with searching(writing, wanted) as one:
        while not one.is_over and (most is None or one.count < most):
            one.go_on()
        return one.found(wanted, most)


def searching(writing: Writing, wanted: Wanted) -> AbstractContextManager[Searching]:
    """The one that waits, or one that begins, which waits again afterwards."""
    key = (writing.made, replace(wanted, best=1))  # how many are shown changes nothing
    return writing.live.holding(key, lambda: Searching(writing, wanted))
