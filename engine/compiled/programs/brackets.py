"""Dyck-1: whether brackets are balanced so far, may yet be, or are broken. A head weighs opening against closing, an
MLP says which way it leans, and a second head looks for a place where more were closed than opened."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from engine.compiled.program import TOKENS, Aggregate, Map, Program, Select, is_any

OPEN, CLOSE = "(", ")"
BALANCED, UNFINISHED, BROKEN = "balanced", "unfinished", "broken"
ABOVE, LEVEL, BELOW = "above", "level", "below"


def weigh(token: str) -> int:
    return 1 if token == OPEN else -1


def compare_with_zero(mean: Fraction) -> str:
    return ABOVE if mean > 0 else BELOW if mean < 0 else LEVEL


def is_below(key: str, query: str) -> bool:
    return key == BELOW


def judge(fall: str | None, side: str) -> str:
    if fall is not None:
        return BROKEN
    return BALANCED if side == LEVEL else UNFINISHED


def judge_brackets(tokens: Sequence[str]) -> list[str | None]:
    depth, broken, answers = 0, False, list[str | None]()
    for token in tokens:
        depth += 1 if token == OPEN else -1
        broken = broken or depth < 0
        answers.append(BROKEN if broken else UNFINISHED if depth else BALANCED)
    return answers


PROGRAM = Program(
    name="brackets",
    title="Whether the brackets so far are balanced, unfinished or broken.",
    vocabulary=(OPEN, CLOSE),
    longest=12,
    sees="causal",
    steps=(
        Aggregate("mean", Select(TOKENS, TOKENS, is_any), TOKENS, weigh),
        Map("side", ("mean",), compare_with_zero),
        Aggregate("fall", Select("side", "side", is_below), "side"),
        Map("verdict", ("fall", "side"), judge),
    ),
    predicts="verdict",
    answer=judge_brackets,
    margin=46.0,
    place=5,
)
