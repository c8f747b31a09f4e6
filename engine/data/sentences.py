"""Sentences of the stories, for the two tasks that need more than one text.

Next-sentence prediction (Devlin et al. 2019, section 3.1, task 2): does the second passage follow the first in
its story, or does it come from another? Infilling (Du et al. 2022, section 2.1): what stood in the gap?

Example `index` of `seed` is always the same, on every machine, as story `index` of `seed` is.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from dataclasses import dataclass

from engine.data.stories import story

SPEECH = "asked|called|cried|roared|said|shouted|thought|whispered"
# '"Snow!" Ravi shouted.' goes on after the quotation, and '"Snow!" Ravi ran outside.' does not.
SPEAKER = re.compile(rf"(?:[A-Z]\w*(?:'s \w+)?|The \w+) (?:{SPEECH})(?=[.,:;]| (?:in|to|and) )")
END = re.compile(r'([.!?])("?) (?=(\S))')
WORD = re.compile(r"\w+(?:['’-]\w+)*")

LONGEST_PASSAGE = 3  # sentences on each side of a pair
SHORTEST_PASSAGE = 2  # sentences around a gap
LONGEST_GAP = 12  # words
WHOLE_SENTENCE = 0.25  # how often the gap is a sentence


@dataclass(frozen=True)
class SentencePair:
    first: str
    second: str
    follows: bool  # in the story; else `second` is from another one


@dataclass(frozen=True)
class Infill:
    """`before + span + after` is the passage. A space between two words belongs to the word behind it, as in
    the tokenizers here, so a gap within a line begins with its space."""

    before: str
    span: str
    after: str


def sentences(text: str) -> list[str]:
    """The sentences of a story; joined by single spaces they are the story again.

    A quotation is never cut, however many sentences are said in it, and what says who speaks belongs to it.
    """
    cuts = [end for end in END.finditer(text) if _closes(text, end)]
    starts = [0, *(cut.end() for cut in cuts)]
    stops = [*(cut.end() - 1 for cut in cuts), len(text)]
    return [text[start:stop] for start, stop in zip(starts, stops, strict=True)]


def _closes(text: str, end: re.Match[str]) -> bool:
    """Tells whether a sentence is over at this mark: not inside a quotation, and not if the speaker comes yet."""
    inside = text.count('"', 0, end.end()) % 2 == 1
    return not inside and not end[3].islower() and not (end[2] and SPEAKER.match(text, end.end()))


def pair(seed: int, index: int) -> SentencePair:
    """Story `index`: one to three of its sentences, and as many that follow there or stand in another story.

    What stands elsewhere is taken from behind that story's first sentence, since an opening would give itself
    away. Half of the pairs follow.
    """
    draw = random.Random(f"{seed}:{index}:pair").random
    told = sentences(story(seed, index))
    first, second = _number(draw, 1, LONGEST_PASSAGE), _number(draw, 1, LONGEST_PASSAGE)
    at = _number(draw, 0, len(told) - first - second) + first
    following = " ".join(told[at : at + second])
    follows = draw() < 0.5
    passage = following
    while not follows and passage == following:  # other stories have their "Everyone clapped." too
        other = sentences(story(seed, index + _number(draw, 1, 1_000_000)))
        start = _number(draw, 1, len(other) - second)
        passage = " ".join(other[start : start + second])
    return SentencePair(" ".join(told[at - first : at]), passage, follows)


def span(seed: int, index: int) -> Infill:
    """Story `index`: from two of its sentences to all of them, with a gap of 1 to 12 words, or of a whole sentence."""
    draw = random.Random(f"{seed}:{index}:span").random
    told = sentences(story(seed, index))
    count = _number(draw, SHORTEST_PASSAGE, len(told))
    at = _number(draw, 0, len(told) - count)
    chosen = told[at : at + count]
    passage = " ".join(chosen)
    start, stop = _sentence(chosen, draw) if draw() < WHOLE_SENTENCE else _words(passage, draw)
    start -= start > 0 and passage[start - 1] == " "
    return Infill(passage[:start], passage[start:stop], passage[stop:])


def _sentence(chosen: list[str], draw: Callable[[], float]) -> tuple[int, int]:
    which = _number(draw, 0, len(chosen) - 1)
    start = sum(len(each) + 1 for each in chosen[:which])
    return start, start + len(chosen[which])


def _words(passage: str, draw: Callable[[], float]) -> tuple[int, int]:
    """Cuts a gap from the beginning of a word to the end of one; at least one word of the passage stays."""
    words = list(WORD.finditer(passage))
    length = _number(draw, 1, min(LONGEST_GAP, len(words) - 1))
    first = _number(draw, 0, len(words) - length)
    return words[first].start(), words[first + length - 1].end()


def _number(draw: Callable[[], float], low: int, high: int) -> int:
    """Uniform from `low` to `high` itself."""
    return low + int(draw() * (high - low + 1))
