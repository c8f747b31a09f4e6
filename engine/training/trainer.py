"""A model, its optimiser and its data, and one update after the other. What is logged, kept and asked is in loop.py."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn.utils import clip_grads_with_norm_, get_total_norm

from engine.checkpoints import Checkpoint, save_weights
from engine.checkpoints.adapter_snapshot import BESIDE
from engine.checkpoints.assemble import build_without_memory
from engine.data.seeds import seed_for
from engine.model.hooks import active
from engine.model.layers.experts import recorded_routing
from engine.model.layers.lora import AdaptedRun, Adapter
from engine.model.transformer import Transformer, initialise
from engine.plurals import count_words
from engine.runtime.memory import keep_freed_memory
from engine.scoring.examples import Examples
from engine.scoring.score import Outputs
from engine.training.balance import with_balance
from engine.training.base.adapter import (
    attach_adapter,
    frozen_checksum,
    held_beside,
    held_weights,
    load_beside,
    merged_model,
    save_beside,
    save_learned,
)
from engine.training.base.base import begin_with, read_transfer, write_transfer
from engine.training.cluster.compilation import Compilation
from engine.training.cluster.parallel import Peers
from engine.training.launch.machine import Plan
from engine.training.learner import LearnerContext, evaluation
from engine.training.objectives import find_objective
from engine.training.recipe.optimiser import build_optimisers, hold_whole, optimiser_state
from engine.training.recipe.parts import choose_parts, gradient_part
from engine.training.recipe.recipe import Recipe
from engine.training.recipe.schedule import learning_rate
from engine.training.run import latest
from engine.training.run.failures import not_a_number
from engine.training.run.folder import RunFolder
from engine.training.run.mend import mend
from engine.training.run.origin import read_origin
from engine.training.sources import open_source


@dataclass(frozen=True)
class StepNumbers:
    """`scores` by name: "loss", "accuracy", and what else the objective counts."""

    scores: Mapping[str, float]
    grad_norm: float
    lr: float


@dataclass(frozen=True)
class Update:
    """Result of one update. The tensors are scalars on the device, so that nobody waits for what is not looked at.

    `gradients` are the norms of "embed", "blocks.0", ..., "head" before clipping, where they were asked for.
    """

    scores: Mapping[str, Tensor]
    grad_norm: Tensor
    lr: float
    gradients: Mapping[str, Tensor] = field(default_factory=dict)

    @property
    def loss(self) -> Tensor:
        return self.scores["loss"]

    def read(self) -> StepNumbers:
        return StepNumbers({name: float(value) for name, value in self.scores.items()}, float(self.grad_norm), self.lr)


class Trainer:
    """Sets the number of threads of this process. Begins where `run` was left, or at step 0."""

    _hold = staticmethod(hold_whole)
    why: tuple[str, ...] = ()  # sentences about how the weights are held, where that is unusual

    def __init__(self, recipe: Recipe, run: RunFolder, plan: Plan, peers: Peers) -> None:
        parts = peers.count * recipe.batch.accumulate
        if recipe.batch.size < parts:
            raise ValueError(
                f"batch.size must be at least {parts}, one row for each of {recipe.batch.accumulate} parts in each of "
                f"{count_words(peers.count, 'process', 'processes')}, got {recipe.batch.size}."
            )
        if parts > 1 and recipe.model.norm.kind == "batch":
            raise ValueError(
                f'norm.kind "batch" is by the statistics of a whole batch, and this one is read in {parts} parts; set '
                "batch.accumulate to 1 and train in one process, or choose another norm."
            )
        self.recipe, self.run, self.plan, self.peers = recipe, run, plan, peers
        plan.prepare()
        keep_freed_memory()
        self.device = peers.device(plan.device)
        with peers.leader_first():
            self.source = open_source(recipe, run.path)
            self.mended = mend(run, recipe.seed)
        config = self.source.complete_config(recipe.model)
        seed = seed_for(recipe.seed, "weights")
        begun = None
        if recipe.base and not run.weights.exists():  # a run that is continued needs its base no more
            model, begun = begin_with(config, recipe.base, seed)
            if peers.leads:
                write_transfer(run.path, begun)
        else:
            model = initialise(Transformer(config), seed)
        kept = read_transfer(run.path) if recipe.base else None
        self.family = "" if kept is None else kept.family
        self.model = self._place(model).train()
        self.adapter: Adapter | None = None
        if recipe.train.parts == "lora":
            found = read_transfer(run.path)
            self.adapter = attach_adapter(self.model, recipe, () if found is None else found.new)
            if begun is not None and peers.leads:
                write_transfer(run.path, replace(begun, checksum=frozen_checksum(self.model, begun.taken)))
        self.acting = None if self.adapter is None else AdaptedRun({self.adapter: 1.0}, self.device)
        objective = find_objective(recipe.objective.kind)
        routed = bool(config.experts_by_layer)  # by numbers that a compiler does not know
        changed = self.adapter is not None or objective.whole or routed
        forward, at_once = self._forward(), recipe.machine.compile == "on"
        self.compilation = Compilation(forward, self.device, peers, plan.compile and not changed, at_once)
        choose_parts(self.model, recipe.train.parts)
        if objective.attach is not None:
            objective.attach(self.model)
        self.parameters = dict(self.model.named_parameters())  # listed once: to walk a model takes a millisecond
        self.optimiser = build_optimisers(self.model, recipe.optimiser, recipe.train.decay)
        self.scaler = torch.amp.GradScaler(plan.device, enabled=plan.scaled)
        self.progress = latest.Progress(seed=recipe.seed, threads=plan.threads)
        self._continue()
        self.learner = objective.learner(self._learner_context())

    def _place(self, model: Transformer) -> Transformer:
        return model.to(self.device)

    def _continue(self) -> None:
        progress = latest.load_latest(self.run.latest, self.model, self.optimiser, self._hold)
        if progress is not None:
            self.progress = replace(progress, threads=self.plan.threads)
            self.scaler.load_state_dict(progress.scaler)

    def _learner_context(self) -> LearnerContext:
        return LearnerContext(
            recipe=self.recipe,
            source=self.source,
            model=self.model,
            device=self.device,
            forward=lambda **inputs: self.compilation.forward(**inputs),
            eager=self.compilation.eager,
            precision=self.plan.context,
            adapter_context=self.adapter_context,
            holds_base=self.adapter is not None and not read_origin(self.run).run,  # a fork's may hold an adapter
            state=self.progress.learner,
        )

    def _forward(self) -> Callable[..., Outputs]:
        """The forward pass, in which the adapter acts where there is one. Compiled, no model would see it."""
        if self.adapter is None:
            return self.model.forward_with_pooled

        def forward(**inputs: Any) -> Outputs:
            with self.adapter_context():
                return self.model.forward_with_pooled(**inputs)

        return forward

    def adapter_context(self) -> AbstractContextManager[object]:
        """Context manager in which the adapter acts, where there is one."""
        return nullcontext() if self.acting is None else active(self.acting)

    def whole_adapter(self) -> Adapter:
        """The adapter, with what of the model's own tensors has learned beside it."""
        assert self.adapter is not None
        learned = {name for name, one in self.model.named_parameters() if one.requires_grad}
        state = {name: tensor for name, tensor in self.model.state_dict().items() if name in learned}
        return replace(self.adapter, saved={n: t for n, t in state.items() if n.partition(".")[0] not in BESIDE})

    @property
    def result(self) -> Transformer:
        """The model as it is used: with an adapter, a copy whose weights hold it, and without the value head."""
        return merged_model(self.full_model, self.adapter)

    @property
    def full_model(self) -> Transformer:
        """The model in training, with all of every weight, on the process that leads."""
        return self.model

    @property
    def step(self) -> int:
        """Number of updates that were made."""
        return self.progress.step

    def advance(self, lr: float | None = None, closely: bool = False, weight: float | None = None) -> Update:
        """Makes one update, at the rate `lr` where it is given and by the schedule otherwise. `closely` gives the norms
        of the gradient part by part. `weight` counts instead of the recipe's, as `Learner` has it, where it is given.
        Where one batch is learned from in several turns, the scores are their means, and the rest is the last one's.

        On a CPU, where looking costs nothing, it raises Diverged before a gradient that is no number gets into the
        weights.
        """
        step = self.step + 1
        self.learner.weight = self.learner.usual_weight if weight is None else weight
        lr = learning_rate(step, self.recipe.schedule, self.recipe.optimiser.lr) if lr is None else lr
        whole = self.learner.batch(step)
        turns = [self._learn(whole, step, lr, closely) for _ in range(self.learner.turns)]
        tokens = self.progress.tokens + whole.tokens
        self.progress = replace(self.progress, step=step, tokens=tokens, learner=dict(self.learner.state))
        return turns[0] if len(turns) == 1 else replace(turns[-1], scores=mean_scores([turn.scores for turn in turns]))

    def _learn(self, whole: Examples, step: int, lr: float, closely: bool) -> Update:
        self._prepare(step)
        left = self.recipe.schedule.steps - step
        scores = self.compilation.update(partial(self._backward, whole), partial(self._prepare, step), left)
        named = {name: p.grad for name, p in self.parameters.items() if p.grad is not None}
        measured = self._add_up(named)
        seen = torch.stack(list(scores.values()))
        self.peers.all_reduce_sum([seen])
        self.optimiser.unscale(self.scaler)
        update = Update(
            dict(zip(scores, seen, strict=True)),
            get_total_norm(list(measured.values())),
            lr,
            norms_by_part(measured) if closely else {},
        )
        if self.device.type == "cpu" and not self.plan.scaled:
            self.check(update.read(), step)
        if clip := self.recipe.optimiser.clip:
            clip_grads_with_norm_(self.parameters.values(), clip, update.grad_norm)
        self.optimiser.step(self.scaler, lr)
        return update

    def _add_up(self, gradients: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
        """Adds up the gradients of all processes, in place; returns tensors of the same norms by the same names."""
        self.peers.all_reduce_sum(list(gradients.values()))
        return gradients

    def _prepare(self, step: int) -> None:
        """Draws of dropout and gradients as they are before an update."""
        torch.manual_seed(seed_for(self.recipe.seed, "dropout", step, self.peers.rank))
        for parameter in self.parameters.values():
            parameter.grad = None

    def _backward(self, whole: Examples) -> dict[str, Tensor]:
        """The scores of this process's rows, whose gradients are added up part by part."""
        counts, total = whole.counts, dict[str, Tensor]()
        for part in self._parts(whole):
            with self.plan.context(), recorded_routing() as routers:
                scores = self.learner.score(part.to(self.device), counts)
                share = part.counts.rows / max(counts.rows, 1)
                scores = with_balance(scores, routers, share, self.recipe.objective)
            self.scaler.scale(scores["loss"]).backward()
            total = {name: total[name] + value.detach() if total else value.detach() for name, value in scores.items()}
        return total

    def _parts(self, whole: Examples) -> Iterator[Examples]:
        mine = whole if self.peers.count == 1 else whole.share(self.peers.rank, self.peers.count)
        parts = self.recipe.batch.accumulate
        yield from [mine] if parts == 1 else (mine.share(index, parts) for index in range(parts))

    def check(self, numbers: StepNumbers, step: int) -> None:
        """Raises Diverged where the loss of update `step` is no number, or its gradient, which float16 leaves out."""
        for what, value in (("loss", numbers.scores["loss"]), ("gradient", numbers.grad_norm)):
            if not math.isfinite(value) and not (what == "gradient" and self.plan.scaled):
                raise not_a_number(what, value, step, numbers.lr, self.recipe, self.plan)

    def check_weights(self) -> None:
        """Raises Diverged where a weight is no number: such weights must never replace good ones on the disk."""
        greatest = float(get_total_norm(list(self.full_model.state_dict().values()), math.inf))
        if not math.isfinite(greatest):
            lr = float(next(self.optimiser.groups)["lr"])
            raise not_a_number("greatest weight", greatest, self.step, lr, self.recipe, self.plan)

    @torch.no_grad()
    def measure(self, batches: int | None = None) -> dict[str, float]:
        """The scores on what is held out, each a mean over all targets of `batches` (None: as the recipe says)."""
        with self.evaluation_mode():
            return self.learner.measure(batches or self.recipe.log.held_out_batches, self.step)

    def evaluation_mode(self) -> AbstractContextManager[None]:
        return evaluation(self.model)

    def spend(self, seconds: float) -> None:
        """Count time towards the updates made so far."""
        self.progress = replace(self.progress, seconds=self.progress.seconds + seconds)

    def save_latest(self) -> None:
        self.check_weights()
        self.progress = replace(self.progress, scaler=self.scaler.state_dict())
        memory = self._remember() | held_weights(self.full_model, self.adapter)
        latest.save_latest(self.run.latest, self.result, memory, self.progress)

    def _remember(self) -> dict[str, Tensor]:
        """State of the optimisers, as latest/ keeps it."""
        return optimiser_state(self.model, self.optimiser)

    @cached_property
    def rests_on_base(self) -> bool:
        """True where an adapter learns and all that is frozen is the base's: not in a fork of a whole snapshot."""
        began = read_transfer(self.run.path) if self.adapter is not None else None
        return began is not None and began.checksum == frozen_checksum(self.model, began.taken)

    def save_snapshot(self, file: Path) -> None:
        """Keeps what learned of the weights as they are now, or all and beside them what the model does not have."""
        self.check_weights()
        if self.adapter is not None and self.rests_on_base:
            return save_learned(self.model, self.adapter, file)
        save_beside(self.full_model, file)
        save_weights(self.result, file)

    def restore(self, file: Path) -> None:
        """Puts back the weights of a kept step."""
        if held_beside(self.model):
            return load_beside(self.model, file)
        latest.fill_weights(self.model, file, self._hold)

    def checkpoint(self, card: dict[str, object] | None = None) -> Checkpoint:
        """The model as it is now, sharing its weights: look, and do not keep it past the next update.

        A language head beside that of classes has done its work and is left out, so that transformers reads the rest.
        """
        source, settings = self.source, self.run.settings
        model = self.result if self.model.language is None else without_language_head(self.result)
        return Checkpoint(
            model=model,
            tokenizer=source.tokenizer,
            card=card or {},
            end_ids=settings.read_end_ids(model.config) or source.end_ids,
            processor=source.processor,
            labels=source.labels,
            family=self.family,
            writing=settings.read_writing(model.config)[0],
            settings=settings,
        )


def without_language_head(model: Transformer) -> Transformer:
    """The classifier alone, on the same tensors."""
    head = replace(model.config.head, language=False, scale=1.0, softcap=None, outputs=None)
    alone = build_without_memory(replace(model.config, head=head))
    kept = {name: tensor for name, tensor in model.state_dict().items() if not name.startswith("language.")}
    alone.load_state_dict(kept, assign=True)
    return alone.train(model.training)


def mean_scores(each: Sequence[Mapping[str, Tensor]]) -> dict[str, Tensor]:
    return {name: torch.stack([scores[name] for scores in each]).mean() for name in each[0]}


def norms_by_part(gradients: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Norm of the gradient of each part of a model, from the gradients by parameter name."""
    parts: dict[str, list[Tensor]] = {}
    for name, gradient in gradients.items():
        parts.setdefault(gradient_part(name), []).append(gradient)
    return {part: get_total_norm(each) for part, each in parts.items()}
