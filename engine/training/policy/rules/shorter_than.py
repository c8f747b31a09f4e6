"""Short answers."""

from engine.training.policy.rule import Rule


def shorter_than(prompt: str, answer: str, words: int = 20) -> float:
    """1 for an answer of fewer words, else 0."""
    return float(len(answer.split()) < words)


RULE = Rule("shorter than 20 words", 2, shorter_than)
