"""The head of every run that a comparison shows, and the difference of two, as numbers to take away."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from torch import Tensor

from engine.analysis.alignment import Alignment, Group, shared
from engine.analysis.weights.projection import How
from views.compare.pair import RunPair
from views.core.matrix_files import Matrix
from views.core.run_context import HeadOfRun

LESS = "−"
NOWHERE = "These runs do not have what the page asked for. Reload and try again."


@dataclass(frozen=True)
class ComparisonSelection:
    """Selection of a comparison: an attention by its name in the first run, of each run a head (layer, head) by
    letter, which run is beside the first, and a cell (letter, query, key) in the tokens of one run; the tab, and how
    that of points was made."""

    attention: str
    heads: Mapping[str, tuple[int, int]]
    beside: str
    cursor: tuple[str, int, int]
    view: str = "map"
    how: How = "pca"

    def number(self, pair: RunPair) -> int | None:
        """Finds which attention of the pair it is, None where the two share none of the name."""
        return pair.number(self.attention)

    def attention_index(self, pair: RunPair) -> int:
        number = self.number(pair)
        if number is None:
            raise ValueError(NOWHERE)
        return number

    def cell_groups(self, pair: RunPair) -> tuple[int, int] | None:
        """The cell among the groups of tokens that belong together, None where one run lacks a token of it."""
        letter, row, col = self.cursor
        if letter not in ("A", pair.second.letter):
            return None
        queries, keys = alignments(pair, self)
        found = [group_of(one.groups, letter == "A", place) for one, place in ((queries, row), (keys, col))]
        return None if found[0] is None or found[1] is None else (found[0], found[1])


def group_of(groups: Sequence[Group], first: bool, position: int) -> int | None:
    return next((i for i, one in enumerate(groups) if position in (one.first if first else one.second)), None)


def looked_at(
    pairs: Sequence[RunPair], attention: str, heads: Mapping[str, Any], beside: str, at: tuple[str, int, int],
    view: str = "map", how: How = "pca",
) -> ComparisonSelection:  # fmt: skip
    """Reads what a browser says is looked at. Raises ValueError for what these runs do not have."""
    places: dict[str, tuple[int, int]] = {}
    for letter, place in heads.items():
        match place:
            case [int(layer), int(head)]:
                places[letter] = (layer, head)
    looked = ComparisonSelection(attention, places, beside, at, view, how)
    check(pairs, looked)
    return looked


def check(pairs: Sequence[RunPair], looked: ComparisonSelection) -> None:
    letter, row, col = looked.cursor
    having = [pair for pair in pairs if looked.number(pair) is not None and letter in ("A", pair.second.letter)]
    if not having or looked.number(pairs[0]) is None:
        raise ValueError(NOWHERE)
    rows, cols = pattern(having[0], looked, letter).shape
    if not (0 <= row < rows and 0 <= col < cols):
        raise ValueError(NOWHERE)


def place(pair: RunPair, looked: ComparisonSelection, letter: str) -> tuple[str, int]:
    """The hook of a run's pattern, and the head. Raises ValueError for a head that the run does not have."""
    found = head_of(pair, looked, letter)
    return found.hook, found.head


def head_of(pair: RunPair, looked: ComparisonSelection, letter: str) -> HeadOfRun:
    return head_at(pair, looked.attention_index(pair), letter == "A", looked.heads.get(letter, (-1, -1)))


def head_at(pair: RunPair, number: int, mine: bool, place: tuple[int, int]) -> HeadOfRun:
    """A head of the first run (`mine`) or of the second. Raises ValueError for one that the run does not have."""
    attention = pair.attentions[number][0 if mine else 1]
    config = (pair.first if mine else pair.second).run.lane(attention.side).config
    layer, head = place
    if not (0 <= layer < config.layers and 0 <= head < config.attention.heads):
        raise ValueError(NOWHERE)
    return attention.head(layer, head)


def pattern(pair: RunPair, looked: ComparisonSelection, letter: str) -> Tensor:
    """Pattern of the selected head of one run, query key."""
    found = head_of(pair, looked, letter)
    shown = pair.first if letter == "A" else pair.second
    return shown.run.pattern(found)


def alignments(pair: RunPair, looked: ComparisonSelection) -> tuple[Alignment, Alignment]:
    """Alignments of the queries and of the keys."""
    one, other = pair.attentions[looked.attention_index(pair)]
    return pair.alignment(one.side, other.side), pair.alignment(one.keys(), other.keys())


def difference(pair: RunPair, looked: ComparisonSelection) -> Tensor:
    """The second run's pattern less the first's, group group: attention to a group is summed, from a group averaged."""
    queries, keys = alignments(pair, looked)
    second = shared(pattern(pair, looked, pair.second.letter), queries.second, keys.second)
    return second - shared(pattern(pair, looked, "A"), queries.first, keys.first)


def names(pairs: Sequence[RunPair]) -> list[str]:
    """The matrices that can be taken away: B − A, A, B."""
    letters = [pair.second.letter for pair in pairs]
    return [*(f"{letter} {LESS} A" for letter in letters), "A", *letters]


def matrix(pairs: Sequence[RunPair], looked: ComparisonSelection, name: str) -> Matrix:
    """Matrix with one of `names`. Raises ValueError where the runs lack the attention or tokens in common."""
    letter, _, less = name.partition(f" {LESS} ")
    wanted = [pair for pair in pairs if letter in ("A", pair.second.letter) and looked.number(pair) is not None]
    if not wanted:
        raise ValueError(f"{letter} has no such attention as the one that is shown.")
    pair = wanted[0]
    if less:
        return of_difference(pair, looked)
    shown = pair.first if letter == "A" else pair.second
    return replace(shown.run.matrix(*place(pair, looked, letter), None), model=shown.title)


def of_difference(pair: RunPair, looked: ComparisonSelection) -> Matrix:
    queries, keys = alignments(pair, looked)
    if not queries.groups or not keys.groups:
        raise ValueError(f"A and {pair.second.letter} have no tokens that belong together.")
    one, other = pair.attentions[looked.attention_index(pair)]
    tokens = {
        "query": labels(pair, queries, one.side, other.side),
        "key": labels(pair, keys, one.keys(), other.keys()),
    }
    told = []
    for shown in (pair.second, pair.first):
        hook, head = place(pair, looked, shown.letter)
        told.append(f"{shown.title} {hook} head {head}")
    values = difference(pair, looked).detach().cpu().float().numpy()
    return Matrix("difference", f" {LESS} ".join(told), values, ("query", "key"), tokens)


def labels(pair: RunPair, alignment: Alignment, side: str, other: str) -> list[str]:
    """The tokens of every group: once where both runs have the same."""
    found = []
    for group in alignment.groups:
        mine = "".join(pair.first.run.lane(side).pieces[i] for i in group.first)
        theirs = "".join(pair.second.run.lane(other).pieces[i] for i in group.second)
        found.append(mine if mine == theirs or group.same else f"{mine} | {theirs}")
    return found
