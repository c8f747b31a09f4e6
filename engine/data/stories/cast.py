"""Who and what a story is about, and how a sentence may refer to it.

A template writes `{a.he}` wherever a pronoun would do. What appears is the pronoun while it is clear who is
meant, and the name otherwise: when somebody else who is also "she" was mentioned last, or when the last
mention is too far back. So pronouns are right by construction, and names recur.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .grammar import article
from .words import IT, PRONOUNS, THEY

if TYPE_CHECKING:
    from .telling import Telling


class Entity:
    def __init__(self, telling: Telling, name: str, pronoun: str, kind: str = "") -> None:
        self.telling = telling
        self.name = name
        self.pronoun = pronoun
        self.kind = kind
        self.mentioned = -9  # the number of the sentence that last referred to it

    @property
    def full(self) -> str:
        return self.name

    def __format__(self, spec: str) -> str:
        name = self.full
        self.telling.mention(self)
        return name

    def refer(self, pronoun: str, suffix: str = "") -> str:
        clear = self.telling.is_clear(self)
        text = pronoun if clear else self.full + suffix
        self.telling.mention(self)
        return text

    @property
    def he(self) -> str:
        return self.refer(self.pronoun)

    @property
    def him(self) -> str:
        return self.refer(PRONOUNS[self.pronoun][0])

    @property
    def his(self) -> str:
        return self.refer(PRONOUNS[self.pronoun][1], "'s")

    it, its = he, his

    @property
    def himself(self) -> str:
        return PRONOUNS[self.pronoun][2]

    @property
    def a(self) -> str:
        """ "an old woman", "a duck": for the first time somebody without a name is seen."""
        self.telling.mention(self)
        return article(self.kind)

    @property
    def call(self) -> str:
        """The name as one calls it out, which refers to nobody in the telling."""
        return self.name


class Kin(Entity):
    """A parent or grandparent: "Mom" in some stories, "her mom" in others."""

    def __init__(self, telling: Telling, kind: str, pronoun: str, child: Entity, by_title: bool) -> None:
        super().__init__(telling, kind.capitalize(), pronoun, kind)
        self.child = child
        self.by_title = by_title

    @property
    def full(self) -> str:
        return self.name if self.by_title else f"{self.child.his} {self.kind}"


class Thing(Entity):
    """An object with an adjective, and the place where it now is, so that it is found where it was put."""

    def __init__(self, telling: Telling, noun: str, adjective: str, plural: bool) -> None:
        super().__init__(telling, noun, THEY if plural else IT)
        self.adjective = adjective
        self.where = ""

    @property
    def full(self) -> str:
        return f"the {self.name}"

    def __format__(self, spec: str) -> str:
        """The bare noun, for "my {toy}"; no mention, so that "it" stays what it was."""
        return self.name

    @property
    def described(self) -> str:
        """ "red ball"."""
        self.telling.mention(self)
        return f"{self.adjective} {self.name}"

    @property
    def a(self) -> str:
        """ "a red ball", "a pair of red mittens"."""
        described = self.described
        return f"a pair of {described}" if self.pronoun == THEY else article(described)

    @property
    def the(self) -> str:
        return f"the {self.described}"

    @property
    def was(self) -> str:
        return "were" if self.pronoun == THEY else "was"

    @property
    def are(self) -> str:
        return "are" if self.pronoun == THEY else "is"

    them = Entity.him


class Group(Entity):
    """Two characters as "they": "Tom and Lily" at first, then "they", or by a common word ("the girls")."""

    def __init__(self, telling: Telling, first: Entity, second: Entity, together: str) -> None:
        super().__init__(telling, together, THEY)
        self.members = (first, second)

    def __format__(self, spec: str) -> str:
        names = f"{self.members[0]} and {self.members[1]}"
        self.telling.mention_all(self)
        return names

    def refer(self, pronoun: str, suffix: str = "") -> str:
        if not self.telling.is_clear(self) and (suffix or self.mentioned < 0 or self.telling.chance(0.4)):
            return f"{self}{suffix}"
        return super().refer(pronoun)

    they, them, their = Entity.he, Entity.him, Entity.his
