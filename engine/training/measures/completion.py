"""How often a decoder completes a source never seen exactly, and whether a head shows what became which."""

from __future__ import annotations

from typing import Any

from engine.training.measures.exact import exact_match
from engine.training.measures.origins import origins
from engine.training.trainer import Trainer


def measure_completion(trainer: Trainer) -> dict[str, Any]:
    return {**exact_match(trainer), **origins(trainer)}
