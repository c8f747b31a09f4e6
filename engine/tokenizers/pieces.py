"""How a token is drawn: whatever a screen would hide or confuse becomes something to see.

    space        ·                       newline, tab             \\n  \\t
    hidden       \\u{200b}                bytes that are not text  <F0 9F>
    lone accent  ◌́  (on a dotted circle)  a real · or \\            \\u{b7}  \\\\

Two different pieces are never drawn alike: a sign that drawings use is escaped where the text itself has it.
"""

from __future__ import annotations

import re
from functools import cache
from unicodedata import category

DOTTED_CIRCLE = "\u25cc"
SIGNS = {" ": "\u00b7", "\n": "\\n", "\t": "\\t", "\\": "\\\\"}

# Controls, formats (zero width, bidi), line separators, exotic spaces, private, unassigned, lone surrogates.
HIDDEN_CATEGORIES = {"Cc", "Cf", "Zl", "Zp", "Zs", "Co", "Cn", "Cs"}
# Signs that drawings use (· ◌), the replacement character, and letters or marks without ink: a joiner,
# fillers, the Braille blank.
HIDDEN_CODES = {0xB7, 0x25CC, 0xFFFD, 0x34F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x2800, 0x3164, 0xFFA0}
VARIATION_SELECTORS = (range(0x180B, 0x1810), range(0xFE00, 0xFE10), range(0xE0100, 0xE01F0))

STRAY_BYTES = re.compile("[\udc80-\udcff]+")  # where "surrogateescape" keeps bytes that are not UTF-8
LOOKS_LIKE_BYTE = re.compile("<(?=[0-9A-F]{2}>)")  # of several bytes, the spaces between would be drawn as ·


def drawn(piece: str | bytes) -> str:
    """A byte-level piece comes as bytes, which need not be whole characters."""
    text = piece.decode("utf-8", "surrogateescape") if isinstance(piece, bytes) else piece
    shown = LOOKS_LIKE_BYTE.sub(r"\\u{3c}", "".join(map(_sign, text)))
    alone = shown != "" and category(shown[0]).startswith("M")
    return _stray_bytes_shown(DOTTED_CIRCLE + shown if alone else shown)


def readable(data: bytes) -> str:
    """Text as it is, with the bytes that are not UTF-8 drawn like `<F0 9F>`."""
    return _stray_bytes_shown(data.decode("utf-8", "surrogateescape"))


@cache
def _sign(character: str) -> str:
    if character in SIGNS:
        return SIGNS[character]
    code = ord(character)
    if STRAY_BYTES.match(character):
        return character
    hidden = category(character) in HIDDEN_CATEGORIES or code in HIDDEN_CODES
    if hidden or any(code in selectors for selectors in VARIATION_SELECTORS):
        return f"\\u{{{code:x}}}"
    return character


def _stray_bytes_shown(text: str) -> str:
    return STRAY_BYTES.sub(lambda run: f"<{run[0].encode(errors='surrogateescape').hex(' ').upper()}>", text)
