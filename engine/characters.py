"""Characters as a reader counts them, and which of them names are made of, in every script (UAX 29, UAX 31)."""

from __future__ import annotations

import re
import unicodedata

JOINERS = "\u200c\u200d"  # which shape the letters beside them in Persian, Sinhala or Bengali, and join emoji
INVISIBLE = "\u034f\u115f\u1160\u17b4\u17b5\u3164\uffa0"  # letters and marks that leave nothing to see
TONES = "\U0001f3fb", "\U0001f3ff"  # of the skin of an emoji
BYTES = 4  # of UTF-8 a character, in which the name of a file stays below the 255 that a disk takes


def is_mark(sign: str) -> bool:
    return unicodedata.category(sign)[0] == "M"


def split_characters(text: str) -> list[str]:
    """Letters, each with its marks and with what a joiner binds to it."""
    found: list[str] = []
    for sign in text:
        bound = is_mark(sign) or sign in JOINERS or TONES[0] <= sign <= TONES[1]
        if found and (bound or found[-1][-1] == JOINERS[1]):
            found[-1] += sign
        else:
            found.append(sign)
    return found


def cut_characters(text: str, most: int) -> str:
    """Beginning of a text: at most so many characters, each whole, and BYTES times as many bytes."""
    kept = split_characters(text[: BYTES * most])[:most]
    while len("".join(kept).encode()) > BYTES * most:
        kept.pop()
    return "".join(kept)


def is_shaping(text: str, at: int) -> bool:
    """Tells whether a joiner stands between letters of a script without case, or signs; elsewhere it only hides."""
    before, after = (unicodedata.category(sign) for sign in (text[at - 1 : at] or " ", text[at + 1 : at + 2] or " "))
    return before in ("Lo", "Mn", "Mc", "So", "Sk") and after in ("Lo", "Mn", "Mc", "So")


def is_in_word(text: str, at: int) -> bool:
    """Tells whether a letter or digit, a mark or a joiner of one, or "_" stands there."""
    sign = text[at]
    if sign in JOINERS:
        return is_shaping(text, at)
    return sign not in INVISIBLE and (sign == "_" or sign.isalnum() or is_mark(sign))


def keep_words(text: str, kept: str, other: str) -> str:
    """A text with `other` for each run of what is in no word and is none of the signs `kept`."""
    signs = (sign if sign in kept or is_in_word(text, at) else "\0" for at, sign in enumerate(text))
    return re.sub("\0+", lambda _: other, "".join(signs))
