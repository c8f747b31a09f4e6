"""Tokens with a digit."""

from engine.analysis.token_label import LabelKind, letters_of
from engine.tokenizers.encoding import Encoding


def find_classes(encoding: Encoding) -> list[int]:
    pieces = (encoding.text[slice(*letters_of(encoding, at))] for at in range(len(encoding)))
    return [int(any(letter.isdigit() for letter in piece)) for piece in pieces]


KIND = LabelKind("number", 2, "number", ("another token", "number"), find_classes)
