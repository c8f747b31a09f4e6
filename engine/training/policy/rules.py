"""Rules that score an answer to a prompt, in place of a person or a reward model. A larger score is better."""

from __future__ import annotations

import re
from collections.abc import Callable

Rule = Callable[[str, str], float]  # of a prompt and an answer

HAPPY = frozenset("fun glad good happily happy hug joy laughed love loved nice play smile smiled".split())


def happy_words(prompt: str, answer: str) -> float:
    """The number of happy words in the answer."""
    return float(sum(word in HAPPY for word in re.findall(r"\w+", answer.lower())))


def ends_with_question(prompt: str, answer: str) -> float:
    """1 for an answer that ends with a question mark, be it in quotation marks, else 0."""
    return float(answer.rstrip(" \n\"'”’»)").endswith("?"))


def shorter_than(prompt: str, answer: str, words: int = 20) -> float:
    """1 for an answer of fewer words, else 0."""
    return float(len(answer.split()) < words)


RULES: dict[str, Rule] = {
    "happy_words": happy_words,
    "ends_with_question": ends_with_question,
    "shorter_than": shorter_than,
}


def rank_by_rule(rule: Rule, first: str, second: str, prompt: str = "") -> tuple[str, str] | None:
    """The better and the worse of two answers, None where their scores are equal."""
    scores = rule(prompt, first), rule(prompt, second)
    if scores[0] == scores[1]:
        return None
    return (first, second) if scores[0] > scores[1] else (second, first)
