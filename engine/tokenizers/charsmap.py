"""Normalisation by SentencePiece of a text before it is cut (Kudo and Richardson 2018, section 3.2), place by place.

`tokenizers` has a normaliser that reads the same table, but it looks up whole graphemes, which are not what the table
has: a Korean syllable in its parts, or a letter with two accents, comes out otherwise. So the table is read here.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import chain

SPACE = "\u2581"  # SentencePiece's stand-in
LONGEST_STRING = 256  # bytes that one string of a table may become; Unicode's own longest is 33


@dataclass(frozen=True)
class PlacedText:
    """Normalised text: `spans[i]` is where in the text as it was typed the character `text[i]` comes from."""

    text: str
    spans: tuple[tuple[int, int], ...]


class Charsmap:
    """The table of a `.model` file: a trie of strings in UTF-8, and what each becomes.

    The trie is a double array (Aoe 1989; the layout is darts-clone's). It comes from others: every step stays inside.
    """

    def __init__(self, table: bytes) -> None:
        size = _trie_size(table)
        self.units = struct.unpack_from(f"<{size // 4}I", table, 4) if table else ()
        self.strings = table[4 + size :]
        self.begins = cache(self._begins)

    def match(self, text: str, at: int) -> tuple[str, int] | None:
        """Replacement for the longest string of the table that stands at `at`, and where that string ends."""
        found = None
        if self.begins(text[at]):
            place = self._base(0)
            for end in range(at + 1, len(text) + 1):
                entered = self._step(place, text[end - 1])
                if entered is None:
                    break
                place, value = entered
                found = found if value is None else (self._read_string(value), end)
        return found

    def _begins(self, character: str) -> bool:
        return bool(self.units) and self._step(self._base(0), character) is not None

    def _step(self, place: int, character: str) -> tuple[int, int | None] | None:
        """The place after the bytes of `character`, and the value of the string that ends there."""
        value = None
        for byte in character.encode("utf-8"):
            unit_at = place ^ byte
            if byte == 0 or unit_at >= len(self.units) or self.units[unit_at] & 0x800000FF != byte:
                return None
            place = unit_at ^ self._offset(self.units[unit_at])
            has_value = self.units[unit_at] >> 8 & 1 and place < len(self.units)
            value = self.units[place] & 0x7FFFFFFF if has_value else None
        return place, value

    def _base(self, unit_at: int) -> int:
        return unit_at ^ self._offset(self.units[unit_at])

    @staticmethod
    def _offset(unit: int) -> int:
        return (unit >> 10) << ((unit & 0x200) >> 6)

    def _read_string(self, start: int) -> str:
        return self.strings[start : self.strings.find(b"\0", start)].decode("utf-8", "replace")


def is_damaged(table: bytes) -> bool:
    """True unless a table is a trie and then short strings, each ended by a zero byte; an empty one changes nothing."""
    size = _trie_size(table)
    if size % 4 or not 4 + size < len(table) or size == 0 or table[-1]:
        return bool(table)
    strings = table[4 + size :]
    return strings.decode("utf-8", "ignore").encode() != strings or longest_string(table) > LONGEST_STRING


def longest_string(table: bytes) -> int:
    """Bytes of the longest string that a table writes."""
    return max(map(len, table[4 + _trie_size(table) :].split(b"\0")))


def _trie_size(table: bytes) -> int:
    return int.from_bytes(table[:4], "little")


@dataclass(frozen=True)
class Normaliser:
    """Normaliser of a text. `kept` matches symbols that the model's maker put in as they are and that do not change."""

    charsmap: Charsmap
    kept: re.Pattern[str] | None = None
    dummy_prefix: bool = True
    one_space: bool = True  # none at either end, and never two in a row

    def __call__(self, text: str) -> PlacedText:
        characters = list(self._single_spaces(self._read(text)) if self.one_space else self._read(text))
        while self.one_space and characters and characters[-1][0] in (" ", SPACE):
            characters.pop()
        if self.dummy_prefix and (characters or (text and not self.one_space)):
            start = characters[0][1][0] if characters else 0
            characters.insert(0, (SPACE, (start, start)))
        return PlacedText(
            "".join(SPACE if character == " " else character for character, _ in characters),
            tuple(span for _, span in characters),
        )

    def _read(self, text: str) -> Iterator[tuple[str, tuple[int, int]]]:
        at = 0
        while at < len(text):
            made, end = self._kept_at(text, at) or self.charsmap.match(text, at) or (text[at], at + 1)
            yield from ((character, (at, end)) for character in made)
            at = end

    def _kept_at(self, text: str, at: int) -> tuple[str, int] | None:
        symbol = self.kept.match(text, at) if self.kept else None
        return (symbol[0], symbol.end()) if symbol else None

    @staticmethod
    def _single_spaces(
        characters: Iterable[tuple[str, tuple[int, int]]],
    ) -> Iterator[tuple[str, tuple[int, int]]]:
        previous = " "
        for character, span in characters:
            if character != " " or previous != " ":
                yield character, span
            previous = character


def match_longest(entries: Iterable[str]) -> re.Pattern[str] | None:
    """Pattern for the longest of `entries` that stands somewhere; None where there are none."""
    longest_first = sorted(filter(None, entries), key=len, reverse=True)
    return re.compile("|".join(map(re.escape, longest_first))) if longest_first else None


def join_texts(parts: Iterable[tuple[int, PlacedText]]) -> PlacedText:
    """Join parts of a text one after the other, each with the index in the text at which it was cut out."""
    parts = list(parts)
    spans = chain.from_iterable(((start + at, end + at) for start, end in part.spans) for at, part in parts)
    return PlacedText("".join(part.text for _, part in parts), tuple(spans))
