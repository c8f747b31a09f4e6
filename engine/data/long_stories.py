"""Long stories, in which names and what belongs to them come again hundreds of tokens later.

Friends of one street are introduced, each with a house, a pet and a dish, which are drawn anew for every text. They
talk and tell each other stories (`engine.data.stories`, about others). In each talk, and at the end behind the last
story, what was said of them comes again: who has not read what stands before the story cannot know it. Text `index` of
`seed` is always the same.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import add
from typing import Any

from engine.data.corpora import read_corpus
from engine.data.stories import Story, tell, typeset

NTH = ("first", "second")
FEWEST, MOST = 3, 5  # friends
STORIES = 2  # told in one evening
TALK = 11  # sentences before each story
LONGEST = 640  # characters of a story that is told


@dataclass(frozen=True)
class Friend:
    name: str
    they: str
    house: str
    pet: str
    called: str
    food: str

    @property
    def fields(self) -> Mapping[str, str]:
        return {**vars(self), "They": self.they.capitalize()}


@dataclass(frozen=True)
class LongStory:
    text: str
    friends: tuple[Friend, ...]


class Draw:
    """Chance that is the same on every machine and Python version."""

    def __init__(self, key: str) -> None:
        self.random = random.Random(key).random

    def below(self, count: int) -> int:
        return int(self.random() * count)

    def pick(self, options: Sequence[Any]) -> Any:
        return options[self.below(len(options))]

    def sample(self, options: Sequence[Any], count: int) -> list[Any]:
        """`count` different ones, in the order in which they are drawn."""
        left = list(options)
        return [left.pop(self.below(len(left))) for _ in range(count)]


def long_story(seed: int, index: int) -> str:
    """Text `index` of the stream `seed`."""
    return tell_evening(seed, index).text


def tell_evening(seed: int, index: int) -> LongStory:
    """Text `index` of the stream `seed`, with who is in it."""
    draw, corpus = Draw(f"evening:{seed}:{index}"), read_corpus("stories/evenings")
    friends = meet(draw, FEWEST + draw.below(MOST - FEWEST + 1))
    names = [friend.name for friend in friends]
    everyone = f"{', '.join(names[:-1])} and {names[-1]}"
    said = [draw.pick(corpus["beginnings"]).format(all=everyone)]
    said += [draw.pick(corpus["friends"]).format(**friend.fields) for friend in friends]
    parts = [[*said, draw.pick(corpus["evenings"])]]
    told = told_by_others(seed, index, names)
    for nth, teller in zip(NTH, draw.sample(friends, STORIES), strict=False):
        parts.append([draw.pick(corpus["talk"]).format(**draw.pick(friends).fields) for _ in range(TALK)])
        parts.append([draw.pick(corpus["turns"]).format(name=teller.name, nth=nth)])
        parts.append([next(told).text])
    home = [draw.pick(corpus["homes"]).format(**friend.fields) for friend in draw.sample(friends, len(friends))]
    parts.append([draw.pick(corpus["endings"]), *home])
    return LongStory("\n".join(typeset(" ".join(part)) for part in parts), tuple(friends))


def meet(draw: Draw, count: int) -> list[Friend]:
    """Friends of whom no two share anything."""
    corpus = read_corpus("stories/evenings")
    (first, last), (begun, ended) = (
        [draw.sample(corpus[f"{what}_{part}"], count) for part in ("beginnings", "ends")] for what in ("name", "called")
    )
    names, called = ([*map(add, first, last)], [*map(add, begun, ended)])
    houses, pets, foods = (draw.sample(corpus[name], count) for name in ("houses", "pets", "foods"))
    rows = zip(names, houses, pets, called, foods, strict=True)
    return [Friend(name, draw.pick(("she", "he")), *own) for name, *own in rows]


def told_by_others(seed: int, index: int, names: Sequence[str]) -> Iterator[Story]:
    """Short stories in which none of `names` stands."""
    stream, number = int(f"9{abs(seed)}"), index * 50
    while True:
        story = tell(stream, number)
        if len(story.text) <= LONGEST and not any(name in story.text for name in names):
            yield story
        number += 1
