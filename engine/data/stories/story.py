"""One story from a seed and an index, and the endless stream of them."""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count

from . import words
from .cast import Thing
from .plots import PLOTS
from .telling import Telling


@dataclass(frozen=True)
class Member:
    """Somebody in a story: the name, the subject pronoun, and what it is ("girl", "mom", "dog")."""

    name: str
    pronoun: str
    kind: str


@dataclass(frozen=True)
class Story:
    text: str
    plot: str
    cast: tuple[Member, ...]
    things: tuple[str, ...]  # as introduced: "red ball"


def tell(seed: int, index: int) -> Story:
    """Story `index` of the stream `seed`, with a record of who and what is in it."""
    telling = Telling(random.Random(f"{seed}:{index}").random)
    telling.let(sad=telling.pick(words.SAD), glad=telling.pick(words.GLAD))
    plot = telling.pick(PLOTS)
    plot(telling)
    things = [entity for entity in telling.cast if isinstance(entity, Thing)]
    people = [entity for entity in telling.cast if not isinstance(entity, Thing)]
    return Story(
        text=telling.text(),
        plot=plot.__name__,
        cast=tuple(Member(entity.name, entity.pronoun, entity.kind) for entity in people),
        things=tuple(f"{thing.adjective} {thing.name}" for thing in things),
    )


def story(seed: int, index: int) -> str:
    return tell(seed, index).text


def stories(seed: int) -> Iterator[str]:
    """Story 0, 1, 2, ... of the stream `seed`, without end."""
    return (story(seed, index) for index in count())
