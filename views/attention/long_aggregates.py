"""What is said of a long text by many heads at once, one row or one column of it at a time: means, rollout and flow.

What is kept of each layer is the mean of its heads, so that no more than one layer's patterns are in memory at a time.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from engine.analysis.averages import over_texts
from engine.analysis.flow import crossed_flow_from, flow_from
from engine.analysis.rollout import rolled, rolled_both
from engine.inputs.samples import sample_runs
from engine.runtime import library
from views.attention.questions import FEWEST, LONGEST, TEXTS
from views.core.payload import pack
from views.core.questions import UNKNOWN, Query, check_axes
from views.core.run_context import RunContext
from views.walkthrough.walkthrough import Lane

if TYPE_CHECKING:
    from views.attention.long import Focus, Long


@dataclass(frozen=True)
class Layers:
    """One attention of a long text, layer by layer: the mean of the heads, or one `head` of each."""

    long: Long
    side: str
    focus: Focus
    head: int | None = None

    @property
    def lane(self) -> Lane:
        return next(lane for lane in self.long.run.lanes if lane.side == self.side)

    def layer(self, layer: int) -> Tensor:
        """pos key."""
        head = replace(self.long.shown, side=self.side, focus=self.focus, layer=layer, head=self.head or 0)
        if self.head is not None:
            return self.long.pattern(head)
        return library.glances.mean(self.long.made, head.hook, self.long.cells)

    def between(self, first: int, last: int) -> Iterator[Tensor]:
        """Of the layers `first` to `last`, both included."""
        return map(self.layer, range(first, last + 1))

    def all(self) -> Iterator[Tensor]:
        return self.between(0, self.lane.config.layers - 1)

    def beside(self, focus: Focus) -> Layers:
        """The other attention of the same stack."""
        return Layers(self.long, self.side, focus, self.head)

    def kept(self, what: tuple[object, ...], make: Callable[[], Tensor]) -> Tensor:
        return library.glances.kept(self.long.made, (self.side, self.focus, self.head, *what), lambda: (make(),))[0]


def answered_whole(long: Long, query: Query) -> bytes:
    """Raises ValueError, with a sentence, for what this run does not have and what takes too long."""
    run = long.run
    match query:
        case {"ask": "text_average"}:  # of other texts, and so as long as these are
            check_axes(run, query, ("side", "layer", "head"))
            return over_sentences(long, query)
        case {"ask": "average", "over": "heads" | "layers" as over}:
            check_axes(run, query, ("side", "layer", "head"))
            layers = layers_of(long, query, query["head"] if query.get("alone") and over == "layers" else None)
            return line(run, query, layers.layer(query["layer"]) if over == "heads" else mean(layers))
        case {"ask": "rollout"}:
            check_axes(run, query, ("side", "first", "last", *(() if query.get("head") is None else ("head",))))
            first, last = query["first"], query["last"]
            if first > last:
                raise ValueError(f"a rollout goes upward, got blocks {first + 1} to {last + 1}; exchange the two.")
            return line(run, query, rolled_out(layers_of(long, query, query.get("head")), first, last))
        case {"ask": "flow", "pos": int(pos)}:
            check_axes(run, query, ("side", "pos"))
            return pack({}, {"flow": flowing(layers_of(long, query), pos)})
        case {"ask": "flows"}:  # of all rows, which a long text has too many of
            check_axes(run, query, ("side",))
            return pack({}, {})
    raise ValueError(UNKNOWN)


def layers_of(long: Long, query: Query, head: int | None = None) -> Layers:
    return Layers(long, query["side"], "cross_attn" if query.get("focus") == "cross_attn" else "attn", head)


def over_sentences(long: Long, query: Query) -> bytes:
    """As a short text has it; all heads are kept, since they come together."""
    run, side, focus = long.run, query["side"], "cross_attn" if query.get("focus") == "cross_attn" else "attn"

    def average() -> tuple[Tensor, Tensor]:
        traces = sample_runs(run.checkpoint, TEXTS, LONGEST, run.trace.edits, [f"*{focus}.pattern"])
        found = over_texts(traces, FEWEST, side, focus == "cross_attn")
        return found.pattern, found.texts

    pattern, texts = library.glances.kept(long.made, ("sentences", side, focus), average)
    return pack({}, {"pattern": pattern[query["layer"], query["head"]], "count": texts.int()})


def line(run: RunContext, query: Query, pattern: Tensor) -> bytes:
    """The row `pos` or else the column `key` of what is pos key."""
    if "pos" in query:
        check_axes(run, query, ("side", "pos"))
        return pack({}, {"line": pattern[query["pos"]]})
    check_axes(run, query, ("side", "key"))
    return pack({}, {"line": pattern[:, query["key"]].contiguous()})


def mean(layers: Layers) -> Tensor:
    """Over all layers, pos key."""

    def make() -> Tensor:
        total, count = torch.zeros(()), layers.lane.config.layers
        for layer in layers.all():
            total = total + layer / count
        return total

    return layers.kept(("layers",), make)


def rolled_out(layers: Layers, first: int, last: int) -> Tensor:
    """Through the layers `first` to `last`, both included, pos key; of cross-attention to the source's keys."""

    def make() -> Tensor:
        if layers.focus == "attn":
            products = rolled(layers.between(first, last))
        else:
            encoded = last_of(rolled(encoder(layers).all()))
            both = zip(layers.beside("attn").between(first, last), layers.between(first, last), strict=True)
            products = (source for source, _ in rolled_both(encoded, both))
        return last_of(products).float()

    return layers.kept(("rollout", first, last), make)


def last_of(products: Iterator[Tensor]) -> Tensor:
    return deque(products, maxlen=1)[0]


def encoder(layers: Layers) -> Layers:
    """All heads of the stack that cross-attention reads."""
    return Layers(layers.long, "encoder", "attn")


def flowing(layers: Layers, pos: int) -> Tensor:
    """From all layers down to each key, of one position."""

    def make() -> Tensor:
        if layers.focus == "attn":
            return flow_from(list(layers.all()), pos)
        own, fetched = layers.beside("attn").all(), layers.all()
        return crossed_flow_from(list(encoder(layers).all()), list(own), list(fetched), pos)

    return layers.kept(("flow", pos), make)
