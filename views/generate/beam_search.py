"""A beam search with every hypothesis that it considered, and the text that greedy finds beside it. It goes on when
it is asked to, so that what it has found is seen, and nobody must await its end."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import cached_property
from threading import Lock

import torch
from torch import Tensor

from engine.checkpoints import Checkpoint
from engine.checkpoints.generation_defaults import choose_setting
from engine.generation.beam import Beam, BeamStep, EarlyStopping, Hypothesis, search
from engine.generation.generate import Step
from engine.generation.stopping import Stop, stopping_rules
from engine.places import ASSETS
from views.core.questions import UNKNOWN
from views.generate.session import GenerationContext, Query, Settings, usual_settings

EXAMPLES = tomllib.loads((ASSETS / "texts" / "beam.toml").read_text())["examples"]
MOST = {"beams": 10, "tokens": 64}
PENALTIES = (-2.0, 5.0)
EARLY: Mapping[str, EarlyStopping] = {"no": False, "yes": True, "never": "never"}
STATES = ("kept", "finished", "pruned")  # as the browser counts them
Place = tuple[int, int]  # step, rank


@dataclass(frozen=True)
class BeamOptions:
    """Options of a search: `penalty` is the length penalty, `best` how many texts are asked for; `stop_at` as in
    Settings."""

    beams: int = 4
    penalty: float = 1.0
    best: int = 3
    early: str = "no"
    tokens: int = 20
    stop_at: str = ""

    @classmethod
    def from_query(cls, query: Query) -> BeamOptions:
        """Reads what a browser asks. Raises ValueError, with a sentence, for what cannot be searched."""
        match query:
            case {"beams": int(beams), "penalty": int() | float() as penalty, "best": int(best),
                  "early": str(early), "tokens": int(tokens), "stop_at": str(stop_at)}:  # fmt: skip
                found = cls(beams, float(penalty), best, early, tokens, stop_at)
                found.check()
                return found
        raise ValueError(UNKNOWN)

    def check(self) -> None:
        for name, most in MOST.items():
            if not 1 <= getattr(self, name) <= most:
                raise ValueError(f"{name} must lie in 1..{most}, got {getattr(self, name)}.")
        if not 1 <= self.best <= self.beams:
            raise ValueError(f"the n best must lie in 1..{self.beams}, the number of beams, got {self.best}.")
        low, high = PENALTIES
        if not low <= self.penalty <= high:  # NaN too
            raise ValueError(f"the length penalty must lie in {low:g}..{high:g}, got {self.penalty}.")
        if self.early not in EARLY:
            raise ValueError(f"early stopping must be one of {', '.join(EARLY)}, got {self.early[:20]!r}.")

    @property
    def beam(self) -> Beam:
        return Beam(self.beams, self.penalty, EARLY[self.early])

    def greedy(self, checkpoint: Checkpoint) -> Settings:
        """Steps of greedy writing that ends where the search does."""
        usual = usual_settings(checkpoint)
        return replace(usual, method="greedy", most=self.tokens, stop_at=self.stop_at)

    @classmethod
    def from_checkpoint(cls, checkpoint: Checkpoint) -> BeamOptions:
        """Options at which a checkpoint asks to be searched, as far as the page goes."""
        asked, usual, (low, high) = checkpoint.writing.beams, cls(), PENALTIES
        early = {value: name for name, value in EARLY.items()}[choose_setting(None, asked.early_stopping, False)]
        penalty = choose_setting(None, asked.length_penalty, usual.penalty)
        beams = min(asked.num_beams or 1, MOST["beams"])
        beams = usual.beams if beams == 1 else beams
        return replace(
            usual, beams=beams, best=min(usual.best, beams), penalty=min(max(penalty, low), high), early=early
        )


@dataclass(frozen=True)
class GreedyText:
    """The text that greedy finds, with the log-probability (nats) of each token, and their sum so far."""

    ids: tuple[int, ...]
    own: Tensor
    total: Tensor
    stopped: Stop | None

    @classmethod
    def from_tokens(cls, tokens: Sequence[tuple[int, Tensor, Stop | None]]) -> GreedyText:
        """Arrays of id, log-probability and end of each token."""
        ids, own, stops = zip(*tokens, strict=True)
        logs = torch.stack(own)
        return cls(ids, logs, logs.cumsum(0), stops[-1])


@dataclass(frozen=True)
class Search:
    """A search, or its first steps. `nodes` are all hypotheses, step by step, the most probable first."""

    writing: GenerationContext
    wanted: BeamOptions
    steps: tuple[BeamStep, ...]
    greedy: GreedyText
    is_over: bool = True

    @cached_property
    def nodes(self) -> tuple[Hypothesis, ...]:
        return tuple(one for step in self.steps for one in step.candidates)

    @cached_property
    def index(self) -> Mapping[Place, int]:
        return {(len(one.ids) - 1, one.rank): at for at, one in enumerate(self.nodes)}

    @property
    def best(self) -> tuple[Hypothesis, ...]:
        """Best of those that are finished; before it is over there may be none."""
        return self.steps[-1].best[: self.wanted.best]

    @property
    def best_open(self) -> Hypothesis:
        """The best, or where none is finished the most probable of those that go on."""
        return (*self.best, *self.steps[-1].kept)[0]

    @property
    def room(self) -> int:
        """The most steps that it can take."""
        return min(self.wanted.tokens, self.writing.prompt.tokens_left)

    def index_of(self, one: Hypothesis) -> int:
        """Its place among the nodes."""
        return self.index[len(one.ids) - 1, one.rank]

    def parent(self, one: Hypothesis) -> int:
        """The node that it continues; -1 is the prompt."""
        step = len(one.ids) - 1
        return self.index_of(self.steps[step - 1].kept[one.parent]) if step else -1

    def own(self, one: Hypothesis) -> float:
        """The log-probability of its last token: by how much the sum went down with it."""
        parent = self.parent(one)
        return one.log_probability - (self.nodes[parent].log_probability if parent >= 0 else 0.0)

    def line(self, one: Hypothesis) -> tuple[Hypothesis, ...]:
        """Path of a node: it, and all that it continues, from the first token on."""
        found = [one]
        while (parent := self.parent(found[-1])) >= 0:
            found.append(self.nodes[parent])
        return tuple(reversed(found))

    @cached_property
    def on_greedy(self) -> tuple[int, ...]:
        """Finds for each token of the greedy text the node that it is; -1 where the search considered no such text."""
        at = {one.ids: place for place, one in enumerate(self.nodes)}
        return tuple(at.get(self.greedy.ids[: count + 1], -1) for count in range(len(self.greedy.ids)))

    def state(self, one: Hypothesis) -> str:
        step = self.steps[len(one.ids) - 1]
        ranks = {name: {each.rank for each in getattr(step, name)} for name in STATES}
        return next(name for name in STATES if one.rank in ranks[name])


Token = tuple[int, Tensor, Stop | None]  # its log-probability is an array without axes


class BeamSession:
    """Continues by a step of the search, and by a token of the greedy text beside it. Of what is over no KV cache is
    kept. Raises ValueError where there is no room for a token, and for stop strings that no text can hold."""

    def __init__(self, writing: GenerationContext, wanted: BeamOptions) -> None:
        ending = stopping_rules(writing.prompt, wanted.tokens, True, wanted.greedy(writing.checkpoint).strings)
        if not ending.room:
            raise ValueError(f"{ending.limit.sentence} There is nothing to search.")
        self.writing, self.beam, self.room = writing, wanted.beam, ending.room
        self.search: Iterator[BeamStep] | None = search(ending, wanted.beam)
        self.text: Iterator[Step] | None = writing.generate(wanted.greedy(writing.checkpoint), wanted.tokens)
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

    def result(self, wanted: BeamOptions, most: int | None = None) -> Search:
        """Nodes of the first `most` times that it went on."""
        with self.one_at_a_time:
            count = self.count if most is None else min(most, self.count)
            greedy = GreedyText.from_tokens(self.tokens[:count])
            return Search(self.writing, wanted, tuple(self.steps[:count]), greedy, self.is_over and count == self.count)


def search_to(writing: GenerationContext, wanted: BeamOptions, most: int | None = None) -> Search:
    """All of it, or the first `most` steps. Raises ValueError as `BeamSession`."""
    with hold_search(writing, wanted) as one:
        while not one.is_over and (most is None or one.count < most):
            one.go_on()
        return one.result(wanted, most)


def hold_search(writing: GenerationContext, wanted: BeamOptions) -> AbstractContextManager[BeamSession]:
    """The one that waits, or one that begins, which waits again afterwards."""
    key = (writing.digest, replace(wanted, best=1))  # how many are shown changes nothing
    return writing.live.hold(key, lambda: BeamSession(writing, wanted))
