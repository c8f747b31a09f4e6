"""A text backwards: how long it is, where its mirror image stands, and a head that looks there."""

from collections.abc import Sequence

from engine.compiled.program import POSITIONS, TOKENS, Aggregate, Map, Program, Select, Width, is_any, is_same


def mirror(length: int, position: int) -> int:
    """The position as far from the end as this one is from the beginning; 0 for what stands in no text."""
    return max(length - 1 - position, 0)


def reverse(tokens: Sequence[str]) -> list[str]:
    return [*reversed(tokens)]


PROGRAM = Program(
    name="reversal",
    title="The text backwards.",
    vocabulary=("a", "b", "c", "d"),
    longest=6,
    sees="full",
    steps=(
        Width("count", Select(TOKENS, TOKENS, is_any)),
        Map("length", ("count",), int),
        Map("source", ("length", POSITIONS), mirror),
        Aggregate("mirrored", Select(POSITIONS, "source", is_same), TOKENS),
    ),
    predicts="mirrored",
    answer=reverse,
    margin=43.0,
)
