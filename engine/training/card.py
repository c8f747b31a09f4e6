"""The card of a finished model: where it comes from and how good it is, for card.json and the person who opens it."""

from __future__ import annotations

import platform
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

import torch

from engine.generate import generate
from engine.training.folder import RunFolder
from engine.training.trainer import Trainer

PROMPT = "Once upon a time"
LONGEST = 300  # tokens; a story ends before


def card(trainer: Trainer, run: RunFolder) -> dict[str, Any]:
    recipe, made = trainer.recipe, trainer.progress
    held_out = trainer.measure()
    last: dict[str, Any] = next((line for line in reversed(run.read_metrics()) if line["loss"] is not None), {})
    return {
        "name": run.path.name,
        "about": recipe.about,
        "data": asdict(recipe.data),
        "parameters": sum(p.numel() for p in trainer.model.parameters()),
        "steps": made.step,
        "tokens": made.tokens,
        "loss": {"training": last.get("loss"), "held_out": held_out[0], "unit": "nats a token"},
        "accuracy": {"training": last.get("accuracy"), "held_out": held_out[1]},
        "seconds": round(made.seconds, 1),
        "device": device_name(trainer.device),
        "sample": sample(trainer),
        "seed": recipe.seed,
        "versions": {"python": platform.python_version(), "torch": torch.__version__},
        "trained": datetime.now(UTC).strftime("%Y-%m-%d"),
    }


def device_name(device: torch.device) -> str:
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    threads = torch.get_num_threads()
    return f"CPU, {threads} thread{'' if threads == 1 else 's'}"


def sample(trainer: Trainer) -> str:
    """What the model writes after PROMPT, after the beginning of a held-out text, or after a segment and a half."""
    data, tokenizer = trainer.recipe.data, trainer.source.tokenizer
    repeats = data.repeats
    if data.text is not None:
        ids = next(trainer.source.held_out(1)).ids[0, :20].tolist()
    else:
        prompt = PROMPT if repeats is None else (repeats.symbols[:8] * 2)[:12]
        ids = list(tokenizer.encode(prompt, special=False).ids)[: trainer.model.config.context]
    with trainer.evaluating():
        steps = generate(trainer.checkpoint(), ids, max_tokens=LONGEST, temperature=0.7, greedy=repeats is not None)
        new = [step.id for step in steps]
    return tokenizer.decode([*ids, *new], special=False)
