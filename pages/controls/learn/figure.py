"""The figure of a transformer: whole, with the numbers of a run in its boxes, and small, lit where a lesson is."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

from torch import Tensor

from engine.course.figure import Part, Stop
from pages.controls.words import translate as _
from views.core.component import view

SHOWN = 8  # numbers of a vector
DIGITS = 2
SMALL: tuple[tuple[Part, bool, bool], ...] = (
    ("tokens", False, False), ("embedding", False, False), ("positions", True, False), ("stream", False, True),
    ("norm", True, True), ("attention", True, True), ("add", False, True), ("norm", True, True), ("MLP", True, True),
    ("add", False, True), ("final norm", False, False), ("next token", False, False),
)  # fmt: skip  # a decoder's parts: whether beside the stream, whether in the block
ALL: tuple[Part, ...] = tuple(dict.fromkeys(part for part, _branch, _inside in SMALL))

mounted = view("learn/figure")


class Lane(NamedTuple):
    """One stack: its name, the block that is drawn, of how many, its stops, what the last one says, if a word, and
    whether that is of a hidden token in place of the next one."""

    name: str
    layer: int
    layers: int
    stops: Sequence[Stop]
    token: str
    said: str = ""
    is_hidden: bool = False


def titles() -> dict[Part, str]:
    return {
        "tokens": _("token"), "embedding": _("embedding"), "positions": _("position"), "stream": _("x enters"),
        "norm": _("norm"), "attention": _("attention"), "cross-attention": _("cross-att."), "MLP": _("MLP"),
        "add": _("add"), "final norm": _("last norm"), "next token": _("next token"),
    }  # fmt: skip


def notes() -> dict[Part, str]:
    return {
        "tokens": _("one of the pieces into which the text was cut."),
        "embedding": _("the token’s row in a table: its vector before anything is known of the others."),
        "positions": _("a vector that says where the token stands; it is added."),
        "stream": _("what enters this block: the residual stream, which each block reads and adds to."),
        "norm": _("the vector brought back to one scale, which the next part reads."),
        "attention": _("looks at the other tokens and brings what they carry: the one place where tokens meet."),
        "cross-attention": _("looks at what the encoder made of the other text."),
        "MLP": _("works on this token alone."),
        "add": _("what was there, and what the branch brings: nothing is replaced."),
        "final norm": _("the last vector, brought back to one scale."),
        "next token": _("one number for each token of the vocabulary; the likeliest is"),
    }


def draw_figure(
    lanes: Sequence[Lane], *, key: str, label: str, step: tuple[int, int], covered: int | None = None
) -> None:
    """The lanes with their numbers. `step` (lane, stop) is where the token stands at first; of that stop the number of
    the column `covered` is asked for."""
    drawn = [lane_data(lane, step[1] if number == step[0] else None, covered) for number, lane in enumerate(lanes)]
    place = [step[0], step[1] + 1]  # behind the token's own box
    mounted({"lanes": drawn, "lit": None, "step": place, "label": label, "digits": DIGITS}, key=key)


def lane_data(lane: Lane, asked: int | None, covered: int | None) -> dict[str, Any]:
    stops = [stop_data(lane, at, covered if at == asked else None) for at in range(len(lane.stops))]
    first = {"part": "tokens", "branch": False, "inside": False, "values": [], "rows": [], "word": lane.token}
    block = _("block {number} of {count}").format(number=lane.layer + 1, count=lane.layers)
    return {
        "name": lane.name,
        "block": block,
        "stops": [first | {"title": titles()["tokens"], "note": notes()["tokens"]}, *stops],
    }


def stop_data(lane: Lane, at: int, covered: int | None) -> dict[str, Any]:
    stop = lane.stops[at]
    values = shown(stop.vector, covered)
    named = {_("the stream"): stop.made_of[0], _("the branch"): stop.made_of[1]} if stop.made_of else {}
    rows = [{"name": name, "values": shown(vector)} for name, vector in named.items()]
    sentence, said = notes()[stop.part], lane.said if stop.part == "next token" else ""
    title = _("hidden token") if said and lane.is_hidden else titles()[stop.part]
    return {
        "part": stop.part,
        "title": title,
        "note": sentence,
        "branch": stop.branch,
        "inside": stop.inside,
        "values": [] if said else values,
        "rows": [] if said else [*rows, {"name": _("together") if rows else _("the vector"), "values": values}],
        "word": said,
    }


def shown(vector: Tensor, covered: int | None = None) -> list[float | None]:
    numbers: list[float | None] = [*vector[:SHOWN].tolist()]
    if covered is not None:
        numbers[covered] = None
    return numbers


def draw_small(lit: Collection[str], sentence: str, *, key: str) -> None:
    """The figure of a decoder with the parts that are `lit`, which the `sentence` below it names as {parts}."""
    named = titles()
    stops = [
        {"part": part, "title": named[part], "note": "", "branch": branch, "inside": inside, "values": [], "rows": [],
         "word": ""}
        for part, branch, inside in SMALL
    ]  # fmt: skip
    parts = ", ".join(named[part] for part in ALL if part in lit)
    label = sentence.format(parts=parts) if parts else _("Nothing of this is found yet.")
    lane = {"name": "", "block": _("block, again and again"), "stops": stops}
    mounted({"lanes": [lane], "lit": list(lit), "step": [0, 0], "label": label, "digits": 0}, key=key)
