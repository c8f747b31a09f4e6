"""Examples drawn one by one, by their number alone, and which of them are held out.

Only `random.Random.random` and its seeding by text are used, which are the same on every machine and Python version.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from hashlib import blake2b
from typing import Literal, TypeVar

T = TypeVar("T")
Chance = Callable[[], float]  # uniform in [0, 1)
Part = Literal["train", "held_out"]

HELD_OUT = 0.1  # of all that can be drawn
TRIES = 10_000


def lot(text: str, seed: int) -> int:
    """64 bits that decide about `text`, whenever and wherever it is drawn."""
    return int.from_bytes(blake2b(f"{seed}:{text}".encode(), digest_size=8).digest(), "big")


def is_held_out(key: str, seed: int) -> bool:
    """A tenth of all keys are, each by itself: so none is in both parts, however often it is drawn."""
    return lot(key, seed) < HELD_OUT * 2**64


def draw_indexed(draw: Callable[[Chance], T], key: Callable[[T], str], part: Part, seed: int, index: int) -> T:
    """Example `index` of a part: the first that is drawn whose key belongs there.

    Raises ValueError where there are so few different ones that none does.
    """
    chance = random.Random(f"{seed}:{index}:{part}").random
    for _ in range(TRIES):
        example = draw(chance)
        if is_held_out(key(example), seed) == (part == "held_out"):
            return example
    raise ValueError("too few different examples to hold some of them out; allow longer ones, or more symbols.")


def number(chance: Chance, low: int, high: int) -> int:
    """Uniform from `low` to `high` itself."""
    return low + int(chance() * (high - low + 1))


def choice(chance: Chance, options: Sequence[T]) -> T:
    return options[int(chance() * len(options))]
