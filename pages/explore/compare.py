"""Compare: two runs or more side by side, of any models, texts, training steps or edits."""

import streamlit as st

from engine.training.snapshots import snapshots
from pages.controls.experiment import heard
from pages.controls.links import Rule, honour_link, one_of, whole
from pages.controls.side_start import LETTERS, NUMBERS, RUN, key
from pages.controls.sides import Side, sides, silence
from pages.controls.subject import EXAMPLES, Subject, notice
from pages.controls.take_compare import Comparing
from views.compare import answered, compare
from views.compare_pair import Shown, compared
from views.component import courier, view
from views.walkthrough import lanes

PICTURE = "compare"
picture = view("compare", events=("silence",))


def shown(side: Side) -> Shown:
    cut = notice(Subject(side.name, side.checkpoint, side.reading, side.limit))
    said = " ".join(text for text in (side.problem, cut) if text)
    stacks = lanes(side.checkpoint, side.reading)
    whose = (side.letter, side.title, side.name, side.checkpoint, side.reading)
    return Shown(*whose, side.trace, stacks, said, side.before)


def on_silence() -> None:
    """A head of one side is silenced, or heard again; a browser sends it, so that anything may come."""
    match heard(PICTURE, "silence"):
        case {"letter": str(letter), "layer": int(layer), "head": int(head), "side": str(side), "focus": str(focus)}:
            silence(letter, layer, head, side, focus == "cross_attn")


def kept(letter: str) -> Rule:
    """What a link may say of a side's step: one that its run kept."""
    steps = snapshots().get(st.query_params.get(key(letter, "model"), "").removeprefix(RUN))
    return whole() if steps is None else one_of(steps)


rules = {key(letter, field): whole() for letter in LETTERS for field in NUMBERS}
honour_link(rules | {key(letter, "step"): kept(letter) for letter in LETTERS})
found = sides()
first, *others = map(shown, found)
pairs = [compared(first, other) for other in others]
taking = Comparing(found, pairs)
look = EXAMPLES.get(first.title, {}).get("look", {})
drawn = compare(pairs, {"look": {"layer": 0, "head": 0, **look}, "take": taking.header})
picture(drawn, key=PICTURE, on={"silence": on_silence})
courier("courier", taking.answering(drawn, lambda query: answered(pairs, query)))
