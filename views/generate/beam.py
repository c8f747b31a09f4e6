"""What the tab Beam asks: the tree of a search, what it found, and how the greedy text stands beside that."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from engine.generation.beam import BeamStep, Hypothesis
from engine.generation.prompt import begin, shown, text_of
from views.core.payload import pack
from views.generate.beam_report import greedy_told, over_told
from views.generate.beam_search import EXAMPLES, STATES, Search, Wanted
from views.generate.beam_session import searched, searching
from views.generate.session import Query, Writing
from views.generate.steps import told
from views.generate.streaming import asked_here, came_of, grown, steps_of


def answer(writing: Writing, query: Query) -> bytes:
    """The whole search, or its first `steps` where the query names them. Raises ValueError with a sentence."""
    asked_here(writing, query)
    return payload(searched(writing, Wanted.of(query), steps_of(query)))


def parts(writing: Writing, query: Query) -> Iterator[bytes]:
    """The steps behind those that a browser has, as they are found. Raises ValueError with a sentence."""
    asked_here(writing, query)
    wanted = Wanted.of(query)
    came = came_of(query, wanted.tokens)
    with searching(writing, wanted) as one:
        for begin, end in grown(one, came, query):
            yield payload(one.found(wanted, end), begin)


def payload(search: Search, first: int = 0) -> bytes:
    """Without what is there of the steps before `first`."""
    return pack(search_header(search, first), {**node_arrays(search, first), **greedy_arrays(search, first)})


def search_header(search: Search, first: int = 0) -> dict[str, Any]:
    """`best` are the nodes of the n best, the best first; `found` for each step those finished so far. Before it is
    over, after `count` steps of at most `room`, nothing is `told`."""
    writing, nodes, greedy = search.writing, since(search, first), search.greedy.ids
    ids = {*(one.id for one in nodes.values()), *greedy[first:]}
    return {
        "from": first,
        "whole": search.is_over,
        "count": max(len(search.steps), len(greedy)),
        "room": search.room,
        "pieces": {str(id): writing.piece(id) for id in sorted(ids)},
        "beams": search.wanted.beams,
        "best": [search.at(one) for one in search.best],
        "texts": [written(search, one.ids) for one in search.best],
        "said": [said(search, one.ids) for one in nodes.values()],
        "found": [[search.at(one) for one in step.best] for step in search.steps[first:]],
        "ended": {str(at): told(one.stopped) for at, one in nodes.items() if one.stopped and is_in(search, one)},
        "greedy_text": written(search, greedy),
        "greedy_said": [said(search, greedy[: at + 1]) for at in range(first, len(greedy))],
        "greedy_ended": told(search.greedy.stopped),
        "greedy_score": search.wanted.beam.score(float(search.greedy.total[-1]), len(greedy)),
        "over": over_told(search) if search.is_over else "",
        "told": greedy_told(search) if search.is_over else [],
        "examples": examples(writing, search.wanted.stop_at),
    }


def since(search: Search, first: int) -> dict[int, Hypothesis]:
    """The nodes of the steps from `first` on, by their place among all."""
    return {at: one for at, one in enumerate(search.nodes) if len(one.ids) > first}


def is_in(search: Search, one: Hypothesis) -> bool:
    return search.state(one) == "finished"


def said(search: Search, ids: Sequence[int]) -> str:
    """What was written, without the prompt and special tokens."""
    return shown(search.writing.checkpoint, ids, special=False)


def written(search: Search, ids: Iterable[int]) -> str:
    return text_of(search.writing.checkpoint, (*search.writing.prompt.ids, *ids))


def node_arrays(search: Search, first: int = 0) -> dict[str, Tensor]:
    """node, each of them; `behind` is the rank that the margin of a pruned one is measured from, and 0 elsewhere."""
    nodes = list(since(search, first).values())
    steps = [search.steps[len(one.ids) - 1] for one in nodes]
    states = [search.state(one) for one in nodes]
    lost = [state == "pruned" for state in states]
    margins = [step.margin(one) if out else math.nan for one, step, out in zip(nodes, steps, lost, strict=True)]
    whole: Mapping[str, list[int]] = {
        "step": [step.index for step in steps],
        "rank": [one.rank for one in nodes],
        "parent": [search.parent(one) for one in nodes],
        "id": [one.id for one in nodes],
        "state": [STATES.index(state) for state in states],
        "behind": [behind(step, one) if out else 0 for one, step, out in zip(nodes, steps, lost, strict=True)],
    }
    real = {
        "log_probability": [one.log_probability for one in nodes],
        "score": [one.score for one in nodes],
        "margin": margins,
    }
    return {
        **{f"node.{name}": torch.tensor(column, dtype=torch.int32) for name, column in whole.items()},
        **{f"node.{name}": torch.tensor(column, dtype=torch.float32) for name, column in real.items()},
    }


def behind(step: BeamStep, one: Hypothesis) -> int:
    """The rank from which `BeamStep.margin` measures."""
    return min(step.beams, len(step.candidates)) if one.stopped else step.kept[-1].rank


def greedy_arrays(search: Search, first: int = 0) -> dict[str, Tensor]:
    """token, each of them: `own` log-probability, the `total` so far, the `node` of the tree that it is (or -1)."""
    greedy = search.greedy
    lengths = range(1, len(greedy.ids) + 1)
    scores = [search.wanted.beam.score(float(total), n) for total, n in zip(greedy.total, lengths, strict=True)]
    return {
        "greedy.id": torch.tensor(greedy.ids[first:], dtype=torch.int32),
        "greedy.own": greedy.own[first:],
        "greedy.total": greedy.total[first:],
        "greedy.score": torch.tensor(scores[first:], dtype=torch.float32),
        "greedy.node": torch.tensor(search.on_greedy[first:], dtype=torch.int32),
    }


def examples(writing: Writing, stop_at: str) -> list[dict[str, Any]]:
    """Those that are shipped, of the model that is looked at first; without the one that is looked at."""
    others = [one for one in EXAMPLES if not is_here(writing, stop_at, one)]
    return sorted(others, key=lambda one: one["model"] != writing.name)


def is_here(writing: Writing, stop_at: str, example: Mapping[str, Any]) -> bool:
    if (writing.name, stop_at) != (example["model"], example["stop_at"]):
        return False
    return begin(writing.checkpoint, example["text"]).ids == writing.prompt.ids
