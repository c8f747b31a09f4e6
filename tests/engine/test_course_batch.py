"""A batch: rows are filled up with 0, and with the mask a row says the same alone and in it."""

import pytest

from engine.course.batch import compare_row, fill, read_rows, tokenizer_of

ROWS = [[1, 8, 3, 2], [1, 10, 2]]


def test_rows_are_filled_up_with_zeros_and_the_mask_says_which() -> None:
    ids, real = fill(ROWS)
    assert ids.tolist() == [[1, 8, 3, 2], [1, 10, 2, 0]]
    assert real.long().tolist() == [[1, 1, 1, 1], [1, 1, 1, 0]]
    assert fill([[1, 2], [3, 4]])[1].all()


def texts(name: str) -> list[list[int]]:
    said = ("Max gave the red ball to Anna.", "She smiled.", "🦉")
    return [list(tokenizer_of(name).encode(text).ids) for text in said]


@pytest.mark.parametrize("name", ["tales-bert", "stories"])
@pytest.mark.parametrize("which", ["ids", "texts"])
def test_with_the_mask_the_shorter_rows_do_not_change(name: str, which: str) -> None:
    rows = ROWS if which == "ids" else texts(name)
    for row in range(len(rows)):
        found = compare_row(name, rows, row)
        assert found.alone.shape == found.together.shape == (len(rows[row]), found.alone.shape[1])
        assert found.gap < 1e-10 and found.changed(6) == 0 and found.on_padding == 0


@pytest.mark.parametrize("which", ["ids", "texts"])
def test_without_the_mask_only_a_model_that_looks_ahead_changes(which: str) -> None:
    rows = ROWS if which == "ids" else texts("tales-bert")
    found = compare_row("tales-bert", rows, 1, masked=False)
    assert found.gap > 0.1 and found.changed(3) > 0.9 * found.alone.numel() and found.on_padding > 0.01
    rows = ROWS if which == "ids" else texts("stories")
    found = compare_row("stories", rows, 1, masked=False)
    assert found.gap < 1e-10 and found.changed(6) == 0 and found.on_padding == 0


BAD = ["", "x", "[]", "1", "null", "[[1, 2]]", "[[1], []]", "[[1], [99]]", "[[1], [1.5]]", "[[true], [1]]"]


@pytest.mark.parametrize("bad", [*BAD, '[[1], "a"]', "[" * 5000, "[[-1], [2]]", "[[1], [2], [3], [4]]"])
def test_what_is_no_batch_is_refused(bad: str) -> None:
    with pytest.raises(ValueError, match="2 to 3 rows"):
        read_rows(bad, 99, 3, 4)
    assert read_rows(" [[1,8,3,2],[1,10,2]] ", 99, 3, 4) == ROWS
