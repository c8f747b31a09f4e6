"""A text in order: each token counts those that come before it, equal ones by their positions, and each position looks
for the token that counted as many."""

from engine.compiled.program import POSITIONS, TOKENS, Aggregate, Map, Program, Select, Width, is_same


def pair(token: str, position: int) -> tuple[str, int]:
    return token, position


def comes_first(key: tuple[str, int], query: tuple[str, int]) -> bool:
    return key < query


PROGRAM = Program(
    name="sorting",
    title="The tokens of the text in order.",
    vocabulary=("1", "2", "3", "4"),
    longest=6,
    sees="full",
    steps=(
        Map("pair", (TOKENS, POSITIONS), pair),
        Width("smaller", Select("pair", "pair", comes_first)),
        Map("rank", ("smaller",), int),
        Aggregate("sorted", Select("rank", POSITIONS, is_same), TOKENS),
    ),
    predicts="sorted",
    answer=sorted,
    margin=43.0,
)
