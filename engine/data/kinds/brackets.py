"""Brackets that close each other in the right order, and sequences that come near to it.

To tell them apart a stack would do, one bracket after the other; a transformer has to see it at once (Dyck languages;
Hahn 2020, "Theoretical limitations of self-attention in neural sequence models").
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar

from engine.data.bounds import at_least, symbols
from engine.data.drawing import Chance, Part, choice, draw_indexed, number
from engine.data.options import DOCUMENTS, HELD_OUT, LEAST_LENGTH, MOST_LENGTH
from engine.data.task import Labelled, LabelTask, Subject
from engine.model.option import Option

UNBALANCED, BALANCED = 0, 1


@dataclass(frozen=True)
class Brackets(LabelTask):
    """Half of the sequences are balanced. Of the others a share `near` is balanced but for one bracket, turned round or
    exchanged for one of another kind, or for two that changed places; the rest is random.

    `kinds` are the brackets, opening and closing in turn. Lengths are even and uniform from `shortest` to `longest`.
    """

    kinds: str = field(default="()[]", metadata=Option(help="The brackets, opening and closing in turn."))
    shortest: int = field(default=4, metadata=LEAST_LENGTH)
    longest: int = field(default=20, metadata=MOST_LENGTH)
    near: float = field(
        default=0.75,
        metadata=Option(
            help="The share of unbalanced sequences that are balanced but for one or two brackets; the rest is random."
        ),
    )
    documents: int = field(default=20_000, metadata=DOCUMENTS)
    held_out: int = field(default=1_000, metadata=HELD_OUT)

    kind: ClassVar[str] = "brackets"
    place: ClassVar[int] = 15
    subject: ClassVar[Subject] = "Letters"
    labels: ClassVar[tuple[str, ...]] = ("unbalanced", "balanced")

    def __post_init__(self) -> None:
        symbols("data.brackets.kinds", self.kinds)
        if len(self.kinds) % 2:
            raise ValueError(f"data.brackets.kinds must be pairs, opening and closing, got {self.kinds!r}.")
        at_least("data.brackets.shortest", self.shortest, 2)
        at_least("data.brackets.longest", self.longest, self.shortest + self.shortest % 2)
        if not 0 <= self.near <= 1:
            raise ValueError(f"data.brackets.near must be a share in [0, 1], got {self.near}.")
        at_least("data.brackets.documents", self.documents, 1)
        at_least("data.brackets.held_out", self.held_out, 1)

    @property
    def alphabet(self) -> str:
        return self.kinds

    def texts(self, part: Part, seed: int) -> Iterator[Labelled]:
        count = self.documents if part == "train" else self.held_out
        return (labelled_example(self, part, seed, index) for index in range(count))


def labelled_example(options: Brackets, part: Part, seed: int, index: int) -> Labelled:
    """Example `index` of a part; the same for the same seed. Those with an even `index` are balanced."""
    wanted = index % 2 == 0

    def text(chance: Chance) -> str:
        half = number(chance, (options.shortest + 1) // 2, options.longest // 2)
        return draw_balanced(half, options.kinds, chance) if wanted else draw_unbalanced(half, options, chance)

    return Labelled(draw_indexed(text, str, part, seed, index), BALANCED if wanted else UNBALANCED)


def is_balanced(text: str, kinds: str) -> bool:
    closing = dict(zip(kinds[::2], kinds[1::2], strict=True))
    awaited: list[str] = []
    for bracket in text:
        if bracket in closing:
            awaited.append(closing[bracket])
        elif not awaited or awaited.pop() != bracket:
            return False
    return not awaited


def draw_balanced(half: int, kinds: str, chance: Chance) -> str:
    """Draws one of the sequences of `half` pairs, each as often as any other.

    `(h + 2) (r - h) / (2 r (h + 1))` of those with r brackets to go and h of them open begin with an opening one, by
    the ballot theorem.
    """
    pairs = list(zip(kinds[::2], kinds[1::2], strict=True))
    written, awaited = "", list[str]()
    for left in range(2 * half, 0, -1):
        depth = len(awaited)
        if chance() * 2 * left * (depth + 1) < (depth + 2) * (left - depth):
            opening, closing = choice(chance, pairs)
            written += opening
            awaited.append(closing)
        else:
            written += awaited.pop()
    return written


def draw_unbalanced(half: int, options: Brackets, chance: Chance) -> str:
    while True:
        if chance() < options.near:
            text = damage(draw_balanced(half, options.kinds, chance), options.kinds, chance)
        else:
            text = "".join(choice(chance, options.kinds) for _ in range(2 * half))
        if not is_balanced(text, options.kinds):
            return text


def damage(text: str, kinds: str, chance: Chance) -> str:
    """Another text: one bracket exchanged for any other, or two that are not the same with their places changed."""
    at, other = number(chance, 0, len(text) - 1), number(chance, 0, len(text) - 1)
    written = list(text)
    if chance() < 0.5:
        written[at] = choice(chance, [bracket for bracket in kinds if bracket != text[at]])
    else:
        written[at], written[other] = text[other], text[at]
    return "".join(written)


KIND = Brackets
