"""A model, its optimiser and its data, and one update after the other. What is logged, kept and asked is in loop.py."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from engine.checkpoints import Checkpoint
from engine.model import Transformer, initialise
from engine.training import latest
from engine.training.folder import RunFolder
from engine.training.machine import Plan
from engine.training.objectives import Counts, Outputs, score, shares_of
from engine.training.optimiser import adamw
from engine.training.parallel import Peers
from engine.training.recipe import Recipe
from engine.training.schedule import learning_rate
from engine.training.seeds import seed_for
from engine.training.sources import open_source

Forward = Callable[..., Outputs]


@dataclass(frozen=True)
class Numbers:
    """`scores` by name: "loss", "accuracy", and what else the objective counts."""

    scores: Mapping[str, float]
    grad_norm: float
    lr: float


@dataclass(frozen=True)
class Update:
    """What one update was. The tensors are scalars on the device, so that nobody waits for what is not looked at."""

    scores: Mapping[str, Tensor]
    grad_norm: Tensor
    lr: float

    @property
    def loss(self) -> Tensor:
        return self.scores["loss"]

    def read(self) -> Numbers:
        return Numbers({name: float(value) for name, value in self.scores.items()}, float(self.grad_norm), self.lr)


class Trainer:
    """Sets the number of threads of this process. Begins where `run` was left, or at step 0."""

    def __init__(self, recipe: Recipe, run: RunFolder, plan: Plan, peers: Peers) -> None:
        if recipe.batch.size < peers.count:
            raise ValueError(f"batch.size must be at least {peers.count}, one row a process, got {recipe.batch.size}.")
        self.recipe, self.run, self.plan, self.peers = recipe, run, plan, peers
        torch.set_num_threads(plan.threads)
        self.device = peers.device(plan.device)
        with peers.leader_first():
            self.source = open_source(recipe, run.path)
        config = self.source.fitted(recipe.model)
        self.model = initialise(Transformer(config), seed_for(recipe.seed, "weights")).to(self.device).train()
        self.forward: Forward = torch.compile(self.model.both) if plan.compile else self.model.both
        self.optimiser = adamw(self.model, recipe.optimiser)
        self.scaler = torch.amp.GradScaler(plan.device, enabled=plan.scaled)
        self.progress = latest.Progress(seed=recipe.seed)
        self._continue()

    def _continue(self) -> None:
        progress = latest.load_latest(self.run.latest, self.model, self.optimiser)
        if progress is not None:
            self.progress = progress
            self.scaler.load_state_dict(progress.scaler)

    @property
    def step(self) -> int:
        """How many updates were made."""
        return self.progress.step

    def advance(self, lr: float | None = None) -> Update:
        """One update, at the rate `lr` where it is given and by the schedule otherwise."""
        step = self.step + 1
        lr = learning_rate(step, self.recipe.schedule, self.recipe.optimiser.lr) if lr is None else lr
        for group in self.optimiser.param_groups:
            group["lr"] = lr
        torch.manual_seed(seed_for(self.recipe.seed, "dropout", step, self.peers.rank))
        whole = self.source.batch(step)
        part = whole.share(self.peers.rank, self.peers.count)
        shares = shares_of(part.counts, whole.counts)
        part = part.to(self.device)
        with self.plan.context():
            scores = score(self.forward(**part.inputs), part, shares)
        self.scaler.scale(scores["loss"]).backward()
        norm = self._update()
        seen = torch.stack(list(scores.values())).detach()
        self.peers.add_up([seen])
        self.progress = replace(self.progress, step=step, tokens=self.progress.tokens + whole.tokens)
        return Update(dict(zip(scores, seen, strict=True)), norm, lr)

    def _update(self) -> Tensor:
        """Clip and apply the gradients; returns their norm before clipping."""
        parameters = list(self.model.parameters())
        self.peers.add_up([p.grad for p in parameters if p.grad is not None])
        self.scaler.unscale_(self.optimiser)
        norm = torch.nn.utils.clip_grad_norm_(parameters, self.recipe.optimiser.clip or float("inf"))
        self.scaler.step(self.optimiser)
        self.scaler.update()
        self.optimiser.zero_grad(set_to_none=True)
        return norm

    @torch.no_grad()
    def measure(self, batches: int | None = None) -> dict[str, float]:
        """The scores on what is held out, each a mean over all targets of `batches` (None: as the recipe says)."""
        held_out = list(self.source.held_out(batches or self.recipe.log.held_out_batches))
        whole = sum((examples.counts for examples in held_out), Counts(0))
        totals: dict[str, Tensor] = {}
        with self.evaluating():
            for examples in held_out:
                shares = shares_of(examples.counts, whole)
                examples = examples.to(self.device)
                with self.plan.context():
                    scores = score(self.forward(**examples.inputs), examples, shares)
                for name, value in scores.items():
                    totals[name] = totals.get(name, torch.zeros((), dtype=torch.float64)) + value.cpu()
        return {name: float(value) for name, value in totals.items()}

    @contextmanager
    def evaluating(self) -> Iterator[None]:
        """Without dropout."""
        before = self.model.training
        self.model.eval()
        try:
            yield
        finally:
            self.model.train(before)

    def spend(self, seconds: float) -> None:
        """Count time towards the updates made so far."""
        self.progress = replace(self.progress, seconds=self.progress.seconds + seconds)

    def save_latest(self) -> None:
        self.progress = replace(self.progress, scaler=self.scaler.state_dict())
        latest.save_latest(self.run.latest, self.model, self.optimiser, self.progress)

    def checkpoint(self, card: dict[str, object] | None = None) -> Checkpoint:
        """The model as it is now, sharing its weights: look, and do not keep it past the next update."""
        source = self.source
        return Checkpoint(
            model=self.model,
            tokenizer=source.tokenizer,
            card=card or {},
            end_ids=source.end_ids,
            processor=source.processor,
            labels=source.labels,
        )
