"""Three tasks for one model, each a text that becomes another, told apart by the words before it (Raffel et al. 2020,
section 2.4): a translation, a sorting and a judgement.

The sentences are those of `engine.data.translation`. "cola sentence" is what T5 calls the judgement of grammar by the
Corpus of Linguistic Acceptability (Warstadt et al. 2019), and its classes are words, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import chain
from typing import ClassVar

from engine.data import mixture
from engine.data.bounds import at_least
from engine.data.drawing import Chance, Part, choice, draw_indexed
from engine.data.options import DOCUMENTS, HELD_OUT, MIXED, MOST_WORDS
from engine.data.published import check_named
from engine.data.task import BETWEEN, PUBLISHED, Pair, PairTask
from engine.data.translation import Pair as Sentences
from engine.data.translation import words
from engine.data.translation.drawing import draw
from engine.data.translation.english import plural, third_person
from engine.data.translation.lexicon import LEXICON
from engine.data.translation.pair import write

PREFIXES = TRANSLATE, SORT, JUDGE = "translate English to French: ", "sort: ", "cola sentence: "
LABELS = UNACCEPTABLE, ACCEPTABLE = "unacceptable", "acceptable"
SHORTEST = 4  # words that a limit must allow
DETERMINERS = frozenset("the this that these those a an some any no my your his her our their".split())


@dataclass(frozen=True)
class TextToText(PairTask):
    """The three tasks in turn, on sentences of at most `longest` words and marks in either language.

    Half of the sentences to judge have one fault: a determiner behind its word ("sees cat the"), or a verb of another
    number than its subject's ("The dogs sees"). No sentence that is held out is trained on, in any of the tasks.

    `sentences` is a file of pairs of `engine.data.published`, which are mixed with these to be translated, all
    translations of a sentence in one part.
    """

    documents: int = field(default=120_000, metadata=DOCUMENTS)
    held_out: int = field(default=2_000, metadata=HELD_OUT)
    sentences: str = field(default="", metadata=MIXED)
    longest: int = field(default=12, metadata=MOST_WORDS)

    kind: ClassVar[str] = "text_to_text"
    place: ClassVar[int] = 12
    tokenizers: ClassVar[tuple[str, ...]] = ("word", "bpe")
    separator: ClassVar[str] = BETWEEN
    grouped: ClassVar[str] = "task"

    def __post_init__(self) -> None:
        at_least("data.text_to_text.documents", self.documents, 1)
        at_least("data.text_to_text.held_out", self.held_out, 1)
        at_least("data.text_to_text.longest", self.longest, SHORTEST)
        check_named("data.text_to_text", sentences=self.sentences)

    def pairs(self, part: Part, seed: int) -> Iterator[Pair]:
        count = self.documents if part == "train" else self.held_out
        told = (draw_task(self, part, seed, index) for index in range(count))
        if not self.sentences:
            return told
        real = mixture.translations(self.sentences, part, seed)
        translated = (Pair(TRANSLATE + english, french, published=True) for english, every in real for french in every)
        return iter(mixture.shuffle(chain(told, translated), seed))

    def group(self, pair: Pair) -> str:
        return pair.source.partition(":")[0] + PUBLISHED * pair.published


def draw_task(options: TextToText, part: Part, seed: int, index: int) -> Pair:
    """Example `index` of a part; the same for the same seed."""
    prefix = PREFIXES[index % len(PREFIXES)]

    def example(chance: Chance) -> tuple[str, Pair]:
        sentence = write_sentence(chance, options.longest)
        if prefix == TRANSLATE:
            text, target = sentence.english, sentence.french
        elif prefix == SORT:
            text, target = sentence.english, sort_words(sentence.english)
        else:
            text, target = judge(sentence.english, chance)
        return sentence.english, Pair(prefix + text, target)

    return draw_indexed(example, lambda drawn: drawn[0], part, seed, index)[1]


def write_sentence(chance: Chance, longest: int) -> Sentences:
    """The first sentence drawn that is short enough."""
    while True:
        drawn = write(draw(chance))
        if max(len(words(drawn.english)), len(words(drawn.french))) <= longest:
            return drawn


def sort_words(text: str) -> str:
    """The words in the order of the alphabet, whether or not they have capitals, without the full stop."""
    return " ".join(sorted(text.removesuffix(".").split(), key=str.lower))


def judge(text: str, chance: Chance) -> tuple[str, str]:
    """`text` as it is or with a fault, half of the time each where it can have one, and which of LABELS it is."""
    faulty = list(faults(text.removesuffix(".").split()))
    if chance() < 0.5 or not faulty:
        return text, ACCEPTABLE
    return " ".join(choice(chance, faulty)) + text[len(text.removesuffix(".")) :], UNACCEPTABLE


def faults(sentence: Sequence[str]) -> Iterator[list[str]]:
    """The sentence with each fault that it can have. Its first word stays, which has a capital."""
    for at, word in enumerate(sentence):
        before, after = list(sentence[:at]), list(sentence[at + 1 :])
        if at and after and word in DETERMINERS:
            yield [*before, after[0], word, *after[1:]]
        if word in other_number():
            yield [*before, other_number()[word], *after]


@cache
def other_number() -> Mapping[str, str]:
    """Maps each finite verb in the present, and "was", to the form for a subject of the other number. A form that may
    be a past or a noun is left out."""
    nouns = {form for noun in LEXICON.nouns for form in (noun.english, plural(noun.english))}
    verbs = chain(LEXICON.transitive, LEXICON.intransitive, LEXICON.motion_verbs, LEXICON.giving_verbs)
    forms = [("is", "are"), ("was", "were"), ("does", "do")]
    forms += [(third_person(verb.english), verb.english) for verb in verbs if verb.past != verb.english]
    clear = [pair for pair in forms if nouns.isdisjoint(pair)]
    return {one: other for pair in clear for one, other in (pair, pair[::-1])}


KIND = TextToText
