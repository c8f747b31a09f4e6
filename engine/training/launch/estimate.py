"""What a training will take, before it is started: parameters, memory, and, once this machine was measured, time.

The time is that of a run with the same steps, where there is one on this machine; else it is computed from the
operations, and held against a run on the same data.
"""

from __future__ import annotations

import json
import math
import os
import socket
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import torch
from torch.nn.functional import cross_entropy

from engine.analysis.sizes.memory import activations
from engine.analysis.sizes.shape import stacks
from engine.analysis.sizes.work import forward
from engine.budget import budget
from engine.checkpoints.assemble import list_parameters
from engine.data.kinds.repeats import Repeats
from engine.model.config import MLP, Attention, ModelConfig
from engine.model.transformer import Transformer, initialise
from engine.tokenizers.trainers import find_kind
from engine.training.launch.machine import Abilities, plan
from engine.training.launch.pace import measured_paces
from engine.training.recipe.limit_checks import check_recipe
from engine.training.recipe.optimiser import build_adamw, is_muon_matrix
from engine.training.recipe.recipe import Optimiser, Recipe
from engine.training.run.atomic import read_json, write_json
from engine.training.run.folder import runs_folder

FLOAT32 = 4  # bytes
FILE = ".speed.json"  # in the folder of the runs
THERE_AND_BACK = 3  # the backward pass is two products for each of the forward's (Kaplan et al. 2020, section 2.1)


def decoder(width: int, context: int) -> ModelConfig:
    return ModelConfig(
        vocab_size=64, context=context, d_model=width, layers=2, attention=Attention(4), mlp=MLP(4 * width)
    )


LITTLE, NARROW, WIDE = decoder(8, 8), decoder(32, 32), decoder(128, 128)
ROWS = {LITTLE: 2, NARROW: 64, WIDE: 16}


@dataclass(frozen=True)
class Estimate:
    """`memory_bytes` is the most that weights, gradients, the optimiser's memory and activations take together, beside
    the process itself; `seconds` is of all steps, None where neither this machine's speed is known nor a run has
    measured such steps.
    """

    parameters: int
    memory_bytes: int
    seconds: float | None


@dataclass(frozen=True)
class Speed:
    """Seconds, on one machine: `block` for a block in one step however small it is, `narrow` and `wide` for an
    operation in models as wide as NARROW and WIDE: small matrices make less of a processor.
    """

    block: float
    narrow: float
    wide: float

    def work(self, width: int) -> float:
        """Work of a model of that width, on the line between the two by the logarithms of all."""
        least, most = (math.log(config.d_model) for config in (NARROW, WIDE))
        there = min(max((math.log(width) - least) / (most - least), 0.0), 1.0)
        return math.exp((1 - there) * math.log(self.narrow) + there * math.log(self.wide))


def estimate(recipe: Recipe, folder: Path | str | None = None) -> Estimate:
    """Every row is taken to have batch.context tokens, on both sides where there are two stacks.

    Raises ValueError, before anything is counted, for a training that is larger than is allowed here."""
    check_recipe(recipe)
    config = as_far_as_known(recipe)
    named = list_parameters(config)
    count = sum(p.numel() for p in named.values())
    matrices = sum(p.numel() for name, p in named.items() if is_muon_matrix(name, p))
    remembered = {
        "adamw": 2 * count,
        "sgd": count if recipe.optimiser.momentum else 0,
        "muon": 2 * count - matrices,
    }
    memory = FLOAT32 * (2 * count + remembered[recipe.optimiser.kind]) + of_activations(config, recipe)
    step = seconds_per_step(recipe, runs_folder(folder))
    return Estimate(count, memory, None if step is None else recipe.schedule.steps * step)


def seconds_per_step(recipe: Recipe, folder: Path) -> float | None:
    """Seconds per step, as measured in the newest run of the same steps with as many threads; else computed, and scaled
    by the ratio of measured to computed seconds of a run on the same data. None where the speed of the machine is
    unknown."""
    chosen = plan(recipe.machine, Abilities.of_this_machine(), budget.max_trainings)
    paces = [pace for pace in measured_paces(folder) if pace.plan == chosen]
    same = next((pace for pace in paces if pace.is_of(recipe)), None)
    if same is not None:
        return same.seconds
    speed = known_speed(recipe, folder)
    if speed is None:
        return None
    computed = seconds(as_far_as_known(recipe), recipe, speed)
    other = next((pace for pace in paces if pace.recipe.data == recipe.data), None)
    if other is None:
        return computed
    return computed * other.seconds / seconds(as_far_as_known(other.recipe), other.recipe, speed)


def as_far_as_known(recipe: Recipe) -> ModelConfig:
    """The model's config with as many tokens as the tokenizer will have, as far as the recipe tells."""
    tokenizer = recipe.data.tokenizer
    if recipe.model.vocab_size > 1 or recipe.model.embedding.patches is not None:
        return recipe.model
    data = recipe.data.table
    known = len(data.symbols) + 1 if isinstance(data, Repeats) else tokenizer.vocab_size
    return replace(recipe.model, vocab_size=known or find_kind(tokenizer.kind).vocabulary)


def of_activations(config: ModelConfig, recipe: Recipe) -> int:
    """Bytes that wait for the backward pass where they are most, at its beginning."""
    rows, context = -(-recipe.batch.size // recipe.batch.accumulate), recipe.batch.context
    number = FLOAT32 if plan(recipe.machine, Abilities.of_this_machine()).autocast is None else 2
    kept = sum(one.bytes for one in activations(config, rows, context, number))
    every = config.head.kind in ("language", "masked", "token")
    logits = rows * (context if every else 1) * config.outputs * FLOAT32  # beside their gradient
    return kept + logits + (of_dropout(config, rows, context) if config.dropout else 0)


def of_dropout(config: ModelConfig, rows: int, context: int) -> int:
    """Bytes that dropout keeps: what each number was multiplied by; and the patterns, which no fused attention drops
    from on a CPU, before it and after it."""
    stream = rows * context * config.d_model
    found = 0
    for stack in stacks(config):
        sublayers = 1 + (config.mlp is not None) + stack.crosses
        squares = rows * context**2 * config.attention.heads * (1 + stack.crosses)
        found += FLOAT32 * (stream * (1 + sublayers * stack.L.value) + 3 * squares * stack.L.value)
    return found


def seconds(config: ModelConfig, recipe: Recipe, speed: Speed) -> float:
    """Time of one step, computed."""
    blocks = sum(stack.L.value for stack in stacks(config)) * recipe.batch.accumulate
    work = operations(config, recipe.batch.size, recipe.batch.context)
    return blocks * speed.block + work * speed.work(config.d_model)


def operations(config: ModelConfig, rows: int, context: int) -> int:
    return THERE_AND_BACK * rows * sum(one.formula.value for one in forward(config, context))


def key(threads: int) -> str:
    return f"{socket.gethostname()}, {os.cpu_count()} cores, torch {torch.__version__}, {threads} threads"


def known_speed(recipe: Recipe, folder: Path) -> Speed | None:
    """None before `calibrate`, and for CUDA."""
    chosen = plan(recipe.machine, Abilities.of_this_machine(), budget.max_trainings)
    try:
        found = (read_json(folder / FILE) or {}).get(key(chosen.threads))
        return None if found is None or chosen.device != "cpu" else Speed(**found)
    except (json.JSONDecodeError, TypeError, AttributeError):  # somebody else's file
        return None


def calibrate(recipe: Recipe, folder: Path | str | None = None) -> Speed:
    """Measure this machine, in less than a second, with as many threads as `recipe` takes, and note it in `folder`.

    For a process of its own: it sets the number of threads, and gives it back.
    """
    threads = plan(recipe.machine, Abilities.of_this_machine(), budget.max_trainings).threads
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        little, narrow, wide = (fastest_step(config) for config in (LITTLE, NARROW, WIDE))
    finally:
        torch.set_num_threads(before)
    slow, fast = (seconds_per_operation(*size, little) for size in ((NARROW, narrow), (WIDE, wide)))
    speed = Speed(little / LITTLE.layers, slow, fast)
    place = runs_folder(folder)
    place.mkdir(parents=True, exist_ok=True)
    known = read_json(place / FILE)
    write_json(place / FILE, (known if isinstance(known, dict) else {}) | {key(threads): asdict(speed)})
    return speed


def seconds_per_operation(config: ModelConfig, whole: float, little: float) -> float:
    """Seconds an operation, once what every step of so many blocks takes is taken away."""
    return max(whole - little, whole / 4) / operations(config, ROWS[config], config.context)


def fastest_step(config: ModelConfig, least: float = 0.2) -> float:
    """Seconds of the fastest of a few steps: of one core where it is one thread, however busy the machine is."""
    clock = time.process_time if torch.get_num_threads() == 1 else time.perf_counter
    model = initialise(Transformer(config), 0)
    optimiser = build_adamw(list(model.named_parameters()), Optimiser())
    ids = torch.arange(ROWS[config] * config.context).view(ROWS[config], -1) % config.vocab_size
    found: list[float] = []
    end = time.perf_counter() + least
    while len(found) < 3 or time.perf_counter() < end:
        begun = clock()
        cross_entropy(model(ids).flatten(0, 1), ids.flatten()).backward()
        optimiser.step()
        optimiser.zero_grad()
        found.append(clock() - begun)
    return min(found)
