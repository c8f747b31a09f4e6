"""Sweeps over pairs of prompts (engine/analysis/interventions/pair_set.py) on a cluster of Ray."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields
from math import prod
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from engine.analysis.interventions.pair_set import PromptPair, SweepOptions, check_length, sweep_pairs
from engine.analysis.interventions.sweep import Effects
from engine.budget import budget
from engine.checkpoints import Checkpoint
from engine.inputs.readers import kind, read_text
from engine.model.from_dict import build
from engine.training.cluster.ray_work import RayWork, find_cluster

Found = dict[int, Effects | str]  # effects by row, or why a row has none
TENSORS = [one.name for one in fields(Effects)]


class RayPairSweep(RayWork[Found]):
    """A sweep, of which a part is some of the pairs."""

    name = "sweep"

    def __init__(
        self,
        model: str,
        checkpoint: Checkpoint,
        pairs: Sequence[PromptPair],
        options: SweepOptions,
        runs: Path | str,
        address: str,
    ) -> None:
        self.pairs = pairs
        site, by, metric, direction = options.arguments
        self.options = SweepOptions(site=site, by=by, metric=metric, direction=direction)
        super().__init__(model, checkpoint, json.dumps(self.describe()), len(pairs), {}, runs, address)

    def describe(self) -> dict[str, Any]:
        return {"options": asdict(self.options), "pairs": [asdict(pair) for pair in self.pairs]}

    def find(self, numbers: range) -> Found:
        return find_part(self.checkpoint, self.pairs, self.options, numbers)

    def read(self, numbers: range, tensors: dict[str, Tensor]) -> Found | None:
        found: Found = {}
        for row in numbers:
            if (why := tensors.get(f"{row}.why")) is not None:
                found[row] = bytes(why.tolist()).decode(errors="replace")
            elif any(f"{row}.{part}" not in tensors for part in TENSORS):
                return None
            else:
                found[row] = Effects(**{part: tensors[f"{row}.{part}"] for part in TENSORS})
        return found

    def join(self, so_far: Found, part: Found) -> Found:
        found, length = so_far | part, 0
        for row, effects in found.items():
            if "pos" in self.options.places and isinstance(effects, Effects):
                length = check_length(row, effects.effect.shape[-1], length)
        return found

    @staticmethod
    def compute(checkpoint: Checkpoint, told: Mapping[str, Any], numbers: range) -> dict[str, Tensor]:
        options, pairs = build(SweepOptions, told["options"]), [build(PromptPair, pair) for pair in told["pairs"]]
        tensors: dict[str, Tensor] = {}
        for row, effects in find_part(checkpoint, pairs, options, numbers).items():
            if isinstance(effects, str):
                tensors[f"{row}.why"] = torch.tensor([*effects.encode()], dtype=torch.uint8)
            else:
                tensors |= {f"{row}.{part}": getattr(effects, part) for part in TENSORS}
        return tensors


KIND = RayPairSweep


def on_cluster(
    model: str, checkpoint: Checkpoint, pairs: Sequence[PromptPair], options: SweepOptions
) -> RayPairSweep | None:
    """The sweep of a model of the library on the cluster of `LOUPE_RAY_ADDRESS`; None where `find_cluster` has none for
    it. Its weight is that of the first pair, times their number."""
    if kind(checkpoint) != "text" or not pairs:
        return None
    config, weights = checkpoint.config, sum(weight.numel() for weight in checkpoint.model.parameters())
    tokens = len(read_text(checkpoint, pairs[0].clean, config.context).read)
    sizes = {"head": config.attention.heads, "pos": tokens}
    places = config.layers * prod(sizes[one] for one in options.places)
    address = find_cluster(model, len(pairs) * places * tokens * weights)
    return RayPairSweep(model, checkpoint, pairs, options, budget.runs_folder, address) if address else None


def find_part(checkpoint: Checkpoint, pairs: Sequence[PromptPair], options: SweepOptions, numbers: range) -> Found:
    why: Found = {}
    found: Found = dict(sweep_pairs(checkpoint, pairs, *options.arguments, why.__setitem__, numbers))
    return dict(sorted({**found, **why}.items()))
