"""Small stories that end well or badly for the child they are about. The label is known because what happens in them is
chosen by it.

How it ends is told by what happens and never by a feeling: "the kite was gone", "and there was the kite". Something
happens to another child's thing as well, and ends as often in the other way. So no word is enough: what counts is the
thing of the child that the story begins with.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from engine.data.bounds import at_least
from engine.data.drawing import Chance, Part, drawn
from engine.data.stories import words
from engine.data.stories.telling import Telling
from engine.data.task import EVERY, Labelled, LabelTask

BAD, GOOD = 0, 1
THINGS = "kite", "hat", "paper plane", "paper boat", "lantern", "flag", "sun hat", "paper crown", "picture"
BEGINNINGS = (
    "This is a story about {a}, who had a {toy}.", "{one_day}, {a} took {a.his} {toy} to the {place}.",
    "{a} loved {a.his} {toy} very much.", "{one_day}, {g} gave {a} a {toy}.", "{a} was at the {place} with a {toy}.",
)  # fmt: skip
OTHERS = (
    "{b} was there, too, with a {other}.", "{a.his} friend {b} had a {other}.",
    "There {a.he} met {b}, who had a {other}.",
)  # fmt: skip
# What happens to a thing {x} of the child {w}, and how it ends: (badly, well).
HAPPENS = (
    ("Then the {x} fell into the river.", "The {x} sank, and nobody could reach it.", "Somebody pulled the {x} out."),
    ("Then the {x} was lost.", "{w} never found the {x}.", "At last {w} found the {x}."),
    ("A big boy took the {x}.", "He never gave the {x} back.", "He gave the {x} back."),
    ("The {x} tore in two.", "Nobody could mend the {x}.", "{g} mended the {x}."),
    ("The wind carried the {x} away.", "The {x} flew over the hills and was gone.", "The {x} came down on the grass."),
    ("{w} forgot the {x} at the {place}.", "The next day the {x} was gone.", "The next day the {x} was still there."),
    ("A dog ran off with the {x}.", "The dog chewed the {x} to pieces.", "The dog brought the {x} back."),
)  # fmt: skip


@dataclass(frozen=True)
class Sentiment(LabelTask):
    """Half of the stories end well. In the share `others` of them another child's thing is told about, too; words alone
    do not say whose it is, and are right about 1 - others / 4 of the stories.
    """

    others: float = 0.25
    documents: int = 8_000
    held_out: int = 500

    tokenizers: ClassVar[tuple[str, ...]] = EVERY
    labels: ClassVar[tuple[str, ...]] = ("ends badly", "ends well")

    def __post_init__(self) -> None:
        if not 0 <= self.others <= 1:
            raise ValueError(f"data.sentiment.others must be a share in [0, 1], got {self.others}.")
        at_least("data.sentiment.documents", self.documents, 1)
        at_least("data.sentiment.held_out", self.held_out, 1)

    def texts(self, part: Part, seed: int) -> Iterator[Labelled]:
        count = self.documents if part == "train" else self.held_out
        return (labelled(self, part, seed, index) for index in range(count))


def labelled(options: Sentiment, part: Part, seed: int, index: int) -> Labelled:
    """Example `index` of a part; the same for the same seed. Those with an even `index` end well."""
    label = GOOD if index % 2 == 0 else BAD
    return Labelled(drawn(lambda chance: story(chance, label, options.others), str, part, seed, index), label)


def story(chance: Chance, label: int, others: float) -> str:
    t = Telling(chance)
    a, b = t.child("a"), t.child("b")
    t.kin("g", a, always_title=True)
    toy, other = t.sample(THINGS, 2)
    t.let(place=t.pick(words.PLAYGROUNDS)[0], toy=toy, other=other)
    t.say(*BEGINNINGS)
    what, unlike = t.sample(HAPPENS, 2)
    told = [(a, toy, what, label)]
    if t.chance(others):
        t.say(*OTHERS)
        told.insert(t.number(0, 1), (b, other, unlike, t.pick((BAD, GOOD))))
    for owner, thing, (happens, *_), _ in told:
        say_of(t, happens, owner.name, thing)
    if t.chance(0.5):
        told.reverse()
    for owner, thing, (_, *ends), how in told:
        say_of(t, ends[how], owner.name, thing)
    return t.text()


def say_of(t: Telling, sentence: str, owner: str, thing: str) -> None:
    t.let(w=owner, x=thing)
    t.say(sentence)
