"""What one rule declares of itself; engine/training/policy/rules/ has a file for each.

A rule scores an answer to a prompt in place of a person or a reward model. A larger score is better.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from engine.collect import collect

Score = Callable[[str, str], float]  # of a prompt and an answer


@dataclass(frozen=True)
class Rule:
    """The `title` names it in forms, which show the source of `score`."""

    title: str
    place: int
    score: Score

    @property
    def name(self) -> str:
        """The name in recipes and links."""
        return self.score.__name__


@cache
def rules() -> dict[str, Rule]:
    return {one.name: one for one in collect("engine.training.policy.rules", "RULE", Rule)}


def rank_by_score(score: Score, first: str, second: str, prompt: str = "") -> tuple[str, str] | None:
    """The better and the worse of two answers, None where their scores are equal."""
    scores = score(prompt, first), score(prompt, second)
    if scores[0] == scores[1]:
        return None
    return (first, second) if scores[0] > scores[1] else (second, first)
