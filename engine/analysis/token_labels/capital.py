"""Words that begin with a capital letter."""

from engine.analysis.token_label import LabelKind, word_start
from engine.tokenizers.encoding import Encoding


def find_classes(encoding: Encoding) -> list[int]:
    starts = (word_start(encoding, at) for at in range(len(encoding)))
    return [int(start is not None and encoding.text[start].isupper()) for start in starts]


KIND = LabelKind("capital", 1, "word with a capital", ("another token", "word with a capital"), find_classes)
