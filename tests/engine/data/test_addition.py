from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.data.kinds.addition import Addition, carries, pair


@given(st.integers(1, 6), st.booleans(), st.integers(0, 10**6), st.integers(0, 10**6))
def test_the_target_is_the_sum_in_as_many_digits_as_any_may_have(
    digits: int, backwards: bool, seed: int, index: int
) -> None:
    one = pair(Addition(digits, backwards), "train", seed, index)
    first, second = one.source.split("+")
    assert len(first) == len(second) == digits and len(one.target) == digits + 1
    assert int(one.target[::-1] if backwards else one.target) == int(first) + int(second)


def test_with_a_sum_the_one_with_its_numbers_exchanged_is_held_out() -> None:
    task = Addition(digits=1, documents=3_000, held_out=200)
    ours = {one.source for one in task.pairs("train", 0)}
    for one in task.pairs("held_out", 0):
        first, second = one.source.split("+")
        assert not {f"{first}+{second}", f"{second}+{first}"} & ours


@given(st.integers(0, 10**6), st.integers(0, 10**6))
def test_carries_are_counted_as_the_sum_of_digits_loses_nine_for_each(first: int, second: int) -> None:
    def digits(n: int) -> int:
        return sum(map(int, str(n)))

    assert digits(first) + digits(second) - digits(first + second) == 9 * carries(first, second)


def test_short_numbers_are_as_frequent_as_long_ones() -> None:
    counts = Counter(len(str(int(one.source[:3]))) for one in Addition(documents=3_000).pairs("train", 0))
    assert min(counts[length] for length in (2, 3)) > 650


@pytest.mark.parametrize("digits", [0, 21])
def test_options_that_make_no_task_are_refused(digits: int) -> None:
    with pytest.raises(ValueError, match="data.addition.digits must be at"):
        Addition(digits)
