"""Drawing: nothing invisible, nothing ambiguous, never the replacement character."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.tokenizers import draw_piece


@pytest.mark.parametrize(
    ("piece", "picture"),
    [
        (" the", "·the"),
        ("a b", "a·b"),
        ("·", "\\u{b7}"),
        ("\n\t", "\\n\\t"),
        ("\\n", "\\\\n"),
        ("\0\r", "\\u{0}\\u{d}"),
        ("a\u200bb", "a\\u{200b}b"),
        ("\u202eabc", "\\u{202e}abc"),
        ("\u00a0", "\\u{a0}"),
        ("❤\ufe0f", "❤\\u{fe0f}"),
        ("\u0301", "\u25cc\u0301"),
        ("e\u0301", "e\u0301"),
        ("\ufffd", "\\u{fffd}"),
        ("中文 עברית", "中文·עברית"),
        ("<b>&amp;</b>", "<b>&amp;</b>"),
        (b"\xf0\x9f", "<F0 9F>"),
        (b" \xe4\xb8\xad\xe6", "·中<E6>"),
        ("<E6>", "\\u{3c}E6>"),
    ],
)
def test_each_sign_a_screen_hides_or_confuses_is_drawn(piece: str | bytes, picture: str) -> None:
    assert draw_piece(piece) == picture


@given(st.binary())
def test_any_bytes_are_drawn_with_visible_signs_only(data: bytes) -> None:
    picture = draw_piece(data)
    assert picture.isprintable()
    assert "\ufffd" not in picture


def test_no_two_pieces_are_drawn_alike() -> None:
    signs = [*" ·\n\\nt\t<>\u25cc\u0301\udca9\udcf0", "A9", "\\u{b7}"]
    pieces = {"".join(chosen) for count in range(4) for chosen in product(signs, repeat=count)}
    assert len({draw_piece(piece) for piece in pieces}) == len(pieces)
