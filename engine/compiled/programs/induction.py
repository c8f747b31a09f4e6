"""Induction by two heads: the first finds the token before each, the second what stood behind the same token before
(Olsson et al. 2022, "In-context Learning and Induction Heads")."""

from collections import Counter
from collections.abc import Sequence

from engine.compiled.program import POSITIONS, START_TOKEN, TOKENS, Aggregate, Program, Select, is_same


def is_one_before(key: int, query: int) -> bool:
    return key == query - 1


def find_followers(tokens: Sequence[str]) -> list[str]:
    """Finds what followed the same token most often before, of several the first of the vocabulary; `<start>` where it
    stands for the first time."""
    answers = list[str]()
    for end, token in enumerate(tokens):
        found = Counter(tokens[at] for at in range(1, end + 1) if tokens[at - 1] == token)
        answers.append(min(found, key=lambda one: (-found[one], one)) if found else START_TOKEN)
    return answers


PROGRAM = Program(
    name="induction",
    title="What followed the same token before, or <start> where a token stands for the first time.",
    vocabulary=("a", "b", "c", "d"),
    longest=7,
    sees="causal",
    steps=(
        Aggregate("previous", Select(POSITIONS, POSITIONS, is_one_before), TOKENS),
        Aggregate("follower", Select("previous", TOKENS, is_same), TOKENS),
    ),
    predicts="follower",
    answer=find_followers,
    margin=1.0,
)
