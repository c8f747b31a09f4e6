"""Telling one story: a seeded chooser, the fields that templates fill in, and who was mentioned last.

A template is a sentence or two. `{a.he}` is filled from the cast; `[red|blue]` is one of its alternatives,
drawn when the sentence is told (an empty alternative is allowed).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cache
from typing import TypeVar

from . import words
from .cast import Entity, Group, Kin, Thing
from .grammar import typeset

T = TypeVar("T")
Person = tuple[str, str]  # name or kind, and pronoun
ALTERNATIVES = re.compile(r"\[([^\]]*)\]")
TOGETHER = {("boy", "boy"): "the boys", ("girl", "girl"): "the girls"}
REPEATED_NAME = 0.25  # how often a new sentence says the name again where a pronoun would be clear


@cache
def _pieces(template: str) -> tuple[tuple[str, ...], ...]:
    """The template cut into parts, each the tuple of its alternatives."""
    cut = ALTERNATIVES.split(template)
    return tuple(tuple(part.split("|")) if i % 2 else (part,) for i, part in enumerate(cut))


class Telling:
    def __init__(self, random: Callable[[], float]) -> None:
        self.random = random
        self.told: list[str] = []
        self.cast: list[Entity] = []
        self.fields: dict[str, object] = {}
        self.recent: dict[str, Entity | None] = {}  # pronoun -> whom it would mean now
        self.let(one_day=self.pick(words.ONE_DAY), school_day=self.pick(words.SCHOOL_DAY))

    # chance

    def pick(self, options: Sequence[T]) -> T:
        return options[int(self.random() * len(options))]

    def sample(self, options: Sequence[T], count: int) -> list[T]:
        pool = list(options)
        return [pool.pop(int(self.random() * len(pool))) for _ in range(count)]

    def number(self, low: int, high: int) -> int:
        return low + int(self.random() * (high - low + 1))

    def chance(self, probability: float) -> bool:
        return self.random() < probability

    # the cast

    def let(self, **fields: object) -> None:
        self.fields.update(fields)

    def _enter(self, role: str, entity: Entity) -> None:
        self.fields[role] = entity
        self.cast.append(entity)

    def _unused(self, people: Sequence[Person]) -> Person:
        taken = {entity.name for entity in self.cast}
        return self.pick([person for person in people if person[0] not in taken])

    def child(self, role: str) -> Entity:
        girl = self.chance(0.5)
        name, pronoun = self._unused(words.GIRLS if girl else words.BOYS)
        child = Entity(self, name, pronoun, "girl" if girl else "boy")
        self._enter(role, child)
        return child

    def kin(
        self, role: str, of: Entity, always_title: bool = False, among: Sequence[Person] = words.KIN
    ) -> Kin:
        """`always_title` where two children are about, and "her mom" would leave open whose."""
        kind, pronoun = self.pick(among)
        kin = Kin(self, kind, pronoun, of, always_title or self.chance(0.5))
        self._enter(role, kin)
        return kin

    def neighbor(self, role: str, among: Sequence[Person] = words.NEIGHBORS) -> Entity:
        kind, pronoun = self.pick(among)
        neighbor = Entity(self, f"the {kind}", pronoun, kind)
        self._enter(role, neighbor)
        return neighbor

    def animal(self, role: str, kind: str, names: Sequence[Person] = words.ANIMAL_NAMES) -> Entity:
        name, pronoun = self._unused(names)
        animal = Entity(self, name, pronoun, kind)
        self._enter(role, animal)
        return animal

    def creature(self, role: str, kind: str) -> Entity:
        """An animal without a name: "the duck", it."""
        creature = Entity(self, f"the {kind}", words.IT, kind)
        self._enter(role, creature)
        return creature

    def thing(self, role: str, nouns: Sequence[str], adjectives: Sequence[str] = ()) -> Thing:
        noun = self.pick(nouns)
        adjective = self.pick(adjectives or (words.COLORS if self.chance(0.65) else words.SIZES))
        thing = Thing(self, noun, adjective, noun in words.PLURAL_THINGS)
        self._enter(role, thing)
        return thing

    def group(self, role: str, first: Entity, second: Entity, together: str = "") -> Group:
        kinds = (first.kind, second.kind)
        children = "the children" if set(kinds) == {"boy", "girl"} else "the two of them"
        group = Group(self, first, second, together or TOGETHER.get(kinds, children))
        self.fields[role] = group
        return group

    # who is meant

    def is_clear(self, entity: Entity) -> bool:
        """Whether to use the pronoun: it would be understood, and the name is not due again."""
        if self.recent.get(entity.pronoun) is not entity:
            return False
        age = len(self.told) - entity.mentioned
        return age == 0 or (age == 1 and not self.chance(REPEATED_NAME))

    def mention(self, entity: Entity) -> None:
        self.recent[entity.pronoun] = entity
        entity.mentioned = len(self.told)

    def mention_all(self, group: Group) -> None:
        first, second = group.members
        self.mention(group)
        self.mention(first)
        self.mention(second)
        if first.pronoun == second.pronoun:
            self.recent[first.pronoun] = None  # two girls named together: "she" would be either

    # the text

    def fill(self, template: str) -> str:
        chosen = "".join([part[0] if len(part) == 1 else self.pick(part) for part in _pieces(template)])
        return chosen.format_map(self.fields)

    def say(self, *options: str) -> None:
        text = self.fill(self.pick(options))
        self.told.append(text[0].upper() + text[1:])

    def maybe(self, probability: float, *options: str) -> None:
        if self.chance(probability):
            self.say(*options)

    def text(self) -> str:
        return typeset(" ".join(self.told))
