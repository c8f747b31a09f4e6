"""Tokens that stood before in the same text."""

from engine.analysis.token_label import LabelKind
from engine.tokenizers.encoding import Encoding


def find_classes(encoding: Encoding) -> list[int]:
    first = {id: at for at, id in reversed([*enumerate(encoding.ids)])}
    return [int(first[id] < at) for at, id in enumerate(encoding.ids)]


KIND = LabelKind("repeated", 4, "token that stood before", ("first time", "token that stood before"), find_classes)
