"""Encodings that come from raw ids, and cuts."""

import pytest

from engine.tokenizers import Encoding, train


def test_raw_ids_are_drawn_by_number() -> None:
    encoding = Encoding.from_ids([17, 0])
    assert (encoding.ids, encoding.pieces, len(encoding)) == ((17, 0), ("#17", "#0"), 2)


def test_too_few_pieces_are_refused() -> None:
    with pytest.raises(ValueError, match="2, 1, 2, 2, 2"):
        Encoding.from_ids([17, 0], ["a"])


def test_a_cut_keeps_the_text_that_spans_index() -> None:
    whole = train("char", ["abc"]).encode("abc")
    cut = whole.truncate(2)
    assert (cut.text, cut.pieces, cut.spans) == ("abc", ("a", "b"), ((0, 1), (1, 2)))
    assert whole.truncate(99) == whole
