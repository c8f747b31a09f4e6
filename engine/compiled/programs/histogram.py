"""How often the token at each position occurs in the text: a head that counts, and an MLP that reads the count off."""

from collections.abc import Sequence

from engine.compiled.program import TOKENS, Map, Program, Select, Width, is_same


def count_tokens(tokens: Sequence[str]) -> list[str]:
    return [str(tokens.count(token)) for token in tokens]


PROGRAM = Program(
    name="histogram",
    title="How often the token at each position occurs in the text.",
    vocabulary=("a", "b", "c", "d"),
    longest=6,
    sees="full",
    steps=(Width("count", Select(TOKENS, TOKENS, is_same)), Map("digit", ("count",), int)),
    predicts="digit",
    answer=count_tokens,
    margin=43.0,
)
