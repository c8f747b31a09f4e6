"""Two patterns set beside one another entry by entry: by loops over single weights, and as the whole texts have it."""

import math

import pytest
import torch
from torch import Tensor

from engine.analysis.alignment import Alignment, Group, by_pieces
from engine.analysis.similarity import (
    PatternPair,
    difference,
    entries,
    group_shares,
    head_changes,
    head_similarity,
    largest_differences,
    layer_changes,
    similarity,
    spread_groups,
)

pytestmark = pytest.mark.long

FIRST, SECOND = "a b c d e f g h i".split(), "a b x y d e z g h j k i".split()
ALIGNED = by_pieces(FIRST, SECOND)
GROUPED = Alignment((Group((0,), (0, 1)), Group((1, 2), (2,)), Group((4,), (3, 4, 5)), Group((6, 7), (7,))), (9, 12))


def patterns(heads: int, length: int, seed: int) -> Tensor:
    given = torch.randn(heads, length, length, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return (4 * given).softmax(-1)


def order(alignment: Alignment) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """The entries one by one: tokens that belong together, and before them those that one text has alone."""
    found: list[tuple[tuple[int, ...], tuple[int, ...]]] = []
    i = j = 0
    for group in alignment.groups:
        found += [((a,), ()) for a in range(i, group.first[0])] + [((), (b,)) for b in range(j, group.second[0])]
        found.append((group.first, group.second))
        i, j = group.first[-1] + 1, group.second[-1] + 1
    found += [((a,), ()) for a in range(i, alignment.lengths[0])]
    return found + [((), (b,)) for b in range(j, alignment.lengths[1])]


def by_hand(first: Tensor, second: Tensor, alignment: Alignment) -> Tensor:
    """Summed over keys and averaged over queries."""
    both = order(alignment)
    rows = []
    for a, b in both:
        row = []
        for c, d in both:
            met = a and b and c and d
            mine = sum(float(first[i, k]) for i in a for k in c) / max(1, len(a))
            theirs = sum(float(second[i, k]) for i in b for k in d) / max(1, len(b))
            row.append(theirs - mine if met else math.nan)
        rows.append(row)
    return torch.tensor(rows)


@pytest.mark.parametrize("alignment", [ALIGNED, GROUPED])
def test_the_entry_of_each_group_counts_the_tokens_that_either_text_has_alone_before_it(alignment: Alignment) -> None:
    places, count = entries(alignment)
    both = order(alignment)
    assert count == len(both)
    assert [both[i] for i in places.tolist()] == [(group.first, group.second) for group in alignment.groups]


@pytest.mark.parametrize("alignment", [ALIGNED, GROUPED])
def test_a_difference_stands_where_both_texts_have_the_tokens_and_nowhere_else(alignment: Alignment) -> None:
    first, second = patterns(1, 9, 0)[0], patterns(1, 12, 1)[0]
    found = difference(first.float(), second.float(), alignment, alignment)
    torch.testing.assert_close(found, by_hand(first, second, alignment), atol=1e-6, rtol=1e-5, equal_nan=True)


@pytest.mark.parametrize("side", [3, 4, 7, 12])
def test_no_largest_difference_is_lost_whatever_its_sign_and_its_place_is_named(side: int) -> None:
    generator = torch.Generator().manual_seed(2)
    whole = torch.randn(11, 13, generator=generator)
    whole[5], whole[:, 7] = torch.nan, torch.nan
    whole[9, 12], whole[0, 0] = -9.0, 8.0
    rows, columns = (2, 11), (1, 13)
    found = largest_differences(whole, rows, columns, side)
    high, wide = found.block
    for i, j in torch.cartesian_prod(torch.arange(found.weight.shape[0]), torch.arange(found.weight.shape[1])).tolist():
        top, left = rows[0] + i * high, columns[0] + j * wide
        block = whole[top : min(top + high, rows[1]), left : min(left + wide, columns[1])]
        known = block[~block.isnan()]
        value = float(found.weight[i, j])
        if not len(known):
            assert math.isnan(value)
            continue
        assert abs(value) == float(known.abs().max()) and value == float(whole[found.pos[i, j], found.key[i, j]])
        assert top <= found.pos[i, j] < top + high and left <= found.key[i, j] < left + wide
    assert -9.0 in found.weight


def test_a_window_outside_the_difference_is_refused() -> None:
    with pytest.raises(ValueError, match=r"rows must be a window inside 0\.\.3"):
        largest_differences(torch.zeros(3, 3), (0, 4), (0, 3), 2)


@pytest.mark.parametrize("alignment", [ALIGNED, GROUPED])
def test_what_goes_elsewhere_in_a_layer_is_what_whole_patterns_say(alignment: Alignment) -> None:
    first, second = patterns(3, 9, 0), patterns(3, 12, 1)
    change, seen = layer_changes(first, second, alignment, alignment, 100)
    torch.testing.assert_close(change, head_changes(PatternPair([first], [second], alignment, alignment))[0])
    expected = torch.stack([by_hand(*both, alignment) for both in zip(first, second, strict=True)])
    torch.testing.assert_close(seen, expected.abs().nan_to_num().double(), atol=1e-6, rtol=1e-5)
    coarse = layer_changes(first, second, alignment, alignment, 2)[1]
    assert coarse.shape[1:] == (2, 2)
    torch.testing.assert_close(coarse.amax((1, 2)), seen.amax((1, 2)))


@pytest.mark.parametrize("alignment", [ALIGNED, GROUPED])
def test_heads_are_as_alike_over_all_rows_as_whole_patterns_say(alignment: Alignment) -> None:
    first, second = patterns(3, 9, 0), patterns(2, 12, 1)
    groups, count = spread_groups(alignment, 100)
    assert len(groups) == count == sum(0 not in one.first and 0 not in one.second for one in alignment.groups)
    mine = group_shares(first, [one.first for one in groups], alignment.first)
    theirs = group_shares(second, [one.second for one in groups], alignment.second)
    expected = head_similarity([PatternPair([first], [second], alignment, alignment)]).heads
    torch.testing.assert_close(similarity(mine, theirs), expected, atol=1e-6, rtol=1e-5)


def test_some_of_many_rows_stand_evenly_apart_and_end_with_the_last() -> None:
    aligned = by_pieces(list(map(str, range(100))), list(map(str, range(100))))
    groups, count = spread_groups(aligned, 30)
    places = [one.first[0] for one in groups]
    assert count == 99 and len(places) <= 30 and places[-1] == 99
    assert {b - a for a, b in zip(places, places[1:], strict=False)} == {4}


def test_texts_without_a_row_that_counts_are_alike_in_nothing() -> None:
    alone = Alignment((Group((0,), (0,)),), (2, 2))
    rows = group_shares(patterns(2, 2, 0), [], alone.first)
    assert similarity(rows, rows).isnan().all()
