"""How much of a text is in others that say the same: chrF (Popović 2015) and BLEU (Papineni et al. 2002), of many texts
together, each with one or more references. Both lie in [0, 1]."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence

CHARACTERS, WORDS, BETA = 6, 4, 2  # longest n-grams; how much more recall counts than precision
WORD = re.compile(r"\w+|[^\w\s]")
Counts = tuple[int, int, int]  # of n-grams: in both, in the text, in the reference


def chrf(texts: Sequence[str], references: Sequence[Sequence[str]]) -> float:
    """Score of texts, each against the reference that it is most like."""
    found = [
        max((of_characters(text, one) for one in some), key=f_score)
        for text, some in zip(texts, references, strict=True)
    ]
    return f_score([add(each) for each in zip(*found, strict=True)])


def of_characters(text: str, reference: str) -> list[Counts]:
    """Counts of n-grams of 1, 2, ... CHARACTERS, without spaces."""
    ours, theirs = "".join(text.split()), "".join(reference.split())
    return [overlap(ngrams(ours, n), ngrams(theirs, n)) for n in range(1, CHARACTERS + 1)]


def f_score(counts: Sequence[Counts]) -> float:
    """F-score of the means of precision and recall over those n of which both have any."""
    there = [(both / ours, both / theirs) for both, ours, theirs in counts if ours and theirs]
    if not there:
        return 0.0
    precision, recall = (sum(each) / len(there) for each in zip(*there, strict=True))
    weighted = BETA**2 * precision + recall
    return (1 + BETA**2) * precision * recall / weighted if weighted else 0.0


def bleu(texts: Sequence[str], references: Sequence[Sequence[str]]) -> float:
    """0 where the texts have no n-gram of WORDS words in common with theirs."""
    counts, ours, theirs = [(0, 0)] * WORDS, 0, 0
    for text, some in zip(texts, references, strict=True):
        written, known = WORD.findall(text), [WORD.findall(one) for one in some]
        ours += len(written)
        theirs += min(map(len, known), key=lambda length: (abs(length - len(written)), length))
        for n in range(1, WORDS + 1):
            most: Counter[object] = Counter()
            for one in known:
                most |= ngrams(one, n)
            both, all_ours, _ = overlap(ngrams(written, n), most)
            counts[n - 1] = counts[n - 1][0] + both, counts[n - 1][1] + all_ours
    if not all(both for both, _ in counts):
        return 0.0
    brevity = min(0.0, 1 - theirs / ours)
    return math.exp(brevity + sum(math.log(both / whole) for both, whole in counts) / WORDS)


def ngrams(parts: Sequence[str], n: int) -> Counter[object]:
    return Counter(tuple(parts[at : at + n]) for at in range(len(parts) - n + 1))


def overlap(ours: Counter[object], theirs: Counter[object]) -> Counts:
    return (ours & theirs).total(), ours.total(), theirs.total()


def add(counts: Sequence[Counts]) -> Counts:
    both, ours, theirs = (sum(each) for each in zip(*counts, strict=True))
    return both, ours, theirs
