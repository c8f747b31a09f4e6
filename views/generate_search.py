"""A beam search with every hypothesis that it considered, and the text that greedy finds beside it."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import torch
from torch import Tensor

from engine.beam import Beam, BeamStep, EarlyStopping, Hypothesis, search
from engine.generate import Step
from engine.stopping import Stop, stopping
from views.generate_writing import UNKNOWN, Query, Settings, Writing

EXAMPLES = tomllib.loads((Path(__file__).parents[1] / "assets/texts/beam.toml").read_text())["examples"]
MOST = {"beams": 10, "tokens": 64}
PENALTIES = (-2.0, 5.0)
EARLY: Mapping[str, EarlyStopping] = {"no": False, "yes": True, "never": "never"}
STATES = ("kept", "finished", "pruned")  # as the browser counts them
Place = tuple[int, int]  # step, rank


@dataclass(frozen=True)
class Wanted:
    """How to search: `penalty` is the length penalty, `best` how many texts are asked for; `stop_at` as in Settings."""

    beams: int = 4
    penalty: float = 1.0
    best: int = 3
    early: str = "no"
    tokens: int = 20
    stop_at: str = ""

    @classmethod
    def of(cls, query: Query) -> Wanted:
        """Of what a browser asks. Raises ValueError, with a sentence, for what cannot be searched."""
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

    @property
    def greedy(self) -> Settings:
        """Those of greedy writing that ends where the search does."""
        return Settings(method="greedy", most=self.tokens, stop_at=self.stop_at)


@dataclass(frozen=True)
class Greedy:
    """The text that greedy finds, with the log-probability (nats) of each token, and their sum so far."""

    ids: tuple[int, ...]
    own: Tensor
    total: Tensor
    stopped: Stop | None


@dataclass(frozen=True)
class Search:
    """A whole search. `nodes` are all hypotheses, step by step, the most probable first."""

    writing: Writing
    wanted: Wanted
    steps: tuple[BeamStep, ...]
    greedy: Greedy

    @cached_property
    def nodes(self) -> tuple[Hypothesis, ...]:
        return tuple(one for step in self.steps for one in step.candidates)

    @cached_property
    def index(self) -> Mapping[Place, int]:
        return {(len(one.ids) - 1, one.rank): at for at, one in enumerate(self.nodes)}

    @property
    def best(self) -> tuple[Hypothesis, ...]:
        return self.steps[-1].best[: self.wanted.best]

    def at(self, one: Hypothesis) -> int:
        """Its place among the nodes."""
        return self.index[len(one.ids) - 1, one.rank]

    def parent(self, one: Hypothesis) -> int:
        """The node that it continues; -1 is the prompt."""
        step = len(one.ids) - 1
        return self.at(self.steps[step - 1].kept[one.parent]) if step else -1

    def own(self, one: Hypothesis) -> float:
        """The log-probability of its last token: by how much the sum went down with it."""
        parent = self.parent(one)
        return one.log_probability - (self.nodes[parent].log_probability if parent >= 0 else 0.0)

    def line(self, one: Hypothesis) -> tuple[Hypothesis, ...]:
        """It, and all that it continues, from the first token on."""
        found = [one]
        while (parent := self.parent(found[-1])) >= 0:
            found.append(self.nodes[parent])
        return tuple(reversed(found))

    @cached_property
    def on_greedy(self) -> tuple[int, ...]:
        """For each token of the greedy text the node that it is; -1 where the search considered no such text."""
        at = {one.ids: place for place, one in enumerate(self.nodes)}
        return tuple(at.get(self.greedy.ids[: count + 1], -1) for count in range(len(self.greedy.ids)))

    def state(self, one: Hypothesis) -> str:
        step = self.steps[len(one.ids) - 1]
        ranks = {name: {each.rank for each in getattr(step, name)} for name in STATES}
        return next(name for name in STATES if one.rank in ranks[name])


def searched(writing: Writing, wanted: Wanted) -> Search:
    """Raises ValueError where there is no room for a token, and for stop strings that no text can hold."""
    ending = stopping(writing.prompt, wanted.tokens, True, wanted.greedy.strings)
    if not ending.room:
        raise ValueError(f"{ending.limit.sentence} There is nothing to search.")
    greedy = greedy_of(tuple(writing.generating(wanted.greedy, wanted.tokens)))
    return Search(writing, wanted, tuple(search(ending, wanted.beam)), greedy)


def greedy_of(steps: tuple[Step, ...]) -> Greedy:
    logits = torch.stack([step.logits for step in steps]).float()
    chosen = torch.tensor([[step.id] for step in steps], device=logits.device)
    own = logits.log_softmax(-1).gather(-1, chosen)[:, 0].cpu()
    return Greedy(tuple(step.id for step in steps), own, own.cumsum(0), steps[-1].stopped)
