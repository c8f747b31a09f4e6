"""Small English stories without end, for a small language model to learn from and a class to look at.

Story `index` of `seed` is always the same text, on every machine and Python version: only `random.Random.random` and
its seeding by text are used, which Python keeps stable. Every seed is a stream of its own; to hold out, train on one
seed and measure on another.

How many there are: `moved` alone, one of the 38 plots, has 32 x 31 pairs of names, 15 things x 20 adjectives, 7 x 6
containers and 12 x 11 colours, all named in the text: more than a thousand million stories, before any sentence is
worded in a second way.

Words, plots and the scenes that plots share are files of `corpora/stories`, whose README explains how they are written.
A `Narrator` tells one of them and knows who was mentioned last: a template writes `{a.he}` wherever a pronoun would do,
and the pronoun appears while it is clear who is meant, the name otherwise. So pronouns are right by construction.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import count
from typing import Any, TypeVar

from engine.data.corpora import read_corpus

T = TypeVar("T")

SHE, HE, IT, THEY = "she", "he", "it", "they"
PRONOUNS = {
    SHE: ("her", "her", "herself"),
    HE: ("him", "his", "himself"),
    IT: ("it", "its", "itself"),
    THEY: ("them", "their", "themselves"),
}  # subject: object, possessive, reflexive
TOGETHER = {("boy", "boy"): "the boys", ("girl", "girl"): "the girls"}
NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
IRREGULAR = {"mouse": "mice", "leaf": "leaves", "sheep": "sheep", "tomato": "tomatoes", "loaf": "loaves"}
REPEATED_NAME = 0.25  # how often a new sentence says the name again where a pronoun would be clear
ALTERNATIVES = re.compile(r"\[([^\]]*)\]")
# where a sentence begins inside a text: after an end mark, after a quotation that ended with a full stop, and
# inside every opening quotation mark ("!” she said" goes on, so one that ended with "!" begins nothing)
SENTENCE_START = re.compile("([.!?] |\\.” |“)([a-z])")


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


def story(seed: int, index: int) -> str:
    """Text of story `index` of the stream `seed`."""
    return tell(seed, index).text


def stories(seed: int) -> Iterator[str]:
    """Story 0, 1, 2, ... of the stream `seed`, without end."""
    return (story(seed, index) for index in count())


def tell(seed: int, index: int) -> Story:
    """Story `index` of the stream `seed`, with a record of who and what is in it."""
    narrator = Narrator(random.Random(f"{seed}:{index}").random)
    narrator.draw("sad", "sad")
    narrator.draw("glad", "glad")
    theme, plot = narrator.pick(plots())
    narrator.play(read_corpus(f"stories/plots/{theme}")[plot])
    things = [entity for entity in narrator.cast if isinstance(entity, Thing)]
    people = [entity for entity in narrator.cast if not isinstance(entity, Thing)]
    return Story(
        text=narrator.text(),
        plot=plot,
        cast=tuple(Member(entity.name, entity.pronoun, entity.kind) for entity in people),
        things=tuple(f"{thing.adjective} {thing.name}" for thing in things),
    )


@cache
def plots() -> tuple[tuple[str, str], ...]:
    """The theme and name of each plot, in the order in which a seed numbers them."""
    return tuple((theme, plot) for theme, names in read_corpus("stories/plots").items() for plot in names)


def words() -> Mapping[str, Any]:
    """The word tables by name."""
    return read_corpus("stories/words")


# The little English that templates cannot spell out


def article(phrase: str) -> str:
    """`phrase` with "a" or "an". By the first letter: no word here has a silent h or a "you" sound."""
    return f"an {phrase}" if phrase[0] in "aeiou" else f"a {phrase}"


def plural(noun: str) -> str:
    if noun in IRREGULAR:
        return IRREGULAR[noun]
    if noun.endswith("y") and noun[-2] not in "aeiou":
        return f"{noun[:-1]}ies"
    return f"{noun}es" if noun.endswith(("s", "sh", "ch", "x")) else f"{noun}s"


def count_noun(number: int, noun: str) -> str:
    """ "one egg", "three eggs"."""
    return f"{NUMBERS[number]} {noun if number == 1 else plural(noun)}"


def typeset(text: str) -> str:
    """Sentence capitals, and the templates' “ ” as the plain mark that a small vocabulary can afford."""
    capitals = SENTENCE_START.sub(lambda match: f"{match[1]}{match[2].upper()}", text)
    return capitals.replace("“", '"').replace("”", '"')


@cache
def split_alternatives(template: str) -> tuple[tuple[str, ...], ...]:
    """The template cut into parts, each the tuple of its alternatives."""
    cut = ALTERNATIVES.split(template)
    return tuple(tuple(part.split("|")) if i % 2 else (part,) for i, part in enumerate(cut))


# What a field of a template may be


@dataclass(frozen=True)
class Phrase:
    """Text that a plot draws. It may be a template itself, which is filled each time it is said."""

    narrator: Narrator
    text: str

    def __format__(self, spec: str) -> str:
        return self.narrator.fill(self.text) if "{" in self.text or "[" in self.text else self.text

    @property
    def a(self) -> str:
        return article(self.text)

    @property
    def plural(self) -> str:
        return plural(self.text)


class Number(int):
    """A number, in words: `{n}` is "three", and `{n:egg}` is "three eggs"."""

    def __format__(self, spec: str) -> str:
        return count_noun(self, spec) if spec else NUMBERS[self]

    @property
    def counting(self) -> str:
        """ "one, two, three"."""
        return ", ".join(NUMBERS[1 : self + 1])

    @property
    def were(self) -> str:
        return "was" if self == 1 else "were"


class Entity:
    """Somebody or something that a story is about, and how a sentence may refer to it."""

    def __init__(self, narrator: Narrator, name: str, pronoun: str, kind: str = "") -> None:
        self.narrator = narrator
        self.name = name
        self.pronoun = pronoun
        self.kind = kind
        self.mentioned = -9  # number of the sentence that last referred to it

    @property
    def full(self) -> str:
        return self.name

    def __format__(self, spec: str) -> str:
        name = self.full
        self.narrator.mention(self)
        return name

    def refer(self, pronoun: str, suffix: str = "") -> str:
        clear = self.narrator.is_clear(self)
        text = pronoun if clear else self.full + suffix
        self.narrator.mention(self)
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
        self.narrator.mention(self)
        return article(self.kind)

    @property
    def call(self) -> str:
        """The name as one calls it out, which refers to nobody in the story."""
        return self.name


class Kin(Entity):
    """A parent or grandparent: "Mom" in some stories, "her mom" in others."""

    def __init__(self, narrator: Narrator, kind: str, pronoun: str, child: Entity, by_title: bool) -> None:
        super().__init__(narrator, kind.capitalize(), pronoun, kind)
        self.child = child
        self.by_title = by_title

    @property
    def full(self) -> str:
        return self.name if self.by_title else f"{self.child.his} {self.kind}"


class Thing(Entity):
    """An object with an adjective."""

    def __init__(self, narrator: Narrator, noun: str, adjective: str, many: bool) -> None:
        super().__init__(narrator, noun, THEY if many else IT)
        self.adjective = adjective
        self.many = many

    @property
    def full(self) -> str:
        return f"the {self.name}"

    def __format__(self, spec: str) -> str:
        """The bare noun, for "my {toy}"; no mention, so that "it" stays what it was."""
        return self.name

    @property
    def described(self) -> str:
        """ "red ball"."""
        self.narrator.mention(self)
        return f"{self.adjective} {self.name}"

    @property
    def a(self) -> str:
        """ "a red ball", "a pair of red mittens"."""
        described = self.described
        return f"a pair of {described}" if self.many else article(described)

    @property
    def the(self) -> str:
        return f"the {self.described}"

    @property
    def was(self) -> str:
        return "were" if self.many else "was"

    @property
    def are(self) -> str:
        return "are" if self.many else "is"

    them = Entity.him


class Group(Entity):
    """Two characters as "they": "Tom and Lily" at first, then "they", or by a common word ("the girls")."""

    def __init__(self, narrator: Narrator, first: Entity, second: Entity, name: str) -> None:
        super().__init__(narrator, name, THEY)
        self.members = (first, second)

    def __format__(self, spec: str) -> str:
        names = f"{self.members[0]} and {self.members[1]}"
        self.narrator.mention_all(self)
        return names

    def refer(self, pronoun: str, suffix: str = "") -> str:
        if not self.narrator.is_clear(self) and (suffix or self.mentioned < 0 or self.narrator.chance(0.4)):
            return f"{self}{suffix}"
        return super().refer(pronoun)

    they, them, their = Entity.he, Entity.him, Entity.his


class Narrator:
    """A seeded chooser, the fields that templates fill in, the sentences so far, and who was mentioned last.

    `random` draws uniformly from [0, 1).
    """

    def __init__(self, random: Callable[[], float]) -> None:
        self.random = random
        self.sentences: list[str] = []
        self.cast: list[Entity] = []
        self.fields: dict[str, Any] = {}
        self.recent: dict[str, Entity | None] = {}  # pronoun -> whom it would mean now
        self.draw("one_day", "one_day")
        self.draw("school_day", "school_day")

    # chance

    def pick(self, options: Sequence[T]) -> T:
        return options[int(self.random() * len(options))]

    def sample(self, options: Sequence[T], size: int) -> list[T]:
        """`size` different options, in the order in which they are drawn."""
        pool = list(options)
        return [pool.pop(int(self.random() * len(pool))) for _ in range(size)]

    def number(self, low: int, high: int) -> int:
        """Uniform from `low` to `high` itself."""
        return low + int(self.random() * (high - low + 1))

    def chance(self, probability: float) -> bool:
        return self.random() < probability

    # plots

    def play(self, plot: Mapping[str, Any], **fields: Any) -> None:
        """Draw the fields of a plot or a scene in their order, `fields` in place of its own, and tell its steps."""
        for names, source in plot.items():
            if names != "tell":
                self.draw(names, fields.get(names, source))
        for step in plot["tell"]:
            self.play_step(step)

    def play_step(self, step: Sequence[str] | Mapping[str, Any]) -> None:
        if not isinstance(step, Mapping):
            self.say(*step)
        elif "when" in step:
            for each in step.get("tell" if self.holds(step["when"]) else "otherwise", ()):
                self.play_step(each)
        elif "chance" not in step or self.chance(step["chance"]):
            for names, source in step.get("let", {}).items():
                self.draw(names, source)
            if "say" in step:
                self.say(*step["say"])
            if "scene" in step:
                self.play(read_corpus("stories/scenes")[step["scene"]], **step)

    def holds(self, condition: str) -> bool:
        """Tells whether a field ("pet"), or a property of one ("wear.many"), is there and true."""
        name, _, attribute = condition.partition(".")
        value = self.fields.get(name)
        return bool(getattr(value, attribute) if attribute else value)

    def draw(self, names: str, source: Any) -> None:
        """Set the fields `names` ("place, inside") from what a plot says of them; see the README of the corpus."""
        keys = names.split(", ")
        if isinstance(source, str | list):
            self.set_row(keys, as_row(self.pick(self.table(source))))
        elif "is" in source:
            CAST[source["is"]](self, names, **{key: value for key, value in source.items() if key != "is"})
        elif "sample" in source:
            table = self.table(source["sample"])
            size = len(keys) // len(as_row(table[0])) + source.get("spare", 0)
            unwanted = self.fill(source["without"]) if "without" in source else None
            rows = [row for row in map(as_row, self.sample(table, size)) if row[0] != unwanted]
            self.set_row(keys, [entry for row in rows for entry in row][: len(keys)])
        elif "number" in source:
            low, high = source["number"]
            self.fields[names] = Number(self.number(self.sum(low), self.sum(high)))
        elif "sum" in source:
            self.fields[names] = Number(self.sum(source["sum"]))
        elif "chance" in source:
            self.fields[names] = self.chance(source["chance"])
        else:
            self.fields[names] = Phrase(self, source["text"])

    def set_row(self, keys: Sequence[str], row: Sequence[Any]) -> None:
        for key, entry in zip(keys, row, strict=True):
            self.fields[key] = Phrase(self, entry) if isinstance(entry, str) else entry

    def table(self, source: str | Sequence[Any]) -> Sequence[Any]:
        """The word table of that name ("{pet.kind}_joy"), or a list in which "*colors" is all of that table."""
        if isinstance(source, str):
            return words()[source.format_map(self.fields)]
        if not any(isinstance(entry, str) and entry.startswith("*") for entry in source):
            return source
        return [word for entry in source for word in (words()[entry[1:]] if entry.startswith("*") else (entry,))]

    def sum(self, terms: int | str) -> int:
        """Sum such as "coins - 1" of whole numbers and fields."""
        found, sign = 0, 1
        for term in str(terms).split():
            if term in ("+", "-"):
                sign = 1 if term == "+" else -1
            else:
                found += sign * int(term if term.isdigit() else self.fields[term])
        return found

    # the cast

    def let(self, **fields: object) -> None:
        self.fields.update(fields)

    def enter(self, role: str, entity: Entity) -> None:
        self.fields[role] = entity
        self.cast.append(entity)

    def is_new(self, name: str) -> bool:
        return all(entity.name != name for entity in self.cast)

    def child(self, role: str) -> None:
        kind, pronoun = ("girl", SHE) if self.chance(0.5) else ("boy", HE)
        name = self.pick([name for name in words()[f"{kind}s"] if self.is_new(name)])
        self.enter(role, Entity(self, name, pronoun, kind))

    def kin(self, role: str, of: str, by_title: bool = False, among: str = "kin") -> None:
        """`by_title` where two children are about, and "her mom" would leave open whose."""
        kind, pronoun = self.pick(words()[among])
        self.enter(role, Kin(self, kind, pronoun, self.fields[of], by_title or self.chance(0.5)))

    def neighbor(self, role: str, among: str = "neighbors") -> None:
        kind, pronoun = self.pick(words()[among])
        self.enter(role, Entity(self, f"the {kind}", pronoun, kind))

    def animal(self, role: str, kind: str | Sequence[str], names: str = "animal_names") -> None:
        """An animal with a name, of `kind` or of one of these that is not in the story yet."""
        if isinstance(kind, str):
            kind = self.fill(kind)
        else:
            kind = self.pick([one for one in kind if all(entity.kind != one for entity in self.cast)])
        name, pronoun = self.pick([one for one in words()[names] if self.is_new(one[0])])
        self.enter(role, Entity(self, name, pronoun, kind))

    def creature(self, role: str, kind: str) -> None:
        """An animal without a name: "the duck", it."""
        kind = self.fill(kind)
        self.enter(role, Entity(self, f"the {kind}", IT, kind))

    def thing(self, role: str, nouns: str | Sequence[str], adjectives: str | Sequence[str] = ()) -> None:
        noun = self.pick(self.table(nouns))
        adjective = self.pick(self.table(adjectives or ("colors" if self.chance(0.65) else "sizes")))
        self.enter(role, Thing(self, noun, adjective, noun in words()["plural_things"]))

    def group(self, role: str, of: Sequence[str], called: str = "") -> None:
        first, second = (self.fields[name] for name in of)
        kinds = (first.kind, second.kind)
        children = "the children" if set(kinds) == {"boy", "girl"} else "the two of them"
        self.fields[role] = Group(self, first, second, called or TOGETHER.get(kinds, children))

    # who is meant

    def is_clear(self, entity: Entity) -> bool:
        """Tells whether to use the pronoun: it would be understood, and the name is not due again."""
        if self.recent.get(entity.pronoun) is not entity:
            return False
        age = len(self.sentences) - entity.mentioned
        return age == 0 or (age == 1 and not self.chance(REPEATED_NAME))

    def mention(self, entity: Entity) -> None:
        self.recent[entity.pronoun] = entity
        entity.mentioned = len(self.sentences)

    def mention_all(self, group: Group) -> None:
        first, second = group.members
        self.mention(group)
        self.mention(first)
        self.mention(second)
        if first.pronoun == second.pronoun:
            self.recent[first.pronoun] = None  # two girls named together: "she" would be either

    # the text

    def fill(self, template: str) -> str:
        parts = split_alternatives(template)
        return "".join([part[0] if len(part) == 1 else self.pick(part) for part in parts]).format_map(self.fields)

    def say(self, *options: str) -> None:
        text = self.fill(self.pick(options))
        self.sentences.append(text[0].upper() + text[1:])

    def text(self) -> str:
        return typeset(" ".join(self.sentences))


def as_row(entry: Any) -> list[Any]:
    return entry if isinstance(entry, list) else [entry]


CAST: Mapping[str, Callable[..., None]] = {
    "child": Narrator.child,
    "kin": Narrator.kin,
    "neighbor": Narrator.neighbor,
    "animal": Narrator.animal,
    "creature": Narrator.creature,
    "thing": Narrator.thing,
    "group": Narrator.group,
}
