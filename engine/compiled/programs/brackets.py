"""Dyck-1: whether brackets are balanced so far, may yet be, or are broken. A head weighs opening against closing, an
MLP says which way it leans, and a second head looks for a place where more were closed than opened."""

from collections.abc import Sequence
from fractions import Fraction

from engine.compiled.program import TOKENS, Aggregate, Map, Program, Select, is_any

BALANCED, UNFINISHED, BROKEN = "balanced", "unfinished", "broken"


def weigh(token: str) -> int:
    return 1 if token == "(" else -1


def compare_with_zero(mean: Fraction) -> str:
    return "above" if mean > 0 else "below" if mean < 0 else "level"


def is_below(key: str, query: str) -> bool:
    return key == "below"


def judge(fall: str | None, side: str) -> str:
    return BROKEN if fall is not None else BALANCED if side == "level" else UNFINISHED


def judge_brackets(tokens: Sequence[str]) -> list[str]:
    depth, broken, answers = 0, False, list[str]()
    for token in tokens:
        depth += 1 if token == "(" else -1
        broken = broken or depth < 0
        answers.append(BROKEN if broken else UNFINISHED if depth else BALANCED)
    return answers


PROGRAM = Program(
    name="brackets",
    title="Whether the brackets so far are balanced, unfinished or broken.",
    vocabulary=("(", ")"),
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
)
