"""Depth of brackets: how many are open behind a token."""

from itertools import accumulate

from engine.analysis.token_label import LabelKind
from engine.tokenizers.encoding import Encoding

STEP = dict.fromkeys("([{", 1) | dict.fromkeys(")]}", -1)


def find_classes(encoding: Encoding) -> list[int]:
    steps = (STEP.get(letter, 0) for letter in encoding.text)
    depths = [*accumulate(steps, lambda depth, step: max(depth + step, 0), initial=0)]
    return [min(depths[end], 2) for _, end in encoding.spans]


KIND = LabelKind("brackets", 5, "depth of brackets", ("depth 0", "depth 1", "depth 2 or more"), find_classes)
