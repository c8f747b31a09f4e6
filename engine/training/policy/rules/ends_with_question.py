"""Questions."""

from engine.training.policy.rule import Rule


def ends_with_question(prompt: str, answer: str) -> float:
    """1 for an answer that ends with a question mark, be it in quotation marks, else 0."""
    return float(answer.rstrip(" \n\"'”’»)").endswith("?"))


RULE = Rule("ends with a question", 1, ends_with_question)
