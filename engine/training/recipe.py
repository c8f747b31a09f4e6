"""The recipe: everything that decides what a training run does, as one checked, frozen value read from TOML.

Two runs of one recipe on a CPU end with the same weights, bit for bit.
"""

from __future__ import annotations

import string
from dataclasses import dataclass, field, fields
from typing import Literal

from engine.config import ModelConfig
from engine.training.objectives import OBJECTIVES, check_model

TokenizerKind = Literal["char", "word", "byte", "bpe", "bpe-characters", "wordpiece", "unigram"]
DeviceName = Literal["auto", "cpu", "cuda"]
Precision = Literal["auto", "float32", "bfloat16", "float16"]


@dataclass(frozen=True)
class Stories:
    """The generated stories of `engine.data.stories`; `held_out` of them come from another stream of the same seed."""

    documents: int = 20_000
    held_out: int = 500

    def __post_init__(self) -> None:
        at_least("data.stories.documents", self.documents, 1)
        at_least("data.stories.held_out", self.held_out, 1)


@dataclass(frozen=True)
class Text:
    """A plain text file, UTF-8; a relative path is taken from where the recipe stands. Its last part is held out."""

    path: str
    held_out: float = 0.1

    def __post_init__(self) -> None:
        if not 0 < self.held_out < 1:
            raise ValueError(f"data.text.held_out must be a share between 0 and 1, got {self.held_out}.")


@dataclass(frozen=True)
class Repeats:
    """A random segment of `shortest` to `longest` symbols, over and over: what an induction head is for."""

    shortest: int = 4
    longest: int = 32
    symbols: str = string.ascii_letters + string.digits

    def __post_init__(self) -> None:
        at_least("data.repeats.shortest", self.shortest, 1)
        at_least("data.repeats.longest", self.longest, self.shortest)
        if len(set(self.symbols)) != len(self.symbols) or len(self.symbols) < 2:
            raise ValueError(f"data.repeats.symbols must be two or more different characters, got {self.symbols!r}.")


@dataclass(frozen=True)
class Translation:
    """The generated pairs of `engine.data.translation`; the `held_out` ones are none of those trained on."""

    documents: int = 60_000
    held_out: int = 2_000

    def __post_init__(self) -> None:
        at_least("data.translation.documents", self.documents, 1)
        at_least("data.translation.held_out", self.held_out, 1)


@dataclass(frozen=True)
class SentencePairs:
    """Pairs of passages from the stories (`engine.data.sentences.pair`), half of which follow each other."""

    documents: int = 60_000
    held_out: int = 1_000

    def __post_init__(self) -> None:
        at_least("data.sentence_pairs.documents", self.documents, 1)
        at_least("data.sentence_pairs.held_out", self.held_out, 1)


@dataclass(frozen=True)
class Gaps:
    """Passages from the stories with a gap (`engine.data.sentences.span`).

    In training the share `own` of them keep that gap. In the others gaps are drawn anew each time, which is more to
    learn from: a `long` share has one of half the words or more, the rest short ones that hold about the share
    `hidden` of the words (GLM's two objectives, Du et al. 2022, sections 2.1 and 2.1.1). In a `recurring` share the
    gaps are words that stand elsewhere in the passage, as names do: a model that only learns what words stand next to
    each other never fills them (salient spans, Guu et al. 2020, section 3.4).
    """

    documents: int = 60_000
    held_out: int = 1_000
    own: float = 0.2
    long: float = 0.4
    recurring: float = 0.2
    hidden: float = 0.3

    def __post_init__(self) -> None:
        at_least("data.infill.documents", self.documents, 1)
        at_least("data.infill.held_out", self.held_out, 1)
        for name in ("own", "long", "recurring", "hidden"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"data.infill.{name} must be a share in [0, 1], got {getattr(self, name)}.")
        if self.own + self.long + self.recurring > 1 + 1e-9:
            raise ValueError("data.infill.own, long and recurring are shares of one whole; lower one of them.")


@dataclass(frozen=True)
class Digits:
    """The handwritten digits of `engine.data.digits`, cut by the seed `split` and not by the recipe's, so that models
    agree on what is held out.

    In training the share `moved` of the pictures is shifted (pixels), turned (`degrees`) and resized (`scale`) a
    little. `judge` is a shipped classifier that says what digit a completed picture shows.
    """

    split: int = 0
    moved: float = 1.0
    shift: float = 1.0
    degrees: float = 10.0
    scale: float = 0.1
    judge: str = ""

    def __post_init__(self) -> None:
        if not 0 <= self.moved <= 1:
            raise ValueError(f"data.digits.moved must be a share in [0, 1], got {self.moved}.")
        for name in ("shift", "degrees", "scale"):
            at_least(f"data.digits.{name}", getattr(self, name), 0)


@dataclass(frozen=True)
class TokenizerRecipe:
    """Learned from the first `sample` documents of the training data; `vocab_size` includes the special tokens."""

    kind: TokenizerKind = "bpe"
    vocab_size: int | None = None
    sample: int = 5_000

    def __post_init__(self) -> None:
        at_least("data.tokenizer.sample", self.sample, 1)


@dataclass(frozen=True)
class Data:
    """Exactly one of the sources, and how its texts are cut."""

    stories: Stories | None = None
    text: Text | None = None
    repeats: Repeats | None = None
    translation: Translation | None = None
    sentence_pairs: SentencePairs | None = None
    infill: Gaps | None = None
    digits: Digits | None = None
    tokenizer: TokenizerRecipe = field(default_factory=TokenizerRecipe)

    def __post_init__(self) -> None:
        names = [each.name for each in fields(self) if each.name != "tokenizer"]
        given = [name for name in names if getattr(self, name) is not None]
        if len(given) != 1:
            known = ", ".join(f"[data.{name}]" for name in names)
            raise ValueError(f"data must have exactly one of {known}, got {len(given)}.")
        if self.repeats is not None and self.tokenizer != TokenizerRecipe("char"):
            raise ValueError('data.tokenizer must be { kind = "char" } for repeats, whose symbols are its vocabulary.')
        if self.digits is not None and self.tokenizer != TokenizerRecipe():
            raise ValueError("data.tokenizer must be left out for digits, which are pictures.")
        for name, kind in (("translation", "word"), ("sentence_pairs", "wordpiece")):
            if getattr(self, name) is not None and self.tokenizer.kind != kind:
                raise ValueError(f'data.tokenizer.kind must be "{kind}" for {name}, got "{self.tokenizer.kind}".')

    @property
    def kind(self) -> str:
        """Which source it is."""
        return next(each.name for each in fields(self) if each.name != "tokenizer" and getattr(self, each.name))


@dataclass(frozen=True)
class Objective:
    """What is asked: `engine.training.objectives` has each kind."""

    kind: Literal["next", "repeated", "masked", "translation", "infill", "classification", "next_pixel"] = "next"


@dataclass(frozen=True)
class Optimiser:
    """AdamW (Loshchilov & Hutter 2019). `clip` bounds the norm of the whole gradient; 0 leaves it as it is."""

    lr: float = 1e-3
    betas: tuple[float, float] = (0.9, 0.95)
    eps: float = 1e-8
    weight_decay: float = 0.1
    clip: float = 1.0

    def __post_init__(self) -> None:
        if self.lr <= 0:
            raise ValueError(f"optimiser.lr must be above 0, got {self.lr}.")
        if len(self.betas) != 2 or not all(isinstance(b, int | float) and 0 <= b < 1 for b in self.betas):
            raise ValueError(f"optimiser.betas must be two numbers in [0, 1), got {list(self.betas)}.")
        for name in ("eps", "weight_decay", "clip"):
            at_least(f"optimiser.{name}", getattr(self, name), 0)


@dataclass(frozen=True)
class Schedule:
    """Linear warm-up to the learning rate, then half a cosine down to `floor` times it at the last step."""

    steps: int
    warmup: int = 0
    floor: float = 0.1

    def __post_init__(self) -> None:
        at_least("schedule.steps", self.steps, 1)
        at_least("schedule.warmup", self.warmup, 0)
        if self.warmup > self.steps:
            raise ValueError(f"schedule.warmup must not exceed schedule.steps ({self.steps}), got {self.warmup}.")
        if not 0 <= self.floor <= 1:
            raise ValueError(f"schedule.floor must be a share in [0, 1], got {self.floor}.")


@dataclass(frozen=True)
class Batch:
    """`size` rows a step, of `context` tokens, or of that many at most where a row is a text of its own."""

    size: int
    context: int

    def __post_init__(self) -> None:
        at_least("batch.size", self.size, 1)
        at_least("batch.context", self.context, 2)


@dataclass(frozen=True)
class Log:
    """In steps, but `snapshots`, how many are kept in all, and `held_out_batches`, how many one measurement reads."""

    every: int = 10
    held_out_every: int = 250
    held_out_batches: int = 8
    snapshots: int = 24
    latest_every: int = 250

    def __post_init__(self) -> None:
        for name in ("every", "held_out_every", "held_out_batches", "latest_every"):
            at_least(f"log.{name}", getattr(self, name), 1)
        at_least("log.snapshots", self.snapshots, 2)


@dataclass(frozen=True)
class Machine:
    """Where and how to compute; none of it is part of what is learned. `threads` 0 uses every core."""

    device: DeviceName = "auto"
    precision: Precision = "auto"
    compile: Literal["auto", "on", "off"] = "auto"
    threads: int = 0

    def __post_init__(self) -> None:
        at_least("machine.threads", self.threads, 0)


@dataclass(frozen=True)
class Recipe:
    """What `model` takes from the data, such as its vocabulary, is filled in by the source: `Source.fitted`."""

    model: ModelConfig
    data: Data
    schedule: Schedule
    batch: Batch
    objective: Objective = field(default_factory=Objective)
    optimiser: Optimiser = field(default_factory=Optimiser)
    log: Log = field(default_factory=Log)
    machine: Machine = field(default_factory=Machine)
    seed: int = 0
    about: str = ""

    def __post_init__(self) -> None:
        if self.batch.context > self.model.context:
            raise ValueError(
                f"batch.context must fit the model's context of {self.model.context} tokens, got {self.batch.context}."
            )
        if self.model.positions.kind == "learned" and self.batch.context < self.model.context:
            raise ValueError(
                f"model.context must be batch.context ({self.batch.context}) where positions are learned, got "
                f"{self.model.context}: the positions after it would never be trained."
            )
        kind = self.objective.kind
        if self.data.kind not in OBJECTIVES[kind].data:
            fitting = " or ".join(f'"{name}"' for name, one in OBJECTIVES.items() if self.data.kind in one.data)
            raise ValueError(f'objective.kind must be {fitting} for [data.{self.data.kind}], got "{kind}".')
        check_model(kind, self.model)
        if self.data.repeats is not None and self.batch.context - 1 < self.data.repeats.longest:
            raise ValueError(
                f"data.repeats.longest must be below batch.context ({self.batch.context}) for anything to repeat, "
                f"got {self.data.repeats.longest}."
            )


def at_least(name: str, value: float, least: float) -> None:
    if value < least:
        raise ValueError(f"{name} must be at least {least}, got {value}.")
