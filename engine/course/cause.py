"""Cause and correlation: what heads add to an answer, what goes with it over many texts, what it loses without them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

import torch
from torch import Tensor

from engine.analysis.attribution import attribute
from engine.analysis.interventions.circuit import list_nodes, measure_circuits
from engine.analysis.interventions.sweep import Sweep
from engine.analysis.writers import Writer
from engine.edits import SilenceHeads
from engine.runtime import library
from engine.runtime.run import run
from engine.runtime.trace import Trace

REPEATS, TEXTS = "induction", 40
SYMBOLS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
SHORTEST, LONGEST = 5, 12  # symbols before they come again


@dataclass(frozen=True)
class HeadEffects:
    """For the likeliest next token, `answer`, of probability `p`, each layer head: `added` to its logit by the head
    itself, `lost` of the logit when the head is silenced, and the token that is likeliest then."""

    answer: int
    p: float
    logit: float
    added: Tensor
    lost: Tensor
    likeliest: Tensor

    @property
    def needed(self) -> tuple[int, int]:
        """The head whose silence costs the logit most."""
        return as_place(self.lost)

    @property
    def loudest(self) -> tuple[int, int]:
        """The head that adds most."""
        return as_place(self.added)


@dataclass(frozen=True)
class Takeover:
    """What each part adds to the answer's logit, `before` a head is silenced and `after`; and the scales, by which the
    last norm divides."""

    writers: tuple[Writer, ...]
    before: Tensor
    after: Tensor
    scales: tuple[float, float]


@dataclass(frozen=True)
class OverTexts:
    """`added` (text head), and `changed`, whether the answer is another one without the head; `logits` of the answers,
    and `correlation` (head) of what a head adds with them."""

    added: Tensor
    changed: Tensor
    logits: Tensor
    correlation: Tensor


def as_place(values: Tensor) -> tuple[int, int]:
    layer, head = divmod(int(values.argmax()), values.shape[1])
    return layer, head


def silence(name: str, trace: Trace, layer: int, head: int) -> Trace:
    return run(library.checkpoint(name).model, trace.ids, edits=[SilenceHeads(layer=layer, heads=[head])], base=trace)


def measure_heads(name: str, ids: Sequence[int]) -> HeadEffects:
    """Attributes the likeliest token after a text to the heads, and silences each."""
    model = library.checkpoint(name).model
    trace = run(model, list(ids))
    logits = trace["logits"][0, -1]
    answer = int(logits.argmax())
    values = attribute(model, trace, len(ids) - 1, answer).values
    grid = [[(layer, head) for head in range(model.config.attention.heads)] for layer in range(model.config.layers)]
    added = torch.tensor([[values[Writer("head", *place)] for place in row] for row in grid])
    without = [[silence(name, trace, *place)["logits"][0, -1] for place in row] for row in grid]
    lost = torch.tensor([[float(logits[answer] - one[answer]) for one in row] for row in without])
    likeliest = torch.tensor([[int(one.argmax()) for one in row] for row in without])
    return HeadEffects(answer, float(logits.softmax(-1)[answer]), float(logits[answer]), added, lost, likeliest)


def patch_heads(name: str, ids: Sequence[int], other: Sequence[int]) -> Tensor:
    """What the answer's logit loses, layer head, when a head takes the values that it has in another text of as many
    tokens. Raises ValueError for the same text, or one of another length."""
    if len(ids) != len(other):
        raise ValueError(f"the other text must have as many tokens, {len(ids)}, got {len(other)}.")
    model = library.checkpoint(name).model
    trace, there = run(model, list(ids)), run(model, list(other))
    nodes = list_nodes(model.config)
    at = [place for place, node in enumerate(nodes) if node.part == "head"]
    kept = torch.ones(len(at), len(nodes), dtype=torch.bool)
    kept[range(len(at)), at] = False
    answer = int(trace["logits"][0, -1].argmax())
    sweep = Sweep(model, trace, there, "logit", len(ids) - 1, answer, direction="break")
    return (sweep.nothing - measure_circuits(sweep, kept)).view(model.config.layers, -1)


def compare_without(name: str, ids: Sequence[int], layer: int, head: int) -> Takeover:
    """Attributes the answer's logit to all parts, with a head and without it."""
    model = library.checkpoint(name).model
    trace = run(model, list(ids))
    without, row = silence(name, trace, layer, head), len(ids) - 1
    answer = int(trace["logits"][0, row].argmax())
    before, after = (attribute(model, one, row, answer).values for one in (trace, without))
    scales = [float(one["final_norm.scale"][0, row]) for one in (trace, without)]
    writers = tuple(dict.fromkeys([*before, *after]))
    here, then = (torch.tensor([one.get(writer, 0.0) for writer in writers]) for one in (before, after))
    return Takeover(writers, here, then, (scales[0], scales[1]))


def repeated_texts(seed: int) -> list[str]:
    """Random symbols, and the first of them again: what comes next is known from the text itself."""
    drawn, texts = Random(seed), list[str]()
    for _ in range(TEXTS):
        symbols = drawn.sample(SYMBOLS, drawn.randint(SHORTEST, LONGEST))
        texts.append("".join(symbols + symbols[: drawn.randint(2, len(symbols) - 2)]))
    return texts


def measure_texts(seed: int) -> OverTexts:
    """Measures the heads of the model that continues repeated symbols, on many such texts."""
    tokenizer = library.checkpoint(REPEATS).tokenizer
    assert tokenizer is not None
    found = [measure_heads(REPEATS, tokenizer.encode(text).ids) for text in repeated_texts(seed)]
    added = torch.stack([one.added.flatten() for one in found])
    changed = torch.stack([one.likeliest.flatten() != one.answer for one in found])
    logits = torch.tensor([one.logit for one in found])
    return OverTexts(added, changed, logits, torch.corrcoef(torch.cat([added.T, logits[None]]))[-1, :-1])
