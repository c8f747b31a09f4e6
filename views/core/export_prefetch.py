"""What a view will ask when somebody turns to another head: answered ahead for a file that has no server to ask."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any

from views.walkthrough.walkthrough import Lane

FEW = 600  # columns of all heads together, each of which takes an answer of its own


def ahead(view: str, trace: str, lanes: Sequence[Lane]) -> Iterator[Mapping[str, Any]]:
    """The cheap questions of a view about the run `trace`, the more useful first; none of a view that asks little."""
    if view != "attention":
        return
    yield {"trace": trace, "ask": "scores"}
    places = list(attentions(lanes))
    for lane, focus, _ in places:
        for layer in range(lane.config.layers):
            yield {"trace": trace, "ask": "weighted", "side": lane.side, "focus": focus, "layer": layer}
    for lane, focus, _ in places:
        for layer, head in heads(lane):
            where = {"trace": trace, "side": lane.side, "focus": focus, "layer": layer, "head": head}
            yield where | {"ask": "points", "how": "pca"}
            if lane.ids:
                yield from (where | {"ask": ask} for ask in ("ov", "qk"))
    if sum(len(list(heads(lane))) * keys for lane, _, keys in places) <= FEW:
        for lane, focus, keys in places:
            for (layer, head), key in product(heads(lane), range(keys)):
                where = {"trace": trace, "side": lane.side, "focus": focus, "layer": layer, "head": head}
                yield where | {"ask": "sink", "key": key}


def attentions(lanes: Sequence[Lane]) -> Iterator[tuple[Lane, str, int]]:
    """Every attention of a model: where it stands, its name there, and how many keys it has."""
    for lane in lanes:
        yield lane, "attn", len(lane.pieces)
        if lane.config.encoder is not None:
            yield lane, "cross_attn", len(lanes[0].pieces)


def heads(lane: Lane) -> Iterator[tuple[int, int]]:
    return product(range(lane.config.layers), range(lane.config.attention.heads))
