"""The recipe: everything that decides what a training run does, as one checked, frozen value read from TOML.

Two runs of one recipe on a CPU end with the same weights, bit for bit.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from engine.data.bounds import at_least
from engine.data.kinds.infill import Gaps
from engine.data.own import Columns
from engine.model.config import ModelConfig
from engine.model.option import Option, Said
from engine.training.objectives import find_objective, list_fitting, objectives
from engine.training.recipe.data_recipe import Data
from engine.training.recipe.preference import Preference

DeviceName = Literal["auto", "cpu", "cuda"]
Precision = Literal["auto", "float32", "bfloat16", "float16"]
MOST_SEED = 2**31 - 1


def cuts_gaps(said: Said, recipe: Recipe) -> bool:
    """Tells whether gaps are cut into a running text; passages that come with gaps have the shares of theirs in the
    data."""
    return find_objective(said["kind"]).fills_gaps and not isinstance(recipe.data.table, Gaps)


def has_experts(_: Said, recipe: Recipe) -> bool:
    return recipe.model.mlp is not None and recipe.model.mlp.experts is not None


def has_adamw(said: Said, _: Recipe) -> bool:
    return bool(said["kind"] != "sgd")


def has_momentum(said: Said, _: Recipe) -> bool:
    return bool(said["kind"] != "adamw")


@dataclass(frozen=True)
class Objective:
    """Objective of a training: `engine.training.objectives` has each kind.

    The share `smoothing` of what a target asks is spread over all classes alike (Szegedy et al. 2016, section 7). It is
    part of the loss in training; what is measured on held-out data is without.

    Where gaps are cut into running text, a share `long_gaps` of the windows has one of half the words or more, which is
    GLM's document-level objective (Du et al. 2022, section 2.1.1); in the others short ones hold about the share
    `hidden` of the words. Passages with gaps of their own have these shares in [data.infill].

    Where texts are classified by a decoder that keeps its language head (model.head.language), the loss of the label
    has `language_weight` times that of the text's own tokens beside it: L2 + lambda L1 (Radford et al. 2018, section
    3.2, which has 0.5). `control.set_weight` changes it while a training runs.

    Routers of experts are kept in balance by `load_weight` times their load (Fedus et al. 2022, equation 4) and by
    `z_weight` times the square of their logits’ size (Zoph et al. 2022, equation 5).

    A "completion" is asked for the second text of a pair alone; with `prompts` its loss is that of the first one too.
    """

    kind: str = field(
        default="next",
        metadata=Option(help="What the model is asked; only what fits the data is offered.", choices=objectives),
    )
    smoothing: float = field(
        default=0.0, metadata=Option(help="The share of each target that is spread over all other answers; 0 is none.")
    )
    long_gaps: float = field(
        default=Gaps.long,
        metadata=Option(
            help="The share of windows with one gap of half the words or more (GLM, section 2.1.1).", when=cuts_gaps
        ),
    )
    hidden: float = field(
        default=Gaps.hidden,
        metadata=Option(
            help="The share of the words that the short gaps of the other windows hold, about.", when=cuts_gaps
        ),
    )
    language_weight: float = field(
        default=0.0,
        metadata=Option(
            help="How much the loss of the text's own tokens counts beside that of its label.",
            when=lambda _, recipe: recipe.model.head.language,
        ),
    )
    load_weight: float = field(
        default=0.01,
        metadata=Option(
            help="How much it costs that tokens are not spread evenly over the experts; with 0 a few may take all.",
            when=has_experts,
        ),
    )
    z_weight: float = field(
        default=0.0, metadata=Option(help="How much large logits of the routers cost.", when=has_experts)
    )
    prompts: bool = field(
        default=False,
        metadata=Option(
            help="The loss is that of the prompt’s tokens too, not of the answer’s alone.",
            when=lambda _, recipe: find_objective(recipe.objective.kind).joins,
        ),
    )

    def __post_init__(self) -> None:
        if not 0 <= self.smoothing < 1:
            raise ValueError(f"objective.smoothing must be a share in [0, 1), got {self.smoothing}.")
        for name in ("language_weight", "load_weight", "z_weight"):
            at_least(f"objective.{name}", getattr(self, name), 0)
        for name in ("long_gaps", "hidden"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"objective.{name} must be a share in [0, 1], got {getattr(self, name)}.")

    @property
    def cuts(self) -> tuple[float, float]:
        return self.long_gaps, self.hidden


@dataclass(frozen=True)
class Optimiser:
    """`kind` is AdamW (Loshchilov & Hutter 2019), stochastic gradient descent with momentum (Sutskever et al. 2013), or
    Muon (Jordan et al. 2024) for the matrices of the blocks and AdamW for the rest.

    `betas` and `eps` are AdamW's, `momentum` and `nesterov` the others'. `weight_decay` is apart from the gradient, but
    in gradient descent, where it is added to it. `clip` bounds the norm of the whole gradient; 0 leaves it as it is.
    """

    kind: Literal["adamw", "sgd", "muon"] = field(
        default="adamw",
        metadata=Option(help="AdamW adapts each weight’s step, SGD does not; Muon makes matrices’ updates orthogonal."),
    )
    lr: float = field(
        default=1e-3,
        metadata=Option(
            help="The highest learning rate, reached at the end of the warm-up. It can be changed while training.",
            title="learning rate",
        ),
    )
    betas: tuple[float, float] = field(
        default=(0.9, 0.95),
        metadata=Option(help="How slowly AdamW forgets gradients, and their squares.", when=has_adamw),
    )
    eps: float = field(
        default=1e-8, metadata=Option(help="Added to what AdamW divides each step by.", title="epsilon", when=has_adamw)
    )
    weight_decay: float = field(default=0.1, metadata=Option(help="Pulls weights towards 0 in every step."))
    clip: float = field(
        default=1.0, metadata=Option(help="Bounds the norm of the whole gradient; 0 leaves it as it is.")
    )
    momentum: float = field(
        default=0.95, metadata=Option(help="How slowly SGD and Muon forget gradients.", when=has_momentum)
    )
    nesterov: bool = field(
        default=True, metadata=Option(help="The momentum looks one step ahead (Nesterov).", when=has_momentum)
    )

    def __post_init__(self) -> None:
        if self.lr <= 0:
            raise ValueError(f"optimiser.lr must be above 0, got {self.lr}.")
        if len(self.betas) != 2 or not all(isinstance(b, int | float) and 0 <= b < 1 for b in self.betas):
            raise ValueError(f"optimiser.betas must be two numbers in [0, 1), got {list(self.betas)}.")
        if not 0 <= self.momentum < 1:
            raise ValueError(f"optimiser.momentum must be in [0, 1), got {self.momentum}.")
        for name in ("eps", "weight_decay", "clip"):
            at_least(f"optimiser.{name}", getattr(self, name), 0)


@dataclass(frozen=True)
class Schedule:
    """Linear warm-up to the learning rate, then half a cosine or a line down to `floor` times it at the last step; a
    constant rate stays.
    """

    steps: int = field(metadata=Option(help="Updates of the weights."))
    warmup: int = field(
        default=0, metadata=Option(help="Steps in which the learning rate rises from 0.", title="warm-up")
    )
    floor: float = field(
        default=0.1,
        metadata=Option(
            help="The last learning rate, as a share of the highest.", when=lambda said, _: said["shape"] != "constant"
        ),
    )
    shape: Literal["cosine", "linear", "constant"] = field(
        default="cosine",
        metadata=Option(help="How the learning rate falls after the warm-up: half a cosine, a line, or not at all."),
    )

    def __post_init__(self) -> None:
        at_least("schedule.steps", self.steps, 1)
        at_least("schedule.warmup", self.warmup, 0)
        if self.warmup > self.steps:
            raise ValueError(f"schedule.warmup must not exceed schedule.steps ({self.steps}), got {self.warmup}.")
        if not 0 <= self.floor <= 1:
            raise ValueError(f"schedule.floor must be a share in [0, 1], got {self.floor}.")


@dataclass(frozen=True)
class Batch:
    """`size` rows a step, of `context` tokens, or of that many at most where a row is a text of its own.

    They go through the model in `accumulate` parts, one after the other: the same gradient, in less memory.
    """

    size: int = field(metadata=Option(help="Rows in a step."))
    context: int = field(metadata=Option(help="Tokens in a row at most."))
    accumulate: int = field(
        default=1,
        metadata=Option(
            help="The rows go through the model in so many parts: the same gradient in less memory.", title="in parts"
        ),
    )

    def __post_init__(self) -> None:
        at_least("batch.size", self.size, 1)
        at_least("batch.accumulate", self.accumulate, 1)
        if self.accumulate > self.size:
            raise ValueError(f"batch.accumulate must not exceed batch.size ({self.size}), got {self.accumulate}.")
        at_least("batch.context", self.context, 2)


@dataclass(frozen=True)
class Log:
    """Intervals in steps, but `snapshots`, how many are kept in all, and `held_out_batches`, how many one measurement
    reads."""

    every: int = field(default=10, metadata=Option(help="Steps between two points of the curves."))
    held_out_every: int = field(default=250, metadata=Option(help="Steps between two measurements on held-out data."))
    held_out_batches: int = field(default=8, metadata=Option(help="Batches that one measurement reads."))
    snapshots: int = field(
        default=24, metadata=Option(help="Steps whose weights are kept, close together at first, for the time slider.")
    )
    latest_every: int = field(
        default=250,
        metadata=Option(
            help="Steps between two savings from which a run that was killed goes on.", title="saved every"
        ),
    )

    def __post_init__(self) -> None:
        for name in ("every", "held_out_every", "held_out_batches", "latest_every"):
            at_least(f"log.{name}", getattr(self, name), 1)
        at_least("log.snapshots", self.snapshots, 2)


@dataclass(frozen=True)
class Machine:
    """Device and precision to compute with; none of it is part of what is learned but for rounding, which another
    number of `threads` changes. 0 of them is one for each core, or, started by the app, that number divided by the
    trainings that it lets run at a time, whether or not others run. On a cluster, where 0 is one, a training asks for
    `share` of a GPU if its `device` is "cuda", and otherwise of a core for each thread: 0.5 lets two have one.

    Of several processes, which `torchrun` starts, each has the whole model; with `shard` it holds a part of it."""

    device: DeviceName = field(default="auto", metadata=Option(help="What computes. Auto is a GPU where there is one."))
    precision: Precision = field(
        default="auto",
        metadata=Option(help="Of the products in the forward and backward pass; weights are always float32."),
    )
    compile: Literal["auto", "on", "off"] = field(
        default="auto", metadata=Option(help="Whether the model is compiled before it trains. Auto does so on a GPU.")
    )
    threads: int = field(
        default=0,
        metadata=Option(
            help="On a CPU. 0 is one for each core; in the app, divided by the trainings that may run at a time."
        ),
    )
    share: float = field(
        default=1.0,
        metadata=Option(help="Of a GPU, or on a CPU of a core for each thread, that it asks the cluster for."),
    )
    shard: bool = field(
        default=False, metadata=Option(help="Each of several processes holds a part of the model, not the whole.")
    )

    def __post_init__(self) -> None:
        at_least("machine.threads", self.threads, 0)
        if not 0 < self.share <= 1:
            raise ValueError(f"machine.share must be above 0 and at most 1, got {self.share:g}; correct it.")


@dataclass(frozen=True)
class Train:
    """Parts of the model that learn, and the end of the training.

    `parts` is "all", "head", "last N blocks" (with what comes after them), "lora" (an adapter, and what of the head is
    new), or a list of parts such as ["blocks.0", "blocks.3.attn"]; everything else stays as it is. A part of depth d
    below the head, which is 0, learns at `decay`^d times the rate, the embeddings at the lowest (Howard & Ruder 2018,
    section 3.2). After `patience` held-out measurements without a better loss training ends; then, and at the last
    step, the weights of the best one are put back. 0: it goes on to the last step and keeps those.
    """

    parts: str | tuple[str, ...] = field(
        default="all", metadata=Option(help='What learns: "all", "head", "last N blocks", "lora" or a list of parts.')
    )
    decay: float = field(
        default=1.0,
        metadata=Option(help="Each part learns at this share of the rate of the one above it; 1 is the same for all."),
    )
    patience: int = field(
        default=0,
        metadata=Option(
            help="Training ends after so many held-out measurements without a better loss; 0 goes on to the last step."
        ),
    )

    def __post_init__(self) -> None:
        if not 0 < self.decay <= 1:
            raise ValueError(f"train.decay must be above 0 and at most 1, got {self.decay}.")
        at_least("train.patience", self.patience, 0)


@dataclass(frozen=True)
class Lora:
    """An adapter that learns where train.parts is "lora" (Hu et al. 2022, section 4.1), on the linear maps `targets`:
    names such as "blocks.0.attn.q", ends of names, which mean every block, or patterns with *.

    What is added is scaled by `alpha` / `rank`, or `rank_stabilised` by `alpha` / sqrt(`rank`) (Kalajdzievski 2023);
    `dropout` leaves out that share of what it reads in training.
    """

    rank: int = field(default=8, metadata=Option(help="The width between the two maps whose product is added."))
    alpha: float = field(default=16.0, metadata=Option(help="What is added is scaled by alpha / rank."))
    targets: tuple[str, ...] = field(
        default=("attn.q", "attn.v"),
        metadata=Option(help="Linear maps that get an adapter: names, ends of names, or patterns with *."),
    )
    rank_stabilised: bool = field(
        default=False, metadata=Option(help="What is added is scaled by alpha / sqrt(rank) in place of that.")
    )
    dropout: float = field(
        default=0.0, metadata=Option(help="The share of what the adapter reads that is left out in training.")
    )

    def __post_init__(self) -> None:
        at_least("lora.rank", self.rank, 1)
        if not self.targets:
            raise ValueError('lora.targets must name at least one linear map, got none; write ["attn.q", "attn.v"].')
        if not 0 <= self.dropout < 1:
            raise ValueError(f"lora.dropout must be a share in [0, 1), got {self.dropout}.")


@dataclass(frozen=True)
class Recipe:
    """Recipe of a training. What `model` takes from the data, such as its vocabulary, is filled in by the source:
    `Source.fitted`.

    With a `base`, a checkpoint of the same `model` under any head (engine.training.base.base), training begins with its
    weights, and its tokenizer cuts the texts: fine-tuning.

    The data, and what of it is held out, are chosen by the seed `split`, which is `seed` where none is given: runs of
    one split are measured on the same rows, whatever their seeds.
    """

    model: ModelConfig
    data: Data
    schedule: Schedule
    batch: Batch
    objective: Objective = field(default_factory=Objective)
    optimiser: Optimiser = field(default_factory=Optimiser)
    log: Log = field(default_factory=Log)
    machine: Machine = field(default_factory=Machine)
    seed: int = field(default=0, metadata=Option(help="What all chance of the training is drawn from."))
    split: int | None = field(
        default=None, metadata=Option(help="The seed that chooses the data, and what of it is held out. Empty: seed.")
    )
    about: str = field(default="", metadata=Option(help="A sentence about the recipe."))
    base: str = field(
        default="", metadata=Option(help="A checkpoint whose weights and tokenizer training begins with.")
    )
    train: Train = field(default_factory=Train)
    lora: Lora = field(default_factory=Lora)
    preference: Preference = field(default_factory=Preference)

    def __post_init__(self) -> None:
        for name, value in {"seed": self.seed, "split": self.split}.items():
            if value is not None and not 0 <= value <= MOST_SEED:
                raise ValueError(f"{name} must be a whole number from 0 to {MOST_SEED:,}, got {value}; correct it.")
        if self.batch.context > self.model.context:
            raise ValueError(
                f"batch.context must fit the model's context of {self.model.context} tokens, got {self.batch.context}."
            )
        if self.model.positions.has_places and self.batch.context < self.model.context and not self.base:
            raise ValueError(
                f"model.context must be batch.context ({self.batch.context}) where positions are learned, got "
                f"{self.model.context}: the positions after it would never be trained."
            )
        kind, objective = self.objective.kind, find_objective(self.objective.kind)
        if self.data.kind not in objective.sources:
            fitting = " or ".join(f'"{name}"' for name, one in objectives().items() if self.data.kind in one.sources)
            raise ValueError(f'objective.kind must be {fitting} for [data.{self.data.kind}], got "{kind}".')
        if isinstance(self.data.table, Gaps) and self.objective.cuts != Objective().cuts:
            raise ValueError(
                "objective.long_gaps and objective.hidden are for gaps in running text; for [data.infill] set its own "
                "long and hidden."
            )
        own = self.data.table
        if isinstance(own, Columns) and kind not in list_fitting(own.form):
            fitting = " or ".join(f'"{name}"' for name in list_fitting(own.form))
            raise ValueError(f'objective.kind must be {fitting} for {" and ".join(own.names)}, got "{kind}".')
        objective.check_model(self.model, self.data.kind)
        if self.machine.shard:
            check_sharding(self)
        if self.objective.prompts and not objective.joins:
            fitting = " or ".join(f'"{name}"' for name, one in objectives().items() if one.joins)
            raise ValueError(f'objective.prompts is for objective.kind {fitting}, got "{kind}"; leave it out.')
        if self.objective.language_weight and not self.model.head.language:
            raise ValueError(
                "model.head.language must be true for objective.language_weight, got false; keep the language head, or "
                "leave out the weight."
            )
        if objective.check is not None:
            objective.check(self)
        if self.preference.answers < objective.least_answers:
            least, got = objective.least_answers, self.preference.answers
            raise ValueError(f"preference.answers must be at least {least} to compare, got {got}.")
        self.data.table.check_context(self.batch.context)

    @property
    def tables(self) -> dict[str, Any]:
        """The tables of its file as plain data."""
        return asdict(self) | {"data": self.data.tables}

    @property
    def data_seed(self) -> int:
        return self.seed if self.split is None else self.split


def check_sharding(recipe: Recipe) -> None:
    """Raises ValueError for a recipe whose weights cannot be held in parts."""
    kind = recipe.objective.kind
    reasons = {
        f'objective.kind "{kind}", which asks a whole model': find_objective(kind).whole,
        'optimiser.kind "muon", which multiplies whole matrices': recipe.optimiser.kind == "muon",
        'train.parts "lora", which adds to whole matrices': recipe.train.parts == "lora",
        "model.distinct, by which layers have the same tensors": recipe.model.distinct is not None,
        'machine.compile "on", which takes whole weights': recipe.machine.compile == "on",
    }
    for reason, holds in reasons.items():
        if holds:
            raise ValueError(f"machine.shard must be false with {reason}, got true; leave out one of the two.")
