"""Sentences of the stories, and of texts that others have written, for the two tasks that need more than one text.

Next-sentence prediction (Devlin et al. 2019, section 3.1, task 2): does the second passage follow the first in
its story, or does it come from another? Infilling (Du et al. 2022, section 2.1): what stood in the gap?

Example `index` of `seed` is always the same, on every machine, as story `index` of `seed` is, and so are those of the
same texts.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

from engine.data.stories import story

SPEECH = "asked|called|cried|roared|said|shouted|thought|whispered"
# '"Snow!" Ravi shouted.' goes on after the quotation, and '"Snow!" Ravi ran outside.' does not.
SPEAKER = re.compile(rf"(?:[A-Z]\w*(?:'s \w+)?|The \w+) (?:{SPEECH})(?=[.,:;]| (?:in|to|and) )")
END = re.compile(r'([.!?])("?) (?=(\S))')
WORD = re.compile(r"\w+(?:['’-]\w+)*")

LONGEST_PASSAGE = 3  # sentences on each side of a pair
LONGEST_PASSAGE_OF_TEXT = 8  # where the text is another's
SHORTEST_PASSAGE = 2  # sentences around a gap
LONGEST_GAP = 12  # words
WHOLE_SENTENCE = 0.25  # how often the gap is a sentence
LONGEST_GAP_OF_TEXT = 10  # words, where the text is another's


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
    return _gap(sentences(story(seed, index)), SHORTEST_PASSAGE, LONGEST_GAP, WHOLE_SENTENCE, draw)


def cut_gaps(texts: Sequence[str], seed: int) -> Iterator[Infill]:
    """Cuts of each text some neighbouring sentences, each of two words or more, and a gap of LONGEST_GAP_OF_TEXT at
    most."""
    for index, text in enumerate(texts):
        draw = random.Random(f"{seed}:{index}:gap").random
        told = [one for one in sentences(text.replace("\n", " ")) if len(WORD.findall(one)) > 1]
        if told:
            yield _gap(told, 1, LONGEST_GAP_OF_TEXT, 0.0, draw)


def pair_following(texts: Sequence[str], times: int, seed: int) -> Iterator[SentencePair]:
    """Pairs of each text `times` times what stands before a place in it and what follows there, or in half of the pairs
    what follows a place in another text: so whatever a passage is by itself says nothing.

    The place is between two paragraphs (lines), or two sentences of a text of one; on each side of it are at most
    LONGEST_PASSAGE_OF_TEXT sentences. Where there is no other text, all follow.
    """
    told = [[sentences(paragraph) for paragraph in text.split("\n")] for text in texts]
    told = [text for text in told if sum(map(len, text)) > 1]
    draw = random.Random(f"{seed}:following").random
    cuts = [_cut(text, draw) for _ in range(times) for text in told]
    for index, (first, second) in enumerate(cuts):
        if draw() < 0.5 or len(told) < 2:
            yield SentencePair(first, second, True)
            continue
        other = (index + _number(draw, 1, len(told) - 1)) % len(told)  # cut `n` is of text `n` modulo their number
        passage = cuts[other + len(told) * _number(draw, 0, times - 1)][1]
        yield SentencePair(first, passage, passage == second)


def _cut(text: Sequence[Sequence[str]], draw: Callable[[], float]) -> tuple[str, str]:
    """Passages before and behind a place between two paragraphs, each a list of its sentences."""
    told = [one for paragraph in text for one in paragraph]
    places = list(accumulate(map(len, text)))[:-1] or range(1, len(told))
    at = places[_number(draw, 0, len(places) - 1)]
    first, second = (_number(draw, 1, LONGEST_PASSAGE_OF_TEXT) for _ in range(2))
    return " ".join(told[max(at - first, 0) : at]), " ".join(told[at : at + second])


def passages(text: str, most: int, draw: Callable[[], float]) -> Iterator[str]:
    """All sentences of a text in their order, one to `most` together."""
    told, at = sentences(text.replace("\n", " ")), 0
    while at < len(told):
        count = _number(draw, 1, most)
        yield " ".join(told[at : at + count])
        at += count


def _gap(told: Sequence[str], fewest: int, longest: int, whole: float, draw: Callable[[], float]) -> Infill:
    """`fewest` of the sentences or more, with a gap of at most `longest` words, or in a share `whole` of a sentence."""
    count = _number(draw, fewest, len(told))
    at = _number(draw, 0, len(told) - count)
    chosen = told[at : at + count]
    passage = " ".join(chosen)
    start, stop = _sentence(chosen, draw) if draw() < whole else _words(passage, longest, draw)
    start -= start > 0 and passage[start - 1] == " "
    return Infill(passage[:start], passage[start:stop], passage[stop:])


def _sentence(chosen: Sequence[str], draw: Callable[[], float]) -> tuple[int, int]:
    which = _number(draw, 0, len(chosen) - 1)
    start = sum(len(each) + 1 for each in chosen[:which])
    return start, start + len(chosen[which])


def _words(passage: str, longest: int, draw: Callable[[], float]) -> tuple[int, int]:
    """Cuts a gap from the beginning of a word to the end of one; at least one word of the passage stays."""
    words = list(WORD.finditer(passage))
    length = _number(draw, 1, min(longest, len(words) - 1))
    first = _number(draw, 0, len(words) - length)
    return words[first].start(), words[first + length - 1].end()


def _number(draw: Callable[[], float], low: int, high: int) -> int:
    """Uniform from `low` to `high` itself."""
    return low + int(draw() * (high - low + 1))
