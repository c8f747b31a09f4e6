"""Small stories that end well or badly for the child they are about. The label is known because what happens in them is
chosen by it.

How it ends is told by what happens and never by a feeling: "the kite was gone", "and there was the kite". Something
happens to another child's thing as well, and ends as often in the other way. So no word is enough: what counts is the
thing of the child that the story begins with.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar

from engine.data.bounds import at_least
from engine.data.corpora import read_corpus
from engine.data.drawing import Chance, Part, draw_indexed
from engine.data.options import DOCUMENTS, HELD_OUT
from engine.data.stories import Narrator, words
from engine.data.task import EVERY, Labelled, LabelTask
from engine.model.option import Option

BAD, GOOD = 0, 1


@dataclass(frozen=True)
class Sentiment(LabelTask):
    """Half of the stories end well. In the share `others` of them another child's thing is told about, too; words alone
    do not say whose it is, and are right about 1 - others / 4 of the stories.
    """

    others: float = field(
        default=0.25, metadata=Option(help="The share of stories that tell of another child’s thing, too.")
    )
    documents: int = field(default=8_000, metadata=DOCUMENTS)
    held_out: int = field(default=500, metadata=HELD_OUT)

    kind: ClassVar[str] = "sentiment"
    place: ClassVar[int] = 16
    tokenizers: ClassVar[tuple[str, ...]] = EVERY
    labels: ClassVar[tuple[str, ...]] = ("ends badly", "ends well")

    def __post_init__(self) -> None:
        if not 0 <= self.others <= 1:
            raise ValueError(f"data.sentiment.others must be a share in [0, 1], got {self.others}.")
        at_least("data.sentiment.documents", self.documents, 1)
        at_least("data.sentiment.held_out", self.held_out, 1)

    def texts(self, part: Part, seed: int) -> Iterator[Labelled]:
        count = self.documents if part == "train" else self.held_out
        return (draw_example(self, part, seed, index) for index in range(count))


def draw_example(options: Sentiment, part: Part, seed: int, index: int) -> Labelled:
    """Example `index` of a part; the same for the same seed. Those with an even `index` end well."""
    label = GOOD if index % 2 == 0 else BAD
    return Labelled(draw_indexed(lambda chance: story(chance, label, options.others), str, part, seed, index), label)


def templates() -> dict[str, Any]:
    """Things, beginnings and what happens, by table."""
    return read_corpus("sentiment/sentiment")


def story(chance: Chance, label: int, others: float) -> str:
    narrator = Narrator(chance)
    for role in ("a", "b"):
        narrator.child(role)
    narrator.kin("g", "a", by_title=True)
    a, b = narrator.fields["a"], narrator.fields["b"]
    toy, other = narrator.sample(templates()["things"], 2)
    narrator.let(place=narrator.pick(words()["playgrounds"])[0], toy=toy, other=other)
    narrator.say(*templates()["beginnings"])
    events, other_events = narrator.sample(templates()["happens"], 2)
    plots = [(a, toy, events, label)]
    if narrator.chance(others):
        narrator.say(*templates()["others"])
        plots.insert(narrator.number(0, 1), (b, other, other_events, narrator.pick((BAD, GOOD))))
    for owner, thing, (happens, *_), _ in plots:
        say_of(narrator, happens, owner.name, thing)
    if narrator.chance(0.5):
        plots.reverse()
    for owner, thing, (_, *ends), outcome in plots:
        say_of(narrator, ends[outcome], owner.name, thing)
    return narrator.text()


def say_of(narrator: Narrator, sentence: str, owner: str, thing: str) -> None:
    narrator.let(w=owner, x=thing)
    narrator.say(sentence)


KIND = Sentiment
