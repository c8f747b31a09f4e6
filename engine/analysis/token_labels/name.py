"""Names: words with a capital letter where no sentence begins."""

from engine.analysis.token_label import LabelKind, word_start
from engine.tokenizers.encoding import Encoding

ENDS = ".!?:\n\"'“”‘’«»"  # after which a capital is no sign of a name


def find_classes(encoding: Encoding) -> list[int]:
    return [int(is_name(encoding.text, word_start(encoding, at))) for at in range(len(encoding))]


def is_name(text: str, start: int | None) -> bool:
    before = text[:start].rstrip(" ")
    return start is not None and text[start].isupper() and bool(before) and before[-1] not in ENDS


KIND = LabelKind("name", 3, "name", ("another token", "name"), find_classes)
