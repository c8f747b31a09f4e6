"""Names of people and of places in sentences, and a tag for each word, known because the sentences are made here.

Some names are both (Florence, Jordan, Sydney): what they are, only the other words of the sentence say. Around them
stand sentences of the generated stories, in which the children and animals are named too. Tags are BIO (Ramshaw &
Marcus 1995): B begins a name, I goes on with it, O is no name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, ClassVar

from engine.data.bounds import at_least
from engine.data.corpora import read_corpus
from engine.data.drawing import Chance, Part, choice, draw_indexed, number
from engine.data.options import DOCUMENTS, HELD_OUT
from engine.data.seeds import seed_for
from engine.data.sentences import sentences
from engine.data.stories import tell
from engine.data.stories import words as story_words
from engine.data.task import Tagged, TagTask

TAGS = OUTSIDE, *_ = "O", "B-PERSON", "I-PERSON", "B-PLACE", "I-PLACE"
TWO_SENTENCES, SURNAME, AMBIGUOUS, STORY = 0.5, 0.3, 0.35, 0.5  # how often each is so
WORD = re.compile(r"'s\b|[^\W\d_]+(?:'(?!s\b)\w+)?|\d+|[^\w\s]")
STREAM = 1_000_000  # stories that sentences are taken from


@dataclass(frozen=True)
class Names(TagTask):
    """Writes one or two sentences about people and places, half of them with one of a story beside it."""

    documents: int = field(default=8_000, metadata=DOCUMENTS)
    held_out: int = field(default=500, metadata=HELD_OUT)

    kind: ClassVar[str] = "names"
    place: ClassVar[int] = 17
    labels: ClassVar[tuple[str, ...]] = TAGS

    def __post_init__(self) -> None:
        at_least("data.names.documents", self.documents, 1)
        at_least("data.names.held_out", self.held_out, 1)

    def sentences(self, part: Part, seed: int) -> Iterator[Tagged]:
        count = self.documents if part == "train" else self.held_out
        return (draw_example(part, seed, index) for index in range(count))


def tables() -> dict[str, Any]:
    """Surnames, places, names that are either, and sentences."""
    return read_corpus("names/names")


def draw_example(part: Part, seed: int, index: int) -> Tagged:
    """Example `index` of a part; the same for the same seed."""
    return draw_indexed(lambda chance: draw_text(chance, seed), lambda one: one.text, part, seed, index)


def draw_text(chance: Chance, seed: int) -> Tagged:
    parts = [draw_sentence(chance) for _ in range(2 if chance() < TWO_SENTENCES else 1)]
    if chance() < STORY:
        parts.insert(number(chance, 0, len(parts)), draw_story_sentence(chance, seed))
    words = chain.from_iterable(part.words for part in parts)
    return Tagged(tuple(words), tuple(chain.from_iterable(part.tags for part in parts)))


def draw_sentence(chance: Chance) -> Tagged:
    """Writes one of the sentences, with different names in it."""
    names: dict[str, tuple[str, str]] = {}
    for slot, kind in (("{p}", "PERSON"), ("{q}", "PERSON"), ("{l}", "PLACE"), ("{m}", "PLACE")):
        name, used = "", {"", *(name for name, _ in names.values())}
        while name in used:
            name = draw_person(chance) if kind == "PERSON" else draw_place(chance)
        names[slot] = name, kind
    words: list[str] = []
    tags: list[str] = []
    for word in choice(chance, tables()["sentences"]).split():
        name, kind = names.get(word, (word, ""))
        words += name.split()
        tags += [f"{'I' if at else 'B'}-{kind}" if kind else OUTSIDE for at in range(len(name.split()))]
    return Tagged(tuple(words), tuple(tags))


def draw_person(chance: Chance) -> str:
    if chance() < AMBIGUOUS:
        name = choice(chance, tables()["either"])
    else:
        name = choice(chance, (*story_words()["girls"], *story_words()["boys"]))
    return f"{name} {choice(chance, tables()['surnames'])}" if chance() < SURNAME else name


def draw_place(chance: Chance) -> str:
    return choice(chance, tables()["either" if chance() < AMBIGUOUS else "places"])


def draw_story_sentence(chance: Chance, seed: int) -> Tagged:
    """A sentence of a generated story, in which whoever has a name is a person."""
    story = tell(seed_for(seed, "names"), number(chance, 0, STREAM))
    words = WORD.findall(choice(chance, sentences(story.text)))
    kin = {kind for kind, _ in story_words()["kin"]}
    names = {member.name for member in story.cast if member.name[0].isupper() and member.kind not in kin}
    return Tagged(tuple(words), tuple(tags_of(words, names)))


def tags_of(words: Sequence[str], names: set[str]) -> list[str]:
    """The tags of a sentence in which those `names` are people's."""
    return ["B-PERSON" if word in names else OUTSIDE for word in words]


KIND = Names
