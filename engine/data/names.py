"""Names of people and of places in sentences, and a tag for each word, known because the sentences are made here.

Some names are both (Florence, Jordan, Sydney): what they are, only the other words of the sentence say. Around them
stand sentences of the generated stories, in which the children and animals are named too. Tags are BIO (Ramshaw &
Marcus 1995): B begins a name, I goes on with it, O is no name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import ClassVar

from engine.data.bounds import at_least
from engine.data.drawing import Chance, Part, choice, drawn, number
from engine.data.seeds import seed_for
from engine.data.sentences import sentences
from engine.data.stories import tell
from engine.data.stories.words import BOYS, GIRLS, KIN
from engine.data.task import Tagged, TagTask

TAGS = OUTSIDE, *_ = "O", "B-PERSON", "I-PERSON", "B-PLACE", "I-PLACE"
SURNAMES = "Baker", "Hill", "Stone", "Brooks", "Marsh", "Fox", "Carter", "Woods", "Bell", "Rivers", "Snow", "Park"
PLACES = (
    "Paris", "London", "Rome", "Oslo", "Cairo", "Lima", "Kyoto", "Boston", "Vienna", "Dublin", "Toronto", "Nairobi",
    "New York", "Cape Town", "Fox Hill", "Stone Bridge", "Green Bay", "Snow Lake", "San Marino", "Baker Street",
)  # fmt: skip
EITHER = "Florence", "Jordan", "Sydney", "Victoria", "Georgia", "Charlotte", "Austin", "Chelsea", "Lincoln", "Madison"
SENTENCES = (
    "{p} lives in {l} .", "{p} and {q} took the train to {l} .", "In {l} , {p} met {q} .",
    "{p} wrote {q} a letter from {l} .", "{l} is colder than {m} in the winter .", "{p} is older than {q} .",
    "The road from {l} to {m} is long .", "{q} asked {p} to come along .", "{p} said that {l} was a pretty town .",
    "Everybody in {l} knows {p} .", "{p} was born in {l} , but {q} comes from {m} .", "It rained in {l} all day .",
    "{p} laughed , and {q} laughed too .", "They drove through {l} and stopped in {m} .", "{p} gave {q} a map of {l} .",
    "The bridge of {l} is very old .", "{p} is the best friend of {q} .", "{l} is far away from {m} .",
)  # fmt: skip
NAMED_TWO, SURNAMED, AMBIGUOUS, TOLD = 0.5, 0.3, 0.35, 0.5  # how often each is so
WORD = re.compile(r"'s\b|[^\W\d_]+(?:'(?!s\b)\w+)?|\d+|[^\w\s]")
KINSHIP = frozenset(kind for kind, _ in KIN)
STREAM = 1_000_000  # stories that sentences are taken from


@dataclass(frozen=True)
class Names(TagTask):
    """One or two sentences about people and places, half of them with one of a story beside it."""

    documents: int = 8_000
    held_out: int = 500

    labels: ClassVar[tuple[str, ...]] = TAGS

    def __post_init__(self) -> None:
        at_least("data.names.documents", self.documents, 1)
        at_least("data.names.held_out", self.held_out, 1)

    def sentences(self, part: Part, seed: int) -> Iterator[Tagged]:
        count = self.documents if part == "train" else self.held_out
        return (example(part, seed, index) for index in range(count))


def example(part: Part, seed: int, index: int) -> Tagged:
    """Example `index` of a part; the same for the same seed."""
    return drawn(lambda chance: written(chance, seed), lambda one: one.text, part, seed, index)


def written(chance: Chance, seed: int) -> Tagged:
    parts = [sentence(chance) for _ in range(2 if chance() < NAMED_TWO else 1)]
    if chance() < TOLD:
        parts.insert(number(chance, 0, len(parts)), of_story(chance, seed))
    words, tags = (chain.from_iterable(told) for told in ((p.words for p in parts), (p.tags for p in parts)))
    return Tagged(tuple(words), tuple(tags))


def sentence(chance: Chance) -> Tagged:
    """One of SENTENCES with different names in it."""
    names: dict[str, tuple[str, str]] = {}
    for slot, kind in (("{p}", "PERSON"), ("{q}", "PERSON"), ("{l}", "PLACE"), ("{m}", "PLACE")):
        name, taken = "", {"", *(name for name, _ in names.values())}
        while name in taken:
            name = person(chance) if kind == "PERSON" else place(chance)
        names[slot] = name, kind
    words: list[str] = []
    tags: list[str] = []
    for word in choice(chance, SENTENCES).split():
        name, kind = names.get(word, (word, ""))
        words += name.split()
        tags += [f"{'I' if at else 'B'}-{kind}" if kind else OUTSIDE for at in range(len(name.split()))]
    return Tagged(tuple(words), tuple(tags))


def person(chance: Chance) -> str:
    name = choice(chance, EITHER) if chance() < AMBIGUOUS else choice(chance, (*GIRLS, *BOYS))[0]
    return f"{name} {choice(chance, SURNAMES)}" if chance() < SURNAMED else name


def place(chance: Chance) -> str:
    return choice(chance, EITHER if chance() < AMBIGUOUS else PLACES)


def of_story(chance: Chance, seed: int) -> Tagged:
    """A sentence of a generated story, in which whoever has a name is a person."""
    story = tell(seed_for(seed, "names"), number(chance, 0, STREAM))
    words = WORD.findall(choice(chance, sentences(story.text)))
    named = {member.name for member in story.cast if member.name[0].isupper() and member.kind not in KINSHIP}
    return Tagged(tuple(words), tuple(tags_of(words, named)))


def tags_of(words: Sequence[str], named: set[str]) -> list[str]:
    return ["B-PERSON" if word in named else OUTSIDE for word in words]
