"""What the page Steering asks: how well two sets of prompts separate, and what their difference does to a corpus."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from typing import Any

from torch import Tensor

from engine.analysis.interventions.pair_set import Interval, first_token
from engine.analysis.steering import (
    PromptReadings,
    Prompts,
    SteeringEffect,
    SteeringVector,
    find_direction,
    reading_of,
    steer_corpus,
    steering_of,
)
from engine.edits import Side
from engine.edits.sources import ReadAt
from views.core.bound_source import Imports
from views.core.questions import Registry, Vocab
from views.core.table_files import Table
from views.why.fires import CorpusContext

STEERING = Registry()


@dataclass(frozen=True)
class SteeringContext(CorpusContext):
    """A run, the prompts whose difference steers it, the texts that are steered, and the `words` that the candidates
    stand at first. `brought` is the vector of a file, whose name is `named`, in the place of one of prompts."""

    toward: Prompts = ()
    away: Prompts = ()
    site: str = "stream"
    layer: int = 0
    read: ReadAt = "last"
    stack: Side | None = None
    words: Mapping[str, str] | None = None
    brought: SteeringVector | None = None
    named: str = ""

    @property
    def attributes(self) -> Mapping[str, str]:  # type: ignore[override]
        own = {name: repr(getattr(self, name)) for name in ("site", "layer", "read", "stack")}
        return {**super().attributes, **own, "vector": "vector", "toward": "toward", "away": "away"}

    @property
    def digest(self) -> str:
        asked = self.toward, self.away, self.site, self.layer, self.read, self.stack
        of = self.brought.digest if self.brought else sha256(repr(asked).encode()).hexdigest()[:16]
        return f"{super().digest} {of} {self.corpus.digest if self.corpus else ''}"

    def script(self, imports: Imports, lines: Sequence[str], only: tuple[str, ...] | None = None) -> str:
        maker = "open_vector" if self.brought else "find_direction"
        module, place = "engine.analysis.steering", f"{self.site!r}, {self.layer}, {self.read!r}, {self.stack!r}"
        opening = [f"toward = {self.toward!r}", f"away = {self.away!r}"]
        made = f"vector = find_direction(checkpoint, toward, away, {place})"
        if self.brought:
            opening, made = [], f"vector = open_vector({self.named!r}, checkpoint)"
        if any("vector" in line for line in lines):
            opening, imports = [*opening, made], {**imports, module: {maker, *imports.get(module, ())}}
        return super().script(imports, [*opening, *lines], only)

    def likeliest(self, row: int, count: int) -> list[int]:
        return super().likeliest(self.first_row, count)

    def first_candidate(self, name: str, row: int) -> int | None:
        word = (self.words or {}).get(name)
        try:
            return first_token(self.checkpoint, word) if word else super().first_candidate(name, row)
        except ValueError:  # of a vocabulary that lacks it
            return super().first_candidate(name, row)

    @cached_property
    def vector(self) -> SteeringVector:
        """Raises ValueError as `find_direction`."""
        if self.brought is not None:
            return self.brought
        place = self.site, self.layer, self.read, self.stack
        return find_direction(self.checkpoint, self.toward, self.away, *place)

    @property
    def readings(self) -> PromptReadings:
        return reading_of(self.checkpoint, self.toward, self.away, self.site, self.read, self.stack).reach()

    def about(self, table: str) -> dict[str, Any]:
        return {"model": self.model_name, "table": table, "place": self.vector.hook}


def effect_steps(
    run: SteeringContext, candidate: int, against: int | None = None
) -> Sequence[Callable[[], SteeringEffect]]:
    return steering_of(run.checkpoint, run.vector, candidate, against, run.corpus).steps


@STEERING.question("steering", returns={})
def ask_steering(run: SteeringContext, candidate: Vocab, against: Vocab | None = None) -> None:
    """Declares what the charts share."""


def layers_table(run: SteeringContext) -> Table:
    """A line for each block: how many standard deviations lie between both sets."""
    found = run.readings
    columns = {"layer": [*range(len(found.hooks))], "hook": list(found.hooks), "apart": found.separation.tolist()}
    return Table(columns, run.about("separation of prompts by block"))


@STEERING.question("steering_layers", returns={"apart": ("layer",)}, make_table=layers_table)
def ask_layers(run: SteeringContext) -> Tensor:
    """How well both sets of prompts separate in each block, each prompt held out."""
    return reading_of(run.checkpoint, run.toward, run.away, run.site, run.read, run.stack).reach().separation


def prompts_table(run: SteeringContext) -> Table:
    """A line for each prompt: where it lies along the vector, and along that of the other lines (NaN: none)."""
    found = run.readings
    lines = []
    for held, (name, prompts) in enumerate((("toward", run.toward), ("away", run.away))):
        values, apart = (found.values(run.layer, held_out)[held].tolist() for held_out in (False, True))
        lines += [(name, *one) for one in zip(prompts, values, apart, strict=True)]
    columns = dict(zip(("set", "prompt", "value", "held_out"), map(list, zip(*lines, strict=True)), strict=True))
    return Table(columns, run.about("prompts along the vector"))


@STEERING.question("steering_prompts", returns={"toward": ("prompt",)}, make_table=prompts_table)
def ask_prompts(run: SteeringContext) -> Tensor:
    """How far each prompt of the set that is steered toward lies along the vector."""
    found = reading_of(run.checkpoint, run.toward, run.away, run.site, run.read, run.stack).reach()
    return found.values(run.layer)[0]


def effect_table(run: SteeringContext, candidate: int, against: int | None = None) -> Table:
    """A line for each strength: the mean metric with its interval, loss and KL."""
    found = steer_corpus(run.checkpoint, run.vector, candidate, against, run.corpus)
    mean = found.interval
    columns: dict[str, Any] = {"strength": list(found.strengths)}
    columns |= {name: getattr(mean, name).tolist() for name in ("mean", "low", "high")}
    columns |= {"loss": found.loss.tolist(), "kl": found.kl.tolist()}
    name, *lead = run.name_candidates([one for one in (candidate, against) if one is not None])
    measured = f"lead of {name.strip()} over {lead[0].strip()}" if lead else f"ln p of {name.strip()}"
    return Table({**columns, "metric": [measured] * len(found.strengths)}, run.about("steering by strength"))


BY_STRENGTH = {"make_table": effect_table, "steps": effect_steps}


@STEERING.question(
    "steering_effect", returns=dict.fromkeys(("mean", "low", "high"), ("strength",)), **BY_STRENGTH
)  # fmt: skip
def ask_effect(run: SteeringContext, candidate: Vocab, against: Vocab | None = None) -> Interval:
    """Mean of what is predicted of the texts by the vector's strength, with its interval."""
    return steer_corpus(run.checkpoint, run.vector, candidate, against, run.corpus).interval


@STEERING.question("steering_costs", returns={"loss": ("strength",), "kl": ("strength",)}, **BY_STRENGTH)
def ask_costs(run: SteeringContext, candidate: Vocab, against: Vocab | None = None) -> SteeringEffect:
    """Loss of the texts, and KL from the plain run, by the vector's strength."""
    return steer_corpus(run.checkpoint, run.vector, candidate, against, run.corpus)
