"""What a computation costs, in numbers that do not depend on the machine."""

from __future__ import annotations

from dataclasses import dataclass

FLOAT, INDEX = 4, 8  # bytes of a float32 and of an int64


@dataclass(frozen=True)
class Cost:
    """`multiply_adds` of all matrix products; `bytes` held at the peak beyond the inputs, the result included;
    `lookups`: entries read from a table and added."""

    multiply_adds: int
    bytes: int
    lookups: int = 0
