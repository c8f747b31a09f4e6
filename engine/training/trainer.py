"""A model, its optimiser and its data, and one update after the other. What is logged, kept and asked is in loop.py."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from engine.checkpoints import Checkpoint
from engine.model import Transformer, initialise
from engine.training import latest
from engine.training.folder import RunFolder
from engine.training.machine import Plan
from engine.training.objective import accuracy, loss, share_of
from engine.training.optimiser import adamw
from engine.training.parallel import Peers
from engine.training.recipe import Recipe
from engine.training.schedule import learning_rate
from engine.training.seeds import seed_for
from engine.training.sources import open_source


@dataclass(frozen=True)
class Numbers:
    loss: float
    accuracy: float
    grad_norm: float
    lr: float


@dataclass(frozen=True)
class Update:
    """What one update was. The tensors are scalars on the device, so that nobody waits for what is not looked at."""

    loss: Tensor
    accuracy: Tensor
    grad_norm: Tensor
    lr: float

    def read(self) -> Numbers:
        return Numbers(float(self.loss), float(self.accuracy), float(self.grad_norm), self.lr)


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
        config = replace(recipe.model, vocab_size=self.source.tokenizer.vocab_size)
        self.model = initialise(Transformer(config), seed_for(recipe.seed, "weights")).to(self.device).train()
        self.forward = torch.compile(self.model) if plan.compile else self.model
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
        share = share_of(part, whole)
        part = part.to(self.device)
        with self.plan.context():
            logits = self.forward(part.ids)
            value = loss(logits, part.targets) * share
        self.scaler.scale(value).backward()
        norm = self._update()
        seen = torch.stack([value.detach(), accuracy(logits.detach(), part.targets) * share])
        self.peers.add_up([seen])
        self.progress = replace(self.progress, step=step, tokens=self.progress.tokens + whole.ids.numel())
        return Update(seen[0], seen[1], norm, lr)

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
    def measure(self) -> tuple[float, float]:
        """Loss and accuracy on what is held out, averaged over the batches."""
        totals = torch.zeros(2, dtype=torch.float64)
        batches = self.recipe.log.held_out_batches
        with self.evaluating():
            for examples in self.source.held_out(batches):
                examples = examples.to(self.device)
                with self.plan.context():
                    logits = self.forward(examples.ids)
                    value = loss(logits, examples.targets)
                totals += torch.stack([value, accuracy(logits, examples.targets)]).cpu()
        return float(totals[0]) / batches, float(totals[1]) / batches

    @contextmanager
    def evaluating(self) -> Iterator[None]:
        """Without dropout."""
        self.model.eval()
        try:
            yield
        finally:
            self.model.train()

    def spend(self, seconds: float) -> None:
        """Count time towards the updates made so far."""
        self.progress = replace(self.progress, seconds=self.progress.seconds + seconds)

    def save_latest(self) -> None:
        self.progress = replace(self.progress, scaler=self.scaler.state_dict())
        latest.save_latest(self.run.latest, self.model, self.optimiser, self.progress)

    def checkpoint(self, card: dict[str, object] | None = None) -> Checkpoint:
        """The model as it is now, sharing its weights: look, and do not keep it past the next update."""
        return Checkpoint(model=self.model, tokenizer=self.source.tokenizer, card=card or {})
