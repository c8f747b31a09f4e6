"""An edit as a link or a browser gives it, where anything may come: bounded before it is made."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from engine.budget import budget
from engine.edits.edit import Edit, edit_from_dict

DEEPEST = 8  # lists and tables in each other; an edit of a run with edits of its own needs 5
LONGEST_NAME = 200  # characters of a hook, or of a key
WHOLE = 2**53  # up to here JSON readers agree on whole numbers
LARGEST = torch.finfo(torch.float32).max


def validate_edit(data: Mapping[str, Any]) -> Edit:
    """Reads an edit as `edit_from_dict` does. Raises ValueError also for numbers that no run can hold and for more than
    a run should."""
    bound(data)
    return edit_from_dict(data)


def bound(data: Any) -> None:
    """Raises ValueError, with a sentence, for what is too deep, too long or too large. It does not recurse."""
    waiting = [("it", data, 0)]
    while waiting:
        name, value, depth = waiting.pop()
        if depth > DEEPEST:
            raise ValueError(f"expected at most {DEEPEST} lists in each other, got more; write it flatter.")
        if isinstance(value, Mapping):
            check_text("a field", next((key for key in value if len(str(key)) > LONGEST_NAME), ""))
            waiting += [(str(key), part, depth + 1) for key, part in value.items()]
        elif isinstance(value, list):
            if name in ("ids", "target") and len(value) > budget.long_tokens:
                raise ValueError(
                    f"expected a run of at most {budget.long_tokens} tokens to take values from, got {len(value):,}; "
                    "shorten its text."
                )
            waiting += [(name, part, depth + 1) for part in value]
        elif isinstance(value, str):
            check_text(name, value)
        elif isinstance(value, int | float):
            check_number(name, value)


def check_text(name: str, value: str) -> None:
    if len(value) > LONGEST_NAME:
        raise ValueError(f"{name} must be at most {LONGEST_NAME} characters long, got {len(value):,}; shorten it.")


def check_number(name: str, value: float) -> None:
    most = WHOLE if isinstance(value, int) else LARGEST
    if not -most <= value <= most:  # nor is that true of what is no number
        got = "one beyond" if isinstance(value, int) else f"{value:g}"
        raise ValueError(f"{name} must be a number from {-most:.2g} to {most:.2g}, got {got}; choose a smaller one.")
