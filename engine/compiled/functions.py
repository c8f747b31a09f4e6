"""Functions that a program which a person writes may name, with what each is in words."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from engine.compiled.program import is_any, is_same
from engine.compiled.programs.brackets import compare_with_zero, is_below, judge, weigh
from engine.compiled.programs.induction import is_one_before
from engine.compiled.programs.reversal import mirror
from engine.compiled.programs.sorting import comes_first, pair


def is_other(key: Any, query: Any) -> bool:
    return bool(key != query)


def is_one_behind(key: int, query: int) -> bool:
    return key == query + 1


def is_zero(key: int, query: int) -> bool:
    return key == 0


def is_even(number: int) -> str:
    return "odd" if int(number) % 2 else "even"


def compare(one: Any, other: Any) -> str:
    return "same" if one == other else "different"


# Where a select selects; what makes a whole number of a value; what a map makes, of how many variables.
WHERE: Mapping[Callable[[Any, Any], bool], str] = {
    is_any: "always",
    is_same: "the key equals the query",
    is_other: "the key does not equal the query",
    is_one_before: "the key is one less than the query",
    is_one_behind: "the key is one more than the query",
    comes_first: "the key comes before the query in order",
    is_zero: "the key is 0",
    is_below: "the key is below, as compare_with_zero says it",
}
NUMBERS: Mapping[Callable[[Any], int], str] = {weigh: "1 of (, and -1 of everything else", int: "the number itself"}
MAPS: Mapping[Callable[..., Any], tuple[int, str]] = {
    int: (1, "the whole number, without what stands behind the point"),
    is_even: (1, "even or odd"),
    compare_with_zero: (1, "above, below or level"),
    compare: (2, "same or different"),
    pair: (2, "both as one value"),
    mirror: (2, "of a length and a position, the position as far from the end"),
    judge: (2, "of what fell below and a side: balanced, unfinished or broken"),
}
