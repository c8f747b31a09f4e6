"""Words as arrows in a plane, and what each of them gathers: an arrow that moves."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from torch import Tensor

from engine.course.plane import NAME, UNKNOWN, WORDS
from engine.runtime import library
from engine.tokenizers.encoding import Encoding
from pages.controls.learn.fields import read_short_text
from pages.controls.words import translate as _
from views.core.component import view

LONGEST = 8  # words of a sentence that is drawn

mounted = view("learn/arrows")


class Gathered(NamedTuple):
    """What a word gathers: where its sum begins, and the weights and parts, by word, that are added there."""

    begin: list[float]
    weights: list[float]
    parts: list[list[float]]

    @property
    def corners(self) -> list[tuple[float, float]]:
        x, y = self.begin
        return [(x, y), *((x := x + a, y := y + b) for a, b in self.parts)]


def draw_arrows(
    names: Sequence[str], vectors: Tensor, rows: Sequence[Gathered | None], *, key: str, label: str, told: str
) -> None:
    """The `vectors` (pos 2) as arrows, and one word's sum, at first the last one's; a row that is None is asked for,
    and `told` says so. The plane reaches as far as anything in it."""
    ends = [*vectors.tolist(), *(corner for row in rows if row is not None for corner in row.corners)]
    reach = 1.15 * max(abs(part) for end in ends for part in end)
    data = {
        "names": list(names),
        "vectors": vectors.tolist(),
        "rows": [None if row is None else row._asdict() for row in rows],
        "row": len(names) - 1,
        "reach": round_up(reach),
        "label": label,
        "told": told,
    }
    mounted(data, key=key)


def round_up(reach: float) -> float:
    """The next number of one digit, half a digit, or 1.0 where there is nothing."""
    if reach <= 0:
        return 1.0
    size = 10.0 ** math.floor(math.log10(reach))
    return math.ceil(2 * reach / size) * size / 2


def read_known_words(said: str) -> Encoding:
    """Words that the model of two dimensions knows. Raises ValueError, with a sentence."""
    encoding = read_short_text(library.checkpoint(NAME), said, LONGEST)
    if UNKNOWN in encoding.pieces:
        known = ", ".join(WORDS)
        raise ValueError(_("Expected words that this model knows: {words}; change the others.").format(words=known))
    return encoding
