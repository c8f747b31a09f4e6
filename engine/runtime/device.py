"""The device on which an opened model is computed, chosen once by what its memory has room for."""

from __future__ import annotations

import logging
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch

from engine.budget import budget
from engine.checkpoints import Checkpoint
from engine.checkpoints.assemble import FLOATS
from engine.checkpoints.memory import gigabytes
from engine.model.config import ModelConfig, kv_heads
from engine.model.twin import CPU, HALF, Twin, twins

WORKSPACE = 512 * 2**20  # bytes that CUDA's libraries take beside tensors
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class DeviceMemory:
    """A device and the bytes that are free on it."""

    device: torch.device
    free: int


@dataclass(frozen=True)
class DeviceChoice:
    """`why` is a sentence where it is not what was asked for."""

    device: torch.device
    why: str = ""


class Notifier:
    """Passes a sentence to the log, and to the `listener`, in the thread of the session whose computation it is of."""

    listener: Callable[[str], Any] | None = None

    def __call__(self, sentence: str) -> None:
        log.warning(sentence)
        if self.listener is not None:
            self.listener(sentence)


notifier = Notifier()


def list_cards() -> list[DeviceMemory]:
    """The CUDA devices; what PyTorch keeps of freed memory counts as free."""
    found = []
    for number in range(torch.cuda.device_count() if torch.cuda.is_available() else 0):
        free, _ = torch.cuda.mem_get_info(number)
        kept = torch.cuda.memory_reserved(number) - torch.cuda.memory_allocated(number)
        found.append(DeviceMemory(torch.device("cuda", number), free + kept))
    return found


def choose(asked: str, need: int, cards: list[DeviceMemory]) -> DeviceChoice:
    """The card named, or the one with the most free memory, where `need` bytes fit into it; the CPU otherwise.

    Raises SystemExit, with a sentence, where the setting names no kind of device.
    """
    if not re.fullmatch(r"auto|cpu|cuda(:\d{1,3})?", asked):
        raise SystemExit(f"device must be auto, cpu, cuda or cuda:N, got {asked[:80]!r}; correct it.")
    if asked == "cpu" or (asked == "auto" and not cards):
        return DeviceChoice(CPU)
    if ":" in asked:
        cards = [card for card in cards if card.device == torch.device(asked)]
    if not cards:
        return DeviceChoice(
            CPU, f"It is computed on the CPU: the setting device is {asked}, and PyTorch sees none such."
        )
    best = max(cards, key=lambda card: card.free)
    if need > best.free:
        room = f"{best.device} has {gigabytes(best.free)} free"
        return DeviceChoice(CPU, f"It is computed on the CPU: it needs {gigabytes(need)} with one run, and {room}.")
    return DeviceChoice(best.device)


def stored_dtype(checkpoint: Checkpoint) -> torch.dtype:
    """Format of the model on a device: bfloat16 or float16 where most of its numbers are stored so, else float32."""
    counts: Counter[str] = Counter()
    for row in checkpoint.report.rows_with("loaded"):
        counts[row.dtype] += torch.Size(row.shape).numel()
    stored = FLOATS.get(counts.most_common(1)[0][0]) if counts else None
    return stored if stored in HALF else torch.float32


def reckon(checkpoint: Checkpoint, dtype: torch.dtype) -> int:
    """Bytes that the weights and one run need on a device."""
    weights = sum(parameter.numel() for parameter in checkpoint.model.parameters()) * dtype.itemsize
    return weights + run_bytes(checkpoint.config, dtype.itemsize) + WORKSPACE


def run_bytes(config: ModelConfig, itemsize: int) -> int:
    """Bytes that one layer's intermediates, the KV cache and the logits of a long text take at once.

    What a run records goes to host memory layer by layer.
    """
    stacks = [config] if config.encoder is None else [config, config.encoder_stack]
    tokens = min(config.context, budget.long_tokens)
    largest = 0
    for stack in stacks:
        mlp = 0 if stack.mlp is None else stack.mlp.neurons_seen
        vectors = tokens * (8 * stack.d_model + 4 * stack.attention.heads * stack.d_head + 4 * mlp)
        matrices = 5 * stack.attention.heads * tokens**2  # scores, bias, mask, masked scores, pattern
        largest = max(largest, vectors + matrices)
    cached = 2 * config.layers * tokens * kv_heads(config.attention) * config.d_head
    logits = 2 * tokens * max(config.outputs, config.vocab_size)
    return (largest + cached + logits) * itemsize


def list_places(checkpoint: Checkpoint) -> dict[str, str]:
    """Places that a person may ask for instead of the setting, and in words what they take; empty without a card."""
    cards = list_cards()
    if not cards:
        return {}
    dtype = stored_dtype(checkpoint)
    need = f"{gigabytes(reckon(checkpoint, dtype))} in {str(dtype).removeprefix('torch.')}"
    told = {str(card.device): f"{card.device}: takes {need}, {gigabytes(card.free)} free" for card in cards}
    return {"": f"as the setting says ({budget.device})", "cpu": "the CPU, in float32", **told}


def place(checkpoint: Checkpoint, asked: str) -> Checkpoint:
    """The checkpoint, whose model has a twin on the chosen device from here on; a note in its report says why not."""
    cards = [] if asked == "cpu" else list_cards()
    dtype = stored_dtype(checkpoint)
    choice = choose(asked, reckon(checkpoint, dtype), cards)
    why = choice.why
    if choice.device != CPU:
        try:
            twins[checkpoint.model] = Twin(checkpoint.model, choice.device, dtype, notifier)
        except torch.OutOfMemoryError:  # another process was faster
            torch.cuda.empty_cache()
            why = f"It is computed on the CPU: the memory of {choice.device} was used up while its weights went there."
    if not why:
        return checkpoint
    return replace(checkpoint, report=replace(checkpoint.report, notes=(*checkpoint.report.notes, why)))
