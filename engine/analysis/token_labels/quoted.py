"""Tokens between a pair of quotation marks."""

import re

from engine.analysis.token_label import LabelKind, letters_of
from engine.tokenizers.encoding import Encoding

QUOTED = re.compile(r'"[^"]*"|“[^”]*”|«[^»]*»')


def find_classes(encoding: Encoding) -> list[int]:
    inside = [(found.start(), found.end() - 1) for found in QUOTED.finditer(encoding.text)]
    starts = (letters_of(encoding, at)[0] for at in range(len(encoding)))
    return [int(any(first < start < last for first, last in inside)) for start in starts]


KIND = LabelKind("quoted", 0, "in quotation marks", ("outside", "in quotation marks"), find_classes)
