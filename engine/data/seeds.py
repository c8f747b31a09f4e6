"""Every random draw of a run has a seed of its own, made from the recipe's and what the draw is for.

So nothing depends on what was drawn before: step 900 draws the same after a restart, on one process or on eight.
"""

from __future__ import annotations

from hashlib import blake2b


def seed_for(seed: int, *purpose: str | int) -> int:
    """63 bits from the seed and what it is for, such as ("batch", 17); the same on every machine."""
    name = "/".join(map(str, (seed, *purpose)))
    return int.from_bytes(blake2b(name.encode(), digest_size=8).digest(), "big") >> 1
