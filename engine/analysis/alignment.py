"""Which tokens of two texts belong together, so that what is measured on one can be set beside the other."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from engine.tokenizers.encoding import Encoding
from engine.work_limit import check_work

WORDS = re.compile(r"\w+|[^\w\s]")


@dataclass(frozen=True)
class Group:
    """Positions in the first and in the second text that belong together; where not `same`, by their place alone."""

    first: tuple[int, ...]
    second: tuple[int, ...]
    same: bool = True

    @property
    def counts_as_row(self) -> bool:
        """Not with a text's first position, which in a causal model has no choice."""
        return 0 not in self.first and 0 not in self.second


@dataclass(frozen=True)
class Alignment:
    """The groups rise in both texts, no token is in two of them, and `lengths` are those of the texts in tokens."""

    groups: tuple[Group, ...]
    lengths: tuple[int, int]

    @property
    def first(self) -> tuple[tuple[int, ...], ...]:
        return tuple(group.first for group in self.groups)

    @property
    def second(self) -> tuple[tuple[int, ...], ...]:
        return tuple(group.second for group in self.groups)


def by_pieces(first: Sequence[str], second: Sequence[str]) -> Alignment:
    """Two texts in the tokens of one tokenizer, by a longest common subsequence (Wagner & Fischer 1974).

    Between two tokens of it, others stand in for one another where both texts have as many of them.
    """
    anchors = [Group((i,), (j,)) for i, j in common(first, second)]
    return Alignment(tuple(fill_between(anchors, first, second)), (len(first), len(second)))


def by_characters(first: Encoding, second: Encoding) -> Alignment:
    """Two texts in the tokens of two tokenizers: those belong together that hold the same characters.

    Which characters are the same is decided word by word, by a longest common subsequence; blanks do not count, which
    one tokenizer keeps with a word and another drops. Tokens that come from no text are paired as in `by_pieces`.
    """
    owners: dict[int, list[int]] = {}
    for j, (start, end) in enumerate(second.spans):
        for place in range(start, end):
            owners.setdefault(place, []).append(j)
    same = dict(characters(first.text, second.text))
    groups: list[tuple[set[int], set[int]]] = []
    for i, (start, end) in enumerate(first.spans):
        partners = {j for place in range(start, end) if place in same for j in owners.get(same[place], ())}
        if partners and groups and partners & groups[-1][1]:
            groups[-1][0].add(i)
            groups[-1][1].update(partners)
        elif partners:
            groups.append(({i}, partners))
    anchors = [Group(tuple(sorted(a)), tuple(sorted(b))) for a, b in groups]
    checked = [Group(g.first, g.second, token_text(first, g.first) == token_text(second, g.second)) for g in anchors]
    return Alignment(tuple(fill_between(checked, first.pieces, second.pieces)), (len(first), len(second)))


def characters(first: str, second: str) -> Iterator[tuple[int, int]]:
    """Places of characters of one text and of the same ones in the other."""
    words = [list(WORDS.finditer(text)) for text in (first, second)]
    for i, j in common([w[0] for w in words[0]], [w[0] for w in words[1]]):
        a, b = words[0][i], words[1][j]
        yield from zip(range(*a.span()), range(*b.span()), strict=True)


def token_text(encoding: Encoding, positions: tuple[int, ...]) -> str:
    """The text that tokens hold, without the blanks around it."""
    start, end = encoding.spans[positions[0]][0], encoding.spans[positions[-1]][1]
    return encoding.text[start:end].strip()


def common(first: Sequence[str], second: Sequence[str]) -> list[tuple[int, int]]:
    """The places of a longest common subsequence in both, the earliest where there are several."""
    rows, cols = len(first), len(second)
    longest = [[0] * (cols + 1) for _ in range(rows + 1)]  # of what stands from (i, j) on
    for i in range(rows - 1, -1, -1):
        check_work()
        for j in range(cols - 1, -1, -1):
            skipped = max(longest[i + 1][j], longest[i][j + 1])
            longest[i][j] = 1 + longest[i + 1][j + 1] if first[i] == second[j] else skipped
    found, i, j = [], 0, 0
    while i < rows and j < cols:
        if first[i] == second[j]:
            found.append((i, j))
            i, j = i + 1, j + 1
        elif longest[i + 1][j] >= longest[i][j + 1]:
            i += 1
        else:
            j += 1
    return found


def fill_between(anchors: Sequence[Group], first: Sequence[str], second: Sequence[str]) -> Iterator[Group]:
    """The groups, and between them one for each token where both texts have as many left."""
    i, j = 0, 0
    for anchor in (*anchors, Group((len(first),), (len(second),))):
        left, right = range(i, anchor.first[0]), range(j, anchor.second[0])
        if len(left) == len(right):
            yield from (Group((a,), (b,), first[a] == second[b]) for a, b in zip(left, right, strict=True))
        if anchor.first[0] < len(first) or anchor.second[0] < len(second):
            yield anchor
        i, j = anchor.first[-1] + 1, anchor.second[-1] + 1


def shared(pattern: Tensor, queries: Sequence[tuple[int, ...]], keys: Sequence[tuple[int, ...]]) -> Tensor:
    """Attention from groups of tokens to groups of tokens, ... query key, of a pattern ... pos key.

    To a group it is the sum over its tokens, from a group their mean (Clark et al. 2019, "What Does BERT Look At?",
    section 4.1). Of single tokens it is the pattern's own elements.
    """
    return sum_groups(mean_rows(pattern, queries), keys, -1)


def mean_rows(pattern: Tensor, queries: Sequence[tuple[int, ...]]) -> Tensor:
    """... query key: the mean row of each group."""
    rows, sizes = sum_groups(pattern, queries, -2), torch.tensor([len(group) for group in queries])
    return rows / sizes[:, None] if (sizes > 1).any() else rows


def sum_groups(values: Tensor, groups: Sequence[tuple[int, ...]], axis: int) -> Tensor:
    """The sum of the elements of each group along an axis, counted from the end: picked out, not multiplied out."""
    found = values.index_select(axis, torch.tensor([i for group in groups for i in group], dtype=torch.long))
    if all(len(group) == 1 for group in groups):
        return found
    if len(groups) == 1:
        return found.sum(axis, keepdim=True)
    owners = torch.tensor([number for number, group in enumerate(groups) for _ in group])
    shape = [*found.shape]
    shape[axis] = len(groups)
    return found.new_zeros(shape).index_add_(axis, owners, found)
