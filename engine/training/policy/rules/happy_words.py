"""Happy words."""

import re

from engine.training.policy.rule import Rule

HAPPY = frozenset("fun glad good happily happy hug joy laughed love loved nice play smile smiled".split())


def happy_words(prompt: str, answer: str) -> float:
    """The number of happy words in the answer."""
    return float(sum(word in HAPPY for word in re.findall(r"\w+", answer.lower())))


RULE = Rule("happy words", 0, happy_words)
