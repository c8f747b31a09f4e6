"""From a vocabulary entry to the bytes of text it stands for.

Vocabularies spell bytes and spaces with stand-ins: GPT-2 writes " the" as "Ġthe" and half an emoji as "ðŁ",
SentencePiece writes "▁the" and "<0xF0>". Which stand-ins apply is read from the tokenizer's own steps.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

import tokenizers


def _byte_letters() -> dict[int, str]:
    """GPT-2's letter for each byte: printable Latin-1 is its own, the other 68 bytes take U+0100 onwards."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    hidden = [byte for byte in range(256) if byte not in printable]
    return {byte: chr(byte) for byte in printable} | {byte: chr(256 + n) for n, byte in enumerate(hidden)}


LETTER_OF_BYTE = _byte_letters()
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
        """Whether one token may hold only a part of a character."""
        return self.byte_level or self.byte_fallback

    def meaning(self, entry: str) -> bytes:
        if self.byte_level and all(letter in BYTE_OF_LETTER for letter in entry):
            return bytes(BYTE_OF_LETTER[letter] for letter in entry)
        if self.byte_fallback and (byte := FALLBACK_BYTE.fullmatch(entry)):
            return bytes.fromhex(byte[1])
        for stand_in, text in self.replaced:
            entry = entry.replace(stand_in, text)
        return entry.encode("utf-8")


def spelling_of(fast: tokenizers.Tokenizer) -> Spelling:
    parts = [*_parts(fast.pre_tokenizer), *_parts(fast.decoder)]
    kinds = {part["type"] for part in parts}
    metaspaces = [part for part in parts if part["type"] == "Metaspace"]
    replaced = [(part["replacement"], " ") for part in metaspaces]
    replaced += [
        (part["pattern"]["String"], part["content"])
        for part in _parts(fast.decoder)
        if part["type"] == "Replace" and "String" in part["pattern"]
    ]
    return Spelling(
        byte_level="ByteLevel" in kinds,
        byte_fallback="ByteFallback" in kinds,
        replaced=tuple(dict.fromkeys(replaced)),
        dummy_prefix=any(part["prepend_scheme"] != "never" for part in metaspaces)
        or any(part["type"] == "Strip" and part["start"] > 0 for part in parts),
    )


def _parts(component: Any) -> list[dict[str, Any]]:
    """The steps of a pre-tokenizer or decoder, as `tokenizer.json` writes them, with sequences laid flat."""
    if component is None:
        return []
    return _flat(json.loads(component.__getstate__()))


def _flat(state: dict[str, Any]) -> list[dict[str, Any]]:
    inner = state.get("decoders") or state.get("pretokenizers")
    return [step for part in inner for step in _flat(part)] if inner else [state]
