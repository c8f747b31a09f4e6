"""How the hardware is used: device, number format, compilation, threads. Decided once, from what the machine can do."""

from __future__ import annotations

import os
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field

import torch

from engine.training.recipe.recipe import Machine


@dataclass(frozen=True)
class Abilities:
    """Capabilities of this computer, apart from what the recipe asks, so that the choice can be tested on any other."""

    cuda: bool
    bfloat16: bool
    cores: int

    @classmethod
    def of_this_machine(cls) -> Abilities:
        cuda = torch.cuda.is_available()
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        return cls(cuda, cuda and torch.cuda.is_bf16_supported(), cores)


@dataclass(frozen=True)
class Plan:
    """`autocast` is the format of matrix products, None for float32 throughout; weights are float32 always.

    `scaled` losses keep float16 gradients from vanishing (Micikevicius et al. 2018, section 3.2). `why` says of each
    choice what it is and why, a sentence each.
    """

    device: str
    autocast: torch.dtype | None
    scaled: bool
    compile: bool
    threads: int
    why: tuple[str, ...] = field(default=(), compare=False)

    def prepare(self) -> None:
        """Set this process up for it. Products of float32 on CUDA are TF32, whose rounding is float16's."""
        torch.set_num_threads(self.threads)
        if self.device == "cuda":
            torch.set_float32_matmul_precision("high")

    def context(self) -> AbstractContextManager[object]:
        return nullcontext() if self.autocast is None else torch.autocast(self.device, dtype=self.autocast)


def plan(machine: Machine, able: Abilities, beside: int = 1, before: int = 0) -> Plan:
    """`auto` is float32, uncompiled, on a CPU; bfloat16 (float16 where there is none) on CUDA, compiled
    after the first steps where that pays within the run; when, follows from its pace (compilation.py).

    `beside` is how many trainings may share the cores. `before` is with how many threads this one began: sums are
    rounded otherwise with another number, and a run that goes on is to be as one that was never left.
    """
    device = machine.device if machine.device != "auto" else "cuda" if able.cuda else "cpu"
    if device == "cuda" and not able.cuda:
        raise ValueError('machine.device is "cuda", and PyTorch sees no CUDA device here; use "cpu" or "auto".')
    precision = machine.precision
    if precision == "auto":
        precision = "float32" if device == "cpu" else "bfloat16" if able.bfloat16 else "float16"
    if precision == "float16" and device == "cpu":
        raise ValueError('machine.precision "float16" needs CUDA; on a CPU use "float32", "bfloat16" or "auto".')
    formats = {"float32": None, "bfloat16": torch.bfloat16, "float16": torch.float16}
    compiled = machine.compile == "on" or (machine.compile == "auto" and device == "cuda")
    threads = machine.threads or before or max(able.cores // beside, 1)
    why = (*reasons(machine, able, device, precision, compiled), of_threads(threads, machine, able, beside, before))
    return Plan(device, formats[precision], precision == "float16", compiled, threads, why)


def reasons(machine: Machine, able: Abilities, device: str, precision: str, compiled: bool) -> tuple[str, ...]:
    asked = "as the recipe asks."
    there = "PyTorch sees a CUDA device." if able.cuda else "PyTorch sees no CUDA device."
    formats = {
        ("cpu", "float32"): "results are the same bit for bit each time.",
        ("cuda", "bfloat16"): "the device computes in it, several times as fast as in float32; weights stay float32.",
        ("cuda", "float16"): "the device is fast in it and has no bfloat16; weights stay float32, the loss is scaled.",
    }
    compiling = {
        True: "after the first steps, where that pays within the run.",
        False: "the first step would wait most of a minute for it.",
    }
    tf32 = " Products that are in float32 are rounded as TF32 is." if device == "cuda" else ""
    return (
        f"Device {device}: {there if machine.device == 'auto' else asked}",
        f"Precision {precision}: {formats[device, precision] if machine.precision == 'auto' else asked}{tf32}",
        f"{'Compiled' if compiled else 'Not compiled'}: {compiling[compiled] if machine.compile == 'auto' else asked}",
    )


def of_threads(threads: int, machine: Machine, able: Abilities, beside: int, before: int) -> str:
    if machine.threads or before:
        return f"Threads {threads}: {'as the recipe asks' if machine.threads else 'as it began'}."
    if beside == 1:
        return f"Threads {threads}: one for each core that this process may use."
    cores = f"{able.cores} core{'' if able.cores == 1 else 's'}"
    return (
        f"Threads {threads}: a share of {cores} for each of the {beside} trainings that may run at a time, whether or "
        "not others do; a run keeps its number, on which rounding depends. machine.threads in a recipe sets another."
    )
