"""Pieces: the bytes of text that a vocabulary entry stands for, and how a token is drawn.

Vocabularies spell bytes and spaces with stand-ins: GPT-2 writes " the" as "Ġthe" and half an emoji as "ðŁ",
SentencePiece writes "▁the" and "<0xF0>". Which stand-ins apply is read from the tokenizer's own steps.

In a drawing, whatever a screen would hide or confuse becomes something to see:

    space        ·                       newline, tab             \\n  \\t
    hidden       \\u{200b}                bytes that are not text  <F0 9F>
    lone accent  ◌́  (on a dotted circle)  a real · or \\            \\u{b7}  \\\\

Two different pieces are never drawn alike: a sign that drawings use is escaped where the text itself has it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import Any
from unicodedata import category

import tokenizers

from engine.json_text import parse_json

DOTTED_CIRCLE = "\u25cc"
SPACE = "·"  # as it is drawn
SIGNS = {" ": SPACE, "\n": "\\n", "\t": "\\t", "\\": "\\\\"}

# Controls, formats (zero width, bidi), line separators, exotic spaces, private, unassigned, lone surrogates.
HIDDEN_CATEGORIES = {"Cc", "Cf", "Zl", "Zp", "Zs", "Co", "Cn", "Cs"}
# Signs that drawings use (· ◌), the replacement character, and letters or marks without ink: a joiner,
# fillers, the Braille blank.
HIDDEN_CODES = {0xB7, 0x25CC, 0xFFFD, 0x34F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x2800, 0x3164, 0xFFA0}
VARIATION_SELECTORS = (range(0x180B, 0x1810), range(0xFE00, 0xFE10), range(0xE0100, 0xE01F0))

STRAY_BYTES = re.compile("[\udc80-\udcff]+")  # where "surrogateescape" keeps bytes that are not UTF-8
SHOWN_BYTES = re.compile("<[0-9A-F]{2}(?: [0-9A-F]{2})*>")  # how a piece shows them
LOOKS_LIKE_BYTE = re.compile("<(?=[0-9A-F]{2}>)")  # of several bytes, the spaces between would be drawn as ·


def draw_piece(piece: str | bytes) -> str:
    """Draw a piece; a byte-level one comes as bytes, which need not be whole characters."""
    text = piece.decode("utf-8", "surrogateescape") if isinstance(piece, bytes) else piece
    shown = LOOKS_LIKE_BYTE.sub(r"\\u{3c}", "".join(map(_draw_character, text)))
    alone = shown != "" and category(shown[0]).startswith("M")
    return _show_stray_bytes(DOTTED_CIRCLE + shown if alone else shown)


def draw_stray_bytes(data: bytes) -> str:
    """Decode text as it is, with the bytes that are not UTF-8 drawn like `<F0 9F>`."""
    return _show_stray_bytes(data.decode("utf-8", "surrogateescape"))


@cache
def _draw_character(character: str) -> str:
    if character in SIGNS:
        return SIGNS[character]
    code = ord(character)
    if STRAY_BYTES.match(character):
        return character
    hidden = category(character) in HIDDEN_CATEGORIES or code in HIDDEN_CODES
    if hidden or any(code in selectors for selectors in VARIATION_SELECTORS):
        return f"\\u{{{code:x}}}"
    return character


def _show_stray_bytes(text: str) -> str:
    return STRAY_BYTES.sub(lambda run: f"<{run[0].encode(errors='surrogateescape').hex(' ').upper()}>", text)


def _map_bytes_to_letters() -> dict[int, str]:
    """GPT-2's letter for each byte: printable Latin-1 is its own, the other 68 bytes take U+0100 onwards."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    hidden = [byte for byte in range(256) if byte not in printable]
    return {byte: chr(byte) for byte in printable} | {byte: chr(256 + n) for n, byte in enumerate(hidden)}


LETTER_OF_BYTE = _map_bytes_to_letters()
BYTE_OF_LETTER = {letter: byte for byte, letter in LETTER_OF_BYTE.items()}
FALLBACK_BYTE = re.compile("<0x([0-9A-F]{2})>")


@dataclass(frozen=True)
class Spelling:
    byte_level: bool
    byte_fallback: bool
    replaced: tuple[tuple[str, str], ...]  # stand-in, text
    dummy_prefix: bool  # the tokenizer puts a space before the text, and decoding takes it away

    @property
    def splits_characters(self) -> bool:
        """True where one token may hold only a part of a character."""
        return self.byte_level or self.byte_fallback

    def to_bytes(self, entry: str) -> bytes:
        if self.byte_level and all(letter in BYTE_OF_LETTER for letter in entry):
            return bytes(BYTE_OF_LETTER[letter] for letter in entry)
        if self.byte_fallback and (byte := FALLBACK_BYTE.fullmatch(entry)):
            return bytes.fromhex(byte[1])
        for stand_in, text in self.replaced:
            entry = entry.replace(stand_in, text)
        return entry.encode("utf-8")


def read_spelling(fast: tokenizers.Tokenizer) -> Spelling:
    parts = [*_read_steps(fast.pre_tokenizer), *_read_steps(fast.decoder)]
    kinds = {part["type"] for part in parts}
    metaspaces = [part for part in parts if part["type"] == "Metaspace"]
    replaced = [(part["replacement"], " ") for part in metaspaces]
    replaced += [
        (part["pattern"]["String"], part["content"])
        for part in _read_steps(fast.decoder)
        if part["type"] == "Replace" and "String" in part["pattern"]
    ]
    return Spelling(
        byte_level="ByteLevel" in kinds,
        byte_fallback="ByteFallback" in kinds,
        replaced=tuple(dict.fromkeys(replaced)),
        dummy_prefix=any(part["prepend_scheme"] != "never" for part in metaspaces)
        or any(part["type"] == "Strip" and part["start"] > 0 for part in parts),
    )


def _read_steps(component: Any) -> list[dict[str, Any]]:
    """The steps of a pre-tokenizer or decoder, with sequences laid flat."""
    return [] if component is None else _flatten_steps(read_state(component))


def read_state(component: Any) -> dict[str, Any]:
    """A part of a tokenizer as `tokenizer.json` writes it; nothing where it has no such part."""
    return {} if component is None else parse_json(component.__getstate__())


def _flatten_steps(state: dict[str, Any]) -> list[dict[str, Any]]:
    inner = state.get("decoders") or state.get("pretokenizers")
    return [step for part in inner for step in _flatten_steps(part)] if inner else [state]
