"""The induction task: what is marked as predictable is, and nothing but content gives it away."""

import numpy as np
import pytest

from engine.data.repeats import batch


def test_from_a_predictable_position_the_next_token_stands_one_copy_back() -> None:
    ids, predictable = batch(np.random.default_rng(0), 200, 40, 50, 3, 12)
    assert ids.shape == predictable.shape == (200, 40)
    assert (ids.dtype, predictable.dtype) == (np.int64, np.bool_)
    for row, known in zip(ids, predictable, strict=True):
        length = int(known.argmax())  # the first copy, in which nothing is predictable
        assert 3 <= length <= 12
        assert not known[:length].any() and known[length:].all()
        np.testing.assert_array_equal(row[length:], row[:-length])


def test_lengths_cover_both_ends_evenly_so_that_no_fixed_offset_works() -> None:
    _, predictable = batch(np.random.default_rng(1), 9000, 30, 50, 4, 12)
    counts = np.bincount(predictable.argmax(axis=1), minlength=13)
    assert counts[:4].sum() == 0
    assert counts[4:].min() > 850 and counts[4:].max() < 1150


def test_tokens_are_uniform_over_the_vocabulary() -> None:
    ids, _ = batch(np.random.default_rng(2), 2000, 30, 20, 10, 10)
    counts = np.bincount(ids[:, :10].ravel(), minlength=20)
    assert len(counts) == 20
    assert abs(counts - 1000).max() < 150


@pytest.mark.parametrize(
    ("vocab", "shortest", "longest", "message"),
    [
        (10, 5, 4, "min_length <= max_length"),
        (10, 0, 4, "1 <= min_length"),
        (10, 2, 19, "at most context - 2 = 18, but it is 19"),
        (1, 2, 4, "vocab should be at least 2"),
    ],
)
def test_an_impossible_request_is_refused_in_one_sentence(
    vocab: int, shortest: int, longest: int, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        batch(np.random.default_rng(0), 2, 20, vocab, shortest, longest)


def test_the_longest_allowed_segment_leaves_one_token_to_predict() -> None:
    ids, predictable = batch(np.random.default_rng(0), 4, 20, 10, 18, 18)
    assert predictable[:, :-1].sum(axis=1).tolist() == [1, 1, 1, 1]
    np.testing.assert_array_equal(ids[:, 19], ids[:, 1])
