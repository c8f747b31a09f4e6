"""Why a training ended that should not have: the cause in a word or two, and a sentence with what to do."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from contextlib import contextmanager

from safetensors import SafetensorError

from engine.plurals import count_words
from engine.training.launch.machine import Plan
from engine.training.recipe.recipe import Recipe
from engine.training.run.atomic import FULL

FULL_SAID = re.compile(r"No space left on device|os error 28\b|Disk quota exceeded|os error 122\b")
MEMORY_SAID = re.compile(r"can't allocate memory|out of memory|Unable to allocate|std::bad_alloc", re.IGNORECASE)
AMOUNT = re.compile(r"tried to allocate ([\d.]+ ?(?:bytes|[KMGT]i?B))|Unable to allocate ([\d.]+ [KMGT]iB)", re.I)


class TrainingFailed(Exception):
    """`cause` as in status.json."""

    cause = ""


class Diverged(TrainingFailed):
    """The loss, a gradient or a weight is infinite or not a number."""

    cause = "not a number"


class DiskFull(TrainingFailed):
    cause = "disk full"


class OutOfMemory(TrainingFailed):
    cause = "out of memory"


def explain_failure(error: BaseException, recipe: Recipe) -> TrainingFailed | None:
    """None for an error of a kind that this knows nothing of."""
    if isinstance(error, TrainingFailed):
        return error
    said = str(error)
    if (isinstance(error, OSError) and error.errno in FULL) or FULL_SAID.search(said):
        return DiskFull(
            "the disk is full, and a file of the run could not be written; make room, for example by deleting runs, "
            "or lower log.snapshots, then resume: the run goes on from what it saved last."
        )
    if isinstance(error, MemoryError) or (isinstance(error, RuntimeError) and MEMORY_SAID.search(said)):
        return OutOfMemory(out_of_memory(said, recipe))
    return None


@contextmanager
def failure_explanations(recipe: Recipe) -> Iterator[None]:
    """Raise TrainingFailed, where it is known what that was, instead of what happened inside."""
    try:
        yield
    except (OSError, MemoryError, RuntimeError, SafetensorError) as error:
        known = explain_failure(error, recipe)
        if known is None:
            raise
        raise known from error


def out_of_memory(message: str, recipe: Recipe) -> str:
    found = AMOUNT.search(message)
    amount = next((group for group in found.groups() if group), "") if found else ""
    if amount.endswith("bytes"):
        amount = f"{float(amount.removesuffix('bytes')) / 2**20:,.0f} MiB"
    batch, model = recipe.batch, recipe.model
    parts = min(2 * batch.accumulate, batch.size)
    split = f"raise batch.accumulate from {batch.accumulate} to {parts}, " if parts > batch.accumulate else ""
    return (
        f"memory must hold a step of {batch.size} x {count_words(batch.context, 'token')} through "
        f"{count_words(model.layers, 'layer')} of width {model.d_model}, and there was no room"
        f"{f' for {amount} more' if amount else ''}; {split}lower batch.size or batch.context, or take a smaller model."
    )


def not_a_number(what: str, value: float, step: int, lr: float, recipe: Recipe, plan: Plan) -> Diverged:
    """`what` had `value` in update `step`."""
    shown = "not a number" if math.isnan(value) else "infinite"
    return Diverged(f"the {what} must be a number, and is {shown} at step {step:,}; {advice(step, lr, recipe, plan)}.")


def advice(step: int, lr: float, recipe: Recipe, plan: Plan) -> str:
    """Says what most often helps, of what this recipe leaves to change."""
    schedule, optimiser = recipe.schedule, recipe.optimiser
    longer = min(max(100, 2 * schedule.warmup), schedule.steps)
    changes = [f"lower optimiser.lr from {optimiser.lr:g} to {optimiser.lr / 3:.1g} (it was {lr:.2g} at this step)"]
    if step < 2 * longer and longer > schedule.warmup:
        changes.append(f"lengthen schedule.warmup from {schedule.warmup} to {longer}")
    if not optimiser.clip:
        changes.append("set optimiser.clip to 1.0, it clips nothing now")
    if plan.scaled:
        changes.append('set machine.precision to "float32", float16 ends at 65,504')
    return " or ".join([", ".join(changes[:-1]), changes[-1]]) if len(changes) > 1 else changes[0]
