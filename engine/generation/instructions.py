"""Texts with an instruction behind them, such as "le chat dort [toEnglish]": sentences to ask about, and what a model
wrote.
"""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from engine.checkpoints import Checkpoint
from engine.places import ASSETS

FILE = ASSETS / "texts" / "instructions.toml"


@dataclass(frozen=True)
class InstructedPair:
    """A text, what is wanted of it, and what is right."""

    text: str
    instruction: str
    expected: str


@cache
def held_out_pairs() -> tuple[InstructedPair, ...]:
    """Sentences of `engine.data.instructions`, in neither language among those that the model instruct learnt from."""
    told = tomllib.loads(FILE.read_text(encoding="utf-8"))
    return tuple(
        InstructedPair(text, instruction, expected)
        for instruction, rows in told.items()
        for text, expected in rows.items()
    )


def answer_behind(checkpoint: Checkpoint, ids: Sequence[int]) -> str:
    """The text of what was written, without the token that ended it."""
    assert checkpoint.tokenizer is not None
    ends = set(checkpoint.end_ids)
    return checkpoint.tokenizer.decode([id for id in ids if id not in ends]).strip()
