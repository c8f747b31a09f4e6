"""Tables of two columns whose rule stands nowhere: only the rows above say what is asked of a new word.

A prompt is rows "x: y" of one table, a line each. Which of the rules it is, and with what labels, prefix or suffix, is
drawn for each prompt anew, so that a model that has seen no row can only guess (Brown et al. 2020, section 2; Garg et
al. 2022, who train on such prompts from the beginning).
"""

from __future__ import annotations

import string
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import accumulate, chain
from random import Random
from typing import ClassVar

from engine.data.corpora import read_corpus
from engine.data.drawing import Chance, Part, choice, is_held_out, number
from engine.data.task import DataKind
from engine.data.translation.lexicon import LEXICON

Pairs = Sequence[tuple[str, str]]

BETWEEN, BEHIND = ": ", "\n"
LONGEST = 7  # letters of a word
VOWELS, CONSONANTS = "aeiou", "bcdfghjklmnpqrstvwxyz"
SPLIT = 0  # by which words are held out, whatever the recipe's seed, so that tables that are written down stay so
TRIES = 20  # words drawn for a row before one that the prompt has already is taken again
MADE_UP = 0.4  # of the words on which rules about letters are practised
KINDS_IN_PROMPT = 2, 2, 3, 4, 6  # kinds in a prompt
WORDS_OF_KIND = 1, 2, 4, None, None, None  # words of a kind in a prompt; None is all

LetterAnswer = Callable[[str], str]


@dataclass(frozen=True)
class Relation:
    """`word` draws one for the first column, and `answer` is what stands beside it."""

    word: Callable[[Chance], str]
    answer: LetterAnswer


Rule = Callable[[Chance, Part, int], Relation]  # of a part and a seed

LETTERS: Mapping[str, LetterAnswer] = {
    "first letter": lambda word: word[0],
    "last letter": lambda word: word[-1],
    "without the first letter": lambda word: word[1:],
    "without the last letter": lambda word: word[:-1],
    "reverse": lambda word: word[::-1],
    "capitals": str.upper,
}


@dataclass(frozen=True)
class InContext(DataKind):
    """Prompts without end, in characters. Those that are held out have other words, labels, prefixes and suffixes, but
    in the tables that must be known by heart."""

    kind: ClassVar[str] = "in_context"
    place: ClassVar[int] = 14
    tokenizers: ClassVar[tuple[str, ...]] = ("char",)


def rows(part: Part, seed: int) -> Iterator[tuple[str, str]]:
    """Yields one prompt, row by row and without end; no word comes twice while there are others."""
    chance = Random(f"{seed}:{part}").random
    relation = draw_relation(chance, part)
    seen: set[str] = set()
    while True:
        word = next((one for one in (relation.word(chance) for _ in range(TRIES)) if one not in seen), "")
        word = word or relation.word(chance)
        seen.add(word)
        yield word, relation.answer(word)


def line(word: str, answer: str) -> str:
    return f"{word}{BETWEEN}{answer}{BEHIND}"


@cache
def signs() -> str:
    """Every character that a prompt may have."""
    french = {sign for _, word in french_words() for sign in word}
    return f"{BEHIND}{BETWEEN}{string.ascii_letters}" + "".join(sorted(french - set(string.ascii_letters)))


# The words


def kinds() -> dict[str, list[str]]:
    """The words of each kind."""
    return {kind: names.split() for kind, names in read_corpus("in_context/words")["kinds"].items()}


def opposites() -> Pairs:
    return [(first, second) for first, second in read_corpus("in_context/words")["opposites"]]


@cache
def french_words() -> Pairs:
    """English nouns and the French ones, those that are short enough."""
    pairs = ((noun.english, noun.french) for noun in LEXICON.nouns)
    return [pair for pair in pairs if max(map(len, pair)) <= LONGEST]


@cache
def known_words() -> tuple[str, ...]:
    """Words of the tables on which rules about letters are practised: ASCII, so that each has its capitals."""
    pairs = (*opposites(), *french_words())
    words = dict.fromkeys((*chain.from_iterable(kinds().values()), *chain.from_iterable(pairs)))
    return tuple(word for word in words if 2 < len(word) <= LONGEST and word.isascii())


@cache
def syllable_parts() -> tuple[Sequence[str], Sequence[str], Sequence[str]]:
    """Parts with which a syllable begins, goes on and ends; half of them end in their vowel."""
    table = {name: parts.split() for name, parts in read_corpus("in_context/words")["syllables"].items()}
    first = (*CONSONANTS, *table["first"], "")
    return first, (*VOWELS * 3, *table["middle"]), (*CONSONANTS, *" " * 20, *table["last"])


def draw_word(chance: Chance, part: Part, seed: int) -> str:
    """A known one or one that is made up, of that part."""
    return draw_of_part(lambda: make_up(chance) if chance() < MADE_UP else choice(chance, known_words()), part, seed)


def make_up(chance: Chance) -> str:
    """A word of two to LONGEST letters that can nearly be said."""
    while True:
        word = "".join(draw_syllable(chance) for _ in range(number(chance, 1, 2)))
        if 1 < len(word) <= LONGEST:
            return word


def draw_syllable(chance: Chance) -> str:
    return "".join([choice(chance, parts) for parts in syllable_parts()]).strip()


def draw_affix(chance: Chance, part: Part, seed: int) -> str:
    """Draws one to three letters."""
    return draw_of_part(lambda: make_up(chance)[: number(chance, 1, 3)], part, seed)


def draw_labels(chance: Chance, part: Part, seed: int, count: int) -> tuple[str, ...]:
    """`count` different ones, of three letters that have nothing to do with what they name."""
    found: dict[str, None] = {}
    while len(found) < count:
        found[draw_of_part(lambda: draw_label(chance), part, seed)] = None
    return tuple(found)


def draw_label(chance: Chance) -> str:
    return choice(chance, CONSONANTS) + choice(chance, VOWELS) + choice(chance, CONSONANTS)


def draw_of_part(draw: Callable[[], str], part: Part, seed: int) -> str:
    """The first word drawn that belongs to the part."""
    return next(word for word in iter(draw, None) if is_held_out(word, seed) == (part == "held_out"))


# The rules: what stands in the second column beside each word of the first


def letter_rule(answer: LetterAnswer) -> Rule:
    """A rule about words of which none is in both parts."""
    return lambda chance, part, seed: Relation(lambda draw: draw_word(draw, part, seed), answer)


def suffix_rule(chance: Chance, part: Part, seed: int) -> Relation:
    affix = draw_affix(chance, part, seed)
    return Relation(lambda draw: draw_word(draw, part, seed), lambda word: word + affix)


def prefix_rule(chance: Chance, part: Part, seed: int) -> Relation:
    affix = draw_affix(chance, part, seed)
    return Relation(lambda draw: draw_word(draw, part, seed), lambda word: affix + word)


def kinds_rule(chance: Chance, part: Part, seed: int) -> Relation:
    """Words of several kinds, each with a label that is drawn with them.

    Where it is practised a kind has often but a few words, which come again: rows that repeat are what makes a model
    look for its answer above (Chan et al. 2022, section 3.1; Bratulić et al. 2025, arXiv 2501.06256).
    """
    names = shuffle(chance, kinds())[: choice(chance, KINDS_IN_PROMPT)]
    labels = draw_labels(chance, part, seed, len(names))
    most = choice(chance, WORDS_OF_KIND) if part == "train" else None
    words = [shuffle(chance, kinds()[name])[:most] for name in names]
    answers = {word: label for each, label in zip(words, labels, strict=True) for word in each}
    return Relation(lambda draw: choice(draw, choice(draw, words)), answers.__getitem__)


def vowel_rule(chance: Chance, part: Part, seed: int) -> Relation:
    """Rule that gives one label to words that begin with a vowel, another for the rest."""
    vowel, consonant = draw_labels(chance, part, seed, 2)

    def draw_balanced(draw: Chance) -> str:
        wanted = draw() < 0.5
        return next(word for word in iter(lambda: draw_word(draw, part, seed), None) if (word[0] in VOWELS) == wanted)

    return Relation(draw_balanced, lambda word: vowel if word[0] in VOWELS else consonant)


def table_rule(pairs: Callable[[], Pairs]) -> Rule:
    """Rule of a table that must be known by heart: every row is learned, and only the prompt around it is new."""

    def rule(chance: Chance, part: Part, seed: int) -> Relation:
        answers = dict(pairs())
        words = tuple(answers)
        return Relation(lambda draw: choice(draw, words), answers.__getitem__)

    return rule


def reverse_pairs(pairs: Pairs) -> Pairs:
    return [(second, first) for first, second in pairs]


def shuffle(chance: Chance, options: Iterable[str]) -> list[str]:
    return sorted(options, key=lambda _: chance())


RULES: Mapping[str, tuple[Rule, float]] = {
    **{name: (letter_rule(answer), 2.0 if name == "reverse" else 0.7) for name, answer in LETTERS.items()},
    "suffix": (suffix_rule, 1.3),
    "prefix": (prefix_rule, 1.3),
    "kinds": (kinds_rule, 5.0),
    "vowel or consonant": (vowel_rule, 1.0),
    "English to French": (table_rule(french_words), 0.7),
    "French to English": (table_rule(lambda: reverse_pairs(french_words())), 0.7),
    "what it is": (table_rule(lambda: [(word, kind) for kind, words in kinds().items() for word in words]), 1.0),
    "opposites": (table_rule(lambda: [*opposites(), *reverse_pairs(opposites())]), 0.7),
}  # and how often it is drawn, beside the others
EDGES = tuple(accumulate(often for _, often in RULES.values()))


def draw_relation(chance: Chance, part: Part) -> Relation:
    place = chance() * EDGES[-1]
    rule, _ = next(entry for entry, edge in zip(RULES.values(), EDGES, strict=True) if place < edge)
    return rule(chance, part, SPLIT)


KIND = InContext
