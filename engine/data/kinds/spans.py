"""Span corruption, what T5 learns from texts without labels (Raffel et al. 2020, section 3.1.4): some stretches are
dropped, a sentinel stands for each, and the target is what was dropped, each stretch behind its sentinel.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice, pairwise
from typing import ClassVar

from engine.data import mixture
from engine.data.bounds import a_share, at_least
from engine.data.drawing import Chance, Part, choice, draw_indexed, number
from engine.data.kinds.text_to_text import LABELS, PREFIXES, SHORTEST, write_sentence
from engine.data.options import DOCUMENTS, HELD_OUT, MIXED, MOST_WORDS
from engine.data.published import check_named
from engine.data.sentences import passages
from engine.data.task import BETWEEN, Pair, PairTask
from engine.data.translation import Pair as Sentences
from engine.model.option import Option

TOKEN = re.compile(r"\s*(?:\w+(?:'\w+)*|[^\w\s])")  # a word or mark with the blank before it
SENTINEL = "<extra_id_{}>"  # as T5's vocabulary calls them
ONE_GAP, LONGEST_GAP = 0.5, 10  # of real texts: how many have one gap alone, and of how many words and marks at most


@dataclass(frozen=True)
class Spans(PairTask):
    """Some sentences of `TextToText`, `most` at most, all English or all French: none translates another. Of the share
    `again` of the texts the first sentence is also the last, so that what is dropped of one may stand in the other. The
    share `dropped` of their words and marks is dropped, in stretches of `mean` of them on average.

    No sentence that is held out in `TextToText`, by the same seed, is trained on, in either language.

    `tales` and `sentences` (pairs) are files of `engine.data.published`: up to `most` sentences of a tale at a time,
    and of each pair the English or the French one, are mixed with these. `documents` may be 0 beside them.
    """

    documents: int = field(default=60_000, metadata=DOCUMENTS)
    held_out: int = field(default=1_000, metadata=HELD_OUT)
    tales: str = field(default="", metadata=MIXED)
    sentences: str = field(default="", metadata=MIXED)
    longest: int = field(default=12, metadata=MOST_WORDS)
    most: int = field(default=2, metadata=Option(help="Sentences of a text at most."))
    again: float = field(default=0.9, metadata=Option(help="The share of texts whose first sentence is also the last."))
    dropped: float = field(default=0.15, metadata=Option(help="The share of words and marks that is dropped."))
    mean: float = field(default=3.0, metadata=Option(help="Words and marks of a dropped stretch, on average."))

    kind: ClassVar[str] = "spans"
    place: ClassVar[int] = 11
    tokenizers: ClassVar[tuple[str, ...]] = ("word", "bpe")
    separator: ClassVar[str] = BETWEEN

    def __post_init__(self) -> None:
        for name in ("documents", "held_out"):
            at_least(f"data.spans.{name}", getattr(self, name), 0 if self.tales or self.sentences else 1)
        check_named("data.spans", tales=self.tales, sentences=self.sentences)
        at_least("data.spans.longest", self.longest, SHORTEST)
        at_least("data.spans.most", self.most, 1)
        a_share("data.spans.again", self.again)
        a_share("data.spans.dropped", self.dropped)
        at_least("data.spans.mean", self.mean, 1)

    @property
    def alphabet(self) -> str:
        """The words of the tasks that are learned after this one, which no text here need have."""
        return " ".join((*PREFIXES, *LABELS))

    def pairs(self, part: Part, seed: int) -> Iterator[Pair]:
        count = self.documents if part == "train" else self.held_out
        told = (draw_spans(self, part, seed, index) for index in range(count))
        if not self.tales and not self.sentences:
            return told
        return iter(mixture.shuffle(chain(told, real_spans(self, part, seed)), seed))


def real_spans(options: Spans, part: Part, seed: int) -> Iterator[Pair]:
    """Spans of real texts."""
    chance = random.Random(f"{seed}:{part}:real spans").random
    texts = [
        one
        for text in mixture.documents(options.tales, "", 1, part, seed)
        for one in passages(text, options.most, chance)
    ]
    for english, french in mixture.translations(options.sentences, part, seed):
        texts.append(english if chance() < 0.5 else choice(chance, french))
    for text in texts:
        tokens = TOKEN.findall(f" {text}")
        if len(tokens) > 1 and chance() < ONE_GAP:
            yield corrupt(tokens, one_gap(len(tokens), chance))
        elif len(tokens) > 1:
            yield corrupt(tokens, draw_lengths(len(tokens), options.dropped, options.mean, chance))


def one_gap(count: int, chance: Chance) -> list[int]:
    """Lengths as of `draw_lengths`, of one gap that is at most half of the text."""
    gone = number(chance, 1, min(LONGEST_GAP, count // 2))
    first = number(chance, 0, count - gone)
    return [first, gone, count - gone - first]


def draw_spans(options: Spans, part: Part, seed: int, index: int) -> Pair:
    """Example `index` of a part; the same for the same seed. Every second one is French."""
    chance = random.Random(f"{seed}:{index}:{part}:spans").random

    def sentence(chance: Chance) -> Sentences:
        return write_sentence(chance, options.longest)

    texts = [
        draw_indexed(sentence, lambda drawn: drawn.english, part, seed, index * options.most + which)
        for which in range(number(chance, 1, options.most))
    ]
    texts += texts[:1] if chance() < options.again else []
    tokens = TOKEN.findall("".join(f" {one.french if index % 2 else one.english}" for one in texts))
    return corrupt(tokens, draw_lengths(len(tokens), options.dropped, options.mean, chance))


def draw_lengths(count: int, dropped: float, mean: float, chance: Chance) -> list[int]:
    """Lengths of what stays and what is dropped of `count` tokens, in turn: kept, dropped, ..., kept. Only the first
    and the last may be 0.

    As many are dropped as T5's own code has it, and in as many stretches: the share and what it makes by the mean,
    rounded, but at least one, and never all.
    """
    gone = min(max(round(count * dropped), 1), count - 1)
    spans = min(max(round(gone / mean), 1), count - gone + 1)
    kept, lost = cut(count - gone + 2, spans + 1, chance), cut(gone, spans, chance)
    kept[0], kept[-1] = kept[0] - 1, kept[-1] - 1
    return [*chain.from_iterable(zip(kept, lost, strict=False)), kept[-1]]


def cut(count: int, parts: int, chance: Chance) -> list[int]:
    """`count` as the sum of `parts` lengths of at least 1, each such sum as likely."""
    places = list(range(1, count))
    edges = sorted(places.pop(int(chance() * len(places))) for _ in range(parts - 1))
    return [after - before for before, after in pairwise([0, *edges, count])]


def corrupt(tokens: Sequence[str], lengths: Sequence[int]) -> Pair:
    """The text with sentinels, and what they stand for. One more sentinel closes the target (figure 2 of the paper)."""
    source, target, rest = "", "", iter(tokens)
    for at, length in enumerate(lengths):
        piece = "".join(islice(rest, length))
        sentinel = f" {SENTINEL.format(at // 2)}"
        if at % 2:
            source, target = source + sentinel, target + sentinel + piece
        else:
            source += piece
    return Pair(source.lstrip(), (target + f" {SENTINEL.format(len(lengths) // 2)}").lstrip())


KIND = Spans
