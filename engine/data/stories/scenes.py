"""What many plots share: how a story opens, a pet that comes along, and how a good day ends."""

from collections.abc import Mapping

from . import words
from .cast import Entity
from .telling import Telling

OPENINGS = (
    "Once upon a time, there was a [little|small|young] {kind} named {a}.",
    "There was once a {trait} {kind} [named|called] {a}.",
    "Once there was a {kind} named {a} who loved to {hobby}.",
    "{a} was a {trait} {kind} who lived in {home}.",
    "In {home}, there lived a {trait} {kind} named {a}.",
    "A {trait} {kind} named {a} lived in {home}.",
    "{a} was a {kind} who loved to {hobby}.",
    "{a} was a {trait} [little |]{kind}, and {a.he} loved to {hobby}.",
    "This is the story of a {trait} {kind} named {a}.",
    "Long ago, in {home}, there was a {kind} named {a}.",
)
HOBBY_LATER = (
    "{a.he} liked to {hobby} and {other_hobby}.",
    "Everyone knew that {a.he} loved to {hobby}.",
    "Most of all, {a.he} loved to {hobby}.",
)


def meet(t: Telling, a: Entity) -> None:
    """Introduce the child that the story is about; one story in four starts without."""
    hobby, other = t.sample(words.HOBBIES, 2)
    t.let(kind=a.kind, trait=t.pick(words.TRAITS), home=t.pick(words.HOMES), hobby=hobby, other_hobby=other)
    if t.chance(0.25):
        return
    opening = t.pick(OPENINGS)
    t.say(opening)
    if "{hobby}" not in opening:
        t.maybe(0.3, *HOBBY_LATER)


def two_animals(t: Telling, first: tuple[str, ...], second: tuple[str, ...]) -> tuple[Entity, Entity]:
    """Two animals of different kinds, by name, as `a` and `b`, and together as `both`."""
    a = t.animal("a", t.pick(first))
    b = t.animal("b", t.pick([kind for kind in second if kind != a.kind]))
    t.group("both", a, b, "the two friends")
    t.let(a_kind=a.kind, b_kind=b.kind)
    return a, b


def begin_fable(
    t: Telling, where: str, like: tuple[str, ...] = ("little", "young", "small", "clever", "merry")
) -> None:
    t.let(where=where, like=t.pick(like))
    t.say(
        "Once upon a time, a {like} {a_kind} named {a} lived {where}.",
        "{where}, there lived a {like} {a_kind} named {a}.",
        "There was once a {like} {a_kind} called {a} who lived {where}.",
        "Long ago, a {like} {a_kind} named {a} lived {where}.",
    )


def bring_pet(t: Telling, chance: float, kinds: tuple[str, ...] = ("dog",)) -> None:
    """Perhaps give the child `a` a pet, for `pet_is_glad` and `pet_cares` to come back to."""
    if not t.chance(chance):
        return
    pet = t.animal("pet", t.pick(kinds), words.PET_NAMES)
    t.let(pet_kind=pet.kind)
    t.say(
        "{a.he} had a [little|big|brown|white|black] {pet_kind} named {pet}.",
        "{a.his} best friend was a {pet_kind} named {pet}.",
        "{a.he} had a {pet_kind}. {a.his} {pet_kind} was called {pet}.",
        "{a.his} {pet_kind}, {pet}, followed {a.him} everywhere.",
    )


def _pet_acts(t: Telling, acts: Mapping[str, tuple[str, ...]]) -> None:
    pet = t.fields.get("pet")
    if isinstance(pet, Entity):
        t.say("{pet} " + t.pick(acts[pet.kind]) + ".")


def pet_is_glad(t: Telling) -> None:
    _pet_acts(t, words.PET_JOY)


def pet_cares(t: Telling) -> None:
    _pet_acts(t, words.PET_CARE)


def good_day(t: Telling, chance: float = 0.5) -> None:
    """A last line that suits every story that ended well."""
    t.maybe(
        chance,
        "It was a [good|wonderful|lovely|very happy] day.",
        "It was the best day [of the week|of the year|ever].",
        "What a [good|wonderful|lovely] day it was!",
        "{a.he} smiled all the way to bed that night.",
        "That night, {a.he} fell asleep with a smile.",
        "{a.he} never forgot that day.",
    )
