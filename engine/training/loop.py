"""The training loop: a generator of Steps. The command line, the tests and the app all see the same ones.

order? --> update --> measure, log, snapshot, save, look (each when it is due) --> yield Step --> order? ...
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

from engine.budget import budget
from engine.training.cluster.parallel import Call, Peers, peers
from engine.training.launch.machine import Abilities, Plan, plan
from engine.training.launch.process import lower_priority
from engine.training.recipe.recipe import Recipe
from engine.training.run.control import Order
from engine.training.run.folder import RunFolder
from engine.training.run.journal import Journal, Step
from engine.training.run.snapshots import progress
from engine.training.trainer import Trainer

LOW = ("Priority low: what is used by a person has the cores first.",)
POLL = 0.05  # seconds between two looks at control.json while paused


def train(recipe: Recipe, folder: Path | str, background: bool = False) -> Iterator[Step]:
    """Train `recipe` in the run directory `folder`, from where it was left; yields every logged Step.

    In the `background` it takes its share of the cores of as many trainings as may run at a time, and from the first
    step on, until which somebody waits, other programs have them first. Leaving the generator saves the run, and a
    later `train` continues it. Raises ValueError where `folder` holds another recipe's run or one that a living process
    is at, Diverged where the loss is no number any more.
    """
    run = RunFolder(folder)
    chosen = plan_run(recipe, run, budget.max_trainings if background else 1)
    with peers(chosen.device) as others:
        if not others.leads:
            follow(open_trainer(recipe, run, chosen, others))
            return
        journal = Journal(run, recipe)
        with journal.session():
            yield from lead(open_trainer(recipe, run, chosen, others), journal, background)


def plan_run(recipe: Recipe, run: RunFolder, beside: int) -> Plan:
    """Trains with the threads that the run began with. Several processes of one machine share its cores, too."""
    begun = progress(run)
    together = beside * int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
    return plan(recipe.machine, Abilities.of_this_machine(), together, 0 if begun is None else begun.threads)


def open_trainer(recipe: Recipe, run: RunFolder, chosen: Plan, others: Peers) -> Trainer:
    if not recipe.machine.shard or others.count == 1:
        return Trainer(recipe, run, chosen, others)
    from engine.training.cluster.sharded import ShardedTrainer  # half a second of imports, which few trainings need

    return ShardedTrainer(recipe, run, chosen, others)


def lead(trainer: Trainer, journal: Journal, background: bool = False) -> Iterator[Step]:
    mended = (trainer.mended,) if trainer.mended else ()
    journal.choose((*trainer.plan.why, *trainer.why, *(LOW if background else ()), *mended, *trainer.source.notes))
    try:
        yield from journal.begin(trainer)
        while trainer.step < trainer.recipe.schedule.steps:
            order = journal.order(trainer.step)
            if order.mode == "stop":
                break
            trainer.peers.agree(order)
            if order.mode == "pause" and trainer.step >= order.until:
                journal.pause(trainer)
                time.sleep(POLL)
                continue
            began = time.perf_counter()
            rests = order.mode == "pause" and trainer.step + 1 >= order.until
            watched = rests or journal.watcher.wants(trainer.step + 1)
            update = trainer.advance(order.lr, closely=watched, weight=order.weight)
            spent = trainer.progress.seconds + time.perf_counter() - began
            due = journal.due(trainer.step, spent) or order.mode == "pause"
            numbers = update.read() if due else None
            trainer.spend(time.perf_counter() - began)
            for notes in (trainer.compilation.notes, trainer.learner.notes):
                if notes:
                    journal.choose((*journal.status.chosen, *notes))
                    notes.clear()
            step = None if numbers is None else journal.record(trainer, numbers)
            journal.keep(trainer)
            if watched:
                journal.watcher.look(trainer, update.gradients)
            if step is not None:
                if background:
                    lower_priority()
                background = False
                yield step
    except GeneratorExit:  # the caller has seen enough; between two updates, so what there is is whole
        trainer.save_latest()
        journal.write_status("stopped", trainer.step)
        trainer.peers.agree(Order("stop"))
        raise
    journal.end(trainer)
    trainer.peers.agree(Order("stop"))  # now, as all may have had to help until here


def follow(trainer: Trainer) -> None:
    """Runs the processes beside the leader: the same updates, and what it calls."""
    while True:
        order: Order | Call = trainer.peers.agree(Order())
        if isinstance(order, Call):
            getattr(trainer, order.method)(*order.given)
        elif order.mode == "stop":
            return
        elif order.mode == "run" or trainer.step < order.until:
            trainer.advance(order.lr, weight=order.weight)
