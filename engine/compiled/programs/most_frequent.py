"""The most frequent token of a text: one head that attends to all tokens alike."""

from collections.abc import Sequence

from engine.compiled.program import TOKENS, Aggregate, Program, Select, is_any

VOCABULARY = ("a", "b", "c", "d")


def find_most_frequent(tokens: Sequence[str]) -> list[str]:
    """Counts up to each position; of equally frequent tokens the first of the vocabulary wins."""
    return [max(VOCABULARY, key=tokens[: end + 1].count) for end in range(len(tokens))]


PROGRAM = Program(
    name="most_frequent",
    title="The most frequent token of the text so far, of several the first in the alphabet.",
    vocabulary=VOCABULARY,
    longest=6,
    sees="causal",
    steps=(Aggregate("share", Select(TOKENS, TOKENS, is_any), TOKENS),),
    predicts="share",
    answer=find_most_frequent,
    margin=1.1,
    read_from=-1,
)
