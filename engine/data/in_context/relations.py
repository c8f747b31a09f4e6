"""The rules: what stands in the second column beside each word of the first."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from engine.data.drawing import Chance, Part, choice, is_held_out, number
from engine.data.in_context.words import FRENCH, KINDS, KNOWN, LONGEST, OPPOSITES, WHAT_IT_IS

VOWELS, CONSONANTS = "aeiou", "bcdfghjklmnpqrstvwxyz"
FIRST = (*CONSONANTS, *"bl br ch cl cr dr fl fr gl gr pl pr sc sh sk sl sm sn sp st str sw th tr tw wh".split(), "")
MIDDLE = (*VOWELS * 3, *"ai ea ee ie oa oo ou y".split())
LAST = (
    *CONSONANTS, *" " * 20,
    *"ck ct ed er ft ing le ll ld lt mp nd ng nk nt rd rk rm rn rs rt ss st tch th tt".split(),
)  # fmt: skip
MADE_UP = 0.4  # of the words on which rules about letters are practised
TOLD_APART = 2, 2, 3, 4, 6  # kinds in a prompt
OF_EACH = 1, 2, 4, None, None, None  # words of a kind in a prompt; None is all

Answer = Callable[[str], str]


@dataclass(frozen=True)
class Relation:
    """`word` draws one for the first column, and `answer` is what stands beside it."""

    word: Callable[[Chance], str]
    answer: Answer


Rule = Callable[[Chance, Part, int], Relation]  # of a part and a seed

LETTERS: Mapping[str, Answer] = {
    "first letter": lambda word: word[0],
    "last letter": lambda word: word[-1],
    "without the first letter": lambda word: word[1:],
    "without the last letter": lambda word: word[:-1],
    "reverse": lambda word: word[::-1],
    "capitals": str.upper,
}


def of_letters(answer: Answer) -> Rule:
    """Of words of which none is in both parts."""
    return lambda chance, part, seed: Relation(lambda draw: word(draw, part, seed), answer)


def suffix(chance: Chance, part: Part, seed: int) -> Relation:
    added = affix(chance, part, seed)
    return Relation(lambda draw: word(draw, part, seed), lambda told: told + added)


def prefix(chance: Chance, part: Part, seed: int) -> Relation:
    added = affix(chance, part, seed)
    return Relation(lambda draw: word(draw, part, seed), lambda told: added + told)


def kinds(chance: Chance, part: Part, seed: int) -> Relation:
    """Words of several kinds, each with a label that is drawn with them.

    Where it is practised a kind has often but a few words, which come again: rows that repeat are what makes a model
    look for its answer above (Chan et al. 2022, section 3.1; Bratulić et al. 2025, arXiv 2501.06256).
    """
    names = shuffled(chance, KINDS)[: choice(chance, TOLD_APART)]
    given = labels(chance, part, seed, len(names))
    most = choice(chance, OF_EACH) if part == "train" else None
    words = [shuffled(chance, KINDS[name].split())[:most] for name in names]
    told = {word: label for each, label in zip(words, given, strict=True) for word in each}
    return Relation(lambda draw: choice(draw, choice(draw, words)), told.__getitem__)


def beginnings(chance: Chance, part: Part, seed: int) -> Relation:
    """One label for words that begin with a vowel, another for the rest."""
    vowel, consonant = labels(chance, part, seed, 2)

    def drawn(draw: Chance) -> str:
        wanted = draw() < 0.5
        return next(told for told in iter(lambda: word(draw, part, seed), None) if (told[0] in VOWELS) == wanted)

    return Relation(drawn, lambda told: vowel if told[0] in VOWELS else consonant)


def listed(pairs: Sequence[tuple[str, str]]) -> Rule:
    """What must be known by heart: every row is learned, and only the prompt around it is new."""
    answers = dict(pairs)
    words = tuple(answers)
    return lambda chance, part, seed: Relation(lambda draw: choice(draw, words), answers.__getitem__)


def shuffled(chance: Chance, options: Iterable[str]) -> list[str]:
    return sorted(options, key=lambda _: chance())


def word(chance: Chance, part: Part, seed: int) -> str:
    """A known one or one that is made up, of that part."""
    return held(lambda: made_up(chance) if chance() < MADE_UP else choice(chance, KNOWN), part, seed)


def made_up(chance: Chance) -> str:
    """Two to LONGEST letters that can nearly be said."""
    while True:
        parts = (syllable(chance) for _ in range(number(chance, 1, 2)))
        made = "".join(parts)
        if 1 < len(made) <= LONGEST:
            return made


def syllable(chance: Chance) -> str:
    return f"{choice(chance, FIRST)}{choice(chance, MIDDLE)}{choice(chance, LAST)}".strip()


def affix(chance: Chance, part: Part, seed: int) -> str:
    """One to three letters."""
    return held(lambda: made_up(chance)[: number(chance, 1, 3)], part, seed)


def labels(chance: Chance, part: Part, seed: int, count: int) -> tuple[str, ...]:
    """As many different ones, of three letters that have nothing to do with what they name."""
    found: dict[str, None] = {}
    while len(found) < count:
        found[held(lambda: label(chance), part, seed)] = None
    return tuple(found)


def label(chance: Chance) -> str:
    return choice(chance, CONSONANTS) + choice(chance, VOWELS) + choice(chance, CONSONANTS)


def held(draw: Callable[[], str], part: Part, seed: int) -> str:
    """The first that is drawn of what belongs to the part."""
    return next(told for told in iter(draw, None) if is_held_out(told, seed) == (part == "held_out"))


RULES: Mapping[str, tuple[Rule, float]] = {
    **{name: (of_letters(answer), 2.0 if name == "reverse" else 0.7) for name, answer in LETTERS.items()},
    "suffix": (suffix, 1.3),
    "prefix": (prefix, 1.3),
    "kinds": (kinds, 5.0),
    "vowel or consonant": (beginnings, 1.0),
    "English to French": (listed(FRENCH), 0.7),
    "French to English": (listed([(french, english) for english, french in FRENCH]), 0.7),
    "what it is": (listed(WHAT_IT_IS), 1.0),
    "opposites": (listed([*OPPOSITES, *((second, first) for first, second in OPPOSITES)]), 0.7),
}  # and how often it is drawn, beside the others
