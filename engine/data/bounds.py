"""What the numbers of a table of options must be. Errors begin with the key, so that a recipe's line can be found."""

from __future__ import annotations


def at_least(name: str, value: float, least: float) -> None:
    if value < least:
        raise ValueError(f"{name} must be at least {least}, got {value}.")


def a_share(name: str, value: float) -> None:
    """Above 0 and below 1, since something must lie on either side."""
    if not 0 < value < 1:
        raise ValueError(f"{name} must be a share between 0 and 1, got {value}.")


def symbols(name: str, value: str, least: int = 2) -> None:
    if len(set(value)) != len(value) or len(value) < least:
        raise ValueError(f"{name} must be {least} or more different characters, got {value!r}.")
